"""The live runtime as a target of the fuzzer."""

from __future__ import annotations

import logging
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

    def coverage(self) -> Coverage:
        """See ``Target``."""
        return Coverage(PARTIES.values(), FAULTS)

    def fuzz(self, *, seed: int, until: Callable[[], bool], coverage: Coverage) -> Iterator[SessionResult]:
        """See ``Fuzz``."""
        for number in count(seed * SESSIONS):
            if until():
                return
            found = _session(number, until, coverage)
            if found is None:
                return
            yield found

    def replay(self, token: str, *, coverage: Coverage) -> SessionResult:
        """See ``Target``."""
        name, _, number = token.partition("-")
        if name != self.name or not number.isdecimal():
            raise BadToken(f"{token!r} is no session of the live runtime: such a token is {self.name}-NUMBER")
        found = _session(int(number), lambda: False, coverage, Recording())
        if found is None:
            raise AssertionError("a session that nothing breaks off ends")
        return found


def _session(number: int, until: Callable[[], bool], coverage: Coverage, recording: Recording | None = None) -> SessionResult | None:
    walk = Walk(Drawn(number), recording)
    counted(walk, coverage)
    failure = None
    try:
        with quietly():
            if not walk.run(until):
                return None
    except Wrong as wrong:
        failure = Failure(property=wrong.property, token=f"runtime-{number}", told=told(walk, wrong))
        walk.stage.drop()
    for fault in walk.play.faults:
        coverage.fault(fault)
    return SessionResult(
        seed=number, steps=walk.steps + walk.play.more_steps, failure=failure, trace=walk.trace if recording is not None else ()
    )


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


def told(walk: Walk, wrong: Wrong) -> str:
    """What went wrong, for a reader."""
    lines = [str(wrong), f"in {walk.stage.setup}", "after:", *(f"  {at:>4}  {name}" for at, name in enumerate(walk.told, 1))]
    return "\n".join(lines)
