"""Every watcher can fail: for each one a seeded fault, and a short script that it does not survive.

A watcher that never fails shows nothing. So each of them is given a core whose table was broken on purpose, in the one place that it is
there for, and must name its property; the same script must pass on the table as it is. The faults are rows with another guard, target,
update or emission. Two of them need more: a family that grows above its limit is stopped by the engine, so the limit goes too (P06,
P19); and no table can make a refusal change anything, so it is the engine that forgets to roll back (P22).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import frozen

from tests.statemachines import watch
from tests.statemachines.fault_scripts import (
    Backend,
    aborted,
    aborted_after_a_loss,
    aborted_after_a_start,
    aborted_then_lost,
    aborted_while_sending,
    aborted_while_waiting,
    answered_by_a_beat,
    asked_while_reserved,
    died_while_serving,
    executed_twice,
    exhausted,
    late_copy_of_a_failed_task,
    loss_after_holding,
    loss_said_twice,
    lost_offer,
    lost_then_aborted,
    lost_with_a_task,
    misuse,
    offered_after_its_cancel,
    old_beat,
    old_cancel,
    question_after_an_acceptance,
    received_then_shut_down,
    reserved_while_draining,
    result_after_a_rejection,
    result_said_twice,
    run,
    second_task_stopped,
    sent_and_received_again,
    shut_down_while_sending,
    silent_host,
    silent_trainer,
    three_tasks,
    two_retained,
    two_tasks,
)
from tests.statemachines.faults import (
    Change,
    as_row,
    both,
    deaf_when_suspect,
    pass_by_only,
    refusing,
    row,
    said_too,
    skip_one,
    unbounded,
    unsaid,
)
from tests.statemachines.trio import Deal, Trio
from tests.statemachines.watch import WATCHERS
from troth.spec import messages as m
from troth.spec.emits import each, signal
from troth.spec.engine import PartyCore
from troth.spec.guards import always
from troth.spec.limits import Limits
from troth.spec.machine import SAME
from troth.spec.party import Party
from troth.spec.properties import PROPERTIES, By
from troth.statemachines import PARTIES, SupervisorConfig
from troth.statemachines.host import process
from troth.statemachines.host.acceptance import ACCEPTED, LOST, AcceptanceState, reject, take
from troth.statemachines.host.delivery import DeliveryState
from troth.statemachines.host.session import ENDED
from troth.statemachines.receiver import DownloadState
from troth.statemachines.shared.lease import LeaseState
from troth.statemachines.trainer import ledger, publication
from troth.statemachines.trainer.session import ABORT_ACCEPTED, lose
from troth.statemachines.trainer.states import TrainerSessionState


@frozen(kw_only=True)
class Seed:
    """A watcher, a party with faults in its machines, and the script that shows them."""

    id: str
    party: str
    faults: dict[str, Change]
    script: Callable[[Any], None]
    watcher: Any
    deal: Deal

    def broken(self) -> Party:
        """The party with its faults."""
        found = PARTIES[self.party]
        for name, change in self.faults.items():
            found = found.replaced(change(found.by_name[name]))
        return found


def seed(watcher: Any, party: str, script: Callable[[Any], None], deal: Deal = Deal(), **faults: Change) -> Seed:  # noqa: B008 - frozen
    """A seed for a watcher of ``watch``."""
    return Seed(id=watcher.__name__.upper(), party=party, faults=faults, script=script, watcher=watcher, deal=deal)


def by_trio(id_: str, party: str, script: Callable[[Any], None], **faults: Change) -> Seed:
    """A seed for a property that the trio itself watches."""
    return Seed(id=id_, party=party, faults=faults, script=script, watcher=None, deal=Deal())


STAY = row("C2", target=SAME)
ANYWHERE = row("S26", guard=always)
AT_ONCE = as_row("L4", "L8", target=LeaseState.EXPIRED)
UNHEARD = Deal(receives=False)

SEEDS = (
    seed(watch.p01, "trainer", lost_with_a_task, session=row("S40", target=TrainerSessionState.NEW)),
    seed(watch.p02, "trainer", reserved_while_draining, session=unsaid("S31", "ledger", "stop")),
    seed(watch.p03, "trainer", asked_while_reserved, ledger=row("K28", emit=[ledger.ACCEPT])),
    seed(watch.p04, "trainer", sent_and_received_again, ledger=row("K17", target=ledger.LedgerState.QUEUED)),
    seed(watch.p05, "trainer", offered_after_its_cancel, ledger=row("K1", guard=always)),
    seed(watch.p05, "trainer", late_copy_of_a_failed_task, intake=row("I3", update=pass_by_only)),
    seed(watch.p06_trainer, "trainer", three_tasks, ledger=both(row("K1", guard=always), unbounded)),
    seed(watch.p06_host, "host", three_tasks, acceptance=both(row("A1", guard=always), unbounded)),
    seed(watch.p07, "host", two_tasks, delivery=row("D1", update=skip_one)),
    seed(watch.p08, "host", result_said_twice, acceptance=row("A5", update=take)),
    seed(watch.p09, "host", result_after_a_rejection, acceptance=row("A7", target=AcceptanceState.SAFE, update=take, emit=[ACCEPTED])),
    seed(watch.p09, "host", question_after_an_acceptance, acceptance=row("A11", emit=[reject(m.RejectReason.EXHAUSTED)])),
    by_trio("P10", "trainer", exhausted, publication=as_row("N16", "N20", target=publication.PublicationState.SETTLED)),
    seed(watch.p11_trainer, "trainer", aborted_then_lost, session=row("S42", update=lose)),
    seed(watch.p11_host, "host", lost_then_aborted, session=row("H54", guard=always)),
    seed(watch.p12, "trainer", aborted_while_waiting, session=unsaid("S35", "calls", "done")),
    seed(watch.p12, "trainer", aborted_while_sending, publication=unsaid("N23", "calls", "done")),
    seed(watch.p12, "trainer", aborted_while_sending, publication=unsaid("N23", "source", "release")),
    seed(watch.p13, "trainer", shut_down_while_sending, session=row("S30", guard=always)),
    seed(watch.p13, "trainer", shut_down_while_sending, session=said_too("S31", signal("publication", "cancel", key=each))),
    seed(watch.p14, "trainer", silent_host, lease=AT_ONCE),
    seed(watch.p14, "host", silent_trainer, lease=AT_ONCE),
    seed(watch.p14, "host", answered_by_a_beat, lease=deaf_when_suspect),
    seed(watch.p15, "trainer", received_then_shut_down, calls=STAY),
    seed(watch.p16, "host", aborted, process=row("X12", emit=process.kill)),
    seed(watch.p16, "host", aborted, Deal(launched=False), session=said_too("H39", process.term[0])),
    seed(watch.p17, "host", aborted, session=row("H56", guard=always)),
    seed(watch.p17, "host", aborted, session=said_too("H41", ENDED)),
    seed(watch.p18, "trainer", old_cancel, session=ANYWHERE),
    seed(watch.p18, "host", old_beat, session=row("H32", guard=always)),
    seed(watch.p21_host, "host", loss_said_twice, acceptance=row("A19", emit=[LOST])),
    seed(watch.p21_receiver, "receiver", loss_after_holding, download=row("R24", target=DownloadState.LOST)),
    seed(watch.p24, "host", second_task_stopped, UNHEARD, delivery=said_too("D25", signal("acceptance", "cancel", key=each))),
    seed(watch.p07, "host", executed_twice, delivery=row("D1", sources=tuple(DeliveryState))),
    seed(watch.p12, "trainer", aborted_while_sending, session=row("S35", target=SAME, emit=[ABORT_ACCEPTED])),
    seed(watch.p16, "host", aborted, process=row("X12", emit=[*process.term, process.kill[0]])),
    seed(watch.p17, "host", aborted, process=row("X12", target=process.ProcessState.EXITED, emit=[process.term[0]])),
    seed(watch.p21_host, "host", died_while_serving, acceptance=row("A20", emit=[])),
    by_trio("P23", "trainer", lost_offer, ledger=refusing("status", (ledger.LedgerState.ABSENT,), "K27")),
)  # fmt: skip


def _patched(party: Party) -> type[PartyCore]:
    class Patched(PartyCore):
        """The core of a broken party."""

        def __init__(self, config: Any = None, **options: Any) -> None:
            super().__init__(party, config, **options)

    return Patched


def _ready(deal: Deal) -> Trio:
    made = Trio(deal)
    made.connect()
    run(made)
    return made


@pytest.mark.parametrize("seeded", SEEDS, ids=lambda seeded: f"{seeded.id}-{seeded.party}-{seeded.script.__name__}")
def test_a_seeded_fault_is_seen(seeded: Seed, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the watcher of its property, and by no other before it; without the fault the script is harmless."""
    seeded.script(_ready(seeded.deal))
    monkeypatch.setattr(f"tests.statemachines.trio.{seeded.party.capitalize()}", _patched(seeded.broken()))

    with pytest.raises(AssertionError, match=rf"^{seeded.id} "):
        seeded.script(_ready(seeded.deal))


