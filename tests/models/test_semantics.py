"""What timers, crashes, links and clocks do, each in a world that shows just that."""

from __future__ import annotations

from typing import Any

import pytest

from troth.models import Asked, Give, Verdict, World, check, jointly
from troth.models.trace import edges
from troth.spec.core import Called, CancelTimer, LinkLost, LinkUp, Pull, Received, Send, SetTimer, TimerFired

send: Any = Send


def names(world: World, *choices: int) -> list[str]:
    """The names of the edges that are possible after taking some."""
    system = world.system()
    state = system.initial
    for choice in choices:
        state = edges(system, state)[choice].state
    return [" ".join([e.action.name, *map(str, e.label.variants)]) for e in edges(system, state)]


class TestTimers:
    """Untimed timers, and the one stale firing."""

    @staticmethod
    def world(*, stale: bool) -> World:
        def step(state: str, event: Any) -> Any:
            match event:
                case Called("set"):
                    return "set", (SetTimer("t", None, 1 if state == "set" else 0, "short"),)
                case Called("cancel"):
                    return "idle", (CancelTimer("t", None),)
                case TimerFired(generation=generation):
                    return f"fired {generation}", ()
            return None

        world = World("timers")
        party = world.party("p", step, initial="idle", stale_timers=stale)
        world.may(party, "set", times=2)
        world.may(party, "cancel", times=1)
        return world

    def test_a_timer_fires_only_while_it_is_armed(self) -> None:
        world = self.world(stale=True)

        assert not any("timer" in name for name in names(world))
        assert any("timer" in name for name in names(world, 0))

    def test_a_timer_that_was_set_again_may_fire_once_with_its_old_generation(self) -> None:
        fired = [name for name in names(self.world(stale=True), 0, 0) if "timer" in name]

        assert sorted(fired) == ["p timer ('stale', 't', None)", "p timer ('timer', 't', None)"]

    def test_a_timer_that_was_cancelled_may_fire_once_too_late(self) -> None:
        fired = [name for name in names(self.world(stale=True), 0, 1) if "timer" in name]

        assert fired == ["p timer ('stale', 't', None)"]

    def test_stale_firings_can_be_left_out(self) -> None:
        assert [name for name in names(self.world(stale=False), 0, 0) if "stale" in name] == []


class TestCrashes:
    """A crash loses the state and any suffix of a step's effects."""

    @staticmethod
    def world(**options: Any) -> World:
        def step(state: int, event: Any) -> Any:
            if isinstance(event, Called):
                return state + 1, (send("line", "first"), send("line", "second"))
            return state, ()

        world = World("crashes")
        p = world.party("p", step, initial=0, observe={"n": lambda s: s})
        q = world.party("q", lambda s, e: ((*s, e.message), ()) if isinstance(e, Received) else (s, ()), initial=())
        world.link(p, q, "line", capacity=2)
        world.may(p, "go", times=1)
        world.crash(p, **options)
        world.sometimes("none", "nothing arrives", p.is_down & q.where(lambda s: s == ()))
        world.sometimes("one", "only the first arrives", p.is_down & q.where(lambda s: s == ("first",)))
        world.sometimes("two", "both arrive", p.is_down & q.where(lambda s: s == ("first", "second")))
        world.never("second", "the second alone never arrives", q.where(lambda s: s == ("second",)))
        return world

    def test_every_prefix_of_a_steps_effects_may_be_what_is_left(self) -> None:
        assert check(self.world()).verdict is Verdict.HOLDS

    def test_the_state_is_lost(self) -> None:
        world = self.world()
        p = world.handles[0]
        world.never("kept", "nothing is kept", p.is_down & (p.see("n") == 1))

        assert check(world).verdict is Verdict.HOLDS

    def test_what_is_durable_is_kept(self) -> None:
        world = self.world(keeps=lambda s: s, restarted=lambda s: s)
        p = world.handles[0]
        world.sometimes("kept", "a restarted party goes on", ~p.is_down & (p.see("n") == 1) & (world.handles[-1].see("left") == 0))

        assert check(world).verdict is Verdict.HOLDS

    def test_a_party_that_stays_down_takes_no_calls(self) -> None:
        world = self.world(restarts=False)
        crash = names(world).index("p crashes")

        assert names(world, crash) == []


