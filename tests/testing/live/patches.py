"""Faults that are put into the runtime, and defects of the reference that are brought back: each must be found.

The defects have the numbers of the conformance page, and concern what lives on the simulated ports.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import pytest
import trio
from attrs import evolve

from troth.runtime import trainer as trainers
from troth.runtime.driver import Driver
from troth.runtime.errors import ChallengeFailed, JoinFailed
from troth.runtime.host import HostSession
from troth.runtime.links import Links
from troth.runtime.timers import Timers
from troth.runtime.trainer import TrainerSession
from troth.runtime.wire import accepting
from troth.runtime.wire.besides import HelloAcceptedBeside
from troth.runtime.wire.challenge import ACCEPTOR_BYTES, CALL, CONFIRMED, DIALLER_BYTES, ROLES, Authenticated
from troth.runtime.wire.connection import Connection
from troth.spec import core as c

Patch = Callable[[pytest.MonkeyPatch], None]

# -- the driver --------------------------------------------------------------------------------------------------------


def drop_an_effect(patch: pytest.MonkeyPatch) -> None:
    """Every twentieth effect that a driver should perform is not performed."""
    perform = Driver._perform
    counts = WeakKeyDictionary[Driver, int]()

    def forgetful(driver: Driver, *arguments: Any) -> None:
        counts[driver] = counts.get(driver, 0) + 1
        if counts[driver] % 20:
            perform(driver, *arguments)

    patch.setattr(Driver, "_perform", forgetful)


def reorder_two_effects(patch: pytest.MonkeyPatch) -> None:
    """The last two effects of a step change places."""
    handle = Driver._handle

    def crossed(driver: Driver, party: str, event: Any) -> Any:
        hosted = driver._parties.get(party)
        if hosted is None:
            return None
        perform, effects = hosted.performer.perform, deque[Any]()

        class Crossed:
            def violated(self, event: Any, refusal: Any) -> None:
                hosted_performer.violated(event, refusal)

            def perform(self, effect: Any) -> bool:
                effects.append(effect)
                return True

            def stepped(self) -> None:
                if len(effects) > 1:
                    effects[-1], effects[-2] = effects[-2], effects[-1]
                for effect in effects:
                    perform(effect)
                hosted_performer.stepped()

        hosted_performer = hosted.performer
        hosted.performer = Crossed()
        try:
            return handle(driver, party, event)
        finally:
            hosted.performer = hosted_performer

    patch.setattr(Driver, "_handle", crossed)


def fire_a_cancelled_timer(patch: pytest.MonkeyPatch) -> None:
    """A timer that was cancelled fires all the same."""
    patch.setattr(Timers, "cancel", lambda timers, party, timer, key: None)


# -- the reference -----------------------------------------------------------------------------------------------------


def let_anybody_in(patch: pytest.MonkeyPatch) -> None:
    """D19: what somebody claims to be is believed."""

    async def check(stream: Any, *, find: Any, **_: Any) -> Authenticated:
        call = bytearray(DIALLER_BYTES)
        view, got = memoryview(call), 0
        while got < CALL.size:
            got += await stream.receive_into(view[got : CALL.size])
        _, _, code, launch, epoch, _ = CALL.unpack(bytes(call[: CALL.size]))
        token = find(launch, ROLES[code], epoch)
        if token is None:
            stream.close()
            raise ChallengeFailed("there is no such launch")
        nonce = bytes(32)
        await stream.send_all(nonce + token.proof(b"host" + bytes(call[: CALL.size]) + nonce))
        while got < DIALLER_BYTES:
            got += await stream.receive_into(view[got:])
        await stream.send_all(CONFIRMED)
        return Authenticated(stream, ROLES[code], launch, epoch, bytes(call[-64:-32]) + nonce)

    assert ACCEPTOR_BYTES == 65
    patch.setattr(accepting, "check", check)


def remember_a_failed_init(patch: pytest.MonkeyPatch) -> None:
    """D21: an init() that has failed is not tried again."""
    init = TrainerSession.init
    failed = WeakKeyDictionary[TrainerSession, JoinFailed]()

    async def once(session: TrainerSession, **options: Any) -> bool:
        if session in failed:
            raise failed[session]
        try:
            return await init(session, **options)
        except JoinFailed as error:
            failed[session] = error
            raise

    patch.setattr(TrainerSession, "init", once)


def serve_the_cached_task(patch: pytest.MonkeyPatch) -> None:
    """D26: what was received last is given out again, though a new task has come."""
    receive = TrainerSession.receive

    async def cached(session: TrainerSession) -> Any:
        return session.current if session.current is not None else await receive(session)

    patch.setattr(TrainerSession, "receive", cached)


def keep_the_cached_payload(patch: pytest.MonkeyPatch) -> None:
    """D27: the task is the new one, the model is the one that was kept."""
    take = TrainerSession._take

    def stale(session: TrainerSession, number: int) -> Any:
        before = session.current
        found = take(session, number)
        if found is not None and before is not None and found is not before:
            found = session.current = trainers.Task(found.seq, found.task_id, found.name, before.payload)
        return found

    patch.setattr(TrainerSession, "_take", stale)


def return_silently(patch: pytest.MonkeyPatch) -> None:
    """D28: send() on a session that is over returns as if it had sent."""
    send = TrainerSession.send

    async def silent(session: TrainerSession, tree: Any) -> None:
        if session.over:
            await trio.lowlevel.checkpoint()
            return
        await send(session, tree)

    patch.setattr(TrainerSession, "send", silent)


def queue_without_bound(patch: pytest.MonkeyPatch) -> None:
    """D31: whatever is said waits to be written, however much that is."""

    def queued(connection: Connection, frame: bytes, code: int) -> bool:
        connection._put(frame, code)
        return True

    patch.setattr(Connection, "_queued", queued)


# -- a call ------------------------------------------------------------------------------------------------------------


def never_ask(patch: pytest.MonkeyPatch) -> None:
    """A send() that waits for ever, before it has asked for anything."""

    async def send(_session: TrainerSession, _tree: Any) -> None:
        await trio.sleep_forever()

    patch.setattr(TrainerSession, "send", send)


# -- links -------------------------------------------------------------------------------------------------------------


def overlook_a_violation(patch: pytest.MonkeyPatch) -> None:
    """A peer that says what it may not say is listened to as before."""
    patch.setattr(Links, "refused", lambda links, event, refusal: None)


def keep_what_a_trainer_closes(patch: pytest.MonkeyPatch) -> None:
    """A trainer whose core closes its link dials no more, and keeps the connection that there is."""

    def hang_up(session: TrainerSession) -> None:
        if session._dialling.is_set():
            session._dialling = trio.Event()
        if session._bound.is_set():
            session._bound = trio.Event()

    patch.setattr(TrainerSession, "_hang_up", hang_up)


def keep_what_a_host_closes(patch: pytest.MonkeyPatch) -> None:
    """A host whose core closes its link lets nobody in any more, and keeps the connection that there is."""
    perform = HostSession.perform

    def keeping(session: HostSession, effect: c.Effect) -> bool:
        if isinstance(effect, c.CloseLink):
            session._open = False
            return True
        return perform(session, effect)

    patch.setattr(HostSession, "perform", keeping)


def outlive_the_owner(patch: pytest.MonkeyPatch) -> None:
    """Nobody watches for the end of a trainer's owner."""

    async def watch(_session: TrainerSession, _fd: int) -> None:
        await trio.sleep_forever()

    patch.setattr(TrainerSession, "_watch_owner", watch)


