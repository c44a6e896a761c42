"""P65, whenever a configuration is made: budgets inside another one sum to less than it, or the configuration is refused."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import attrs
import pytest

from troth.spec import limits
from troth.spec.errors import LimitOrder
from troth.spec.limits import Limits

NESTED: tuple[tuple[tuple[str, ...], str], ...] = (
    (("heartbeat_interval_s",), "lease_timeout_s"),
    (("lease_timeout_s", "heartbeat_interval_s"), "unresponsive_limit_s"),
    (("hello_retry_s",), "join_timeout_s"),
    (("open_retry_s",), "attach_timeout_s"),
    (("open_retry_s",), "drain_limit_s"),
    (("open_retry_s",), "abort_limit_s"),
    (("task_retry_s",), "delivery_budget_s"),
    (("result_retry_s",), "lease_timeout_s"),
    (("transfer_stall_s", "pull_pause_s"), "source_idle_s"),
    (("result_retry_s",), "source_idle_s"),
    (("abort_limit_s",), "force_budget_s"),
    (("kill_wait_s", "term_grace_s", "kill_wait_s"), "force_budget_s"),
    (("drain_limit_s", "natural_exit_s", "term_grace_s", "kill_wait_s"), "finalize_budget_s"),
)
"""What lies inside what, written down a second time: one that is missing where configurations are checked is missed here."""

Nest = tuple[tuple[str, ...], str]


def fits(values: dict[str, float], nest: Nest) -> bool:
    """Whether the inner ones sum to less than the outer one."""
    inner, outer = nest
    return sum(values[name] for name in inner) < values[outer]


def only_broken(nest: Nest) -> dict[str, Any]:
    """Durations in which the inner ones of this nest sum to exactly the outer one, and every other nest is in order."""
    inner, outer = nest
    durations = [one for one in attrs.fields(Limits) if one.metadata["unit"] == "s" and one.default is not None]
    values: dict[str, Any] = {one.name: one.default for one in durations}
    values[outer] = sum(values[name] for name in inner)
    others = [one for one in NESTED if one is not nest]
    while wrong := [one for one in others if not fits(values, one)]:
        for others_inner, other in wrong:
            if other not in (outer, *inner):
                values[other] *= 10
            else:
                values |= {name: values[name] / 10 for name in others_inner if name not in (outer, *inner)}
    return values


def budgets_fit() -> None:
    """A configuration in which one nest alone is out of order is refused; with a little more for the outer wait it is taken."""
    for nest in NESTED:
        values = only_broken(nest)
        Limits(**values | {nest[1]: values[nest[1]] * 1.01})
        taken = None
        with suppress(LimitOrder):
            taken = Limits(**values)
        assert taken is None, f"P65: {' + '.join(nest[0])} may take as long as {nest[1]}"


def test_p65_holds_for_every_configuration_that_is_taken() -> None:
    """One for every nest, right at its edge; and nothing else is refused for its order."""
    budgets_fit()

    assert {(inner, outer) for inner, outer, _ in limits.ORDER} == set(NESTED)


@pytest.mark.parametrize("nest", NESTED, ids=lambda nest: f"{'+'.join(nest[0])}<{nest[1]}")
def test_p65_is_violated_by_a_nest_that_nobody_declared(nest: Nest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each one, left out of the order that configurations are checked by."""
    monkeypatch.setattr(limits, "ORDER", tuple(one for one in limits.ORDER if one[:2] != nest))

    with pytest.raises(AssertionError, match=rf"P65: .* may take as long as {nest[1]}"):
        budgets_fit()


def test_p65_is_violated_by_budgets_that_may_be_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The inner wait would end when the outer one does, and what follows it never runs."""

    def broken(of: Limits, inner: tuple[str, ...], outer: str, why: str) -> str | None:
        return why if sum(getattr(of, name) for name in inner) > getattr(of, outer) else None

    monkeypatch.setattr(limits, "_broken", broken)

    with pytest.raises(AssertionError, match="P65"):
        budgets_fit()
