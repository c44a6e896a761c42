"""The driver: steps are atomic, local links come first, failed effects come back, and whose fault a refusal is decides what happens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from attrs import define, field
from trio.testing import MockClock

from tests.runtime.sessions.stage import staged
from troth.runtime.calls import Calls
from troth.runtime.driver import Driver
from troth.runtime.errors import Misuse, RuntimeFault, SessionClosed
from troth.runtime.timers import Timers
from troth.runtime.tracing import Subject, Tracer, new_directory, trace_of_launch
from troth.spec import core as c
from troth.spec import messages as m
from troth.spec.codec import Codec
from troth.spec.engine import PartyCore
from troth.spec.fingerprint import declaration_hash, state_digest
from troth.spec.limits import Limits
from troth.spec.trace import read
from troth.statemachines import PARTIES, Host, HostConfig, Supervisor, SupervisorConfig, Trainer, TrainerConfig
from troth.testing.traces import check_files

BEAT = m.Heartbeat(epoch=1)


@define(eq=False)
class Scripted:
    """A core that answers each event with the next step, and notes what it was given."""

    steps: list[c.Step]
    seen: list[c.Event] = field(factory=list)
    config: Any = field(factory=lambda: SimpleNamespace(limits=Limits()))

    def handle(self, event: c.Event) -> c.Step:
        """Take an event."""
        self.seen.append(event)
        return self.steps.pop(0) if self.steps else c.Step()


@define(eq=False)
class Noting:
    """A performer that notes what it is told, in one list with all others."""

    name: str
    log: list[tuple[str, Any]]
    on: Callable[[c.Effect], bool] = field(default=lambda effect: True)
    violations: list[c.Refusal] = field(factory=list)

    def perform(self, effect: c.Effect) -> bool:
        """Start an effect."""
        self.log.append((self.name, effect))
        return self.on(effect)

    def violated(self, event: c.Event, refusal: c.Refusal) -> None:
        """The peer's fault."""
        self.violations.append(refusal)

    def stepped(self) -> None:
        """A step was taken."""
        self.log.append((self.name, "stepped"))


def say(*links: str) -> c.Step:
    """A step that sends something on each of these links."""
    return c.Step(effects=tuple(c.Send(link, BEAT) for link in links))


def driven(steps: Sequence[c.Step]) -> tuple[Driver, Scripted, Noting, list[tuple[str, Any]]]:
    """A driver with one scripted party, ``a``."""
    log: list[tuple[str, Any]] = []
    driver, core, performer = Driver(), Scripted(list(steps)), Noting("a", log)
    driver.add("a", core, performer)  # type: ignore[arg-type]
    return driver, core, performer, log


def test_every_effect_of_a_step_is_started_before_another_event_is_handled() -> None:
    """Even if performing one of them brings an event back."""
    driver, core, performer, log = driven([say("x", "y", "z"), say("later")])
    performer.on = lambda effect: driver.give("a", c.LinkUp("again")) is not None or True
    driver.give("a", c.LinkUp("first"))

    assert [effect.link for name, effect in log if isinstance(effect, c.Send)][:4] == ["x", "y", "z", "later"]
    assert core.seen[:2] == [c.LinkUp("first"), c.LinkUp("again")]


def test_what_is_said_on_a_local_link_comes_before_everything_that_waits() -> None:
    """A party that is told something, and tells on, is heard to its end before the event that came meanwhile."""
    driver, _, performer, log = driven([say("local", "x")])
    other = Scripted([say("local back")])
    driver.add("b", other, Noting("b", log))  # type: ignore[arg-type]

    def on(effect: c.Effect) -> bool:
        if isinstance(effect, c.Send) and effect.link == "local":
            driver.give("a", c.LinkLost("waits"))
            driver.tell("b", c.LinkUp("told"))
        return True

    performer.on = on
    driver.give("a", c.LinkUp("first"))

    assert other.seen == [c.LinkUp("told")]
    order = [name if isinstance(effect, str) else effect.link for name, effect in log]
    assert order == ["local", "x", "a", "local back", "b", "a"]


def test_an_effect_that_fails_comes_back_after_the_step() -> None:
    driver, core, performer, _ = driven([say("x", "y")])
    performer.on = lambda effect: getattr(effect, "link", "") != "x"
    driver.give("a", c.LinkUp("first"))

    assert core.seen == [c.LinkUp("first"), c.EffectFailed(c.Send("x", BEAT))]