class TestLinks:
    """Order, loss, copies, what happens when there is no room."""

    @staticmethod
    def world(**options: Any) -> World:
        world = World("links")
        p = world.party("p", lambda s, e: (s, (send("line", e.number),)) if isinstance(e, Called) else (s, ()), initial=0)
        q = world.party("q", lambda s, e: ((*s, e.message), ()) if isinstance(e, Received) else (s, ()), initial=())
        world.link(p, q, "line", **options)
        world.may(p, "send", number=1, name="one", times=1)
        world.may(p, "send", number=2, name="two", times=1)
        return world

    @staticmethod
    def arrivals(world: World) -> set[tuple[int, ...]]:
        """Everything that may have arrived in the end."""
        check(world, engine="scalar")
        locals_: list[Any] = [*world.system().components[1].states]
        return {local.state for local in locals_}

    def test_an_ordered_link_keeps_the_order_and_loses_nothing(self) -> None:
        assert self.arrivals(self.world(capacity=2)) == {(), (1,), (2,), (1, 2), (2, 1)}

    @pytest.mark.parametrize(("ordered", "swapped"), [(True, False), (False, True)])
    def test_only_an_unordered_link_swaps(self, ordered: bool, swapped: bool) -> None:
        world = self.world(capacity=2, ordered=ordered)
        full = next(i for i, n in enumerate(names(world, 0)) if n == "p.two")

        delivered = [name for name in names(world, 0, full) if "delivers" in name]

        assert (delivered == ["p>q:line delivers 1", "p>q:line delivers 2"]) is swapped

    def test_a_full_link_that_loses_loses_the_new_message(self) -> None:
        world = self.world(capacity=1, full="loses")
        world.sometimes("lost", "one is lost", world.handles[1].where(lambda s: s == (1,)))
        world.never(
            "both",
            "no two arrive when both were sent first",
            world.handles[1].where(lambda s: len(s) == 2) & ~world.handles[2].see("empty"),
        )

        assert check(world).verdict is Verdict.HOLDS

    def test_a_full_link_that_blocks_stops_the_whole_step(self) -> None:
        assert "p.two" not in names(self.world(capacity=1, full="blocks"), 0)

    def test_a_full_link_that_truncates_makes_the_verdict_unknown(self) -> None:
        result = check(self.world(capacity=1, full="truncates"))

        assert (result.verdict, result.truncated) == (Verdict.UNKNOWN, 2)
        assert "cut off by a bound" in result.reason

    def test_losses_can_be_counted(self) -> None:
        world = self.world(capacity=2, lossy=1)

        assert "p>q:line loses 1" in names(world, 0)
        assert not any("loses" in n for n in names(world, 0, names(world, 0).index("p>q:line loses 1"), 0))

    @pytest.mark.parametrize(("loses", "verdict"), [("any", Verdict.VIOLATED), ("oldest", Verdict.HOLDS)])
    @pytest.mark.parametrize("engine", ["scalar", "vector"])
    def test_a_later_message_may_be_lost_and_makes_room(self, engine: str, loses: str, verdict: Verdict) -> None:
        def sender(n: int, event: Any) -> Any:
            return (n + 1, (send("data", str(n)),)) if n < 3 else None

        world = World("room")
        p = world.party("p", sender, initial=0, observe={"sent": lambda n: n})
        q = world.party("q", lambda s, e: (s, ()), initial=0)
        line = world.link(p, q, "data", lossy=1, loses=loses, capacity=2, full="blocks")
        world.may(p, "send")
        world.never("kept", "the first is not on its way once the third is sent", line.carries(lambda m: m == "0") & (p.sent == 3))

        assert check(world, engine=engine).verdict is verdict

    def test_a_copy_comes_late(self) -> None:
        assert (1, 2, 1) in self.arrivals(self.world(capacity=3, duplicating=1))

    def test_a_cut_link_loses_what_is_in_flight_and_tells_both_ends(self) -> None:
        world = World("cut")

        def step(state: tuple[str, ...], event: Any) -> Any:
            match event:
                case Called():
                    return state, (send("wire", "hello"),)
                case LinkLost() | LinkUp():
                    return (*state, type(event).__name__), ()
            return (*state, "hello"), ()

        p, q = world.party("p", step, initial=()), world.party("q", step, initial=())
        there, _ = world.duplex(p, q, "wire", cuts=1)
        world.may(p, "send", times=1)
        world.sometimes("told", "both ends hear of it", jointly(lambda a, b: a == b == ("LinkLost", "LinkUp"), p, q))
        world.never("kept", "nothing survives a cut", q.where(lambda s: s == ("hello", "hello")))
        world.sometimes("lost", "a message is lost", there.empty & q.where(lambda s: "LinkLost" in s and "hello" not in s))

        assert check(world).verdict is Verdict.HOLDS


