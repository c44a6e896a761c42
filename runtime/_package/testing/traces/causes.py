"""What has to come before the events that no message and no timer brings: calls, processes, transfers, links, effects that failed."""

from __future__ import annotations

from collections import Counter, OrderedDict

from attrs import define, field

from troth.spec import core as c
from troth.spec.core import Key
from troth.testing.traces.verdicts import Wrong

CALLS_KEPT = 4096
"""Calls that can still be given up. A caller wakes in the turn after its call was resolved, so far fewer can be meant."""
FAILS = (c.Send, c.OpenLink, c.Offer, c.Pull, c.SignalProcess)
"""Effects that fail at once, or not at all; ``Spawn`` fails in its own time."""


@define(eq=False)
class Causes:
    """What one party did that others may answer for."""

    up: bool = False
    """Whether it has a control link."""
    opened: bool = False
    _calls: OrderedDict[tuple[str, int], None] = field(factory=OrderedDict)
    _starting: Counter[int] = field(factory=Counter)
    _living: Counter[int] = field(factory=Counter)
    """Processes that were asked for, by number: whose start, and whose end, was not reported yet."""
    _offered: set[tuple[str, Key]] = field(factory=set)
    _pulling: dict[tuple[str, Key], int | None] = field(factory=dict)
    """What is being pulled; since when it is not any more, where it was cancelled."""
    _failing: Counter[c.Effect] = field(factory=Counter)
    """Effects of the reaction under way that may still fail."""
    _t_ns: int = -1

    def happened(self, event: c.Event, t_ns: int) -> None:  # noqa: C901, PLR0912 - one case an event
        """An event is about to be taken. Raises ``Wrong`` if nothing can have brought it."""
        match event:
            case c.Called(call=call, number=number):
                self._calls[call, number] = None
                self._calls.move_to_end((call, number))
                while len(self._calls) > CALLS_KEPT:
                    self._calls.popitem(last=False)
            case c.CallCancelled(call=call, number=number):
                if self._calls.pop((call, number), self) is self:
                    raise Wrong(f"{call}() number {number} was given up, but nobody had called it, or it was given up before")
            case c.ProcessStarted(process=process):
                if not self._starting[process]:
                    raise Wrong(f"process {process} has started, but nobody had asked for it, or it was reported before")
                self._starting[process] -= 1
            case c.ProcessExited(process=process):
                if not self._living[process]:
                    raise Wrong(f"process {process} has ended, but nobody had asked for it, or it was reported before")
                self._living[process] -= 1
            case c.EffectFailed(effect=effect):
                self._failed(effect, t_ns)
            case c.LinkUp(link=link):
                if self.up or not self.opened:
                    raise Wrong(f"link {link} came up, but {'it was up' if self.up else 'nobody had opened it'}")
                self.up = True
            case c.LinkLost(link=link):
                if not self.up:
                    raise Wrong(f"link {link} was lost, but it was not up")
                self.up = False
            case c.TransferEnded(kind=kind, key=key):
                self._moved(kind, key, t_ns, over=True)
            case c.TransferProgressed(kind=kind, key=key):
                self._moved(kind, key, t_ns, over=False)
            case _:
                pass

    def _failed(self, effect: c.Effect, t_ns: int) -> None:
        if isinstance(effect, c.Spawn):
            if not self._starting[effect.process]:
                raise Wrong(f"process {effect.process} could not be started, but nobody had asked for it, or it was reported before")
            self._starting[effect.process] -= 1
            self._living[effect.process] -= 1
            return
        if t_ns != self._t_ns or not self._failing[effect]:
            raise Wrong(f"{effect} is said to have failed, but no step of this reaction had that effect")
        self._failing[effect] -= 1
        if isinstance(effect, c.Pull):
            self._pulling.pop((effect.kind, effect.key), None)

    def _moved(self, kind: str, key: Key, t_ns: int, *, over: bool) -> None:
        where = kind, key
        if where in self._pulling:
            stopped = self._pulling[where]
            if stopped is not None and stopped != t_ns:
                raise Wrong(f"the transfer {kind} {key} moved after it was cancelled")
            if over:
                del self._pulling[where]
        elif where not in self._offered:
            raise Wrong(f"the transfer {kind} {key} moved, but nothing had offered it or asked for it")

    def fetches(self, kind: str, key: Key) -> None:
        """A receiver of the party has asked for that payload, so the party may hear that it moves."""
        self._offered.add((kind, key))

    def did(self, effect: c.Effect, t_ns: int) -> None:
        """An effect of a step at that time."""
        if t_ns != self._t_ns:
            self._failing.clear()
            self._t_ns = t_ns
        if isinstance(effect, FAILS):
            self._failing[effect] += 1
        match effect:
            case c.Spawn(process=process):
                self._starting[process] += 1
                self._living[process] += 1
            case c.Offer(kind=kind, key=key):
                self._offered.add((kind, key))
            case c.Pull(kind=kind, key=key):
                self._pulling[kind, key] = None
            case c.CancelTransfer(kind=kind, key=key):
                if (kind, key) in self._pulling:
                    self._pulling[kind, key] = t_ns
            case c.OpenLink():
                self.opened = True
            case _:
                pass
