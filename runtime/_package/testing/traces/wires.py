"""The links between the two processes of a launch, as automata: every message that came was sent before, by the other side.

Rule 1.  A connection carries messages in order and loses none in between; what was not read when it ended is lost. HEARTBEATs are
         merged and LOGs dropped by a sender that is not being read, so those may be missing anywhere.
Rule 2.  Neither side's trace says which of the other's connections its own was. So every pairing that explains what came is kept, and
         dropped once it does not; a message that no pairing explains was never sent.
Rule 3.  Pairs are in order: nobody speaks over a connection again after a newer one was taken.
Rule 4.  Data connections come and go unsaid in a trace. What comes over them was sent before, in that order, each message once.
Rule 5.  A network that is said to be faulty may lose, copy and reorder: then what came was sent before, over a connection that it may
         have come over, and that is all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from enum import Enum
from typing import TypeAlias

import attrs
from attrs import define, field

from troth.runtime.wire.kinds import BY_CLASS, WhenFull
from troth.spec.core import Message

Said: TypeAlias = "tuple[Hashable, Message]"


class Network(Enum):
    """What the links between processes do to what is sent."""

    SOUND = "sound"
    """As sockets do: a connection breaks, and that is all."""
    FAULTY = "faulty"
    """It loses, copies and reorders messages, as a simulated one may be told to."""


_TRAVELS: dict[type[Message], tuple[str, ...]] = {}


def on_the_wire(message: Message) -> Hashable:
    """What of a message travels: all but what its receiver derives from what comes beside it."""
    cls = type(message)
    names = _TRAVELS.get(cls)
    if names is None:
        derived = BY_CLASS[cls].derived if cls in BY_CLASS else ()
        names = _TRAVELS[cls] = tuple(f.name for f in attrs.fields(cls) if f.name not in derived)
    return cls.__name__, *[getattr(message, name) for name in names]


def _may_be_missing(said: Said) -> bool:
    kind = BY_CLASS.get(type(said[1]))
    return kind is not None and kind.when_full is not WhenFull.CLOSE


@define(eq=False)
class Lane:
    """One direction of a pair of connections that may be one. At most one of the two queues holds anything."""

    faulty: bool
    sent: deque[Said] = field(factory=deque)
    """What was sent and has not come, the oldest first."""
    owed: deque[Said] = field(factory=deque)
    """What has come and was not sent, as far as the traces were read. Only where they are read in no order that is known."""
    known: set[Hashable] = field(factory=set)

    def send(self, said: Said) -> bool:
        """The one side sends. False if this cannot be one connection."""
        if self.faulty:
            self.known.add(said[0])
            if self.owed and any(one[0] == said[0] for one in self.owed):
                self.owed = deque(one for one in self.owed if one[0] != said[0])
            return True
        if not self.owed:
            self.sent.append(said)
            return True
        if self.owed[0][0] == said[0]:
            self.owed.popleft()
            return True
        return _may_be_missing(said)

    def explains(self, said: Said) -> bool:
        """Whether this can come next."""
        if self.faulty:
            return said[0] in self.known
        for one in self.sent:
            if one[0] == said[0]:
                return True
            if not _may_be_missing(one):
                return False
        return False

    def receive(self, said: Said, *, late: bool) -> bool:
        """The other side receives. False if this cannot be one connection. ``late``: it may still turn out to have been sent."""
        if self.explains(said):
            while not self.faulty and self.sent.popleft()[0] != said[0]:
                pass
            return True
        if late and not any(not _may_be_missing(one) for one in self.sent):
            self.sent.clear()
            self.owed.append(said)
            return True
        return False


@define(eq=False)
class Line:
    """A connection as one side has it."""

    number: int
    said: list[Said] = field(factory=list)
    came: list[Said] = field(factory=list)
    partner: Line | None = None
    """The other side's, once it is certain."""


@define(eq=False)
class Side:
    """One end of a control link: its connections, one after another."""

    lines: list[Line] = field(factory=list)
    up: bool = False

    @property
    def line(self) -> Line | None:
        """The connection that it has now."""
        return self.lines[-1] if self.up else None


Pair: TypeAlias = tuple[int, int]


