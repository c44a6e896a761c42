"""Snapshots are canonical and finite: under small limits the reachable local states of each core are enumerated and their count pinned.

The environment is anybody: every event of the alphabet in every state, the impossible ones too. A core that kept a field that no
longer matters would show here as more states, and one that counted without bound would not end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.statemachines.alphabet import ONE, host_events, receiver_events, supervisor_events, trainer_events
from troth.spec import core
from troth.spec.engine import PartyCore
from troth.spec.interpreters import Table
from troth.spec.messages import ExecuteTask, SessionRejected
from troth.statemachines import Host, HostConfig, Receiver, ReceiverConfig, Supervisor, SupervisorConfig, Trainer, TrainerConfig

# The lease is nearly independent of everything else, so it multiplies every count by about ten; the quick tests leave its time out.
NO_LEASE_TIME = ("lease", "beat")


def local_states(make: Callable[[], PartyCore], events: Iterable[core.Event], most: int = 100_000) -> int:
    """How many snapshots are reachable."""
    held, alphabet = make(), list(events)
    start = held.snapshot()
    seen, todo = {start}, [start]
    while todo:
        snapshot = todo.pop()
        for event in alphabet:
            held.restore(snapshot)
            if _spent(held, event):
                continue
            step = held.handle(event)
            reached = held.snapshot()
            if reached not in seen:
                assert step.refusal is None, f"{event} was refused and changed the core"
                assert len(seen) < most, "not finite, or not canonical"
                seen.add(reached)
                todo.append(reached)
    return len(seen)


def _spent(held: PartyCore, event: core.Event) -> bool:
    """The one budget: a host is given one task. Its sequence counts without bound, as it should."""
    ordered = isinstance(event, core.Received) and isinstance(event.message, ExecuteTask)
    return bool(ordered and held.data("delivery").seq >= 1)


def trainer(**options: Any) -> Callable[[], PartyCore]:
    """A trainer that remembers one task."""
    return lambda: Trainer(TrainerConfig(limits=ONE, **options), interpreter=Table)


def host(**options: Any) -> Callable[[], PartyCore]:
    """A host that remembers one task."""
    return lambda: Host(HostConfig(limits=ONE, **options), interpreter=Table)


def test_a_receiver_is_finite() -> None:
    """One download."""
    assert local_states(lambda: Receiver(ReceiverConfig(limits=ONE)), receiver_events()) == 13


@pytest.mark.parametrize(("persistent", "count"), [(True, 110), (False, 410)])
def test_a_supervisor_is_finite(persistent: bool, count: int) -> None:
    """Two launches."""
    assert local_states(lambda: Supervisor(SupervisorConfig(limits=ONE, persistent=persistent)), supervisor_events()) == count


def test_a_trainer_is_finite() -> None:
    """Attached: one task, one epoch, two attempts, one receiver."""
    events = trainer_events(epochs=(1,), tasks=(1,), contents=(0,), leave_out=NO_LEASE_TIME)
    assert local_states(trainer(launched=False), events) == 3_704


def test_a_host_is_finite() -> None:
    """Attached, and never sent above its epoch: one task, two attempts, the trainer as the receiver of its payload."""
    events = host_events(tasks=(1,), contents=(0,), leave_out=(*NO_LEASE_TIME, SessionRejected))
    assert local_states(host(launched=False), events) == 6_079


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launched", "epochs", "leave_out", "count"),
    [(True, (1,), NO_LEASE_TIME, 7_339), (True, (1,), (), 16_811), (False, (1, 2), (), 41_110)],
)
def test_a_trainer_is_finite_in_every_deployment(launched: bool, epochs: tuple[int, ...], leave_out: tuple[str, ...], count: int) -> None:
    """Launched; with the lease's timers; and attached over two epochs of two host instances."""
    events = trainer_events(epochs=epochs, tasks=(1,), contents=(0,), leave_out=leave_out)
    assert local_states(trainer(launched=launched), events) == count


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launched", "leave_out", "count"),
    [(True, NO_LEASE_TIME, 11_369), (False, (), 11_600), (True, (), 19_711)],
)
def test_a_host_is_finite_in_every_deployment(launched: bool, leave_out: tuple[str, ...], count: int) -> None:
    """Launched; and with the lease's timers."""
    assert local_states(host(launched=launched), host_events(tasks=(1,), contents=(0,), leave_out=leave_out)) == count
