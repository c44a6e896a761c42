"""A launch: a host's session and the trainer's, and the links between their processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from attrs import define, field

from troth.spec import core as c
from troth.spec.core import Message
from troth.spec.messages import PayloadAbandoned, PayloadHeld
from troth.spec.trace import Header, Number
from troth.statemachines import RECEIVER
from troth.statemachines.shared.words import CONTROL, DATA
from troth.testing.traces.verdicts import Wrong
from troth.testing.traces.wires import Control, Data, Network, Side

FROM_RECEIVERS = (PayloadHeld, PayloadAbandoned)
"""What receivers say on a data link; their parties say the rest."""


@define(eq=False)
class Ends:
    """Which of the files of the two ends are here, and which of them only up to some point: by whether it is the host's, and whether it
    is that of the receivers."""

    here: set[tuple[bool, bool]] = field(factory=set)
    cut: set[tuple[bool, bool]] = field(factory=set)

    @property
    def both(self) -> bool:
        """Whether the parties themselves are here."""
        return (True, False) in self.here and (False, False) in self.here


@define(eq=False)
class Launch:
    """The links of one launch. An end that is not recorded is believed."""

    id: str
    network: Network
    late: bool
    ends: Ends = field(factory=Ends)
    granted: Mapping[str, Number] | None = None
    """The host's limits."""
    killed: bool = False
    """The host was told that the trainer's process has ended, and not by itself."""
    control: Control = field(init=False)
    _data: dict[bool, Data] = field(init=False)
    """By whether the host is who speaks."""
    trusted: Counter[tuple[bool, bool]] = field(factory=Counter, init=False)
    """How many messages came of which the file that they would be in says nothing, because it ends before. By that file, as in ``Ends``."""
    _blind: set[tuple[bool, str]] = field(factory=set, init=False)
    """Links, as one end hears them, over which something came that is in no file."""

    def __attrs_post_init__(self) -> None:
        self.control = Control(self.network, self.late)
        self._data = {True: Data(self.network), False: Data(self.network)}

    def _side(self, header: Header) -> Side:
        return self.control.one if _is_host(header) else self.control.other

    def _sender(self, header: Header, event: c.Received) -> tuple[bool, bool]:
        """In which file it would have to be that a message was sent."""
        return not _is_host(header), isinstance(event.message, FROM_RECEIVERS)

    def _believed(self, header: Header, event: c.Received) -> bool:
        """Whether nobody can say that a message was not sent."""
        blind = (_is_host(header), event.link) in self._blind
        return blind or not self.ends.both or self._sender(header, event) not in self.ends.here

    def explains(self, header: Header, event: c.Event) -> bool:
        """Whether the event, if it is a message from the other end, can come now."""
        if not isinstance(event, c.Received) or event.link not in (CONTROL, DATA) or self._believed(header, event):
            return True
        host = _is_host(header)
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
        sender = self._sender(header, event)
        if self._believed(header, event):
            self.trusted[sender] += self.ends.both and sender in self.ends.cut
            return
        if not self.explains(header, event):
            if sender in self.ends.cut:
                self.trusted[sender] += 1
                self._blind.add((host, event.link))
                return
            expected = tuple(each for each in self.coming(header) if each[0].link == event.link)
            instead = f"; what it has sent is {expected[0][0].message}" if expected else ""
            raise Wrong(f"{event.message} came on link {event.link}, but the {other} has not sent it{instead}", expected)
        if event.link == CONTROL:
            self.control.receive(side, event.message)
        else:
            self._data[not host].receive(event.message)

    def coming(self, header: Header) -> tuple[tuple[c.Received, str], ...]:
        """What could come at an end next, and whence."""
        host = _is_host(header)
        whence = f"sent by the {'trainer' if host else 'host'}"
        control = [c.Received(CONTROL, message) for message in self.control.coming(self._side(header))]
        data = [c.Received(DATA, message) for message in self._data[not host].coming()]
        return tuple((event, whence) for event in (*control, *data))

    def said(self, header: Header, link: str, message: Message) -> None:
        """One end says something. Nobody can hear it where only the one end is here."""
        if not self.ends.both:
            return
        if link == CONTROL:
            self.control.send(self._side(header), message)
        else:
            self._data[_is_host(header)].send(message)

    def unexplained(self, *, host: bool) -> Message | None:
        """At the end: something that one end heard and the other never said."""
        if not self.ends.both or (not host, False) in self.ends.cut or (host, CONTROL) in self._blind:
            return None
        return self.control.unexplained(self.control.one if host else self.control.other)


def end_of(header: Header) -> tuple[bool, bool]:
    """Which file of an end it is: whether the host's, and whether that of the receivers."""
    return _is_host(header), header.core == RECEIVER.name


def _is_host(header: Header) -> bool:
    return header.party.startswith("host")
