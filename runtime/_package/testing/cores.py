"""The target ``core``: worlds and parties alone, on their cores.

Several may be fuzzed in turn: a session of the first, one of the second, and so on. A built-in party by its name stands alone; a world is
walked at bounds that are its own unless others are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attrs import field, frozen

from troth.models.world import World
from troth.testing import programs, telling
from troth.testing.coverage import Coverage
from troth.testing.single import all_alone
from troth.testing.stage import Stage
from troth.testing.targets import BadToken, Failure, SessionResult
from troth.testing.walker import STEPS_LIMIT, Walked, played, sessions, shorter

FAULTS = ("loses", "duplicates", "is cut", "is opened", "crashes", "restarts", "unexpected")
"""What rules are called that are faults: the ends of their names."""
LEAST_RULES = 20
"""How long Hypothesis' programs are at least."""


@frozen
class Play:
    """One world to be fuzzed: its name on the command line, and how it is built."""

    name: str
    make: Callable[[], World]
    illegal: bool = True

    def stage(self) -> Stage:
        """The world, ready to be walked."""
        world = self.make()
        return Stage(world, open_to=all_alone(world), illegal=self.illegal)


@frozen
class Cores:
    """The target. ``most`` steps a session; ``traced`` keeps the traces."""

    plays: tuple[Play, ...]
    most: int = STEPS_LIMIT
    traced: bool = False
    name: str = "core"
    _stages: dict[str, Stage] = field(factory=dict, init=False, eq=False)

    def _stage(self, play: Play) -> Stage:
        if play.name not in self._stages:
            self._stages[play.name] = play.stage()
        return self._stages[play.name]

    def coverage(self) -> Coverage:
        """Everything that the parties of these worlds declare, and the faults of the worlds."""
        parties = {}
        faults = []
        for play in self.plays:
            stage = self._stage(play)
            parties.update({party.name: party for party in stage.parties})
            faults += [rule.name for rule in stage.rules if rule.name.endswith(FAULTS)]
        return Coverage(parties.values(), faults)

    def fuzz(self, *, seed: int, until: Callable[[], bool], coverage: Coverage) -> Iterator[SessionResult]:
        """One session of each world in turn, until it is told to stop."""
        running = [
            (play, stage, sessions(stage, seed, coverage, until, most=self.most, traced=self.traced))
            for play, stage in ((play, self._stage(play)) for play in self.plays)
        ]
        known: set[tuple[str, str]] = set()
        while not until():
            for play, stage, walking in running:
                found = next(walking, None)
                if found is None:
                    return
                own, walked = found
                _faults(stage, walked, coverage)
                failure, interrupted = self._failure(play, stage, walked, own, known)
                yield SessionResult(seed=own, steps=walked.steps, failure=failure, trace=walked.trace, interrupted=interrupted)

    def _failure(self, play: Play, stage: Stage, walked: Walked, own: int, known: set[tuple[str, str]]) -> tuple[Failure | None, bool]:
        """What is told of a session, and whether an interrupt came meanwhile: then it is what was known by then."""
        if walked.wrong is None:
            return None, False
        where = play.name, walked.wrong.property
        if where in known:
            token = _named(play, programs.token(stage, walked.moves))
            return Failure(property=walked.wrong.property, token=token, told=str(walked.wrong)), False
        known.add(where)
        id_, moves, beyond, interrupted = walked.wrong.property, walked.moves, list[str](), False
        try:
            for part in shorter(stage, walked.moves, id_):
                moves = part
            beyond += telling.shortest(stage, id_, play.make)
            beyond += _by_rules(play, stage, own, id_, max(LEAST_RULES, 2 * len(moves)))
        except KeyboardInterrupt:
            interrupted = True
            beyond.append(telling.BROKEN_OFF)
        again = played(stage, moves)
        wrong = again.wrong if again.wrong is not None and again.wrong.property == id_ else walked.wrong
        told = "\n".join([*telling.case(stage, wrong, moves, len(walked.moves)), *beyond])
        return Failure(property=id_, token=_named(play, programs.token(stage, moves)), told=told), interrupted

    def replay(self, token: str, *, coverage: Coverage) -> SessionResult:
        """The program of a token, played again on the world that it names."""
        world, _, text = token.rpartition(":")
        plays = [play for play in self.plays if _letters(play.name) == world] if world else list(self.plays[:1])
        if not plays:
            raise BadToken(f"the token is of world {world!r}, which is not among {', '.join(play.name for play in self.plays)}")
        stage = self._stage(plays[0])
        moves = programs.program(stage, text)
        walked = played(stage, moves, coverage=coverage, traced=True)
        failure, interrupted = None, False
        if walked.wrong is not None:
            why = telling.case(stage, walked.wrong, walked.moves)
            try:
                why += telling.shortest(stage, walked.wrong.property, plays[0].make)
            except KeyboardInterrupt:
                interrupted = True
                why.append(telling.BROKEN_OFF)
            failure = Failure(property=walked.wrong.property, token=token, told="\n".join(why))
        told = "\n".join(telling.example(stage, walked.moves))
        return SessionResult(seed=0, steps=walked.steps, failure=failure, trace=walked.trace, told=told, interrupted=interrupted)


def _by_rules(play: Play, stage: Stage, seed: int, id: str, rules: int) -> list[str]:  # noqa: A002
    from troth.testing.machine import example_of  # noqa: PLC0415 - Hypothesis takes its time to import, and only a failure needs it

    return ["Hypothesis' example:", *telling.indented(example_of(stage, play.make, seed, id, rules))]


def _faults(stage: Stage, walked: Walked, coverage: Coverage) -> None:
    for rule in {move.rule for move in walked.moves}:
        name = stage.rules[rule].name
        if name.endswith(FAULTS):
            coverage.fault(name)


def _letters(name: str) -> str:
    """A world's name in the letters that a token may have."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "." for letter in name)


def _named(play: Play, text: str) -> str:
    return f"{_letters(play.name)}:{text}"
