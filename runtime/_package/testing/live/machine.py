"""The live runtime as a Hypothesis state machine: one rule for each thing that can be done on a stage.

All that is drawn is Hypothesis's: which rule, where, in which order tasks run, what is lost. So all of it shrinks: towards few steps, the
first possibility, the plainest order and the smallest payload.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from troth.testing.live.actions import Rule
from troth.testing.live.choices import Drawn, Listed
from troth.testing.live.parties import Wrong
from troth.testing.live.recording import Recording
from troth.testing.live.rules import RULES
from troth.testing.live.walking import SHUFFLES, Walk

PICKS = st.integers(0, 15)
ORDERS = st.integers(0, SHUFFLES - 1)


class LiveMachine(RuleBasedStateMachine):
    """See the module."""

    walk: Walk | None = None
    broken = False
    begun: Callable[[Walk], object] = staticmethod(lambda walk: None)
    """Told of each session that begins: to count what it covers."""

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        """Set the stage."""
        self.walk = Walk(Drawn(lambda most: int(data.draw(st.integers(0, most)))), Recording())
        self.walk.play.faults_left = 1 << 30  # how often something goes wrong is for Hypothesis to say
        self.walk.choices = self.walk.play.choices = Listed(())
        type(self).begun(self.walk)

    def ready(self, found: Rule) -> bool:
        """Whether that rule can be used now."""
        return self.walk is not None and bool(found.options(self.walk.play))

    def use(self, found: Rule, pick: int, order: int, data: st.DataObject | None) -> None:
        """Use it, and judge what comes of it."""
        walk = self.walk
        assert walk is not None
        options = tuple(found.options(walk.play))
        walk.play.choices = Listed(()) if data is None else Drawn(lambda most: int(data.draw(st.integers(0, most))))
        try:
            walk.take(found, options[pick % len(options)], order)
        except BaseException:
            self.broken = True
            raise

    def teardown(self) -> None:
        """Bring the session to its end, and judge that too."""
        walk, self.walk = self.walk, None
        if walk is None:
            return
        if self.broken:
            walk.stage.drop()
            return
        walk.play.choices = walk.choices = Listed(())
        try:
            walk.run(most=0)
        except BaseException:
            walk.stage.drop()
            raise


def _named(found: Rule) -> Any:
    name = found.name.replace(" ", "_")
    extra: dict[str, Any] = {"data": st.data()} if found.draws else {}

    def using(self: LiveMachine, pick: int, order: int, data: st.DataObject | None = None) -> None:
        self.use(found, pick, order, data)

    using.__name__ = using.__qualname__ = name
    using.__doc__ = found.act.__doc__
    declared: Any = rule
    made: Any = declared(pick=PICKS, order=ORDERS, **extra)(using)
    where: Any = precondition(lambda self: self.ready(found))
    return where(made)


for _rule in RULES:
    setattr(LiveMachine, _rule.name.replace(" ", "_"), _named(_rule))

__all__ = ["LiveMachine", "Wrong"]