class TestClock:
    """A timed world: nothing fires early, and nothing that is due waits for the next tick."""

    @staticmethod
    def world(ticks: int, delay: int) -> World:
        def waiter(state: str, event: Any) -> Any:
            match event:
                case Called():
                    return "waiting", (send("line", "ping"), SetTimer("patience", None, 0, "patience"))
                case TimerFired():
                    return ("gave up" if state == "waiting" else state), ()
                case Received():
                    return ("answered" if state == "waiting" else "too late"), (CancelTimer("patience", None),)
            return None

        world = World("clock")
        p = world.party("p", waiter, initial="idle")
        q = world.party("q", lambda s, e: (s, (send("back", "pong"),)), initial=0)
        world.link(p, q, "line", delay=delay)
        world.link(q, p, "back", delay=delay)
        world.may(p, "ask", times=1)
        world.clock({"patience": ticks})
        watch = world.stopwatch("waited", p.where(lambda s: s == "waiting", "waiting"), most=9)
        world.always("bound", "nobody waits longer than the timer", watch.ticks <= ticks)
        world.never("late", "no answer is too late", p.where(lambda s: s == "too late"))
        return world

    def test_a_timer_longer_than_two_delays_never_gives_up_on_an_answer(self) -> None:
        assert check(self.world(ticks=5, delay=2)).verdict is Verdict.HOLDS

    def test_a_shorter_one_may(self) -> None:
        result = check(self.world(ticks=3, delay=2))

        assert {p.property.id: p.verdict for p in result.properties} == {"bound": Verdict.HOLDS, "late": Verdict.VIOLATED}


class TestComponents:
    """Parts of the environment that answer within the same step."""

    @staticmethod
    def party(state: str, event: Any) -> Any:
        """Asks for a payload, and keeps what comes."""
        if isinstance(event, Called):
            return "asked", (Pull("model", 1),)
        return f"got {event}", ()

    def test_a_component_takes_an_effect_and_gives_an_event(self) -> None:
        def store(state: int, event: Any) -> Any:
            if isinstance(event, Asked):
                return state + 1, ()
            return (state - 1, (Give(to="p", event="payload"),)) if state else None

        world = World("store")
        p = world.party("p", self.party, initial="idle")
        s = world.party("store", store, initial=0)
        world.takes(s, Pull, by=p)
        world.may(p, "ask", times=1)
        world.may(s, "finish")
        world.sometimes("got", "it gets it", p.where(lambda state: state == "got payload"))

        assert check(world).verdict is Verdict.HOLDS

    def test_a_local_link_delivers_within_the_step(self) -> None:
        world = World("local")
        p = world.party("p", lambda s, e: (s + 1, (send("inner", "m"),)), initial=0, observe={"n": lambda s: s})
        q = world.party("q", lambda s, e: (s + 1, ()), initial=0, observe={"n": lambda s: s})
        world.local(p, q, "inner")
        world.may(p, "go", times=3)
        world.always("together", "both move at once", p.n == q.n)

        assert check(world).verdict is Verdict.HOLDS

    def test_components_that_answer_each_other_for_ever_are_an_error(self) -> None:
        world = World("ping-pong")
        p = world.party("p", lambda s, e: (s, (send("x", 0),)), initial=0)
        q = world.party("q", lambda s, e: (s, (send("y", 0),)), initial=0)
        world.local(p, q, "x")
        world.local(q, p, "y")
        world.may(p, "go")

        with pytest.raises(Exception, match="answer each other"):
            check(world)


def test_a_transitions_configuration_is_a_party() -> None:
    config = {
        "states": ["red", "green"],
        "initial": "red",
        "transitions": [["go", "red", "green"], {"trigger": "stop", "source": "green", "dest": "red", "send": [send("line", "stopped")]}],
    }
    world = World("light")
    light = world.party("light", config)
    hearer = world.party("hearer", lambda s, e: (s + 1, ()), initial=0, observe={"n": lambda s: s})
    world.link(light, hearer, "line")
    world.may(light, "go", times=1)
    world.may(light, "stop")
    world.always("order", "it hears only after a stop", hearer.see("n").__le__(1))
    world.sometimes("heard", "it is heard", (hearer.n == 1) & light.at_red)

    assert check(world).verdict is Verdict.HOLDS
