"""What the judge knows of payloads on their way: who asked for which bytes, which of them came, and what was said about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import define, field

from troth.runtime.sim.faults import DOWN, UP, Direction
from troth.runtime.wire.kinds import CHUNK, Pull, PullEnd, PullRefused
from troth.spec import core as c
from troth.spec import messages as m
from troth.testing.live.lines import Frame, Line, Owed, fields_of, same
from troth.testing.live.parties import Shadow, Side, Wrong

if TYPE_CHECKING:
    from troth.testing.live.judging import Judge

COMPLETE = c.TransferOutcome.COMPLETE
Who: TypeAlias = tuple[bytes | None, str]
"""A party, or receiver: its launch, and its name."""


@define(eq=False)
class _Asked:
    """A pull that its source has heard of."""

    kind: str
    key: tuple[int, int]
    at: frozenset[tuple[int, tuple[int, ...]]]
    """Where its answer may be: the offset of the next byte, and those of chunks that may have begun in answer to copies of it which came
    before. What has begun is still written."""

    def again(self, offset: int) -> frozenset[tuple[int, tuple[int, ...]]]:
        """Where the answer may be once the question has come again, from that offset on."""
        return frozenset((offset, (*begun, next_)) for next_, begun in self.at)

    def wrote(self, offset: int, nbytes: int) -> bool:
        """Note a chunk; false if it belongs nowhere."""
        found = {(next_ + nbytes, begun) for next_, begun in self.at if next_ == offset}
        for next_, begun in self.at:
            if offset in begun:
                place = begun.index(offset)
                found.add((next_, begun[:place] + begun[place + 1 :]))
        self.at = frozenset(found)
        return bool(found)


@define(eq=False)
class Transfers:
    """See the module."""

    judge: Judge
    sizes: dict[tuple[Who, int], int] = field(factory=dict)
    """By party and task: the bytes of what it fetches."""
    landed: dict[Who, int] = field(factory=dict)
    """By receiver: bytes that came for it."""
    inline: dict[Who, bool] = field(factory=dict)
    pulling: set[Who] = field(factory=set)
    """Receivers that were told to pull."""
    asked: dict[tuple[int, Direction, int], _Asked] = field(factory=dict)
    """By connection, the way of the question, and request."""
    moved: set[tuple[Who, str, tuple[int, int]]] = field(factory=set)
    """What moved since that was said: side of the source or receiver, kind and key."""

    # -- what the parties say ------------------------------------------------------------------------------------------

    def who(self, shadow: Shadow) -> Who:
        """Which one it is, among all of all processes."""
        return self.judge.launch_of(shadow), shadow.name

    def carried(self, shadow: Shadow, seq: int, nbytes: int) -> None:
        """A message named a payload."""
        self.sizes[self.who(shadow), seq] = nbytes

    def begins(self, receiver: Shadow, inline: bool) -> None:
        """A receiver begins."""
        who = self.who(receiver)
        self.landed[who], self.inline[who] = 0, inline

    def pulls(self, shadow: Shadow) -> None:
        """A receiver must fetch, or go on."""
        self.pulling.add(self.who(shadow))

    def _party(self, side: Side, shadow: Shadow) -> Shadow | None:
        return side.parties.get(shadow.name.partition("/")[0])

    def owe(self, side: Side, shadow: Shadow, message: c.Message) -> None:
        """Something must be said on a data link, if there is one."""
        party = self._party(side, shadow)
        if party is not None:
            party.owed.append(Owed(message, must=self._steady(party)))

    def _lines(self, party: Shadow) -> list[Line]:
        launch = self.judge.launch_of(party)
        return [line for line in self.judge.lines if line.sim.role == "data" and launch is not None and line.sim.launch == launch]

    def _steady(self, party: Shadow) -> bool:
        """Whether its data link was there before this step, and is the same after it."""
        lines = self._lines(party)
        return bool(lines) and lines[-1].steady and lines[-1].alive and not lines[-1].harmed

    def failed(self, side: Side, shadow: Shadow, effect: c.Effect) -> None:
        """Something could not be done about a payload."""
        party = self._party(side, shadow)
        if isinstance(effect, c.Send) and party is not None:
            for at in range(len(party.owed) - 1, -1, -1):
                if party.owed[at].message == effect.message and not party.owed[at].must:
                    del party.owed[at]
                    return
            raise Wrong("wire", f"{shadow.name} could not send {effect.message}, and nothing is wrong with its link")
        if isinstance(effect, c.Pull) and party is not None and not self._steady(party):
            return
        raise Wrong("replay", f"{shadow.name} could not do {effect}, and nothing kept it from it")

    def received(self, shadow: Shadow, message: Any) -> None:
        """A party or receiver took what came on the data link."""
        way = DOWN if shadow.seat is not None else UP
        for line in self._lines(shadow):
            arrived = line.ways[way].arrived
            for at, frame in enumerate(arrived):
                if same(message, fields_of(frame)):
                    del arrived[at]
                    return
        raise Wrong("wire", f"{shadow.name} received {message}, and no frame of it came on a connection that it may trust")

    # -- what moved ----------------------------------------------------------------------------------------------------

    def arrived(self, line: Line, way: Direction, frame: Frame) -> None:
        """A frame of a data connection was let through."""
        back = DOWN if way is UP else UP
        if frame.code == CHUNK:
            request, _, nbytes = frame.chunk()
            asked = self.asked.get((line.sim.number, back, request))
            if asked is not None:
                party = self._writer(line, back)
                receiver = party[0], f"{party[1]}/{asked.kind}/{asked.key[0]}"
                self.landed[receiver] = self.landed.get(receiver, 0) + nbytes
                self.moved.add((receiver, "payload", asked.key))
                self.moved.add((party, asked.kind, asked.key))
            return
        kind, fields = fields_of(frame)
        if kind is Pull:
            key = fields["seq"], fields["receiver"]
            question = line.sim.number, way, fields["request"]
            before, offset = self.asked.get(question), fields["offset"]
            at = frozenset({(offset, ())}) if before is None else before.again(offset)
            self.asked[question] = _Asked(fields["kind"].value, key, at)
        elif issubclass(kind, m.PayloadMessage):
            line.ways[way].arrived.append(frame)

    def torn(self, line: Line, way: Direction, data: bytes) -> None:
        """Some of a frame's bytes were let through."""
        back = DOWN if way is UP else UP
        frame = Frame.of(data)
        asked = self.asked.get((line.sim.number, back, frame.chunk()[0])) if frame.code == CHUNK else None
        if asked is not None:
            party = self._writer(line, back)
            receiver = party[0], f"{party[1]}/{asked.kind}/{asked.key[0]}"
            self.moved |= {(receiver, "payload", asked.key), (party, asked.kind, asked.key)}
            self.landed[receiver] = self.landed.get(receiver, 0) + frame.chunk()[2]

    def _writer(self, line: Line, way: Direction) -> Who:
        """The party that writes that way."""
        seat = self.judge.seats.get(line.sim.launch or b"")
        return line.sim.launch, "trainer" if way is UP or seat is None else seat.host

    def moves(self, line: Line) -> None:
        """See which bytes were written on a data connection. Raises ``Wrong``."""
        for way, back in ((UP, DOWN), (DOWN, UP)):
            for frame in line.ways[way].fresh:
                if frame.code == CHUNK:
                    self._chunk(line, way, back, frame)

    def written(self, line: Line, way: Direction, party: Shadow | None) -> None:
        """Judge what was written on a data connection."""
        back = DOWN if way is UP else UP
        for frame in line.ways[way].fresh:
            if frame.code == CHUNK:
                continue
            kind, fields = fields_of(frame)
            if issubclass(kind, m.PayloadMessage):
                if party is not None:
                    self._said(party, (kind, fields))
            elif kind is Pull:
                launch, name = self._writer(line, way)
                if (launch, f"{name}/{fields['kind'].value}/{fields['seq']}") not in self.pulling:
                    raise Wrong("wire", f"connection {line.sim.number}: {fields} was asked for by nobody")
            elif kind in (PullEnd, PullRefused) and (line.sim.number, back, fields["request"]) not in self.asked:
                raise Wrong("wire", f"connection {line.sim.number}: {frame.name} {fields} answers nothing")
        line.ways[way].fresh.clear()

    def _chunk(self, line: Line, way: Direction, back: Direction, frame: Frame) -> None:
        request, offset, nbytes = frame.chunk()
        asked = self.asked.get((line.sim.number, back, request))
        if asked is None or not asked.wrote(offset, nbytes):
            raise Wrong(
                "wire", f"connection {line.sim.number}: bytes {offset} to {offset + nbytes} of request {request}, of which others are due"
            )
        self.moved.add((self._writer(line, way), asked.kind, asked.key))

    def _said(self, party: Shadow, found: tuple[type[c.Message], dict[str, Any]]) -> None:
        while party.owed:
            owed = party.owed.popleft()
            if same(owed.message, found):
                return
            if owed.must:
                raise Wrong("wire", f"{party.name}: {found[1]} was written, and {owed.message} had to come first")
        raise Wrong("wire", f"{party.name}: {found[1]} was written on its data link, and is nothing that it had to say")

    def settle(self, party: Shadow) -> None:
        """Everything that had to be said on a data link was said. Raises ``Wrong``."""
        if not party.owed:
            return
        way = UP if party.kind == "trainer" else DOWN
        if any(line.ways[way].blocked for line in self._lines(party)):
            for owed in party.owed:
                owed.must = False
            return
        missing = next((owed for owed in party.owed if owed.must), None)
        if missing is not None:
            raise Wrong("wire", f"{party.name}: {missing.message} had to be written, and was not")
        party.owed.clear()

    def justify(self, shadow: Shadow, event: Any) -> None:
        """Whether a transfer can have moved, or ended."""
        who = self.who(shadow)
        if isinstance(event, c.TransferProgressed):
            if (who, event.kind, event.key) not in self.moved:
                raise Wrong("transfers", f"{shadow.name}: {event}, and nothing moved")
        elif event.outcome is COMPLETE and shadow.kind == "receiver":
            size = self.sizes.get(((who[0], who[1].partition("/")[0]), event.key[0]), 0)
            here = self.landed.get(who, 0)
            if not self.inline.get(who) and here < size:
                raise Wrong("transfers", f"{shadow.name}: {event}, and {here} of {size} bytes came")
        elif event.outcome is COMPLETE and not any(a.kind == event.kind and a.key == event.key for a in self.asked.values()):
            raise Wrong("transfers", f"{shadow.name}: {event}, and nobody asked for it")