@pytest.mark.parametrize("kind", list(c.RefusalKind))
def test_whose_fault_a_refusal_is_decides_what_happens(kind: c.RefusalKind) -> None:
    refusal = c.Refusal(kind, "row", "because")
    driver, _, performer, log = driven([c.Step(refusal=refusal)])
    if kind is c.RefusalKind.DRIVER:
        with pytest.raises(RuntimeFault, match="cannot have happened"):
            driver.give("a", c.LinkUp("x"))
    else:
        step = driver.give("a", c.LinkUp("x"))
        assert step is not None
        assert step.refusal == refusal
    assert performer.violations == ([refusal] if kind is c.RefusalKind.VIOLATION else [])
    assert log == []


def test_a_party_that_has_left_hears_nothing_more_and_its_timers_are_gone() -> None:
    async def main() -> None:
        driver, core, _, _ = driven([c.Step(effects=(c.SetTimer("t", None, 0, "open_retry_s"),))])
        driver.give("a", c.LinkUp("x"))
        assert driver.timers.running == 1
        driver.remove("a")
        assert driver.timers.running == 0
        assert driver.give("a", c.LinkUp("y")) is None
        assert len(core.seen) == 1

    trio.run(main)


def test_after_a_fault_nothing_half_done_is_handled_later() -> None:
    """The rest of a reaction that broke is void: it does not run with the next event."""
    driver, core, performer, _ = driven([say("x"), say("y")])

    def fail(effect: c.Effect) -> bool:
        driver.give("a", c.LinkLost("queued"))
        raise ZeroDivisionError

    performer.on = fail
    with pytest.raises(ZeroDivisionError):
        driver.give("a", c.LinkUp("first"))
    performer.on = lambda effect: True
    driver.give("a", c.LinkUp("second"))

    assert core.seen == [c.LinkUp("first"), c.LinkUp("second")]


# -- timers ------------------------------------------------------------------------------------------------------------


def run(main: Callable[[], Any]) -> None:
    """Run in virtual time."""
    trio.run(main, clock=MockClock(autojump_threshold=0))


def test_timers_fire_in_the_order_of_their_deadlines_and_only_the_last_setting_counts() -> None:
    fired: list[tuple[float, str, int]] = []

    async def main() -> None:
        timers = Timers(lambda party, event: fired.append((trio.current_time(), event.timer, event.generation)))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(timers.run)
            await trio.testing.wait_all_tasks_blocked()
            timers.set("a", "late", None, 0, 9.0)
            timers.set("a", "early", None, 0, 5.0)
            timers.set("a", "never", None, 0, None)
            timers.set("a", "gone", None, 0, 1.0)
            timers.cancel("a", "gone", None)
            timers.set("a", "again", None, 0, 2.0)
            timers.set("a", "again", None, 1, 7.0)
            timers.set("a", "stopped", None, 0, 3.0)
            timers.set("a", "stopped", None, 1, None)
            await trio.sleep(20)
            nursery.cancel_scope.cancel()

    run(main)
    assert fired == [(5.0, "early", 0), (7.0, "again", 1), (9.0, "late", 0)]


def test_a_timer_that_is_due_is_withdrawn_by_one_that_fires_before_it() -> None:
    """Two are due at the same moment, and the first one's step cancels the second."""
    fired: list[str] = []

    async def main() -> None:
        def fire(party: str, event: c.TimerFired) -> None:
            fired.append(event.timer)
            timers.cancel("a", "second", None)

        timers = Timers(fire)
        timers.set("a", "first", None, 0, 1.0)
        timers.set("a", "second", None, 0, 1.0)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(timers.run)
            await trio.sleep(5)
            nursery.cancel_scope.cancel()

    run(main)
    assert fired == ["first"]


def test_memory_follows_the_timers_that_run() -> None:
    """Not those that were ever set: a lease is set anew with every message."""

    async def main() -> None:
        timers = Timers(lambda party, event: None)
        for _ in range(10_000):
            timers.set("a", "lease", None, 0, 1e6)
            timers.set("a", "task", 1, 0, 1e6)
        assert timers.running == 2
        assert timers.waiting <= 100

    run(main)


# -- calls -------------------------------------------------------------------------------------------------------------


def test_a_call_returns_what_its_number_is_resolved_with() -> None:
    async def main() -> None:
        given: list[c.Event] = []
        calls = Calls(given.append)

        async def answer() -> None:
            await trio.testing.wait_all_tasks_blocked()
            second, first = (event.number for event in reversed(given) if isinstance(event, c.Called))
            calls.resolve(c.Resolve("receive", second, m.Outcome.STOPPED))
            calls.resolve(c.Resolve("receive", first, m.Outcome.TASK, 7))
            calls.resolve(c.Resolve("receive", 99, m.Outcome.TASK))

        found: dict[str, Any] = {}

        async def ask(name: str) -> None:
            found[name] = await calls.call("receive")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "one")
            nursery.start_soon(ask, "two")
            nursery.start_soon(answer)
        assert {(each.outcome, each.value) for each in found.values()} == {(m.Outcome.TASK, 7), (m.Outcome.STOPPED, 0)}

    run(main)


