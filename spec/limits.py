"""Every bound of the protocol, named once, with its unit in its name, and checked against the bounds around it.

A wait that nobody bounded is a hang that nobody has seen yet. A bound inside another must be the smaller one, or the outer wait ends
first and the inner clean-up never runs; so the order is declared next to the values and a configuration that breaks it is refused.
"""

from __future__ import annotations

import math
from typing import Any

import attrs
from attrs import field, frozen

from troth.spec.errors import LimitOrder

MAX_EPOCH = 2**31 - 1
MAX_SEQUENCE = 2**31 - 1
MAX_ATTEMPT = 2**15 - 1
MAX_CONTENT = 2**15 - 1
MAX_RECEIVERS = 64
MAX_LAUNCHES = 2**15 - 1
MAX_INSTANCES = 2**15 - 1


def _check_seconds(_instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    if value is None and attribute.metadata["unlimited"]:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        none = " or None for no limit" if attribute.metadata["unlimited"] else ""
        raise ValueError(f"{attribute.name}: must be a finite number of seconds above 0{none}, got {value!r}")


def _check_count(_instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    low, high = attribute.metadata["low"], attribute.metadata["high"]
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{attribute.name}: must be an int from {low} to {high}, got {value!r}")


def seconds(default: float | None, why: str) -> Any:
    """A duration. ``None`` as the default says that it may be without limit, because something else bounds the wait."""
    return field(default=default, validator=_check_seconds, metadata={"unit": "s", "why": why, "unlimited": default is None})


def count(default: int, why: str, *, low: int = 1, high: int) -> Any:
    """A number of things."""
    return field(default=default, validator=_check_count, metadata={"unit": "count", "why": why, "low": low, "high": high})


@frozen(kw_only=True)
class Limits:
    """The limits of one deployment. Times in seconds."""

    # The lease: how long silence may last.
    heartbeat_interval_s: float = seconds(5.0, "a trainer says that it lives this often; also how long a suspect has to answer")
    lease_timeout_s: float = seconds(30.0, "silence after which a peer is suspect; must outlast a message there and back, at its slowest")
    unresponsive_limit_s: float = seconds(600.0, "how long a silent peer whose process lives is waited for")

    # Opening a session.
    hello_retry_s: float = seconds(1.0, "between two handshake messages of a trainer")
    join_timeout_s: float = seconds(30.0, "how long init() tries")
    open_retry_s: float = seconds(2.0, "between two SESSION_OPEN, SHUTDOWN or ABORT of a host")
    launch_timeout_s: float = seconds(300.0, "from spawning a trainer to its session")
    attach_timeout_s: float = seconds(600.0, "how long a host waits for a trainer that somebody else starts")

    # Tasks and results.
    task_retry_s: float = seconds(2.0, "between two questions about a task that was not answered for")
    delivery_budget_s: float = seconds(600.0, "from the first offer of a task to its acceptance")
    result_wait_s: float | None = seconds(None, "from a task's acceptance to its result; the lease bounds it where this does not")
    result_retry_s: float = seconds(10.0, "between two questions about a result that was not answered for")

    # Payloads.
    transfer_stall_s: float = seconds(20.0, "no bytes for this long: the transfer has stalled")
    pull_pause_s: float = seconds(1.0, "between a transfer that failed and the next try")
    source_idle_s: float = seconds(120.0, "an accepted result that a receiver does not come for")

    # Ending.
    drain_limit_s: float = seconds(60.0, "how long a host lets an accepted source serve its receivers after SHUTDOWN")
    abort_limit_s: float = seconds(4.0, "how long a host repeats ABORT to a trainer that it does not own")
    natural_exit_s: float = seconds(10.0, "from the end of a session to the trainer's own exit")
    term_grace_s: float = seconds(10.0, "from TERM to KILL")
    kill_wait_s: float = seconds(5.0, "from KILL to giving a process up as unkillable")
    finalize_budget_s: float = seconds(90.0, "the teardown of everything, in parallel, before it is forced")
    force_budget_s: float = seconds(30.0, "the forced part")

    # Numbers of things.
    task_attempts: int = count(8, "offers of one task", high=MAX_ATTEMPT)
    result_attempts: int = count(8, "publications of one result", high=MAX_ATTEMPT)
    pull_attempts: int = count(4, "tries of one download, each from where the last one stopped", high=MAX_ATTEMPT)
    ledger_limit: int = count(64, "tasks that a trainer remembers", high=MAX_SEQUENCE)
    acceptance_limit: int = count(64, "tasks whose result a host remembers", high=MAX_SEQUENCE)
    retained_limit: int = count(4, "trainers that a backend keeps alive at once, launched a task each", high=MAX_LAUNCHES)

    def __attrs_post_init__(self) -> None:
        broken = [text for inner, outer, why in ORDER if (text := _broken(self, inner, outer, why))]
        if broken:
            raise LimitOrder("; ".join(broken))

    @property
    def result_sources_limit(self) -> int:
        """Sources that a trainer can have: every receiver of every task that it remembers."""
        return self.ledger_limit * MAX_RECEIVERS

    @property
    def launches_limit(self) -> int:
        """Launches that a backend can have."""
        return self.retained_limit

    @property
    def task_sources_limit(self) -> int:
        """Sources that a host can have: one a task that it remembers."""
        return self.acceptance_limit


ORDER: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("heartbeat_interval_s",), "lease_timeout_s", "one lost heartbeat must not make a peer suspect"),
    (("lease_timeout_s", "heartbeat_interval_s"), "unresponsive_limit_s", "a peer is unresponsive only after its lease"),
    (("hello_retry_s",), "join_timeout_s", "init() must be able to try twice"),
    (("open_retry_s",), "attach_timeout_s", "a host must be able to open twice"),
    (("open_retry_s",), "drain_limit_s", "a lost SHUTDOWN must be repeated within the drain"),
    (("open_retry_s",), "abort_limit_s", "a lost ABORT must be repeated"),
    (("task_retry_s",), "delivery_budget_s", "a lost answer must be asked for within the budget"),
    (("result_retry_s",), "lease_timeout_s", "a lost answer must be asked for while the session lives"),
    (("transfer_stall_s", "pull_pause_s"), "source_idle_s", "a stalled receiver must have time to come back"),
    (("result_retry_s",), "source_idle_s", "a lost PAYLOAD_HELD must be said again in time"),
    (("abort_limit_s",), "force_budget_s", "a forced end waits for the abort inside it"),
    (("kill_wait_s", "term_grace_s", "kill_wait_s"), "force_budget_s", "a forced end covers a start that was given up, TERM and KILL"),
    (("drain_limit_s", "natural_exit_s", "term_grace_s", "kill_wait_s"), "finalize_budget_s", "the orderly end fits in its budget"),
)
"""Inner limits, the outer one that their sum must stay below, and why.

One thing is left out of the sums: a process whose start is heard of only after TERM gets its grace once more (``host.process.X9``). An end
that takes so long is cut short by the outer limit (``supervisor.teardown.W11`` and ``W12``); it is over in time all the same.
"""


def _broken(limits: Limits, inner: tuple[str, ...], outer: str, why: str) -> str | None:
    total, bound = sum(getattr(limits, name) for name in inner), getattr(limits, outer)
    if total < bound:
        return None
    return f"{' + '.join(inner)} must be less than {outer}: {total:g} is not below {bound:g}; {why}"
