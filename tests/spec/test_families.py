"""Families: one machine, many instances; absent is a state."""

from __future__ import annotations

from enum import Enum
from typing import Any

import attrs
import pytest

from tests.spec.toys import Config, Limits, core, everything, lamp, party, row
from troth.spec import (
    EACH,
    Called,
    Family,
    Ignore,
    Keys,
    Machine,
    PartyCore,
    Refuse,
    Resolve,
    To,
    always,
    atom,
    called,
    each,
    resolve,
    same_key,
    signal,
)
from troth.spec.core import Refusal, RefusalKind
from troth.spec.errors import CoreError, UnreadMachine


class Job(Enum):
    """A job, from before it exists until it is evicted."""

    ABSENT = "absent"
    QUEUED = "queued"
    DONE = "done"


class Done(Enum):
    """The outcome of a call."""

    FINE = "fine"


def numbered(view: Any, event: Any) -> Any:
    """A call's number is the key of its job."""
    return event.number


def every(view: Any, event: Any) -> Any:
    """Every job there is."""
    return EACH


def jobs(limit: str | int = "SLOTS", emit: Any = (), **parts: Any) -> Machine:
    """The family."""
    return Machine(
        "jobs",
        Job,
        initial=Job.ABSENT,
        family=Family("number", limit),
        rows=[
            row("J1", Job.ABSENT, "add", Job.QUEUED),
            row("J2", Job.QUEUED, "finish", Job.DONE, emit),
            row("J3", Job.DONE, "evict", Job.ABSENT),
        ],
        ignore=[Ignore("evict", (Job.ABSENT, Job.QUEUED), "nothing to evict"), Ignore("finish", Job.DONE, "it is")],
        refuse=[Refuse("add", (Job.QUEUED, Job.DONE), "there already"), Refuse("finish", Job.ABSENT, "there is no such job")],
        **parts,
    )


ROUTES = [
    called("add", To("jobs", "add", numbered)),
    called("finish", To("jobs", "finish", numbered)),
    called("finish_all", To("jobs", "finish", every)),
    called("evict", To("jobs", "evict", numbered)),
]


def some(*keys: int, **parts: Any) -> PartyCore:
    """A core with these jobs queued."""
    subject = core(jobs(**parts), routes=ROUTES)
    for key in keys:
        subject.handle(Called("add", key))
    return subject


def test_an_instance_that_does_not_exist_is_absent() -> None:
    """Creation is a row from the initial state; nothing is kept for who is absent."""
    subject = some()

    assert subject.state("jobs", 7) is Job.ABSENT
    assert subject.members("jobs") == ()
    assert subject.handle(Called("finish", 7)).refusal == Refusal(RefusalKind.MISUSE, "jobs.absent.finish", "there is no such job")


def test_instances_move_by_themselves() -> None:
    """One key, one instance."""
    subject = some(1, 2)
    subject.handle(Called("finish", 2))

    assert [subject.state("jobs", key) for key in (1, 2, 3)] == [Job.QUEUED, Job.DONE, Job.ABSENT]
    assert subject.members("jobs") == (1, 2)


def test_an_evicted_instance_leaves_nothing() -> None:
    """Going back to the initial state is eviction: the snapshot is that of a core that never had it."""
    subject = some()
    before = subject.snapshot()
    for name in ("add", "finish", "evict"):
        subject.handle(Called(name, 1))

    assert subject.snapshot() == before


def test_the_order_in_which_instances_came_does_not_show() -> None:
    """Equal futures, equal snapshots."""
    assert some(1, 2).snapshot() == some(2, 1).snapshot()


@pytest.mark.parametrize("limit", ["SLOTS", 2])
def test_a_family_above_its_limit_is_an_error_and_changes_nothing(limit: str | int) -> None:
    """Its rows must make room first: the limit is a promise, not a refusal."""
    subject = some(1, 2, limit=limit)
    before = everything(subject)
    with pytest.raises(CoreError, match="jobs: 3 instances, above its limit 2; its rows must make room first"):
        subject.handle(Called("add", 3))

    assert everything(subject) == before


def test_the_limit_is_the_configurations() -> None:
    """By name."""
    wide = attrs.evolve(Config(), limits=Limits(SLOTS=3))
    subject = PartyCore(party(jobs(), routes=ROUTES), wide)
    for key in (1, 2, 3):
        subject.handle(Called("add", key))

    assert subject.members("jobs") == (1, 2, 3)


def test_each_stands_for_every_instance_lowest_first() -> None:
    """And for none where there are none."""
    subject = some(2, 1)

    step = subject.handle(Called("finish_all"))

    assert step.rows == ("jobs.J2", "jobs.J2")
    assert [subject.state("jobs", key) for key in (1, 2)] == [Job.DONE, Job.DONE]
    assert some().handle(Called("finish_all")).rows == ()


def told() -> Any:
    """An emission that tells which instance it comes from."""

    def key(firing: Any) -> int:
        assert isinstance(firing.key, int)
        return firing.key

    return resolve("told", Done.FINE, key)


