"""The rules of a stage: which there are, where each can be used, and how often it is chosen.

The weights make most sessions get somewhere: frames arrive more often than anything else happens, users mostly do what makes sense, and
faults are few. Every rule can be chosen whenever it is possible at all, sense or no sense.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from troth.runtime.sim.faults import DOWN, UP
from troth.statemachines.trainer.states import TrainerSessionState
from troth.testing.live import actions as a
from troth.testing.live.actions import HERE, NOWHERE, Mood, Option, Play, Rule, lively, waiting

S = TrainerSessionState


def _living(play: Play) -> Sequence[Option]:
    return play.stage.living


def _faults(play: Play, options: Sequence[Option]) -> Sequence[Option]:
    return options if play.faults_left and not play.ending else NOWHERE


def _users(play: Play) -> Sequence[Option]:
    return NOWHERE if play.ending else play.stage.living


def _open(play: Play) -> Sequence[Option]:
    return HERE if play.open else NOWHERE


def _stuck(play: Play) -> Sequence[Option]:
    """Who can be stuck, and who may not be for ever."""
    if play.ending:
        return [seat for seat in play.stage.living if seat.process.stuck]
    return _faults(play, play.stage.living)


def _callers(play: Play) -> list[Any]:
    """Calls that wait, and can be given up."""
    stage = play.stage
    sides = [stage.judge.host, *(seat.side for seat in stage.living)]
    return [call for side in sides for call in side.calls if not call.given_up and call.kind not in ("leave", "abort", "finalize", "log")]


def _torn(play: Play) -> Sequence[Option]:
    return _faults(play, [(line, way) for line, way in waiting(play) if line.alive])


def _spoilt(play: Play) -> Sequence[Option]:
    """Where bytes can come that nobody wrote: behind the opening."""
    found = [(line, way) for line, way in lively(play) if line.authentic(UP) and line.authentic(DOWN)]
    return _faults(play, found)


def _waits(seat: Any, kind: str) -> bool:
    return any(call.kind == kind for call in seat.side.calls)


def _init(_play: Play, seats: Sequence[Option]) -> int:
    return 120 if any(a.state_of(seat) is S.NEW and not _waits(seat, "init") for seat in seats) else 3


def _receive(_play: Play, seats: Sequence[Option]) -> int:
    eager = any(a.state_of(seat) not in a.NOT_JOINED and not _waits(seat, "receive") and not a.unsent(seat) for seat in seats)
    return 120 if eager else 3


def _send(_play: Play, seats: Sequence[Option]) -> int:
    return 120 if any(a.unsent(seat) and not _waits(seat, "send") for seat in seats) else 3


def _execute(play: Play, _options: Sequence[Option]) -> int:
    return 3 if any(call.kind == "execute" for call in play.stage.judge.host.calls) else 100


def _exit(_play: Play, seats: Sequence[Option]) -> int:
    return 120 if any(seat.session.over for seat in seats) else 2


def _time(play: Play, _options: Sequence[Option]) -> int:
    return 12 if waiting(play) else 90


def _leave(play: Play, _options: Sequence[Option]) -> int:
    return 10 if play.stage.tasks > 1 else 1


def _weighs(weight: int) -> Any:
    return lambda _play, _options: weight


DRAWING = ("overtake", "refuse", "intrude", "slow spawn", "race", "silence")


def _fault(name: str, options: Any, act: Any, weight: int) -> Rule:
    return Rule(name, lambda play: _faults(play, options(play)), act, _weighs(weight), fault=True, draws=name in DRAWING)


def _seldom(play: Play) -> Sequence[Option]:
    return HERE if play.stage.entered is not None else NOWHERE


# fmt: off
RULES: tuple[Rule, ...] = (
    # arrivals and time
    Rule("deliver",  waiting, a.deliver, _weighs(400)),
    Rule("burst",    lambda play: waiting(play, 2), a.burst, _weighs(20)),
    Rule("pass time", lambda play: HERE if play.stage.stepper.next_s < float("inf") else NOWHERE, a.pass_time, _time),
    # users
    Rule("enter",    lambda play: HERE if play.stage.entered is None else NOWHERE, a.enter, _weighs(400)),
    Rule("execute",  _open, a.execute, _execute, draws=True),
    Rule("init",     _users, a.init, _init, draws=True),
    Rule("receive",  _users, a.receive, _receive),
    Rule("send",     _users, a.send, _send, draws=True),
    Rule("log",      _users, a.log, _weighs(4)),
    Rule("shutdown", _users, a.shutdown, _weighs(3)),
    Rule("exit",     _living, a.leave_process, _exit, draws=True),
    Rule("give up",  lambda play: NOWHERE if play.ending else _callers(play), a.give_up, _weighs(5)),
    Rule("abort",    _open, a.abort, _weighs(2)),
    Rule("finalize", _open, a.finalize, _weighs(2)),
    Rule("leave",    _open, a.leave, _leave, draws=True),
    # faults
    _fault("race",     waiting, a.race, 10),
    _fault("silence",  _seldom, a.silence, 5),
    _fault("lose",     waiting, a.lose, 24),
    _fault("copy",     waiting, a.copy, 24),
    _fault("overtake", lambda play: waiting(play, 2), a.overtake, 30),
    _fault("cut",      lively, a.cut, 16),
    Rule("tear", _torn, a.tear, _weighs(12), fault=True, draws=True),
    _fault("end",      lively, a.end, 8),
    Rule("spoil", _spoilt, a.spoil, _weighs(8), fault=True, draws=True),
    _fault("refuse",   _seldom, a.refuse, 4),
    _fault("intrude",  _living, a.intrude, 8),
    _fault("kill",     _living, a.kill, 4),
    _fault("orphan",   lambda play: [seat for seat in play.stage.living if not seat.orphaned], a.orphan, 3),
    _fault("lose guardian", lambda play: NOWHERE if play.stage.judge.orphaned else _seldom(play), a.lose_guardian, 2),
    _fault("fail spawn", lambda play: HERE if not play.stage.judge.spawn_fails else NOWHERE, a.fail_spawn, 4),
    _fault("slow spawn", lambda play: HERE, a.slow_spawn, 3),
    Rule("stick", _stuck, a.stick, _weighs(3), fault=True),
    # what is always possible, and refused
    Rule("illegal",  lambda play: HERE, a.illegal, _weighs(2)),
)
# fmt: on

# fmt: off
MOODS: tuple[Mood, ...] = (
    Mood("plain"),
    Mood("slow",      {"pass time": 15}),
    Mood("heavy",     {"cut": 4, "tear": 6, "lose": 2}, large=True),
    Mood("late",      {"pass time": 40, "lose": 4}, faults=12, large=True),
    Mood("clumsy",    {"give up": 30, "init": 3, "receive": 6, "send": 6, "execute": 4, "shutdown": 3}),
    Mood("insistent", {"send": 30, "execute": 8, "shutdown": 4, "pass time": 3}, faults=12),
    Mood("silent",    {"silence": 20, "lose": 3, "cut": 3}, faults=12),
    Mood("deaf",      {"silence": 20, "lose": 3, "cut": 3, "end": 6}, faults=12, large=True),
    Mood("racing",    {"race": 20, "burst": 20, "give up": 4}, faults=30),
    Mood("lossy",     {"lose": 10, "pass time": 4}, faults=60),
    Mood("echoing",   {"copy": 10, "overtake": 6}, faults=60),
    Mood("brittle",   {"cut": 6, "tear": 6, "end": 6, "spoil": 6, "refuse": 4}, faults=30),
    Mood("mortal",    {"kill": 12, "orphan": 12, "lose guardian": 12, "stick": 12, "exit": 10}, faults=6),
    Mood("stillborn", {"fail spawn": 30, "slow spawn": 60, "give up": 20, "leave": 8, "pass time": 4}, faults=6),
    Mood("abrupt",    {"abort": 20, "finalize": 10, "leave": 10, "shutdown": 10, "lose": 3}, faults=10),
)
# fmt: on
"""What sessions are given to. The first is the plainest."""

FAULTS: tuple[str, ...] = tuple(rule.name for rule in RULES if rule.fault)
"""The faults, by the names under which they are counted."""
