"""The driver: the only caller of ``handle``.

It holds the cores of one process that meet on local links, gives them what happens, and has the effects performed.

Rule 1.  A step is atomic: its effects are all started before anything is awaited, and no event is handled in between.
Rule 2.  What a step says on a local link arrives before any other event is handled (Rule 6 of the core interface).
Rule 3.  An effect that failed comes back as an event. Nothing is tried again here; the rows say what to do.
Rule 4.  Whose fault a refusal is decides what happens: the user's is raised to the caller, the peer's closes its link, ours stops
         the runtime.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

import trio
from attrs import define, field, frozen

from troth.runtime.errors import RuntimeFault
from troth.runtime.timers import Timers
from troth.runtime.tracing import Tracer
from troth.spec.core import CancelTimer, Effect, EffectFailed, Event, Refusal, RefusalKind, SetTimer, Step, TimerFired
from troth.spec.engine import PartyCore
from troth.spec.limits import Limits

log = logging.getLogger("troth.runtime.driver")


class Performer(Protocol):
    """What a party's effects do to the world."""

    def perform(self, effect: Effect) -> bool:
        """Start an effect, without waiting. False if it could not be done."""
        ...

    def violated(self, event: Event, refusal: Refusal) -> None:
        """The peer sent what it may not send: close the link that it came on."""
        ...

    def stepped(self) -> None:
        """A step was taken and its effects are started."""
        ...


@define(eq=False)
class Hosted:
    """A party of this driver."""

    core: PartyCore
    performer: Performer
    limits: Limits
    """The durations of its timers. A handshake may replace them."""
    epoch: Callable[[PartyCore], int | None]
    tracer: Tracer | None


@frozen
class _Pending:
    """An event that waits for its turn."""

    party: str
    event: Event


def no_epoch(_core: PartyCore) -> None:
    """For a party that has no session."""


def _nobody(_error: BaseException) -> None:
    """Nobody wants to know."""


@define(eq=False)
class Driver:
    """The cores of one process, and what happens to them."""

    _parties: dict[str, Hosted] = field(factory=dict)
    _local: deque[_Pending] = field(factory=deque)
    _later: deque[_Pending] = field(factory=deque)
    _busy: bool = False
    _now: float | None = None
    """The clock during one reaction, looked at when it is first needed."""
    _turn: int = 0
    """Steps that were traced."""
    on_fault: Callable[[BaseException], None] = field(default=_nobody, init=False)
    """Told of what ends in the middle of a reaction, before that is raised to whoever has given the event."""
    on_step: Callable[[str, PartyCore, Event, Step], None] | None = field(default=None, init=False)
    """Told of each step before its effects are started: for whoever looks on, in this process."""
    timers: Timers = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.timers = Timers(self._fired)

    # -- the parties ---------------------------------------------------------------------------------------------------

    def add(
        self,
        party: str,
        core: PartyCore,
        performer: Performer,
        *,
        epoch: Callable[[PartyCore], int | None] = no_epoch,
        tracer: Tracer | None = None,
    ) -> None:
        """A party joins, under a name of its own."""
        if party in self._parties:
            raise RuntimeFault(f"there is a party {party!r} already")
        self._parties[party] = Hosted(core, performer, core.config.limits, epoch, tracer)

    def remove(self, party: str) -> None:
        """A party leaves; what still comes for it is dropped, as by a process that has ended."""
        if self._parties.pop(party, None) is not None:
            self.timers.forget(party)

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._parties))

    def __contains__(self, party: str) -> bool:
        return party in self._parties

    def core(self, party: str) -> PartyCore:
        """The core of a party, to look at."""
        return self._parties[party].core

    def set_limits(self, party: str, limits: Limits) -> None:
        """From now on the party's timers run for these durations."""
        self._parties[party].limits = limits

    # -- what happens --------------------------------------------------------------------------------------------------

    @trio.lowlevel.enable_ki_protection
    def give(self, party: str, event: Event) -> Step | None:
        """Let a party take an event, and all that follows from it at once. Its step; ``None`` if it has to wait for the step that is
        being performed. A Ctrl-C meanwhile is raised afterwards. Raises ``RuntimeFault`` if the event cannot have happened."""
        if self._busy:
            self._later.append(_Pending(party, event))
            return None
        self._busy = True
        self._now = None
        try:
            step = self._handle(party, event)
            while self._local or self._later:
                pending = (self._local or self._later).popleft()
                self._handle(pending.party, pending.event)
        except BaseException as error:
            # Half a reaction cannot be taken back: the rest of it is void, and the runtime is on its way down.
            self._local.clear()
            self._later.clear()
            self.on_fault(error)
            raise
        finally:
            self._busy = False
        return step

    def tell(self, party: str, event: Event) -> None:
        """A local link's delivery, said by a performer: it comes before everything else that waits."""
        self._local.append(_Pending(party, event))

    def _fired(self, party: str, event: TimerFired) -> None:
        self.give(party, event)

    def _handle(self, party: str, event: Event) -> Step | None:
        hosted = self._parties.get(party)
        if hosted is None:
            return None
        step = hosted.core.handle(event)
        if hosted.tracer is not None:
            if self._now is None:
                self._now = trio.current_time()
            now_ns, epoch = int(self._now * 1e9), hosted.epoch(hosted.core)
            hosted.tracer.note(hosted.core, event, step, party=party, turn=self._turn, t_ns=now_ns, epoch=epoch)
            self._turn += 1
        if self.on_step is not None:
            self.on_step(party, hosted.core, event, step)
        if step.refusal is not None:
            self._refused(party, hosted, event, step.refusal)
            return step
        for effect in step.effects:
            self._perform(party, hosted, effect)
        hosted.performer.stepped()
        return step

    def _perform(self, party: str, hosted: Hosted, effect: Effect) -> None:
        if isinstance(effect, SetTimer):
            if self._now is None:
                self._now = trio.current_time()
            self.timers.set(party, effect.timer, effect.key, effect.generation, getattr(hosted.limits, effect.limit), now=self._now)
        elif isinstance(effect, CancelTimer):
            self.timers.cancel(party, effect.timer, effect.key)
        elif not hosted.performer.perform(effect):
            self._later.append(_Pending(party, EffectFailed(effect)))

    def _refused(self, party: str, hosted: Hosted, event: Event, refusal: Refusal) -> None:
        if refusal.kind is RefusalKind.VIOLATION:
            log.warning("%s: refused what its peer sent (%s): %s", party, refusal.row, refusal.why)
            hosted.performer.violated(event, refusal)
        elif refusal.kind is RefusalKind.DRIVER:
            raise RuntimeFault(f"{party} was told what cannot have happened: {event} ({refusal.row}: {refusal.why})")
