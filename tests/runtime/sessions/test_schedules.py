"""Every order in which trio may run the tasks of a small scenario: whatever it is, the same promises are kept.

Two calls, or a call and what comes over the network, happen at once. From that moment until both are over each batch of tasks that can
run is taken in every order, one run for each, and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from typing import Any

import pytest
import trio
from attrs import define, field
from trio.testing import wait_all_tasks_blocked

from tests.runtime.sessions.oversight import Oversight, check_nothing_is_left
from tests.runtime.sessions.scheduling import Chooser, every_schedule
from tests.runtime.sessions.stage import Stage, run, staged
from troth.runtime.backend import ExternalProcess
from troth.runtime.errors import Misuse, SessionError
from troth.runtime.sim.processes import SimProcess
from troth.runtime.trainer import TrainerSession

LONG_S = 3600


@define(eq=False)
class Race:
    """One run: what is told to whom, with the schedule of ``chooser`` from ``begin`` to ``over``."""

    chooser: Chooser
    stage: Stage
    backend: ExternalProcess
    nursery: trio.Nursery
    told: dict[str, str] = field(factory=dict)
    """What each call came to."""
    session: TrainerSession = field(init=False)
    ready: trio.Event = field(factory=trio.Event)
    """The trainer is where the scenario wants it."""
    go: trio.Event = field(factory=trio.Event)
    _returned: trio.Event = field(factory=trio.Event)

    async def call(self, name: str, make: Callable[[], Awaitable[Any]]) -> None:
        """A call, and what it came to."""
        try:
            found = await make()
        except (SessionError, Misuse) as error:
            self.told[name] = type(error).__name__
        else:
            self.told[name] = str(getattr(found, "payload", found))
        self._returned.set()
        self._returned = trio.Event()

    def at_once(self, **calls: Callable[[], Awaitable[Any]]) -> None:
        """Make calls at the same time, from tasks of their own, and have their schedule chosen from now on."""
        self.chooser.chooses = True
        for name, make in calls.items():
            self.nursery.start_soon(self.call, name, make)

    async def prepared(self) -> None:
        """The trainer is where it should be, and nothing else is under way."""
        await self.ready.wait()
        await wait_all_tasks_blocked()

    async def over(self, *names: str) -> None:
        """Wait until these calls have returned; what follows has one schedule."""
        while not set(names) <= set(self.told):
            await self._returned.wait()
        self.chooser.chooses = False


Scenario = Callable[[Race], Awaitable[None]]


async def wait(race: Race, session: TrainerSession, process: SimProcess) -> None:
    """A trainer that has joined, and does nothing by itself."""
    race.session = session
    await session.init()
    race.ready.set()
    await race.go.wait()
    while (task := await session.receive()) is not None:
        race.stage.seen.append(task)
        await session.send(task.payload)
    await session.wait_closed()  # a call of the race may still be under way in this process


async def hold(race: Race, session: TrainerSession, process: SimProcess) -> None:
    """A trainer that has taken a task."""
    race.session = session
    await session.init()
    task = await session.receive()
    assert task is not None
    race.stage.seen.append(task)
    race.ready.set()
    await race.go.wait()
    await wait(race, session, process)


def played(scenario: Scenario, script: Callable[..., Awaitable[None]], chooser: Chooser) -> dict[str, str]:
    """One run, everything that must be so afterwards, and what the calls were told."""
    told: dict[str, str] = {}

    async def main() -> None:
        async with staged() as stage:
            tasks = trio.lowlevel.current_statistics().tasks_living

            async def trainer(session: TrainerSession, process: SimProcess) -> None:
                await script(race, session, process)

            stage.trainer(trainer, takes_term=True)
            with trio.fail_after(LONG_S):
                async with trio.open_nursery() as nursery:
                    race = Race(chooser, stage, stage.backend(), nursery, told)
                    async with race.backend:
                        await scenario(race)
                        race.go.set()
            check_nothing_is_left(stage, oversight, tasks)

    with pytest.MonkeyPatch.context() as monkeypatch:
        chooser.install(monkeypatch)
        oversight = Oversight.installed(monkeypatch)
        run(main)
    oversight.check()
    return told


# -- the scenarios -----------------------------------------------------------------------------------------------------


async def abort_and_finalize(race: Race) -> None:
    """The host ends it in both ways at once."""
    await race.prepared()
    race.at_once(abort=race.backend.abort, finalize=race.backend.finalize)
    await race.over("abort", "finalize")


async def task_and_abort(race: Race) -> None:
    """The host gives a task and aborts at once."""
    await race.prepared()
    race.at_once(execute=partial(race.backend.execute, "train", {"x": 1}), abort=race.backend.abort)
    await race.over("execute", "abort")


async def two_tasks(race: Race) -> None:
    """The host gives two tasks at once: one of them is misuse."""
    await race.prepared()
    race.at_once(one=partial(race.backend.execute, "train", {"x": 1}), other=partial(race.backend.execute, "train", {"x": 2}))
    race.go.set()
    await race.over("one", "other")


async def receive_and_shutdown(race: Race) -> None:
    """The trainer waits for a task and ends its session."""
    await race.prepared()
    race.at_once(receive=race.session.receive, shutdown=race.session.shutdown)
    await race.over("receive", "shutdown")


async def task_and_shutdown(race: Race) -> None:
    """The host gives a task while the trainer ends its session."""
    await race.prepared()
    race.at_once(execute=partial(race.backend.execute, "train", {"x": 1}), shutdown=race.session.shutdown)
    await race.over("execute", "shutdown")


async def task_and_cancelled_receive(race: Race) -> None:
    """A task comes as the trainer's caller gives up waiting: the next caller gets it."""
    await race.prepared()
    scope = trio.CancelScope()

    async def receive() -> str:
        with scope:
            task = await race.session.receive()
            assert task is not None
            race.stage.seen.append(task)
            await race.session.send(task.payload)
            return "sent"
        return "cancelled"

    async def cancel() -> None:
        scope.cancel()

    race.nursery.start_soon(race.call, "receive", receive)
    await wait_all_tasks_blocked()
    race.at_once(execute=partial(race.backend.execute, "train", {"x": 1}), cancel=cancel)
    await race.over("receive", "cancel")
    race.go.set()
    await race.over("execute")


