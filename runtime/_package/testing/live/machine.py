"""The live runtime as a Hypothesis state machine: one rule for each thing that can be done on a stage.

::

    from troth.testing import live_machine

    TestRuntime = live_machine().TestCase

All that is drawn is Hypothesis's: how the stage is set, which rule, where, in which order tasks run, what is lost. So all of it shrinks:
towards few steps, the first possibility, the plainest order and the smallest payload. One more rule, ``proceed``, takes several steps of
the plain course of a session, in which everything arrives and everybody does what makes sense: without it most programs would be over
before a task was done.

What is raised says everything, as a failure of ``troth fuzz`` does: the example made shorter once more, with what each step is about; the
checker's trace; and a token for ``troth fuzz --target runtime --replay``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import HealthCheck, Phase
from hypothesis import settings as Settings  # noqa: N812 - a class, whatever its case
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from troth.testing.live import programs, telling
from troth.testing.live.actions import Rule
from troth.testing.live.choices import Digits
from troth.testing.live.parties import Wrong
from troth.testing.live.playing import Found, ended, judged
from troth.testing.live.recording import Recording
from troth.testing.live.rules import RULES
from troth.testing.live.walking import SHUFFLES, Walk, drawn_setup, opened
from troth.testing.machine import Violated

SETUPS = 1 << 19
"""Above the number of ways in which a stage can be set, but for the bytes of its ids."""
CHOICES = 1 << 16
PLACES = st.integers(0, 15)
ORDERS = st.integers(0, SHUFFLES - 1)
DRAWS = st.integers(0, CHOICES - 1)
PROCEEDS = st.integers(1, 12)
SETTINGS = Settings(
    max_examples=100,
    stateful_step_count=50,
    deadline=None,
    print_blob=True,
    report_multiple_bugs=False,
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large),
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
)
"""What a live machine runs with, unless it is told otherwise: without the phase that explains, which plays failing sessions for minutes."""


class LiveMachine(RuleBasedStateMachine):
    """See the module."""

    walk: Walk | None = None
    broken = False
    begun: Callable[[Walk], object] = staticmethod(lambda walk: None)
    """Told of each session that begins: to count what it covers."""

    @initialize(setup=st.integers(0, SETUPS - 1))
    def begin(self, setup: int) -> None:
        """Set the stage."""
        digits = Digits(setup)
        digits.choose(2)  # whether all payloads are large
        drawn_setup(digits)
        self.walk = opened(Walk, digits.taken, Recording())
        type(self).begun(self.walk)

    def ready(self, found: Rule) -> bool:
        """Whether that rule can be used now."""
        return self.walk is not None and bool(found.options(self.walk.play))

    def use(self, found: Rule, where: int, order: int, choice: int | None) -> None:
        """Use it, and judge what comes of it. What else is drawn comes of ``choice``, or of the order where there is none."""
        walk = self.walk
        assert walk is not None
        options = found.options(walk.play)
        walk.draw_from(Digits(order if choice is None else choice))
        self._guarded(lambda: walk.take(found, options, where % len(options), order))

    @precondition(lambda self: self.walk is not None)
    @rule(steps=PROCEEDS)
    def proceed(self, steps: int = 1) -> None:
        """Go on as sessions mostly do."""
        walk = self.walk
        assert walk is not None
        walk.draw_from(Digits(0))
        for _ in range(steps):
            if walk.stage.over:
                return
            found = [(one.weight(walk.play, options), one, options) for one in RULES if (options := one.options(walk.play))]
            _, likely, where = max(found, key=lambda entry: entry[0])
            self._guarded(partial(walk.take, likely, where, len(where) - 1, 0))

    def end(self) -> None:
        """From now on nothing new is begun and nothing goes wrong. No rule: a session is brought to its end in any case."""
        walk = self.walk
        assert walk is not None
        self._guarded(walk.end)

    def teardown(self) -> None:
        """Bring the session to its end, and judge that too."""
        walk, self.walk = self.walk, None
        if walk is None or self.broken:
            return
        found = ended(walk)
        if found is not None:
            self._broken(walk, found)

    def _guarded(self, what: Callable[[], object]) -> None:
        walk = self.walk
        assert walk is not None
        found = judged(walk, what)
        if found is not None:
            self._broken(walk, found)

    def _broken(self, walk: Walk, found: Found) -> None:
        """Something is wrong. It is raised at one place and out of no other exception: so it is one failure for Hypothesis, whatever it
        is, and shrunk once."""
        self.broken = True
        program = walk.program

        def tell() -> str:
            done = telling.failed(program, found)
            if done.interrupted:
                raise KeyboardInterrupt
            return f"{done.story}\nreplay: troth fuzz --target runtime --replay {programs.token(done.program)}"

        raise Violated(found, tell)


def _named(found: Rule) -> Any:
    name = found.name.replace(" ", "_")

    def using(self: LiveMachine, where: int = 0, order: int = 0, choice: int | None = None) -> None:
        self.use(found, where, order, choice)

    using.__name__ = using.__qualname__ = name
    using.__doc__ = found.act.__doc__
    declared: Any = rule
    made: Any = declared(where=PLACES, order=ORDERS, **({"choice": DRAWS} if found.draws else {}))(using)
    possible: Any = precondition(lambda self: self.ready(found))
    return possible(made)


for _rule in RULES:
    setattr(LiveMachine, _rule.name.replace(" ", "_"), _named(_rule))


def live_machine(*, settings: Settings | None = None) -> type[LiveMachine]:
    """The Hypothesis state machine of the live runtime; ``.TestCase`` runs it under pytest. ``settings`` are ``SETTINGS`` unless given."""

    class Machine(LiveMachine):
        """A machine of its own, so that its settings are."""

    Machine.__name__ = Machine.__qualname__ = LiveMachine.__name__
    Machine.TestCase.settings = settings or SETTINGS
    return Machine


__all__ = ["SETTINGS", "LiveMachine", "Wrong", "live_machine"]
