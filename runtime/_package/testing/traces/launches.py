"""A launch: a host's session and the trainer's, and the links between their processes."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field

from troth.spec import core as c
from troth.spec.core import Message
from troth.spec.trace import Header, Number
from troth.statemachines.shared.words import CONTROL, DATA
from troth.testing.traces.verdicts import Wrong
from troth.testing.traces.wires import Control, Data, Network, Side


@define(eq=False)
class Ends:
    """Which of the two ends are recorded, and which of them only up to some point."""

    host: bool = False
    trainer: bool = False
    host_cut: bool = False
    trainer_cut: bool = False

    def has(self, header: Header) -> None:
        """That end is recorded."""
        if _is_host(header):
            self.host = True
        else:
            self.trainer = True

    def cut(self, header: Header) -> None:
        """That end is recorded up to here, and no further."""
        if _is_host(header):
            self.host_cut = True
        else:
            self.trainer_cut = True

    def tells(self, *, host: bool) -> bool:
        """Whether everything that an end said is recorded."""
        return (self.host and not self.host_cut) if host else (self.trainer and not self.trainer_cut)


@define(eq=False)
class Launch:
    """The links of one launch. An end that is not recorded is believed; that is counted in ``unseen``."""

    id: str
    network: Network
    late: bool
    ends: Ends = field(factory=Ends)
    granted: Mapping[str, Number] | None = None
    """The host's limits."""
    unseen: int = 0
    killed: bool = False
    """The host was told that the trainer's process has ended, and not by itself."""
    control: Control = field(init=False)
    _data: dict[bool, Data] = field(init=False)
    """By whether the host is who speaks."""
    _blind: set[tuple[bool, str]] = field(factory=set, init=False)
    """Links, as one end hears them, over which something came that is in no file."""

    def __attrs_post_init__(self) -> None:
        self.control = Control(self.network, self.late)
        self._data = {True: Data(self.network), False: Data(self.network)}

    def _side(self, header: Header) -> Side:
        return self.control.one if _is_host(header) else self.control.other

    def explains(self, header: Header, event: c.Event) -> bool:
        """Whether the event, if it is a message from the other end, can come now."""
        if not isinstance(event, c.Received) or event.link not in (CONTROL, DATA):
            return True
        host = _is_host(header)
        if (host, event.link) in self._blind or not (self.ends.host and self.ends.trainer):
            return True
        if event.link == CONTROL:
            return self.control.explains(self._side(header), event.message)
        return self._data[not host].explains(event.message)

    def before(self, header: Header, event: c.Event) -> None:
        """An event is about to be taken at one end. Raises ``Wrong`` for a message that the other has not sent."""
        if isinstance(event, c.LinkUp):
            self.control.up(self._side(header))
        elif isinstance(event, c.LinkLost):
            self.control.down(self._side(header))
        elif isinstance(event, c.ProcessExited):
            self.killed = not event.clean
        elif isinstance(event, c.Received) and event.link in (CONTROL, DATA):
            self._came(header, event)

    def _came(self, header: Header, event: c.Received) -> None:
        host, side = _is_host(header), self._side(header)
        if event.link == CONTROL and not side.up:
            raise Wrong(f"{event.message} came on link control, which is down")
        other = "trainer" if host else "host"
        if (host, event.link) in self._blind or not (self.ends.host and self.ends.trainer):
            self.unseen += 1
            return
        if not self.explains(header, event):
            if not self.ends.tells(host=not host):
                self._blind.add((host, event.link))
                self.unseen += 1
                return
            coming = self.control.coming(side) if event.link == CONTROL else self._data[not host].coming()
            expected = tuple((c.Received(event.link, message), f"sent by the {other}") for message in coming)
            raise Wrong(f"{event.message} came on link {event.link}, but the {other} has not sent it{_instead(coming)}", expected)
        if event.link == CONTROL:
            self.control.receive(side, event.message)
        else:
            self._data[not host].receive(event.message)

    def said(self, header: Header, link: str, message: Message) -> None:
        """One end says something."""
        if link == CONTROL:
            self.control.send(self._side(header), message)
        else:
            self._data[_is_host(header)].send(message)

    def unexplained(self, *, host: bool) -> Message | None:
        """At the end: something that one end heard and the other never said."""
        if not (self.ends.tells(host=not host)) or (host, CONTROL) in self._blind:
            return None
        return self.control.unexplained(self.control.one if host else self.control.other)


def _is_host(header: Header) -> bool:
    return header.party.startswith("host")


def _instead(coming: tuple[Message, ...]) -> str:
    return "" if not coming else f"; what it has sent is {coming[0]}"
