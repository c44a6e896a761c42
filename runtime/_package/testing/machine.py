"""From a world, or a declaration, to a Hypothesis state machine: one rule an action, and one that is always there.

::

    from troth.testing import state_machine

    TestTurnstile = state_machine(world).TestCase

runs under pytest as any Hypothesis test does. Each action of the world, or each event of a party that stands alone, is a rule; it can be
chosen where the model says that it can happen. ``choice`` says which of several outcomes came of it: which message was lost, which timer
fired. One more rule gives a core an event that no row of its tables expects; it is always enabled, so that a machine that is over has
something to do. What is compared after every rule is in ``troth.testing.session``.

A failure shows Hypothesis' own example, shrunk; the checker's shortest trace to the same violation, where it has one; and a line that
plays the example again. The seed is Hypothesis' own: ``@seed`` or ``--hypothesis-seed``, as everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from hypothesis import HealthCheck, Phase
from hypothesis import seed as with_seed
from hypothesis import settings as Settings  # noqa: N812 - a class, whatever its case
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from troth.models.bounds import Blueprint
from troth.models.world import World
from troth.spec import Party
from troth.spec.engine import PartyCore
from troth.testing import programs, telling
from troth.testing.coverage import Coverage
from troth.testing.session import Session, raised
from troth.testing.single import all_alone, alone
from troth.testing.stage import RuleKind, Stage
from troth.testing.twin import Wrong

CHOICES = 1 << 16
"""Below which the number lies that stands for all choices within one rule."""
EXAMPLES = 60
"""Programs that Hypothesis makes up to come to a failure that the walker found."""


class Digits:
    """Chance from one number: each answer takes what is left of it."""

    def __init__(self, number: int) -> None:
        self.number = number

    def below(self, n: int) -> int:
        """The last digit, to the base of ``n``."""
        self.number, found = divmod(self.number, n)
        return found


class Drawn:
    """Chance from Hypothesis: every answer is drawn, and so it shrinks."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data

    def below(self, n: int) -> int:
        """One number, drawn."""
        return self.data.draw(st.integers(0, n - 1)) if n > 1 else 0


class Flaw(Protocol):
    """Something that was wrong."""

    @property
    def what(self) -> str:
        """In words."""
        ...

    @property
    def property(self) -> str:
        """The name that it is reported under."""
        ...


class Violated(AssertionError):
    """A property was violated in a generated test. Its words are put together when they are asked for: the checker takes part in them."""

    def __init__(self, wrong: Flaw, tell: Callable[[], str]) -> None:
        super().__init__(wrong.what)
        self.wrong = wrong
        self._tell = tell
        self._told: str | None = None

    def __str__(self) -> str:
        if self._told is None:
            self._told = self._tell()
        return self._told


class WorldMachine(RuleBasedStateMachine):
    """What the generated machines have in common."""

    stage: ClassVar[Stage]
    covered: ClassVar[Coverage]
    remade: ClassVar[list[Callable[[], World]]] = []
    """How the world is built anew, for the checker. In a list, because a function in a class is a method."""
    told_as: ClassVar[str] = ""

    def __init__(self) -> None:
        super().__init__()
        self.stage.refreshed()
        self.failed = False
        self._guarded(self._begin)

    def _begin(self) -> None:
        self.session = Session(self.stage, self.covered)

    def _guarded(self, what: Callable[[], Any]) -> None:
        wrong = None
        try:
            what()
        except Exception as error:
            wrong = raised(error)
        if wrong is not None:  # raised out of no other exception: so it is one failure for Hypothesis, wherever it comes from
            self.failed = True
            raise self._violated(wrong)

    def _violated(self, wrong: Wrong) -> Violated:
        session = getattr(self, "session", None)
        moves = tuple(session.moves) if session is not None else ()
        return Violated(wrong, lambda: self._story(wrong, moves))

    def _story(self, wrong: Wrong, moves: Any) -> str:
        cls = type(self)
        replay = f"troth fuzz {cls.told_as or cls.stage.name} --replay {programs.token(cls.stage, moves)}"
        return f"{telling.told(cls.stage, wrong, moves, cls.remade[0])}\nreplay: {replay}"

    def possible(self, number: int) -> bool:
        """Whether a rule can be chosen. One that raises when it is asked can, so that it does so as a step."""
        try:
            return self.session.stage.enabled(self.session.state, number)
        except Exception:
            return True

    @rule()
    def rest(self) -> None:
        """Nothing is done. Where nothing can be done, that must be an end that the world permits."""
        self._guarded(lambda: None if self.session.able() else self.session.stuck())

    def teardown(self) -> None:
        """The session is over, wherever it stopped: what it was can be gone through again."""
        if not self.failed:
            self._guarded(self.session.finished)


