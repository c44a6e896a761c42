"""The links that one side of a session speaks over: control, data, and the local one to its receivers. Host and trainer have them alike."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

from attrs import frozen

from troth.runtime.control import ControlLink
from troth.runtime.downloads import Downloads
from troth.runtime.driver import Driver
from troth.runtime.errors import RuntimeFault
from troth.runtime.payloads import Carried, DataLink
from troth.runtime.tracing import Tracer
from troth.runtime.wire.codec import Arrived
from troth.spec.core import Event, Message, Received, Refusal
from troth.spec.limits import Limits
from troth.statemachines.shared.words import CONTROL, DATA, RECEIVERS


@frozen(eq=False)
class Links:
    """The links of one party."""

    party: str
    """What the driver calls it."""
    control: ControlLink
    data: DataLink
    downloads: Downloads

    @classmethod
    def join(
        cls,
        driver: Driver,
        party: str,
        *,
        peer: str,
        offers: str,
        fetches: str,
        limits: Limits,
        understood: Callable[[Arrived], Message],
        carried: Callable[[int], Carried | None],
        landed: Callable[[int, Any], None],
        tracer: Tracer | None,
    ) -> Self:
        """The links of ``party``, tied to each other. ``peer`` is what logs call the other side; it ``offers`` payloads of one kind and
        ``fetches`` those of the other; see ``ControlLink`` and ``Downloads`` for the rest."""
        give = partial(driver.give, party)
        downloads = Downloads(driver, party, fetches, limits, carried, landed, tracer)
        data = DataLink(give, downloads.give, offers, fetches, peer)
        downloads.data, data.came_up = data, downloads.came_up
        return cls(party, ControlLink(give, understood, peer), data, downloads)

    def say(self, link: str, message: Message, beside: Callable[[Message], Any]) -> bool:
        """What the party's core sends on one of these links; ``beside`` gives what rides along. False if it could not be handed over."""
        if link == CONTROL:
            return self.control.send(message, beside(message))
        if link == RECEIVERS:
            self.downloads.tell(message)
        elif link == DATA:
            self.data.send(message)  # what is not heard is asked for again
        else:
            raise RuntimeFault(f"{self.party} has no link {link!r}")
        return True

    def refused(self, event: Event, refusal: Refusal) -> None:
        """The peer sent what it may not send: the link that it came on is closed. It may be dialled again."""
        if isinstance(event, Received) and event.link == CONTROL:
            self.control.close(f"refused what came on it: {refusal.why}")
        elif isinstance(event, Received) and event.link == DATA:
            self.data.close()
        else:
            raise RuntimeFault(f"{self.party} refused {event!r}: {refusal.why}")
