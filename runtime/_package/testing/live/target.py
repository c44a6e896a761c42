"""The live runtime as a target of the fuzzer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

from attrs import define

from troth.spec.core import Step
from troth.statemachines import PARTIES
from troth.testing.coverage import Coverage
from troth.testing.live import programs
from troth.testing.live.choices import Walk as Drawn
from troth.testing.live.parties import Shadow
from troth.testing.live.playing import judged, play
from troth.testing.live.reasons import UNANSWERED, UNREACHABLE
from troth.testing.live.recording import Recording
from troth.testing.live.rules import FAULTS
from troth.testing.live.telling import Told, failed, story
from troth.testing.live.walking import Walk, opened
from troth.testing.targets import Failure, SessionResult

SESSIONS = 1 << 20
"""Sessions that a seed has, before the next seed's begin."""


def counting(coverage: Coverage) -> Callable[[Shadow, Step], None]:
    """Counts the steps of a session's parties, as a judge tells of them."""

    def stepped(shadow: Shadow, step: Step) -> None:
        # Only what the runtime's own cores did is compared with the model's, so what the model's did is what the runtime's did.
        if not shadow.counted:
            shadow.counted = True
            coverage.begin(shadow.kind, shadow.kind)
        coverage.step(shadow.kind, step, shadow.kind)

    return stepped


def counted(walk: Walk, coverage: Coverage) -> None:
    """Let a session's steps be counted."""
    walk.stage.judge.stepped = counting(coverage)


@define
class Live:
    """The target ``runtime``."""

    name: str = "runtime"
    traced: bool = False
    """Whether sessions are given with their traces. They are made and checked in any case."""

    def coverage(self) -> Coverage:
        """See ``Target``."""
        return Coverage(PARTIES.values(), FAULTS, {**UNREACHABLE, **UNANSWERED})

    def fuzz(self, *, seed: int, until: Callable[[], bool], coverage: Coverage) -> Iterator[SessionResult]:
        """See ``Fuzz``."""
        known: set[str] = set()
        for number in count(seed * SESSIONS):
            if until():
                return
            found = self._session(number, until, coverage, known)
            if found is None:
                return
            yield found

    def replay(self, token: str, *, coverage: Coverage) -> SessionResult:
        """See ``Target``."""
        program = programs.program(token)
        walk = opened(Told, program.opening, Recording())
        counted(walk, coverage)
        found = play(walk, program.moves).found
        for fault in walk.play.faults:
            coverage.fault(fault)
        failure, interrupted = None, False
        if found is not None:
            told, interrupted = story(found, walk)
            failure = Failure(property=found.property, token=token, told=told)
        steps = walk.steps + walk.play.more_steps
        lines = "\n".join(walk.lines)
        return SessionResult(seed=0, steps=steps, failure=failure, trace=walk.trace, told=lines, interrupted=interrupted)

    def _session(self, number: int, until: Callable[[], bool], coverage: Coverage, known: set[str]) -> SessionResult | None:
        walk = Walk(Drawn(number), Recording())
        counted(walk, coverage)
        ended = True

        def run() -> None:
            nonlocal ended
            ended = walk.run(until)

        found = judged(walk, run)
        if not ended:
            return None
        for fault in walk.play.faults:
            coverage.fault(fault)
        steps = walk.steps + walk.play.more_steps
        failure, interrupted = None, False
        if found is not None:
            program, told = walk.program, found.what
            if found.property not in known:
                known.add(found.property)
                found, program, told, interrupted = failed(program, found)
            failure = Failure(property=found.property, token=programs.token(program), told=told)
        trace = walk.trace if self.traced else ()
        return SessionResult(seed=number, steps=steps, failure=failure, trace=trace, interrupted=interrupted)