def state_machine(
    of: World | Blueprint | Party | PartyCore | Callable[[], World],
    *,
    illegal: bool = True,
    settings: Settings | None = None,
    name: str = "",
) -> type[WorldMachine]:
    """The Hypothesis state machine of a world, or of a party alone. ``name`` is what ``troth fuzz`` finds it by, for the replay line."""
    make: Callable[[], World]
    if isinstance(of, Party | PartyCore):
        party = of
        make = lambda: alone(party)[0]  # noqa: E731 - three ways to the same thing, of which each is a line
    elif isinstance(of, World):
        world = of
        make = lambda: world  # noqa: E731
    else:
        make = of
    built = make()
    made = machine_of(Stage(built, open_to=all_alone(built), illegal=illegal), make, name)
    if settings is not None:
        made.TestCase.settings = settings
    return made


def machine_of(stage: Stage, make: Callable[[], World], name: str = "") -> type[WorldMachine]:
    """The state machine of a world that is ready already."""
    body: dict[str, Any] = {
        "stage": stage,
        "covered": Coverage(stage.parties),
        "remade": [make],
        "told_as": name,
        "__doc__": f"Generated from {stage.name}: {stage.world.doc}",
        "__module__": __name__,
    }
    for number, one in enumerate(stage.rules):
        method = _rule(stage, number)
        method.__name__ = _free(_identifier(one.name), body)
        body[method.__name__] = _declared(stage, number, method)
    return type(f"{_identifier(stage.name).title().replace('_', '')}Machine", (WorldMachine,), body)


def example_of(stage: Stage, make: Callable[[], World], seed: int, id: str, rules: int) -> list[str]:  # noqa: A002
    """Hypothesis' own example of a violation of ``id``, shrunk; or that it came to none."""
    machine = with_seed(seed)(machine_of(stage, make))
    chosen = Settings(
        max_examples=EXAMPLES,
        stateful_step_count=rules,
        database=None,
        deadline=None,
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large),
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
        print_blob=False,
    )
    try:
        run_state_machine_as_test(machine, settings=chosen)
    except Violated as found:
        notes = [line for note in getattr(found, "__notes__", ()) for line in str(note).splitlines()]
        lines = [line for line in notes if line.startswith(("state", "Draw"))]
        if found.wrong.property == id and lines:
            return lines
    except HypothesisException as error:
        return [f"none that it could repeat: {type(error).__name__}"]
    return [f"none in {EXAMPLES} programs of {rules} rules"]


def _rule(stage: Stage, number: int) -> Callable[..., None]:
    if stage.rules[number].kind is RuleKind.ACTION:

        def act(self: WorldMachine, choice: int) -> None:
            self._guarded(lambda: self.session.take(number, Digits(choice)))

        return act

    def give(self: WorldMachine, data: st.DataObject) -> None:
        self._guarded(lambda: self.session.take(number, Drawn(data)))

    return give


def _declared(stage: Stage, number: int, method: Callable[..., None]) -> Any:
    if stage.rules[number].kind is not RuleKind.ACTION:
        return rule(data=st.data())(method)
    possible = precondition(lambda self: self.possible(number))
    return possible(rule(choice=st.integers(0, CHOICES - 1))(method))


def _identifier(name: str) -> str:
    found = re.sub(r"\W+", "_", name).strip("_").lower() or "rule"
    return f"rule_{found}" if found[0].isdigit() else found


def _free(name: str, taken: dict[str, Any]) -> str:
    """``name``, with a number where another rule, or Hypothesis, has it already."""
    used = {*taken, *dir(WorldMachine)}
    number, found = 2, name
    while found in used:
        found, number = f"{name}_{number}", number + 1
    return found
