"""Coverage: what is counted, what is missing, and what a gate says of it."""

from __future__ import annotations

from tests.testing.toys import GENEROUS, TURNSTILE
from troth.spec import Called, PartyCore
from troth.statemachines import TRAINER
from troth.testing import Allowed, Coverage
from troth.testing.coverage import Floors


def told(*calls: str) -> Coverage:
    """A turnstile's coverage after these calls."""
    coverage = Coverage([TURNSTILE], ["coins run out"])
    core = PartyCore(TURNSTILE)
    for call in calls:
        coverage.step("turnstile", core.handle(Called(call)))
    return coverage


def test_rows_ignores_and_refusals_are_counted_apart() -> None:
    """A row fires, an ignore is taken, a refusal refuses."""
    coverage = told("push", "coin", "coin")

    assert coverage.fired("rows") == ("turnstile.gate.G1",)
    assert coverage.fired("ignores") == ("turnstile.gate.open.coin",)
    assert coverage.fired("refusals") == ("turnstile.gate.locked.push",)
    assert coverage.missing("rows") == ("turnstile.gate.G2",)


def test_a_pair_is_two_rows_of_which_the_second_can_follow() -> None:
    """An ignore between them does not part them; the declaration says which pairs there are."""
    coverage = told("coin", "coin", "push")

    assert coverage.fired("pairs") == ("turnstile.gate.G1 > gate.G2",)
    assert coverage.known["pairs"] == {"turnstile.gate.G1 > gate.G2", "turnstile.gate.G2 > gate.G1"}


def test_the_first_row_of_another_life_follows_nothing() -> None:
    """Two instances of a party, or one that begins anew, make no pairs with each other."""
    coverage = Coverage([TURNSTILE])
    for instance in ("left", "right"):
        core = PartyCore(TURNSTILE)
        coverage.step("turnstile", core.handle(Called("coin")), instance)
    coverage.begin("turnstile", "left")
    core = PartyCore(TURNSTILE)
    core.handle(Called("coin"))
    coverage.step("turnstile", core.handle(Called("push")), "left")

    assert coverage.fired("pairs") == ()


def test_guards_count_both_ways() -> None:
    """Each answer of an atom is a thing of its own."""
    coverage = Coverage([TRAINER])
    atom = next(f"{machine.name}.{machine.atoms[0].name}" for machine in TRAINER.machines if machine.atoms)
    coverage.record("trainer", (), ((atom, True),))
    machine, _, name = atom.rpartition(".")

    assert coverage.fired("guards") == (f"trainer.{machine}.{name}",)
    assert f"trainer.{machine}.~{name}" in coverage.missing("guards")


def test_fractions_are_of_what_is_declared() -> None:
    """From nothing to all."""
    nothing, some = told(), told("coin")

    assert (nothing.fractions["rows"], some.fractions["rows"]) == (0.0, 0.5)
    assert Coverage([GENEROUS]).fractions["guards"] == 1.0  # it has none
    assert some.report()[0] == "rows      1 of 2 (50.0%)"
    assert "  nothing fired turnstile.gate.G2" in some.report()


def test_what_two_processes_saw_is_added() -> None:
    """Their coverage travels as plain values; what the other has and this one does not know is passed over."""
    one, other = told("coin"), told("push")
    other.fault("coins run out")
    one.add({**other.data, "rows": ["turnstile.gate.G2", "nobody.knows"]})

    assert one.fired("rows") == ("turnstile.gate.G1", "turnstile.gate.G2")
    assert one.fractions["faults"] == 1.0
    assert one.missing("refusals") == ()


def test_a_gate_lets_pass_what_has_a_reason_and_did_not_fire() -> None:
    """Anything else is named: no reason, an empty one, one that is wrong, one for nothing."""
    coverage = told("coin")

    assert Allowed({"turnstile.gate.G2": "nobody pushes here"}).problems(coverage) == []
    assert [line.partition(":")[0] for line in Allowed({}).problems(coverage)] == ["turnstile.gate.G2"]
    wrong = Allowed({"turnstile.gate.G2": " ", "turnstile.gate.G1": "it cannot", "turnstile.gate.G9": "what"})
    assert [line.partition(": ")[2].split(";")[0][:24] for line in wrong.problems(coverage)] == [
        "its reason is empty",
        "it fired, so its reason ",
        "there is no such thing a",
    ]


def test_a_report_tells_why_something_cannot_fire_behind_what_can() -> None:
    """First what somebody could do something about."""
    coverage = Coverage([TURNSTILE], reasons={"turnstile.gate.G1": "nobody pays"})

    assert coverage.report()[:3] == [
        "rows      0 of 2 (0.0%), 1 cannot",
        "  nothing fired turnstile.gate.G2",
        "  nothing fired turnstile.gate.G1: nobody pays",
    ]


def test_floors_are_what_has_to_fire_at_the_least() -> None:
    """A kind of which less fired is named, and one that there is not."""
    coverage = told("coin")

    assert Floors({"rows": 1, "ignores": 0}).problems(coverage) == []
    assert Floors({"rows": 2}).problems(coverage) == ["rows: 1 of 2 fired, and 2 must"]
    assert [line.partition(";")[0] for line in Floors({"colours": 1}).problems(coverage)] == ["colours: there is no such kind"]