def test_a_caller_that_is_cancelled_says_so_once_and_a_late_answer_is_nobodys() -> None:
    async def main() -> None:
        given: list[c.Event] = []
        calls = Calls(given.append)
        with trio.move_on_after(1):
            await calls.call("receive")
        [called, cancelled] = given
        assert isinstance(called, c.Called)
        assert cancelled == c.CallCancelled("receive", called.number)
        calls.resolve(c.Resolve("receive", called.number, m.Outcome.TASK, 1))

    run(main)


def test_a_refused_call_is_misuse_and_waits_for_nothing() -> None:
    async def main() -> None:
        refusal = c.Refusal(c.RefusalKind.MISUSE, "row", "not now")
        calls = Calls(lambda event: c.Step(refusal=refusal))
        with pytest.raises(Misuse, match=r"receive\(\): not now"):
            await calls.call("receive")
        with pytest.raises(Misuse):
            calls.at_once("take", number=1)

    run(main)


# -- traces ------------------------------------------------------------------------------------------------------------


def test_the_trace_of_a_run_replays_on_the_cores(tmp_path: Path) -> None:
    """Every step of every party of a whole session, trainer and receivers too: same rows, same effects, same states."""

    async def main() -> None:
        async with staged() as stage:
            stage.trainer(stage.work)
            stage.trace = tmp_path
            async with stage.backend(trace=tmp_path, name="site-1") as trainer:
                await trainer.execute("train", {"x": 1})

    run(main)
    cores: dict[str, Callable[[Limits], PartyCore]] = {
        "host": lambda limits: Host(HostConfig(limits=limits)),
        "supervisor": lambda limits: Supervisor(SupervisorConfig(limits=limits)),
        "trainer": lambda limits: Trainer(TrainerConfig(limits=limits)),
    }
    codec = Codec.of(PARTIES.values(), m)
    replayed = 0
    for name, make in cores.items():
        [path] = [path for path in tmp_path.iterdir() if f".{name}" in path.name and "receivers" not in path.name]
        header, records = read(codec, path.read_text().splitlines())
        assert header.declarations == declaration_hash(PARTIES.values())
        core = make(Limits(**dict[str, Any](header.limits)))
        for record in records:
            step = core.handle(record.event)
            assert (step.rows, step.effects, state_digest(core.snapshot())) == (record.rows, record.effects, record.state)
            replayed += 1
    assert replayed > 30


def test_a_call_after_the_end_of_its_trace_is_told_what_it_always_is(tmp_path: Path) -> None:
    """The file is closed by then, and stays what it is: whole."""

    async def main() -> None:
        async with staged() as stage:
            stage.trainer(stage.work)
            stage.trace = tmp_path
            async with stage.backend(trace=tmp_path, name="site-1") as trainer:
                await trainer.execute("train", {"x": 1})
            with pytest.raises(SessionClosed):
                await trainer.execute("late", {"x": 1})
            assert await trainer.finalize()

    run(main)
    assert check_files(sorted(tmp_path.iterdir())).partial == ()


def test_a_directory_for_traces_is_new_or_empty(tmp_path: Path) -> None:
    assert new_directory(tmp_path / "a" / "b").is_dir()
    (tmp_path / "a" / "file").write_text("")
    with pytest.raises(Misuse, match="must be empty"):
        new_directory(tmp_path / "a")
    with pytest.raises(Misuse, match="is a file"):
        new_directory(tmp_path / "a" / "file")


def test_a_second_session_of_a_launch_has_a_file_of_its_own(tmp_path: Path) -> None:
    subject = Subject(core="trainer", config=TrainerConfig(one_shot=True), party="trainer", driver="site@1", launch=b"\x01\x02")
    for _ in range(2):
        Tracer("site", subject, tmp_path).close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["site.2.jsonl", "site.jsonl"]
    one, two = (read(Codec([]), (tmp_path / name).read_text().splitlines())[0] for name in ("site.jsonl", "site.2.jsonl"))
    assert (one.core, one.party, one.driver, one.launch) == ("trainer", "trainer", "site@1", "0102")
    assert one.config == {"launched": True, "fail_unresponsive": False, "one_shot": True}
    assert two.driver == "site@1/2"
    with pytest.raises(Misuse, match="cannot name a trace"):
        Tracer("../site", subject, tmp_path)
    assert trace_of_launch({}) is None
    assert trace_of_launch({"TROTH_TRACE": "/x/y"}) == Path("/x/y")