# -- what is granted ---------------------------------------------------------------------------------------------------


def grant_other_terms(patch: pytest.MonkeyPatch) -> None:
    """A host grants another lease than it keeps."""
    beside = HostSession._beside

    def other(session: HostSession, message: Any) -> Any:
        found = beside(session, message)
        if isinstance(found, HelloAcceptedBeside):
            return evolve(found, terms=evolve(found.terms, lease_timeout_s=2 * found.terms.lease_timeout_s))
        return found

    patch.setattr(HostSession, "_beside", other)


def keep_the_own_terms(patch: pytest.MonkeyPatch) -> None:
    """A trainer's timers go on to run for what its bootstrap file says."""
    patch.setattr(Driver, "set_limits", lambda driver, party, limits: None)


# -- links that are dialled again --------------------------------------------------------------------------------------


def dial_once(role: str) -> Patch:
    """A link that is lost is not dialled again."""

    def applied(patch: pytest.MonkeyPatch) -> None:
        dial = TrainerSession._dial
        had = WeakKeyDictionary[TrainerSession, bool]()

        async def once(session: TrainerSession, wanted: Any) -> Any:
            if wanted == role and had.setdefault(session, False):
                await trio.sleep_forever()
            found = await dial(session, wanted)
            had[session] = had.get(session, False) or (wanted == role and found is not None)
            return found

        patch.setattr(TrainerSession, "_dial", once)

    return applied
