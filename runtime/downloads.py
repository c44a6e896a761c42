"""The receivers of one party: one ``Receiver`` core a download, from FETCH_PAYLOAD until it is over.

A trainer has one for each task that comes in, a host one for each result that it wants. A payload that rode in its message is decoded
at once; another is pulled over the data link.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import define, field

from troth.runtime.driver import Driver
from troth.runtime.payloads import Carried, DataLink
from troth.runtime.tracing import Tracer
from troth.spec.core import (
    CancelTransfer,
    Effect,
    Event,
    Key,
    Message,
    Pull,
    Received,
    Refusal,
    Send,
    TransferEnded,
    TransferOutcome,
)
from troth.spec.limits import Limits
from troth.spec.messages import DropPayload, FetchPayload
from troth.statemachines import Receiver, ReceiverConfig
from troth.statemachines.receiver import OVER, PARTY
from troth.statemachines.shared.words import DATA, RECEIVERS


@define(eq=False)
class Downloads:
    """The downloads of one party."""

    driver: Driver
    party: str
    kind: str
    """What its transfers are called: ``task`` or ``result``."""
    limits: Limits
    carried: Callable[[int], Carried | None]
    """What came with the task or result of that sequence, while anybody wants it."""
    arrived: Callable[[int, Any], None]
    """Takes the payload of that sequence."""
    tracer: Tracer | None = None
    data: DataLink = field(init=False)
    """The data link; it knows this object too, so it comes afterwards."""
    _waiting: dict[Key, Callable[[], bool]] = field(factory=dict, init=False)
    """Pulls that were begun while there was no connection. Their receiver's stall says how long they may wait."""

    def name(self, key: Key) -> str:
        """What the driver calls the receiver of a payload."""
        return f"{self.party}/{self.kind}/{key[0]}" if isinstance(key, tuple) else f"{self.party}/{self.kind}"

    def tell(self, message: Message) -> None:
        """What the party says on its local link."""
        if not isinstance(message, FetchPayload | DropPayload):
            raise TypeError(f"a receiver is told to fetch or to drop, not {message!r}")
        key = message.seq, 0
        name = self.name(key)
        if isinstance(message, FetchPayload):
            self.driver.remove(name)
            core = Receiver(ReceiverConfig(limits=self.limits), strict=False)
            self.driver.add(name, core, _Download(self, core, name, key, message.inline), tracer=self.tracer)
        self.driver.tell(name, Received(PARTY, message))

    def pull(self, key: Key, inline: bool, arrived: Callable[[Any], None]) -> bool:
        """Begin to fetch a payload, or wait for a connection to fetch it over. False if nobody wants it any more."""
        carried = self.carried(key[0]) if isinstance(key, tuple) else None
        if carried is None:
            return False
        if inline or self.data.up:
            return self.data.pull(self.kind, key, carried, arrived)
        self._waiting[key] = partial(self.pull, key, inline, arrived)
        return True

    def came_up(self) -> None:
        """There is a connection: fetch what has waited for one."""
        waiting, self._waiting = self._waiting, {}
        for key, pull in waiting.items():
            if not pull():
                self.give(key, TransferEnded("payload", key, TransferOutcome.FAILED))

    def cancel(self, key: Key) -> None:
        """Stop fetching, and report nothing more."""
        self._waiting.pop(key, None)
        self.data.cancel(self.kind, key)

    def forget(self, key: Key) -> None:
        """A receiver is over: let go of what has come."""
        self._waiting.pop(key, None)
        self.data.forget(self.kind, key)

    def leave(self) -> None:
        """The party has ended, and its receivers with it."""
        for name in [name for name in self.driver if name.startswith(f"{self.party}/")]:
            self.driver.remove(name)

    def give(self, key: Key, event: Event) -> None:
        """What the data link reports of a download."""
        self.driver.give(self.name(key), event)


@define(eq=False)
class _Download:
    """The effects of one receiver."""

    downloads: Downloads
    core: Receiver
    name: str
    key: tuple[int, int]
    inline: bool

    def perform(self, effect: Effect) -> bool:
        """Start an effect."""
        downloads = self.downloads
        match effect:
            case Send(link=link, message=message) if link == PARTY:
                downloads.driver.tell(downloads.party, Received(RECEIVERS, message))
            case Send(link=link, message=message) if link == DATA:
                return downloads.data.send(message)
            case Pull():
                return downloads.pull(self.key, self.inline, self._take)
            case CancelTransfer():
                downloads.cancel(self.key)
            case _:
                raise TypeError(f"a receiver does not have the effect {effect!r}")
        return True

    def violated(self, event: Event, refusal: Refusal) -> None:
        """A receiver's tables refuse nothing that a peer can send."""
        raise TypeError(f"{self.name} refused {event!r}: {refusal.why}")

    def stepped(self) -> None:
        """Leave when it is over."""
        if self.core.state("download") in OVER:
            self.downloads.forget(self.key)
            self.downloads.driver.remove(self.name)

    def _take(self, tree: Any) -> None:
        self.downloads.arrived(self.key[0], tree)
