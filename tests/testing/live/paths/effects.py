"""What the effects of all steps must have left behind, beside what is there: timers, links, signals, payloads, transfers.

What has to be there follows from the steps that the cores took; what is there is read from the driver's timers, the sessions' links and the
simulated ports. An effect that a driver forgets, or starts twice, makes the two differ even where no machine ever hears of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from attrs import define, field

from troth.runtime.driver import Driver
from troth.runtime.sim.network import SimStream
from troth.runtime.wire.kinds import BY_CODE, PullStopped
from troth.spec import core as c
from troth.spec import messages as m
from troth.statemachines.shared.words import DATA
from troth.testing.live.seats import Seat
from troth.testing.live.stage import Stage

Where: TypeAlias = "tuple[str, str, c.Key]"
"""Party, timer and key."""
SAID = frozenset(kind.__name__ for kind in (PullStopped, m.PayloadHeld, m.PayloadAbandoned, m.PayloadReleased, m.PayloadGone))
"""Frames of a data link that come of effects, one for one."""


@define(eq=False)
class Kept:
    """What the steps of a host or trainer and of its receivers have asked for."""

    name: str
    session: Any
    launch: bytes
    driver: Driver
    seat: Seat | None
    """The process that it is in; ``None`` for a host."""
    open: bool = False
    """It wants its control link."""
    signals: list[c.ProcessSignal] = field(factory=list)
    offers: set[c.Key] = field(factory=set)
    transfers: set[c.Key] = field(factory=set)
    said: list[str] = field(factory=list)
    """What it has to have said on its data link, in order: of payloads, and that it wants no more of a pull that is under way."""

    @property
    def lives(self) -> bool:
        """Whether there still is somebody whose links and transfers these are."""
        return self.name in self.driver and (self.seat is None or not self.seat.gone)

    def took(self, event: c.Event, step: c.Step) -> None:
        """It, or a receiver of it, took a step, whose effects are not started yet."""
        if isinstance(event, c.TransferEnded) and event.kind == "payload":
            self.transfers.discard(event.key)
        elif isinstance(event, c.EffectFailed) and isinstance(event.effect, c.Pull):
            self.transfers.discard(event.effect.key)
        for effect in step.effects:
            self._asked(effect)

    def _asked(self, effect: c.Effect) -> None:
        match effect:
            case c.OpenLink():
                self.open = True
            case c.CloseLink():
                self.open = False
            case c.SignalProcess(signal=signal):
                self.signals.append(signal)
            case c.Offer(key=key):
                self.offers.add(key)
            case c.Release(key=key):
                self.offers.discard(key)
            case c.Pull(key=key):
                self.transfers.add(key)
            case c.CancelTransfer(key=key):
                self.transfers.discard(key)
                if self._data.up and key in self._requested():
                    self.said.append(PullStopped.__name__)
            case c.Send(link=link, message=message) if link == DATA and self._data.up:
                self.said.append(type(message).__name__)
            case _:
                pass  # Timers are the core's own; what is said, resolved and spawned shows elsewhere

    @property
    def _data(self) -> Any:
        return self.session._links.data

    def _requested(self) -> set[c.Key]:
        return {download.key for download in self._data._pulls._requests.values()}

    def differences(self, stage: Stage) -> Iterator[str]:
        """What is not as it was asked for, while it lives."""
        if self._opened() != self.open:
            yield f"{self.name} {'wants' if self._opened() else 'does not want'} its control link, and its core has said otherwise"
        ends = [self._end(connection) for connection in stage.network.connections if self._is(connection, "control")]
        if not self.open and not all(end._closed for end in ends):
            yield f"{self.name} has a control connection, and its core has closed the link"
        offers = set(self._data._sources._offers)
        if offers != self.offers:
            yield f"{self.name} keeps the payloads {sorted(offers, key=str)}, and offers {sorted(self.offers, key=str)}"
        transfers = self._requested() | set(self.session._links.downloads._waiting)
        if transfers != self.transfers:
            yield f"{self.name} fetches {sorted(transfers, key=str)}, and its receivers pull {sorted(self.transfers, key=str)}"
        connections = [connection for connection in stage.network.connections if self._is(connection, "data")]
        pipes = [connection.down if self.seat is None else connection.up for connection in connections]
        said = [name for pipe in pipes for seen in pipe.frames if (name := BY_CODE[seen.code].name) in SAID]
        if said != self.said:
            yield f"{self.name} has said {said} on its data link, and {self.said} is what its steps come to"

    def _opened(self) -> bool:
        return bool(self.session._open if self.seat is None else self.session._dialling.is_set())

    def _is(self, connection: Any, role: str) -> bool:
        return bool(connection.role == role and connection.launch == self.launch)

    def _end(self, connection: Any) -> SimStream:
        end: SimStream = connection.acceptor if self.seat is None else connection.dialler
        return end


@define(eq=False)
class Effects:
    """See the module. ``listened`` says that a driver's steps are heard of."""

    stage: Stage
    kept: dict[tuple[int, str], Kept] = field(factory=dict, init=False)
    """By the number of the process, which is -1 for the host's, and the party."""
    _drivers: list[tuple[Driver, Seat | None]] = field(factory=list, init=False)
    _never: dict[tuple[int, Where], bool] = field(factory=dict, init=False)
    """Whether a timer was set last for a duration without end."""
    _given: list[tuple[str, c.ProcessSignal]] = field(factory=list, init=False)
    """The signals that were sent, by launch."""

    def __attrs_post_init__(self) -> None:
        processes = self.stage.processes
        perform = processes.signal

        def sent(launch_id: str, signal: c.ProcessSignal) -> bool:
            self._given.append((launch_id, signal))
            return perform(launch_id, signal)

        processes.signal = sent  # type: ignore[method-assign]

    def listened(self, driver: Driver, seat: Seat | None) -> None:
        """From now on its steps are told."""
        self._drivers.append((driver, seat))

    def took(self, driver: Driver, party: str, event: c.Event, step: c.Step) -> None:
        """A party of a driver took a step, whose effects are not started yet."""
        if step.refusal is not None:
            return
        number, seat = next((at, seat) for at, (one, seat) in enumerate(self._drivers, -1) if one is driver)
        for effect in step.effects:
            if isinstance(effect, c.SetTimer):
                where = party, effect.timer, effect.key
                self._never[number, where] = getattr(driver._parties[party].limits, effect.limit) is None
        name = party.partition("/")[0]
        if name == "supervisor":
            return
        if (number, name) not in self.kept:
            session = self.stage.backend._latest if seat is None else seat.session
            launch = session.launch_id if seat is None else seat.launch  # type: ignore[union-attr]
            self.kept[number, name] = Kept(name, session, launch, driver, seat)
        self.kept[number, name].took(event, step)

    def differences(self) -> list[str]:
        """What is not as it was asked for, once everything has settled."""
        found = [one for number, (driver, seat) in enumerate(self._drivers, -1) for one in self._timers(number, driver, seat)]
        for kept in self.kept.values():
            if kept.lives:
                found += kept.differences(self.stage)
            if kept.seat is None:
                found += self._signals(kept)
        return found

    def _timers(self, number: int, driver: Driver, seat: Seat | None) -> Iterator[str]:
        if seat is not None and seat.gone:
            return
        running = {where: generation for where, (_, _, generation) in driver.timers._running.items()}
        armed: dict[Where, int] = {}
        for party in driver:
            armed |= {(party, *timer): generation for timer, generation in driver.core(party).armed.items()}
        armed = {where: generation for where, generation in armed.items() if not self._never.get((number, where))}
        if running != armed:
            apart = sorted(map(str, running.items() ^ armed.items()))
            yield f"the timers that run are not those that are armed: {', '.join(apart)} is only in one of them"

    def _signals(self, kept: Kept) -> Iterator[str]:
        given = [signal for launch, signal in self._given if launch == kept.launch.hex()]
        more = given[len(kept.signals) :]
        # A host that has left gives up what it launched, without a step.
        if given[: len(kept.signals)] != kept.signals or (more and (kept.lives or set(more) != {c.ProcessSignal.KILL})):
            yield f"the process of {kept.name} was sent {given}, and its host has asked for {kept.signals}"
