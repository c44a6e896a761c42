"""Worlds of one party among arbitrary messages: the party is the live one, and its peer writes real frames by hand.

The stage is a launched pair's. The side that is not the world's is there to be connected to; what it says itself is never let through,
and what the world has it say is written onto its connection. So frames, the authenticated connection, the decoder, the driver, the
payloads and the calls are all real. The party may also be one that the runtime does not make, an attached one: then it is given the
configuration of the world, and what an attached side does with SESSION_OPEN is done here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import attrs
from attrs import define, field

from tests.testing.live.paths.casting import MAKERS, cast, swapped
from tests.testing.live.paths.conducting import CannotPerform
from tests.testing.live.paths.holding import longer
from tests.testing.live.paths.launched import Launched
from tests.testing.live.paths.leading import counts, hands_over
from tests.testing.live.paths.users import Receiving
from troth.models.system import State, System
from troth.models.trace import TraceStep
from troth.models.worlds.protocol.reading import layout
from troth.runtime.downloads import Downloads
from troth.runtime.host import HostSession
from troth.runtime.payloads import encode as encoded
from troth.runtime.ports import Launch
from troth.runtime.processes.bootstrap import BOOTSTRAP_VARIABLE
from troth.runtime.sim.faults import DOWN, UP
from troth.runtime.trainer import TrainerSession
from troth.runtime.wire import besides
from troth.runtime.wire.codec import Arrived, encode
from troth.spec import core as c
from troth.spec import messages as m
from troth.spec.limits import Limits
from troth.spec.party import Party
from troth.statemachines.supervisor.launches import HOSTS
from troth.statemachines.trainer import TRAINER
from troth.testing.live.stage import Setup
from troth.testing.paths import Bars

TREES = ({"n": 1}, {"n": 2})
"""What is sent as content 0 and 1."""
NO_CONNECTION = "nothing arrives at a side that has no link: it has not opened it yet, or has closed it"
UNBORN = ("NEW", "PASSIVE", "CLOSED")


def at_once(step: TraceStep) -> str | None:
    """The action that comes in the same moment: see ``launched.at_once``."""
    name = step.action.name
    if name in ("trainer.init 0", "host.StartSession"):
        return f"{name.partition('.')[0]}.link up"
    if name.startswith("trainer.receive") and hands_over(step):
        return name.replace("receive", "take")
    return None


def bars(system: System) -> Bars:
    """Nothing arrives over a link that is not there."""
    places = {table.component.name: index for index, table in enumerate(system.components)}

    def barred(state: State, step: TraceStep) -> str | None:
        operation = step.action.items[-1][1]
        if "trainer" not in places or not (isinstance(operation, c.Received) and operation.link in ("control", "data")):
            return None
        return None if linked({name: system.components[index].states[state[index]] for name, index in places.items()}) else NO_CONNECTION

    return barred


def linked(parties: Mapping[str, Any]) -> bool:
    """Whether a world's trainer has its link open, by the states of its parties."""
    if "link" in parties:
        return bool(parties["link"].state)
    session: str = parties["trainer"].state[0][layout(TRAINER).places["session"]][0]
    return session not in UNBORN


class Deaf:
    """A supervisor that starts one session, and hears nothing of what it is told. Its orders are given by hand."""

    def __init__(self, config: Any, **_options: Any) -> None:
        self.config = config

    def handle(self, event: c.Event) -> c.Step:
        """Start the session when the application enters, and let each of its calls return."""
        if not isinstance(event, c.Called):
            return c.Step()
        starts = (c.Send(HOSTS, m.StartSession(launch=1)),) if event.call == "start" else ()
        return c.Step((*starts, c.Resolve(event.call, event.number, m.Outcome.OK)))

    def snapshot(self) -> tuple[()]:
        """Nothing."""
        return ()


