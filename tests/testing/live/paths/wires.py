"""The wire of a launched pair in the conductor's hand: every frame waits until a path says what becomes of it."""

from __future__ import annotations

from typing import Any

from attrs import define

from tests.testing.live.paths.conducting import CannotPerform, messages_of
from troth.models.links import LinkComponent, Status
from troth.models.system import State, System
from troth.runtime.sim.faults import DOWN, UP, Direction
from troth.runtime.wire.kinds import CHUNK, Pull, PullEnd
from troth.testing.live.lines import Frame, Line, fields_of, same
from troth.testing.live.stage import Stage

BYTES = (Pull, PullEnd)


@define(eq=False)
class Wires:
    """See the module."""

    system: System
    stage: Stage

    @property
    def merges(self) -> bool:
        """Whether the world's links take no message that they carry already."""
        return any(isinstance(table.component, LinkComponent) and table.component.merges for table in self.system.components)

    @property
    def wired(self) -> bool:
        """Whether the world has the links between receivers and sources, and the bytes on them."""
        return any(table.component.name == "bytes" for table in self.system.components)

    def lines(self, role: str) -> list[Line]:
        return [line for line in self.stage.judge.lines if line.sim.role == role and (line.alive or self._waits(line))]

    def _waits(self, line: Line) -> bool:
        return any(pipe.waiting for pipe in line.sim.pipes.values())

    def line(self, role: str) -> Line | None:
        found = self.lines(role)
        return found[-1] if found else None

    def pump(self) -> bool:
        """Let through what a world without data links has arrive within the same step."""
        if self.wired:
            return False
        moved = False
        for line in self.lines("data"):
            for way in (UP, DOWN):
                waiting = line.sim.pipes[way].waiting
                last = max((at for at, data in enumerate(waiting) if self._instant(data)), default=-1)
                for _ in range(last + 1):  # what was written before it comes before it
                    self.stage.let(line, way)
                    moved = True
        return moved

    def _instant(self, data: bytes) -> bool:
        frame = Frame.of(data)
        return frame.code != CHUNK and fields_of(frame)[0] not in BYTES

    def merge(self) -> None:
        """What is said again while it is on its way is lost, where the world has it so."""
        if not self.merges:
            return
        for line in self.lines("control"):
            for pipe in line.sim.pipes.values():
                for at in range(len(pipe.waiting) - 1, -1, -1):
                    earlier = [fields_of(Frame.of(data)) for data in pipe.waiting[:at]]
                    if fields_of(Frame.of(pipe.waiting[at])) in earlier:
                        pipe.lose(at)

    def _way(self, link: str) -> tuple[str, Direction]:
        if link.startswith("receiver"):
            return "data", DOWN
        if link.startswith("exchange"):
            return "data", UP
        return "control", UP if link.startswith("trainer") else DOWN

    def _frames(self, link: str) -> tuple[Line, Direction, list[int]]:
        """Where the frames of a link wait, and which of those that wait there are its own. Raises ``CannotPerform``."""
        role, way = self._way(link)
        line = self.line(role)
        if line is None:
            raise CannotPerform(f"{link}: there is no connection")
        waiting = line.sim.pipes[way].waiting
        return line, way, [at for at, data in enumerate(waiting) if role == "control" or self._instant(data)]

    def deliver(self, link: str) -> None:
        line, way, places = self._frames(link)
        if not places:
            raise CannotPerform(f"{link}: nothing is on its way")
        self.stage.let(line, way, places[0])

    def lose(self, link: str, message: Any) -> None:
        line, way, places = self._frames(link)
        waiting = line.sim.pipes[way].waiting
        found = [at for at in places if same(message, fields_of(Frame.of(waiting[at])))]
        if not found:
            raise CannotPerform(f"{link}: {message} is not on its way")
        line.sim.pipes[way].lose(found[0])

    def transfer(self, party: str, what: str) -> None:
        if party == "bytes":
            number, _, what = what.partition(" ")
            if number != "0":
                raise CannotPerform("a receiver that is elsewhere")
        if what not in ("transfer complete", "transfer failed", "arrives", "breaks off"):
            raise CannotPerform(f"{party}.{what}")
        line = self.line("data")
        if line is None:
            raise CannotPerform("there is no data link")
        self._let_bytes(line, DOWN)
        self.stage.settle()
        if what in ("transfer failed", "breaks off"):
            self._corrupt(line)
        self._let_bytes(line, UP)

    def _let_bytes(self, line: Line, way: Direction) -> None:
        pipe = line.sim.pipes[way]
        while (at := next((at for at, data in enumerate(pipe.waiting) if not self._instant(data)), None)) is not None:
            self.stage.let(line, way, at)

    def _corrupt(self, line: Line) -> None:
        """The last byte of each chunk is another one: what came is not what was announced."""
        pipe = line.sim.pipes[UP]
        pipe.waiting[:] = [data if self._instant(data) else self._spoiled(data) for data in pipe.waiting]

    @staticmethod
    def _spoiled(data: bytes) -> bytes:
        return data[:-1] + bytes([data[-1] ^ 1]) if Frame.of(data).code == CHUNK else data

    def on_link(self, link: str, state: State, *, linked: bool) -> list[str]:
        status, wanted = messages_of(self.system, state, link)
        line = self.line("control")
        waiting = [] if line is None else line.sim.pipes[self._way(link)[1]].waiting
        here = [fields_of(Frame.of(data)) for data in waiting]
        found = []
        if len(here) != len(wanted) or not all(map(_same, wanted, here)):
            found.append(f"{link} carries {[(kind.__name__, fields) for kind, fields in here]}, and in the model {list(wanted)}")
        if status is Status.DOWN and linked:
            found.append(f"{link} is up, and in the model it is down")
        return found


def _same(wanted: Any, here: Any) -> bool:
    """Whether the model's message is that one."""
    return same(wanted, here)