def test_an_engine_that_does_not_roll_back_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """P22: no table can break it, so the fault is in the engine."""
    made = _ready(Deal())
    misuse(made)
    assert made.bench.refusals, "the call is refused, and that is all"
    monkeypatch.setattr("troth.spec.store.Store.undo", lambda _self, _saved: None)

    with pytest.raises(AssertionError, match=r"^P22 "):
        misuse(_ready(Deal()))


# -- the supervisor ----------------------------------------------------------------------------------------------------


BACKENDS = (
    seed(watch.p15, "supervisor", aborted_after_a_start, calls=STAY),
    seed(watch.p19, "supervisor", two_retained, gate=row("G11", guard=always), launches=unbounded),
    seed(watch.p20, "supervisor", aborted_after_a_loss, teardown=row("W6", guard=always)),
)


@pytest.mark.parametrize("seeded", BACKENDS, ids=lambda seeded: f"{seeded.id}-{seeded.script.__name__}")
def test_a_seeded_fault_of_a_backend_is_seen(seeded: Seed) -> None:
    """The same for the supervisor."""
    config = SupervisorConfig(persistent=seeded.script is not two_retained, limits=Limits(retained_limit=1))
    seeded.script(Backend(PartyCore(PARTIES["supervisor"], config)))

    with pytest.raises(AssertionError, match=rf"^{seeded.id} "):
        seeded.script(Backend(PartyCore(seeded.broken(), config)))


# -- nothing is left out -----------------------------------------------------------------------------------------------

BY_TRIO = {"P10", "P23"}
"""These are about two cores, so it is the trio that watches them."""


def test_every_property_has_a_watcher_for_every_party_that_it_is_about() -> None:
    """By the id of the property and the party's name."""
    missing = []
    for id_, found in PROPERTIES.items():
        for party in found.parties if By.WALKS in found.by else ():
            names = {watcher.__name__.upper() for watcher in (*WATCHERS["any"], *WATCHERS[party])}
            if id_ not in names | BY_TRIO:
                missing.append((id_, party))

    assert missing == []


def test_every_watcher_has_a_seeded_fault() -> None:
    """Each watcher, at each party that it watches."""
    seeded = {(found.party, found.watcher) for found in (*SEEDS, *BACKENDS)}
    watched = {(party, watcher) for party, watchers in WATCHERS.items() if party != "any" for watcher in watchers}

    assert watched <= seeded
    assert {found.id for found in SEEDS} >= BY_TRIO
    assert WATCHERS["any"] == (watch.p22,), "P22 has a test of its own"
