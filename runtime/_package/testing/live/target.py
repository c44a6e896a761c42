"""The live runtime as a target of the fuzzer."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from attrs import define

from troth.spec.core import Step
from troth.statemachines import PARTIES
from troth.testing.coverage import Coverage
from troth.testing.live.choices import Walk as Drawn
from troth.testing.live.parties import Shadow, Wrong
from troth.testing.live.recording import Recording
from troth.testing.live.rules import FAULTS
from troth.testing.live.stepping import Unsettled
from troth.testing.live.walking import Walk
from troth.testing.targets import BadToken, Failure, SessionResult

SESSIONS = 1 << 20
"""Sessions that a seed has, before the next seed's begin."""


def counted(walk: Walk, coverage: Coverage) -> None:
    """Let a session's steps be counted."""

    def stepped(shadow: Shadow, step: Step) -> None:
        # Only what the runtime's own cores did is compared with the model's, so what the model's did is what the runtime's did.
        if not shadow.counted:
            shadow.counted = True
            coverage.begin(shadow.kind, shadow.kind)
        coverage.step(shadow.kind, step, shadow.kind)

    walk.stage.judge.stepped = stepped


@define
class Live:
    """The target ``runtime``."""

    name: str = "runtime"
    traced: bool = False
    """Whether sessions are given with their traces. They are made and checked in any case."""

    def coverage(self) -> Coverage:
        """See ``Target``."""
        return Coverage(PARTIES.values(), FAULTS)

    def fuzz(self, *, seed: int, until: Callable[[], bool], coverage: Coverage) -> Iterator[SessionResult]:
        """See ``Fuzz``."""
        for number in count(seed * SESSIONS):
            if until():
                return
            found = _session(number, until, coverage, traced=self.traced)
            if found is None:
                return
            yield found

    def replay(self, token: str, *, coverage: Coverage) -> SessionResult:
        """See ``Target``."""
        name, _, number = token.partition("-")
        if name != self.name or not number.isdecimal():
            raise BadToken(f"{token!r} is no session of the live runtime: such a token is {self.name}-NUMBER")
        found = _session(int(number), lambda: False, coverage, traced=True)
        if found is None:
            raise AssertionError("a session that nothing breaks off ends")
        return found


def _session(number: int, until: Callable[[], bool], coverage: Coverage, *, traced: bool) -> SessionResult | None:
    walk = Walk(Drawn(number), Recording())
    counted(walk, coverage)
    failure = None
    try:
        with quietly():
            if not walk.run(until):
                return None
    except Wrong as wrong:
        failure = _failed(walk, number, wrong.property, str(wrong))
    except Unsettled as error:
        failure = _failed(walk, number, "hang", f"hang: {error}")
    except Exception:  # whoever is at fault, the runtime or its judge: the session is what shows it
        failure = _failed(walk, number, "error", f"error: {traceback.format_exc().rstrip()}")
    for fault in walk.play.faults:
        coverage.fault(fault)
    steps = walk.steps + walk.play.more_steps
    return SessionResult(seed=number, steps=steps, failure=failure, trace=walk.trace if traced else ())


def _failed(walk: Walk, number: int, property: str, what: str) -> Failure:  # noqa: A002
    found = Failure(property=property, token=f"runtime-{number}", told=told(walk, what))
    walk.stage.drop()
    return found


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


def told(walk: Walk, what: str) -> str:
    """What went wrong, for a reader."""
    lines = [what, f"in {walk.stage.setup}", "after:", *(f"  {at:>4}  {name}" for at, name in enumerate(walk.told, 1))]
    return "\n".join(lines)