@define(eq=False)
class Control:
    """The control link of a launch. ``late`` where the traces of the two sides are read in no order that is known."""

    network: Network
    late: bool
    one: Side = field(factory=Side)
    other: Side = field(factory=Side)
    pairs: dict[Pair, tuple[Lane, Lane]] = field(factory=dict)
    """The pairs that are possible: what the one says to the other, and the other way round."""

    def up(self, side: Side) -> None:
        """A side has a new connection."""
        side.up = True
        mine = Line(side.lines[-1].number + 1 if side.lines else 0)
        side.lines.append(mine)
        for theirs in (self.other if side is self.one else self.one).lines:
            if theirs.partner is None:
                self._consider(*((mine, theirs) if side is self.one else (theirs, mine)))
        self._forget(side)

    def _consider(self, one: Line, other: Line) -> None:
        lanes = Lane(self.network is Network.FAULTY), Lane(self.network is Network.FAULTY)
        for lane, sender, receiver in ((lanes[0], one, other), (lanes[1], other, one)):
            for said in sender.said:
                lane.send(said)
            if not all(lane.receive(said, late=self.late) for said in receiver.came):
                return
        if self._in_order(one, other):
            self.pairs[one.number, other.number] = lanes

    def _in_order(self, one: Line, other: Line) -> bool:
        """Rule 3, against the pairs that are certain."""
        certain = [(line.number, line.partner.number) for line in self.one.lines if line.partner is not None]
        return all((a < one.number) == (b < other.number) and a != one.number and b != other.number for a, b in certain)

    def _forget(self, side: Side) -> None:
        """Connections that can be nobody's any more."""
        kept = {(pair[0] if side is self.one else pair[1]) for pair in self.pairs}
        side.lines[:-1] = [line for line in side.lines[:-1] if line.number in kept or line.partner is not None][-64:]

    def down(self, side: Side) -> None:
        """A side has lost its connection."""
        side.up = False

    def _of(self, side: Side, line: Line) -> Iterator[tuple[Pair, Lane, Lane]]:
        """The pairs of a connection, with the lanes that it speaks and hears over."""
        place = 0 if side is self.one else 1
        for pair, lanes in list(self.pairs.items()):
            if pair[place] == line.number:
                yield pair, lanes[place], lanes[1 - place]

    def send(self, side: Side, message: Message) -> None:
        """A side says something. Without a connection nobody hears it."""
        line = side.line
        if line is None:
            return
        said = on_the_wire(message), message
        if line.partner is None:
            line.said.append(said)
        for pair, speaks, _ in self._of(side, line):
            if not speaks.send(said):
                del self.pairs[pair]

    def explains(self, side: Side, message: Message) -> bool:
        """Whether a message can come at a side now."""
        line, said = side.line, (on_the_wire(message), message)
        return line is not None and any(hears.explains(said) for _, _, hears in self._of(side, line))

    def receive(self, side: Side, message: Message) -> None:
        """A message that ``explains`` allows has come."""
        line = side.line
        if line is None:
            return
        said = on_the_wire(message), message
        if line.partner is None:
            line.came.append(said)
        for pair, _, hears in self._of(side, line):
            if not hears.receive(said, late=self.late):
                del self.pairs[pair]
        self._settle(side, line)

    def _settle(self, side: Side, line: Line) -> None:
        """Make a pair certain that both sides have heard each other over, if it is the only one that is left."""
        left = list(self._of(side, line))
        if line.partner is not None or len(left) != 1:
            return
        (a, b), speaks, hears = left[0]
        one, other = (next(found for found in s.lines if found.number == n) for s, n in ((self.one, a), (self.other, b)))
        if one.came and other.came and not speaks.owed and not hears.owed:
            one.partner, other.partner = other, one
            for known in (one, other):
                known.said.clear()
                known.came.clear()
            for c, d in list(self.pairs):
                if (c, d) != (a, b) and (c == a or d == b or (c < a) != (d < b)):
                    del self.pairs[c, d]

    def coming(self, side: Side) -> tuple[Message, ...]:
        """What could come at a side next."""
        line = side.line
        if line is None:
            return ()
        found: list[Message] = []
        for _, _, hears in self._of(side, line):
            for one in hears.sent:
                found.append(one[1])
                if not _may_be_missing(one):
                    break
        return tuple(dict.fromkeys(found))

    def unexplained(self, side: Side) -> Message | None:
        """At the end: the first message at a side that nothing has turned out to be the sending of."""
        for line in side.lines:
            lanes = [hears for _, _, hears in self._of(side, line)]
            if lanes and all(lane.owed for lane in lanes):
                return min(lanes, key=lambda lane: len(lane.owed)).owed[0][1]
        return None


@define(eq=False)
class Data:
    """One direction of the data link of a launch: Rule 4."""

    network: Network
    sent: deque[Said] = field(factory=deque)
    known: set[Hashable] = field(factory=set)

    def send(self, message: Message) -> None:
        """Something is said."""
        said = on_the_wire(message), message
        if self.network is Network.FAULTY:
            self.known.add(said[0])
        else:
            self.sent.append(said)

    def explains(self, message: Message) -> bool:
        """Whether a message can come now."""
        key = on_the_wire(message)
        return key in self.known or any(one[0] == key for one in self.sent)

    def receive(self, message: Message) -> None:
        """A message that ``explains`` allows has come; what was sent before it is lost."""
        key = on_the_wire(message)
        while self.network is Network.SOUND and self.sent.popleft()[0] != key:
            pass

    def coming(self) -> tuple[Message, ...]:
        """What could come."""
        return tuple(one[1] for one in self.sent)
