"""What the worlds of one party alone are for: every small fault of a row, a guard or an emission shows in one of them."""

from __future__ import annotations

import pytest

from troth.cli.finding import find
from troth.models import Limits, check
from troth.models.mutants import Fate, campaign, of_worlds, prepared

WORLDS = {
    "receiver.download": ("transfer/download", "transfer/inline", "transfer/clock"),
    "host.process": ("process", "process/death", "process/clock"),
    "host.session": ("session/host", "session/host_attached", "session/host_strict"),
    "host.lease": ("session/host", "session/host_attached", "session/host_strict"),
    "host.delivery": ("ledger/host", "ledger/payload", "ledger/outcomes", "ledger/receivers", "ledger/relay"),
    "host.acceptance": ("ledger/host", "ledger/payload", "ledger/outcomes", "ledger/receivers", "ledger/relay"),
    "host.source": ("ledger/payload",),
    "trainer.session": ("session", "session/attached", "session/one_shot"),
    "trainer.lease": ("session", "session/attached", "session/one_shot"),
    "trainer.intake": ("ledger", "ledger/anew", "ledger/callers"),
    "trainer.ledger": ("ledger", "ledger/anew", "ledger/callers"),
    "trainer.publication": ("ledger", "ledger/anew", "ledger/results"),
    "trainer.source": ("ledger/anew", "ledger/results"),
    "trainer.calls": ("ledger", "ledger/callers"),
    "supervisor.gate": ("supervisor", "supervisor/tasks"),
    "supervisor.launches": ("supervisor", "supervisor/tasks"),
    "supervisor.teardown": ("supervisor", "supervisor/tasks", "supervisor/clock"),
    "supervisor.calls": ("supervisor", "supervisor/tasks"),
}
"""The machines, and the worlds that are enough to judge every mutant of one."""

QUICK = ("receiver.download", "host.process")


@pytest.mark.parametrize("machine", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in WORLDS])
def test_every_mutant_of_a_machine_is_killed_or_equivalent(machine: str) -> None:
    """A mutant that survives names a row, guard or emission that no property would miss."""
    worlds = [find(name).build({}) for name in WORLDS[machine]]
    originals = [prepared(world, check(world, limits=Limits(workers=1))) for world in worlds]
    party, _, name = machine.partition(".")
    mutants = [mutant for mutant in of_worlds(worlds) if mutant.party == party and mutant.machines == (name,) and ":" in mutant.name]

    judged = campaign(mutants, originals, Limits(workers=1))

    assert mutants
    assert [(one.name, one.reason) for one in judged if one.fate not in (Fate.KILLED, Fate.EQUIVALENT)] == []
    assert sum(one.fate is Fate.KILLED for one in judged) > 2 * sum(one.fate is Fate.EQUIVALENT for one in judged)