def test_keys_stand_for_exactly_these_instances_in_this_order() -> None:
    """One that does not exist yet is meant too."""
    boss = lamp(
        row("B1", Job.ABSENT, "start", Job.QUEUED, [signal("jobs", "add", key=lambda firing: Keys((4, 2)))]),
        row(
            "B2",
            Job.QUEUED,
            "start",
            Job.DONE,
            [signal("jobs", "finish", key=lambda firing: Keys((4,))), signal("jobs", "finish", key=each)],
        ),
        name="boss",
        states=Job,
        initial=Job.ABSENT,
    )
    subject = core(jobs(emit=[told()]), boss, routes=[*ROUTES, called("start", To("boss", "start"))])

    assert subject.handle(Called("start")).rows == ("boss.B1", "jobs.J1", "jobs.J1")
    assert subject.members("jobs") == (2, 4)

    step = subject.handle(Called("start"))

    assert [e.number for e in step.effects if isinstance(e, Resolve)] == [4, 2]
    assert step.rows == ("boss.B2", "jobs.J2", "jobs.J2", "jobs.done.finish")


def test_siblings_that_share_a_key_signal_each_other_under_it() -> None:
    """``same_key`` names the instance that signals."""
    rows = [row("T1", Job.ABSENT, "finish", Job.DONE), row("T2", Job.DONE, "finish", Job.QUEUED)]
    tally = lamp(*rows, name="tally", states=Job, initial=Job.ABSENT, family=Family("number", 9))
    subject = core(jobs(emit=[signal("tally", "finish", key=same_key)]), tally, routes=ROUTES)
    for key in (1, 2):
        subject.handle(Called("add", key))
    subject.handle(Called("finish", 2))

    assert subject.members("tally") == (2,)


def test_a_refusal_by_one_instance_takes_back_what_the_others_did() -> None:
    """All or nothing, across the family."""
    refusing = Machine(
        "jobs",
        Job,
        initial=Job.ABSENT,
        family=Family("number", 5),
        rows=[row("J1", Job.ABSENT, "add", Job.QUEUED), row("J2", Job.QUEUED, "finish", Job.DONE), row("J3", Job.DONE, "add", Job.DONE)],
        refuse=[Refuse("finish", (Job.ABSENT, Job.DONE), "no"), Refuse("add", Job.QUEUED, "no")],
    )
    subject = core(refusing, routes=[*ROUTES[:3]])
    for key in (1, 2, 3):
        subject.handle(Called("add", key))
    subject.handle(Called("finish", 2))
    before = everything(subject)

    step = subject.handle(Called("finish_all"))

    assert step.rows == ("jobs.J2", "jobs.done.finish")
    assert everything(subject) == before


def test_a_view_shows_a_family_as_its_members() -> None:
    """Count, lowest, membership: what guards ask."""
    seen: dict[str, Any] = {}

    def look(view: Any, event: Any) -> bool:
        members = view.jobs
        seen.update(
            keys=list(members),
            count=members.count(Job.QUEUED),
            both=members.count(Job.QUEUED, Job.DONE),
            first=members.first(Job.DONE),
            none=members.first(Job.ABSENT),
            absent=members[9].state,
            has=(2 in members, 9 in members),
            size=len(members),
        )
        return True

    looks = atom("looks", reads=["jobs"], of=look)
    eye = lamp(
        row("E1", Job.ABSENT, "look", Job.QUEUED, guard=looks),
        row("E2", Job.ABSENT, "look", Job.DONE, guard=~looks),
        name="eye",
        states=Job,
        initial=Job.ABSENT,
    )
    subject = core(jobs(limit=5), eye, routes=[*ROUTES, called("look", To("eye", "look"))])
    for key in (3, 2, 1):
        subject.handle(Called("add", key))
    subject.handle(Called("finish", 3))
    subject.handle(Called("look"))

    assert seen == {
        "keys": [1, 2, 3],
        "count": 2,
        "both": 3,
        "first": 3,
        "none": None,
        "absent": Job.ABSENT,
        "has": (True, False),
        "size": 3,
    }


def test_an_emission_sees_the_family_as_it_was_before_its_micro_step() -> None:
    """The instance that is being made is not there yet."""
    seen: list[tuple[int, ...]] = []

    def look(firing: Any) -> int:
        seen.append(tuple(firing.view.jobs))
        return 0

    rows = [row("J1", Job.ABSENT, "add", Job.QUEUED, [resolve("look", Done.FINE, look)]), row("J2", Job.QUEUED, "add", Job.DONE)]
    subject = core(
        lamp(*rows, name="jobs", states=Job, initial=Job.ABSENT, family=Family("number", 5)),
        routes=[called("add", To("jobs", "add", numbered))],
    )
    subject.handle(Called("add", 1))
    subject.handle(Called("add", 2))

    assert seen == [(), (1,)]


def test_only_a_family_has_members() -> None:
    """Asking for those of a single machine is a slip."""
    single = core(lamp(row("L1", Job.ABSENT, "go", Job.DONE), row("L2", Job.DONE, "go", Job.QUEUED), states=Job, initial=Job.ABSENT))
    with pytest.raises(CoreError, match="lamp is not a family"):
        single.members("lamp")


def test_a_guard_that_looks_for_a_machine_that_is_not_there_is_told_which_are() -> None:
    """At run time, where the samples at import did not lead."""
    late = atom("late", reads=["jobs"], of=lambda view, event: bool(view.jobs) and view.nothing.state is Job.DONE)
    eye = lamp(
        row("E1", Job.ABSENT, "look", Job.QUEUED, guard=late & always),
        row("E2", Job.ABSENT, "look", Job.DONE, guard=~late),
        name="eye",
        states=Job,
        initial=Job.ABSENT,
    )
    subject = core(jobs(), eye, routes=[*ROUTES, called("look", To("eye", "look"))])
    subject.handle(Called("add", 1))
    with pytest.raises(UnreadMachine, match="atom eye.late looks at 'nothing' without saying so; add it to reads="):
        subject.handle(Called("look"))
