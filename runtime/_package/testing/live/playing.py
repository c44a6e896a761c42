"""Programs of the live runtime, played again and made shorter."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from attrs import define, frozen

from troth.testing.live.parties import Wrong
from troth.testing.live.programs import Move, Program
from troth.testing.live.recording import Recording
from troth.testing.live.stepping import Unsettled
from troth.testing.live.walking import Walk, opened

PLAYS_LIMIT = 500
"""How often a failing program may be played to make it shorter."""
STEPS_LIMIT = 20_000
"""How many steps that may take in all."""
HANGS_STEPS = 1_000
"""As how many steps a play counts that ended in a hang: it takes its time."""


@frozen(kw_only=True)
class Found:
    """What is wrong in a session."""

    property: str
    """The id that it has everywhere, or a name of what else is compared."""
    what: str
    """In words."""
    kind: str = ""
    """Of an error that nobody foresaw: what sort it is."""
    unsettled: bool = False

    def same(self, other: Found | None) -> bool:
        """Whether the other one is wrong in the same way."""
        return other is not None and (self.property, self.kind) == (other.property, other.kind)


@frozen(kw_only=True)
class Played:
    """A program that was played: what was wrong, and the program up to there."""

    program: Program
    found: Found | None
    steps: int


@contextmanager
def quietly() -> Iterator[None]:
    """What the runtime logs of faults that are made on purpose is kept from the terminal."""
    runtime = logging.getLogger("troth.runtime")
    before = runtime.level
    runtime.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        runtime.setLevel(before)


def wrong_in(error: Exception) -> Found:
    """What a session was broken off by."""
    if isinstance(error, Wrong):
        return Found(property=error.property, what=str(error), unsettled=error.property == "hang")
    if isinstance(error, Unsettled):
        return Found(property="hang", what=f"hang: {error}", unsettled=True)
    told = "".join(traceback.format_exception(error)).rstrip()
    return Found(property="error", what=f"error: {told}", kind=type(error).__qualname__)


def judged(walk: Walk, run: Callable[[], object]) -> Found | None:
    """Do that with a walk, and say what is wrong with it; whoever is at fault, the runtime or its judge. It is let go then."""
    try:
        with quietly():
            run()
    except Exception as error:
        found = wrong_in(error)
        with quietly():
            walk.stage.drop()
        return found
    except KeyboardInterrupt:
        with quietly():
            walk.stage.drop()
        raise
    return None


def play(walk: Walk, moves: Sequence[Move]) -> Played:
    """Take these moves on that stage, as far as they can be taken, and bring the session to its end."""

    def take() -> None:
        for move in moves:
            walk.again(move)

    found = judged(walk, take)
    if found is None:
        found = ended(walk)
    return Played(program=walk.program, found=found, steps=walk.steps + walk.play.more_steps)


def ended(walk: Walk) -> Found | None:
    """Bring a session to its end, and say what is wrong with that. What is done for it is no part of its program: it comes by itself."""
    count = len(walk.moves)
    found = judged(walk, walk.finish)
    del walk.moves[count:]
    return found


def played(program: Program) -> Played:
    """A program, played once more: what cannot be done is passed over. At its end it is brought to its end."""
    return play(opened(Walk, program.opening, Recording()), program.moves)


# -- shorter -----------------------------------------------------------------------------------------------------------


@define
class Shortener:
    """Makes a failing program shorter and plainer: parts of it are left out, then its numbers are made smaller."""

    wanted: Found
    best: Program
    plays: int = 0
    steps: int = 0

    @property
    def spent(self) -> bool:
        """Whether it has been at it for long enough."""
        return self.plays >= PLAYS_LIMIT or self.steps >= STEPS_LIMIT

    def tried(self, program: Program) -> bool:
        """Whether that fails in the same way; then it is the best, as far as it was played."""
        if self.spent or program == self.best:
            return False
        self.plays += 1
        done = played(program)
        self.steps += done.steps + (HANGS_STEPS if done.found is not None and done.found.unsettled else 0)
        if not self.wanted.same(done.found):
            return False
        self.best = done.program
        return True

    def run(self) -> Program:
        """The shortest that it comes to."""
        while not self.spent:
            before = self.best
            self._fewer()
            self._plainer()
            if self.best == before:
                break
        return self.best

    def _fewer(self) -> None:
        """Leave parts out, the large ones first."""
        size = max(1, len(self.best.moves) // 2)
        while size:
            place = 0
            while place < len(self.best.moves) and not self.spent:
                moves = self.best.moves
                if not self.tried(self.best._replace(moves=moves[:place] + moves[place + size :])):
                    place += size
            size //= 2

    def _plainer(self) -> None:
        """Make numbers smaller: all of them at once where that will do, else one by one."""
        self.tried(self.best._replace(opening=()))
        self.tried(self.best._replace(moves=tuple(move._replace(order=0) for move in self.best.moves)))
        row = 0
        while row <= len(self.best.moves):
            if not self.tried(_with(self.best, row, ())):
                at = 0
                while at < len(_row(self.best, row)):
                    self._lower(row, at)
                    at += 1
            row += 1

    def _lower(self, row: int, at: int) -> None:
        """Make one number as small as it can be."""
        while not self.spent and at < len(numbers := _row(self.best, row)):
            number = numbers[at]
            lesser = ORDERS if row and at == ORDER else (0, number // 2, number - 1)
            tries = (self.tried(_with(self.best, row, (*numbers[:at], less, *numbers[at + 1 :]))) for less in lesser if 0 <= less < number)
            if not any(tries):
                return


ORDER = Move._fields.index("order") - 1
ORDERS = (0, 1, 2, 3)
"""An order is one number, of which a smaller one is no plainer, but shorter."""


def _row(program: Program, row: int) -> tuple[int, ...]:
    """The numbers of the opening, or of a move; none past the end."""
    if row == 0:
        return program.opening
    return program.moves[row - 1].numbers if row <= len(program.moves) else ()


def _with(program: Program, row: int, numbers: tuple[int, ...]) -> Program:
    """The same with other numbers there."""
    if row == 0:
        return program._replace(opening=numbers)
    moves = list(program.moves)
    moves[row - 1] = Move.of(moves[row - 1].rule, numbers)
    return program._replace(moves=tuple(moves))
