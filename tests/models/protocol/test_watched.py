"""A watched core does what the core does, remembers across crashes what it should, and can be mutated like any other."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from tests.spec.toys import Coins, Config, Gate, add
from tests.statemachines.alphabet import ONE, host_events, trainer_events
from troth.models.errors import PropertyFailed
from troth.models.mutants.derived import replaced_core
from troth.models.world import World
from troth.models.worlds.protocol.reading import Reading
from troth.models.worlds.protocol.session import Deal, session
from troth.models.worlds.protocol.watched import Watch, Watched, keeps, never, restarts
from troth.models.worlds.protocol.watching_host import host_watches
from troth.models.worlds.protocol.watching_trainer import trainer_watches, twice_is_more
from troth.spec import Machine, Party, Refuse, Row, Table, To, always, keep, received, timer
from troth.spec import core as c
from troth.spec import messages as m
from troth.spec.emits import cancel_timer, fixed, send, set_timer
from troth.spec.engine import PartyCore
from troth.spec.machine import SAME
from troth.statemachines import HostConfig, TrainerConfig
from troth.statemachines.host import HOST
from troth.statemachines.host.states import HostSessionState
from troth.statemachines.trainer import TRAINER

START = c.Received("supervisor", m.StartSession(launch=1))


def host(*watches: Watch, lives: int = 1, without: frozenset[str] = frozenset()) -> Watched:
    """A watched host that attaches."""
    configs = [HostConfig(limits=ONE, launched=False, instance=life) for life in range(lives)]
    return Watched(HOST, configs, watches, without)


@pytest.mark.parametrize(("party", "config", "events"), [
    (TRAINER, TrainerConfig(limits=ONE, launched=False), list(trainer_events(epochs=(1,), tasks=(1,), contents=(0,)))),
    (HOST, HostConfig(limits=ONE, launched=False), list(host_events(tasks=(1,), contents=(0,)))),
])  # fmt: skip
def test_it_takes_the_same_steps(party: object, config: object, events: list[c.Event]) -> None:
    """Row by row and effect by effect, but for the generations of timers, along two hundred events."""
    watches = trainer_watches(1, 1) if party is TRAINER else host_watches(1, 1)
    plain = PartyCore(party, config, interpreter=Table)  # type: ignore[arg-type]
    watched = Watched(party, [config], watches)  # type: ignore[arg-type]
    for place in range(200):
        event = events[(place * 7) % len(events)]
        if isinstance(event, c.TimerFired):
            continue
        one, other = plain.handle(event), watched.handle(event)
        said = [[e for e in step.effects if not isinstance(e, c.SetTimer)] for step in (one, other)]
        assert one.rows == other.rows[: len(one.rows)]  # what a watch met that looked twice comes after
        assert said[0] == said[1]
    assert plain.snapshot()[:-2] == watched.snapshot()[0][:-2]  # type: ignore[index]


def test_a_refused_event_is_not_watched() -> None:
    """It changed nothing, so there is nothing to see."""
    held = host(Watch("count", 0, lambda memory, _seen: memory + 1))
    held.handle(START)
    before = held.snapshot()

    assert held.handle(START).refusal is not None
    assert held.snapshot() == before
    assert held.memory == (0, 1)


def test_a_crash_leaves_what_lasts() -> None:
    """And begins the next life with its own configuration."""
    lasting, passing = (
        Watch("lasting", 0, lambda memory, _seen: memory + 1),
        Watch("passing", 0, lambda memory, _seen: memory + 1, lasts=False),
    )
    held = host(lasting, passing, lives=2)
    held.handle(START)
    again = restarts(held)(keeps(held.snapshot()))
    held.restore(again)

    assert held.memory == (1, 1, 0)
    assert held.config.instance == 1
    assert held.state("session") is HostSessionState.IDLE
    opened = [e for e in (held.handle(START), held.handle(c.LinkUp("control")))[1].effects if isinstance(e, c.Send)]
    assert opened[0].message == m.SessionOpen(epoch=1, instance=1, resume=False)


def test_a_mutated_core_has_seen_nothing() -> None:
    """It is copied from one that has."""
    held = host(never("P00", lambda _seen: True))
    fresh = held.snapshot()
    held.handle(START)

    assert held.observe()["broke P00"] is True
    assert replaced_core(held, HOST).snapshot() == fresh


def test_a_timer_that_is_left_out_never_starts() -> None:
    """No effect, and nothing of it in the snapshot."""
    held = host(without=frozenset({"session"}))
    step = held.handle(START)

    assert not any(isinstance(effect, c.SetTimer) for effect in step.effects)
    assert held.armed == {}


def test_a_reading_is_false_while_its_party_is_down() -> None:
    """Whatever it asks."""
    world = World("w")
    made = session(world, Deal(host_crashes=1), ["P01"])
    idle = made.host.at("session", HostSessionState.IDLE)
    system = world.system()
    found = system.successors(system.initial, labelled=True)
    crashed = next(state for state, symbol in found if system.actions[system.label_of(symbol).action].name == "host crashes")

    assert isinstance(made.host, Reading)
    assert idle.compiled(system)(system.initial, system.initial) is True
    assert idle.compiled(system)(crashed, crashed) is False


# -- what comes twice --------------------------------------------------------------------------------------------------

ANSWER, PASSED_ON = (send(link, m.Log, epoch=fixed(1)) for link in ("control", "supervisor"))
WAIT = set_timer("wait", "WAIT_S")
WORD = c.Received("control", m.Log(epoch=1))


def listener(*first: Any, again: list[Any] | None, counts: bool = False, over: str = "control") -> Watched:
    """A party that hears a word, and hears it again; ``again``: what it does then, ``None`` if it refuses it."""
    rows = [
        Row("T1", Gate.LOCKED, "word", always, Gate.OPEN, keep, list(first), "heard"),
        Row("T2", Gate.OPEN, "word", always, SAME, add if counts else keep, again or [], "heard again"),
        Row("T3", tuple(Gate), "wait", always, SAME, keep, [], "long ago"),
    ]
    rows = [row for row in rows if row.id != "T2" or again is not None]
    refuse = [] if again is not None else [Refuse("word", Gate.OPEN, "once is enough")]
    machine = Machine("gate", Gate, initial=Gate.LOCKED, data=Coins, timers=("wait",), rows=rows, refuse=refuse)
    routes = [received(m.Log, To("gate", "word"), link=over), timer("wait", To("gate", "wait"))]
    party = Party("listener", machines=[machine], routes=routes, config=Config)
    return Watched(party, [Config()], [never("P57", twice_is_more)])


@pytest.mark.parametrize(
    ("held", "more"),
    [
        (listener(ANSWER, again=[]), False),
        (listener(ANSWER, again=[ANSWER]), False),
        (listener(ANSWER, WAIT, again=[ANSWER, WAIT]), False),
        (listener(ANSWER, PASSED_ON, again=[ANSWER]), False),
        (listener(ANSWER, again=[ANSWER], counts=True), True),
        (listener(ANSWER, PASSED_ON, again=[ANSWER, PASSED_ON]), True),
        (listener(ANSWER, again=[ANSWER, WAIT]), True),
        (listener(ANSWER, WAIT, again=[ANSWER, cancel_timer("wait")]), True),
        (listener(ANSWER, again=None), True),
    ],
    ids=["silence", "an answer", "its timer anew", "passed on once", "counted", "passed on", "a timer", "no timer", "refused"],
)
def test_a_message_that_comes_twice_may_only_be_answered_twice(held: Watched, more: bool) -> None:
    """P57. The peer hears the answer again; nobody else hears of it, and nothing here goes on from it."""
    held.handle(WORD)

    assert held.observe()["broke P57"] is more


def test_a_task_that_was_offered_again_may_be_asked_about() -> None:
    """P57, of a HELLO that comes twice while the trainer had no room for the task: it is offered again, then asked for. That much a
    host may say; where its task would be another one afterwards, it is more."""
    watch = next(watch for watch in host_watches(1, 1) if watch.id == "P57")
    held = Watched(HOST, [HostConfig(limits=ONE, launched=True)], [watch])
    hello = c.Received("control", m.Hello(epoch=0, claim=m.Claim.MATCHING))
    busy = m.TaskFailed(epoch=1, seq=1, attempt=1, reason=m.FailReason.BUSY)
    for event in (
        START,
        c.ProcessStarted(),
        c.LinkUp("control"),
        hello,
        c.Received("control", m.SessionReady(epoch=1, proven=True)),
        c.Received("supervisor", m.ExecuteTask(launch=1, receivers=1, inline=True)),
        c.Received("control", busy),
        c.Received("control", m.Hello(epoch=1, claim=m.Claim.MATCHING)),
    ):
        step = held.handle(event)
        assert step.refusal is None

    assert "delivery.D21" in step.rows
    assert held.observe()["broke P57"] is False


def test_what_comes_twice_from_within_is_another_order() -> None:
    """No network stands between a party and its supervisor, so nothing is repeated there."""
    held = listener(again=[], counts=True, over="supervisor")
    held.handle(evolve(WORD, link="supervisor"))

    assert held.observe()["broke P57"] is False


def test_a_watch_that_cannot_say_does_not_blame_the_core() -> None:
    """It is the property that could not be evaluated. The core went on."""
    held = host(never("P00", lambda seen: bool({}[seen.before.session.state])))

    with pytest.raises(PropertyFailed, match="what is watched for P00 raised KeyError"):
        held.handle(START)