async def result_and_abort(race: Race) -> None:
    """The trainer sends a result as the host aborts."""
    race.nursery.start_soon(race.call, "execute", partial(race.backend.execute, "train", {"x": 1}))
    await race.prepared()
    race.at_once(send=partial(race.session.send, {"x": 1}), abort=race.backend.abort)
    await race.over("send", "abort", "execute")


async def result_and_shutdown(race: Race) -> None:
    """The trainer sends a result as the host ends the session in order."""
    race.nursery.start_soon(race.call, "execute", partial(race.backend.execute, "train", {"x": 1}))
    await race.prepared()
    race.at_once(send=partial(race.session.send, {"x": 1}), finalize=race.backend.finalize)
    race.go.set()
    await race.over("send", "execute", "finalize")


async def result_and_cancelled_task(race: Race) -> None:
    """The trainer sends a result as its caller gives it up; the next task is as ever."""
    scope = trio.CancelScope()

    async def execute() -> str:
        with scope:
            return str((await race.backend.execute("train", {"x": 1})).payload)
        return "cancelled"

    async def cancel() -> None:
        scope.cancel()

    race.nursery.start_soon(race.call, "execute", execute)
    await race.prepared()
    race.at_once(send=partial(race.session.send, {"x": 1}), cancel=cancel)
    await race.over("send", "execute", "cancel")
    race.go.set()
    await race.call("next", partial(race.backend.execute, "train", {"x": 2}))


RACES: dict[str, tuple[Scenario, Callable[..., Awaitable[None]]]] = {
    "abort and finalize": (abort_and_finalize, wait),
    "task and abort": (task_and_abort, wait),
    "two tasks": (two_tasks, wait),
    "receive and shutdown": (receive_and_shutdown, wait),
    "task and shutdown": (task_and_shutdown, wait),
    "task and cancelled receive": (task_and_cancelled_receive, wait),
    "result and abort": (result_and_abort, hold),
    "result and shutdown": (result_and_shutdown, hold),
    "result and cancelled task": (result_and_cancelled_task, hold),
}