@define(eq=False)
class Alone(Launched):
    """See the module. ``party`` is the declaration that the live core is made of: the world's, or a mutant of it."""

    party: Party = field(kw_only=True)
    judged: bool = False
    pulls: list[tuple[Any, Callable[[], bool]]] = field(factory=list)
    """Payloads that rode in their messages and are not decoded yet: the key, and how that is done."""
    instance: int = 0
    waits: dict[int, Receiving] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        name = next(name for name in ("trainer", "host") if name in {t.component.name for t in self.system.components})
        self.name = name
        with self._prepared():
            Launched.__attrs_post_init__(self)

    name: str = field(default="", init=False)

    # -- the cast ------------------------------------------------------------------------------------------------------

    @contextmanager
    def _prepared(self) -> Iterator[None]:
        """While the runtime makes its parties, and while they act."""
        understood, beside, pull = TrainerSession._understood, HostSession._beside, Downloads.pull

        def opened(session: TrainerSession, arrived: Arrived) -> c.Message:
            if arrived.kind.message is not m.SessionOpen:
                return understood(session, arrived)
            session._bound.set()
            return arrived.message(instance=int(arrived.beside.instance))

        def opening(session: HostSession, message: c.Message) -> Any:
            return besides.SessionOpenBeside("0") if isinstance(message, m.SessionOpen) else beside(session, message)

        def held(downloads: Downloads, key: Any, inline: bool, arrived: Any) -> bool:
            if downloads.party != "trainer":
                return pull(downloads, key, inline, arrived)
            self.pulls.append((key, partial(pull, downloads, key, inline, arrived)))
            return True

        with (
            cast(self.party, self._configured),
            swapped(
                (TrainerSession, "_understood", opened),
                (HostSession, "_beside", opening),
                (HostSession, "admits", lambda _session, _role, _epoch: True),
                (Downloads, "pull", held),
                (*MAKERS["supervisor"], Deaf),
            ),
        ):
            yield

    def _configured(self, config: Any) -> Any:
        wanted = self.parties.config(self.name)
        return attrs.evolve(wanted, limits=longer(type(config.limits)(), **counts(wanted.limits)))

    def _setup(self) -> Setup:
        return Setup(limits=longer(Limits()), takes_term=True)

    def perform(self, step: TraceStep, ahead: Sequence[TraceStep]) -> bool:
        """See ``Conductor``."""
        with self._prepared():
            if self.stage.entered is None and self.name == "trainer":
                self.stage.enter()
                self.heard.set()
                self._settle()
            return Launched.perform(self, step, ahead)

    @staticmethod
    def _at_once(step: TraceStep) -> str | None:
        return at_once(step)

    # -- what happens --------------------------------------------------------------------------------------------------

    def _call(self, party: str, what: str, step: TraceStep) -> None:
        operation: Any = step.action.items[-1][1]
        if party == "fetcher":
            self._payload(operation)
        elif isinstance(operation, c.Received) and operation.link == "supervisor":
            self._order(operation)
        elif isinstance(operation, c.Received) and operation.link == "control":
            self._say(operation.message)
        elif isinstance(operation, c.OwnerLost) and self.name == "trainer":
            self.stage.orphan(self.seat)
            self.stage.settle(look=True)
        elif isinstance(operation, c.Called) and operation.call in ("receive", "take"):
            self._threads(operation)
        elif isinstance(operation, c.Called):
            number, name = operation.number, {"init 0": "init"}.get(what, "send" if operation.call == "send" else what)
            self.seat.session._calls._last = number - 1
            self._called(name, operation)
        elif isinstance(operation, c.LinkUp):
            if not self._linked:
                raise CannotPerform("the link does not come up")
        elif isinstance(operation, c.LinkLost):
            self._cut()
        else:
            raise CannotPerform(step.action.name)

    def _called(self, name: str, event: c.Called) -> None:
        session, seat, stage = self.seat.session, self.seat, self.stage
        match name:
            case "init":
                self.calls["init"] = stage.seat_call(seat, "init", session.init)
            case "send":
                payload: Any = event.payload
                stage.seat_call(seat, "send", partial(session.send, TREES[payload.content]))
                if payload.content and session.current is not None:  # the first that is sent is content 0, whatever the world calls it
                    session._digests.setdefault(session.current.seq, encoded(TREES[0]).digest)
                    session._results.setdefault(session.current.seq, encoded(TREES[1]))
            case "shutdown":
                stage.seat_call(seat, "shutdown", session.shutdown)
            case _:
                raise CannotPerform(f"trainer.{name}")

    def _threads(self, event: c.Called) -> None:
        """Several threads may be in receive()."""
        thread = self.waits.setdefault(event.number, Receiving(self.stage, self.held))
        if event.call == "take":
            thread.take(taken=self._together)
            return
        self.seat.session._calls._last = event.number - 1
        thread.receive(self.seat)

    def _cut(self) -> None:
        line = self.wires.line("control")
        if line is None:
            raise CannotPerform("there is no connection")
        line.sim.cut()

    def _payload(self, event: c.Called) -> None:
        wanted: Any = event.payload
        found = [at for at, (key, _) in enumerate(self.pulls) if key[0] == wanted[1]]
        if not found:
            raise CannotPerform(f"nobody fetches {wanted}")
        key, pull = self.pulls.pop(found[0])
        if event.call == "arrives":
            pull()
        else:
            self.seat.session._links.downloads.give(key, c.TransferEnded("payload", key, c.TransferOutcome.FAILED))

    def _order(self, event: c.Received) -> None:
        stage = self.stage
        if isinstance(event.message, m.StartSession):
            stage.enter()
            self._settle()
            self._come()
            return
        host = stage.backend._latest
        if host is None:
            raise CannotPerform("there is no session to give orders to")
        stage.backend._order = stage.backend._order or _an_order()
        host.driver.give(host.party, event)

    def _come(self) -> None:
        """The trainer of an attached host is started by somebody, and dials."""
        stage = self.stage
        host = stage.backend._latest
        if host is None:
            raise CannotPerform("there is no session to come to")
        if not stage.seats:
            path = host.setting.folder / f"{host.party}.json"
            host._bootstrap().write(stage.files, path)
            launch = Launch(host.launch_id.hex(), "trainer", ("trainer",), {BOOTSTRAP_VARIABLE: str(path)}, host.setting.directory)
            self.heard.set()
            stage.background(stage.processes.spawn, launch)
            self._settle()
        self.seat.session._dialling.set()
        self._settle()

    # -- frames --------------------------------------------------------------------------------------------------------

    def _say(self, message: Any) -> None:
        """The peer writes a frame, and it arrives."""
        line = self.wires.line("control")
        if line is None or not self._linked:
            raise CannotPerform(NO_CONNECTION)
        line.sim.pipes[DOWN if self.name == "trainer" else UP].insert(encode(message, _beside(message, self.stage.setup.limits)))

    # -- comparing -----------------------------------------------------------------------------------------------------

    def differences(self, steps: Sequence[TraceStep], state: State) -> list[str]:
        """Of the party alone: nobody hears what it says."""
        return self.parties.differences(steps, state)

    def close(self) -> None:
        """See ``Conductor``."""
        with self._prepared():
            self._end()

    def drop(self) -> None:
        """See ``Conductor``."""
        with self._prepared():
            Launched.drop(self)


def _an_order() -> Any:
    from troth.runtime.session import Order

    return Order("id", "task", encoded(TREES[0]))


def _beside(message: Any, limits: Any) -> Any:
    """What rides beside a message: of the content, and by the instance, that the message has."""
    match message:
        case m.SessionOpen(instance=instance):
            return besides.SessionOpenBeside(str(instance))
        case m.HelloAccepted():
            terms = besides.Terms(limits.heartbeat_interval_s, limits.lease_timeout_s, limits.unresponsive_limit_s)
            return besides.HelloAcceptedBeside(terms, secure=False, credentials=None)
        case m.TaskReady(seq=seq, content=content):
            payload = encoded(TREES[content])
            return besides.TaskBeside(f"id-{seq}", f"task-{seq}", payload.digest, payload.manifest, payload.riding(), payload.nbytes)
        case m.ResultReady(content=content, inline=inline):
            payload = encoded(TREES[content])
            return besides.ResultBeside(payload.digest, payload.manifest, payload.riding() if inline else b"", payload.nbytes)
        case _:
            return None