def schedules(race: str, *, all_orders: bool, most: int = 100_000) -> tuple[int, bool, Counter[frozenset[tuple[str, str]]]]:
    """Run a race under every schedule: how many there were, whether these were all, and how often the calls were told what."""
    told: Counter[frozenset[tuple[str, str]]] = Counter()

    def once(chooser: Chooser) -> None:
        try:
            told[frozenset(played(*RACES[race], chooser).items())] += 1
        except BaseException as error:
            error.add_note(f"{race}, under the schedule {[choice for choice, _ in chooser.made]}")
            raise

    runs, exhausted = every_schedule(once, most=most, all_orders=all_orders)
    return runs, exhausted, told


ONE, TWO = "{'x': 1}", "{'x': 2}"
RIGHT: dict[str, list[dict[str, str]]] = {
    "abort and finalize": [{"abort": "None", "finalize": ended} for ended in ("True", "False")],
    "task and abort": [{"abort": "None", "execute": ended} for ended in ("SessionAborted", "SessionClosed")],
    "two tasks": [{"one": ONE, "other": "Misuse"}, {"one": "Misuse", "other": TWO}],
    "receive and shutdown": [{"receive": "None", "shutdown": "True"}],
    "task and shutdown": [{"execute": "SessionClosed", "shutdown": "True"}],
    "task and cancelled receive": [{"cancel": "None", "execute": ONE, "receive": ended} for ended in ("cancelled", "sent")],
    "result and abort": [
        {"abort": "None", "send": send, "execute": execute}
        for send, execute in (("None", ONE), ("SessionAborted", ONE), ("SessionAborted", "SessionAborted"))
    ],
    "result and shutdown": [{"execute": ONE, "send": "None", "finalize": "True"}],
    "result and cancelled task": [
        {"cancel": "None", "next": TWO, "execute": execute, "send": send}
        for execute, send in (("cancelled", "CallCancelled"), ("cancelled", "None"), (ONE, "None"))
    ],
}
"""What the calls of a race may be told."""
EXHAUSTIBLE = ("receive and shutdown", "result and cancelled task")
LARGE = ("abort and finalize", "task and abort", "result and shutdown")
"""Races that go on for so long that they have too many schedules."""


def check_all(found: Counter[frozenset[tuple[str, str]]], race: str) -> None:
    assert [dict(told) for told in found if dict(told) not in RIGHT[race]] == []


@pytest.mark.parametrize("race", [race for race in RACES if race not in LARGE])
def test_in_every_schedule_that_trio_has_a_race_is_told_right(race: str) -> None:
    """Each batch as it is, or backwards: trio draws one of the two. These are all."""
    runs, exhausted, found = schedules(race, all_orders=False, most=1000)

    assert exhausted
    assert runs == found.total() > 4
    check_all(found, race)


def test_in_every_order_of_every_batch_a_task_whose_receiver_gives_up_goes_to_the_next() -> None:
    """Also in those that trio does not take, and does not promise not to take."""
    runs, exhausted, found = schedules("task and cancelled receive", all_orders=True, most=2000)

    assert exhausted
    assert runs == found.total() > 100
    check_all(found, "task and cancelled receive")


@pytest.mark.parametrize("race", RACES)
def test_in_schedules_that_are_drawn_a_race_is_told_right(race: str) -> None:
    """Any order of any batch, from the first moment to the last."""
    found: Counter[frozenset[tuple[str, str]]] = Counter()
    for seed in range(30):
        found[frozenset(played(*RACES[race], Chooser(drawn=Random(seed))).items())] += 1

    check_all(found, race)


@pytest.mark.slow
@pytest.mark.parametrize("race", EXHAUSTIBLE)
def test_in_every_order_of_every_batch_a_race_is_told_right(race: str) -> None:
    runs, exhausted, found = schedules(race, all_orders=True, most=50_000)

    assert exhausted
    assert runs > 100
    check_all(found, race)


@pytest.mark.slow
@pytest.mark.parametrize("race", LARGE)
def test_in_many_schedules_of_a_long_race_it_is_told_right(race: str) -> None:
    """Of those that trio has, the first so many; and so many that are drawn."""
    _, _, found = schedules(race, all_orders=False, most=5000)
    for seed in range(5000):
        found[frozenset(played(*RACES[race], Chooser(drawn=Random(seed))).items())] += 1

    check_all(found, race)
