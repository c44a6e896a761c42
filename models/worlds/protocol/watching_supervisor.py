"""What is watched of a supervisor, and what must be so in every state of it and of what surrounds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from troth.models.worlds.protocol.backend import Callers, Hosts, Session
from troth.models.worlds.protocol.inside import Snapshot, snapshot
from troth.models.worlds.protocol.watched import Seen, Watch, never
from troth.models.worlds.protocol.watching_trainer import BROKEN, remembers
from troth.spec import messages as m
from troth.spec.core import Called, TimerFired
from troth.statemachines import SUPERVISOR
from troth.statemachines.supervisor.gate import BUSY, OUTCOMES, GateState
from troth.statemachines.supervisor.launches import LaunchState
from troth.statemachines.supervisor.teardown import TeardownState

G, U, W = GateState, LaunchState, TeardownState
Out = m.Outcome

# -- what each step of a supervisor must be ----------------------------------------------------------------------------


def _ended(memory: bool, step: Seen) -> bool:
    return memory or (isinstance(step.event, Called) and step.event.call in ("abort", "finalize"))


def _begins_late(memory: Any, step: Seen) -> Any:
    """P68: whether the end was asked for, by what was called; and what began after that."""
    ended = memory or (isinstance(step.event, Called) and step.event.call in ("abort", "finalize"))
    return BROKEN if memory == BROKEN or (ended and step.sent(m.StartSession, m.ExecuteTask)) else bool(ended)


def _ends_others(step: Seen) -> bool:
    """A session is told to end though neither the run ends nor is it the one whose task came to nothing or was given up; or the end
    of the run begins with force."""
    if isinstance(step.event, Called) and step.event.call == "finalize":
        return bool(step.sent(m.AbortSession))
    told = {message.launch for message in step.sent(m.CloseSession, m.AbortSession)}
    ending = isinstance(step.event, TimerFired) or (isinstance(step.event, Called) and step.event.call in ("abort", "finalize"))
    return not ending and bool(told - {step.before.gate.data.launch})


def _executes_busy(step: Seen) -> bool:
    return isinstance(step.event, Called) and step.event.call == "execute" and step.before.gate.state not in (G.IDLE, G.SHUT)


def _returns(step: Seen) -> set[Out]:
    """What execute() may return in this step."""
    message, gate = step.message, step.before.gate.state
    if isinstance(message, m.TaskEnded):
        return {OUTCOMES[message.outcome]}
    if isinstance(message, m.SessionEnded):
        if message.launch != step.before.gate.data.launch:
            return set()
        return {Out.FAILED} if gate is G.LAUNCHING else {Out.LOST} if gate is G.RUNNING else {Out.CLOSED}
    if isinstance(step.event, Called) and step.event.call == "execute":
        return {Out.CLOSED} if gate is G.SHUT else {Out.LOST} if step.before.config.persistent else set()
    if isinstance(step.event, Called) and step.event.call in ("abort", "finalize"):
        return {Out.CLOSED}
    return {Out.CLOSED} if isinstance(step.event, TimerFired) else {Out.CANCELLED}


def _returns_wrong(step: Seen) -> bool:
    told = step.resolved("execute")
    mine = isinstance(step.message, m.TaskEnded) and step.message.launch == step.before.gate.data.launch
    unsaid = mine and "execute" in step.before.calls and not told
    return unsaid or any(effect.outcome not in _returns(step) for effect in told)


def _starts_wrong(step: Seen) -> bool:
    """start() says ok only where a trainer is ready, or none is needed yet."""
    told = [effect.outcome for effect in step.resolved("start")]
    ready = any(slot.state is U.OPEN for slot in step.after.launches.values())
    needed = step.after.config.persistent
    open_ = step.after.gate.state is not G.SHUT
    if Out.FAILED in told and step.after.gate.state is not G.NEW:
        return True
    return any((outcome is Out.OK) != (open_ and (ready or not needed)) for outcome in told if outcome is not Out.CANCELLED)


def _finalizes_wrong(step: Seen) -> bool:
    told = [effect.outcome for effect in step.resolved("finalize")]
    clean = step.before.teardown.state is not W.FORCING
    told = [outcome for outcome in told if outcome is not Out.CANCELLED]
    early = isinstance(step.message, m.SessionEnded) and bool(told) and len(step.after.launches) > 0
    return early or any((outcome is Out.OK) != clean for outcome in told) or (bool(told) and step.after.teardown.state is not W.DONE)


def _aborts_slowly(step: Seen) -> bool:
    """An abort that does not tell every launch at once, or lets a drain go on."""
    if not (isinstance(step.event, Called) and step.event.call == "abort"):
        return False
    drains = step.after.teardown.state is W.DRAINING
    return drains or (step.before.teardown.state is not W.DONE and any(s.state is not U.ABORTING for s in step.after.launches.values()))


def _remembers_wrong(step: Seen) -> bool:
    """A gate that was shut with no task out remembers no launch."""
    before, after = step.before.gate, step.after.gate
    if isinstance(step.message, m.SessionEnded) and before.state is G.RUNNING and step.message.launch == before.data.launch:
        return bool(after.data.launch != 0)
    return bool(after.state is G.SHUT and before.state not in (G.RUNNING, G.SHUT) and after.data.launch != 0)


def _fails_wrong(step: Seen) -> bool:
    """The run is failed by a lost result, and by nothing else; by every first one, unless the run was ending."""
    lost = isinstance(step.message, m.ResultLost) and step.before.teardown.data.intent is m.Verdict.NONE
    return bool(step.sent(m.RunFailed)) != lost


def _intent_changes(step: Seen) -> bool:
    before, after = step.before.teardown.data.intent, step.after.teardown.data.intent
    return before is not after and before is not m.Verdict.NONE


def _intent_wrong(step: Seen) -> bool:
    """The first intent is what the first end was."""
    before, after = step.before.teardown.data.intent, step.after.teardown.data.intent
    if before is not m.Verdict.NONE or after is before:
        first = isinstance(step.message, m.ResultLost) or (isinstance(step.event, Called) and step.event.call in ("abort", "finalize"))
        return before is m.Verdict.NONE and first
    call = step.event.call if isinstance(step.event, Called) else ""
    return after is not {"abort": m.Verdict.ABORTED, "finalize": m.Verdict.STOPPED}.get(call, m.Verdict.LOST)


def any_wrong(*wrong: Callable[[Seen], bool]) -> Callable[[Seen], bool]:
    """A watch for any of several faults."""
    return lambda step: any(one(step) for one in wrong)


ENDED = Watch("ended", False, _ended, {"ended": bool})
"""Not a fault: whether the end was asked for."""

WATCHES = (
    ENDED,
    never("P20", any_wrong(_intent_changes, _intent_wrong)),
    never("P39", _ends_others),
    never("P66", _executes_busy),
    never("P67", _fails_wrong),
    remembers("P68", False, _begins_late),
    never("P84", any_wrong(_returns_wrong, _starts_wrong, _finalizes_wrong)),
    never("P89", _remembers_wrong),
    never("P92", _aborts_slowly),
)
"""What is watched of a supervisor."""


# -- what each state must be -------------------------------------------------------------------------------------------


def waits(now: Snapshot) -> bool:
    return now.runs("teardown") == now.at("teardown", W.DRAINING, W.FORCING)


def ends(now: Snapshot) -> bool:
    """What an end asks of every launch."""
    ending = now.keys("launches", U.CLOSING, U.ABORTING) == now.keys("launches")
    aborting = now.keys("launches", U.ABORTING) == now.keys("launches")
    if now.at("teardown", W.DRAINING):
        return ending and bool(now.keys("launches"))
    if now.at("teardown", W.FORCING):
        return aborting and bool(now.keys("launches"))
    return aborting or not now.at("gate", G.SHUT) or now.at("teardown", W.DONE)


def gate_agrees(raw: Any, hosts: Hosts, callers: Callers) -> bool:
    """The gate's launch is where the gate says."""
    now = snapshot(SUPERVISOR, raw)
    assert now is not None
    launch = now.data("gate", "launch")
    session = hosts.each[launch - 1] if 0 < launch <= len(hosts.each) else Session()
    if now.at("gate", G.STARTING):
        return session.at == "starting" and not session.told
    if now.at("gate", G.LAUNCHING):
        return session.at == "starting" and not session.told and "execute" in callers.waiting
    if now.at("gate", G.RUNNING):
        return session.at == "busy" and not session.told and session.stop == ("execute" not in callers.waiting)
    if now.at("gate", G.QUEUED):
        return launch == 0 and len(now.keys("launches")) == len(hosts.each) and "execute" in callers.waiting
    if now.at("gate", G.IDLE):
        known = launch == 1 or session.at == "none" if hosts.persistent else launch == 0
        return known and "execute" not in callers.waiting
    return not (now.at("gate", G.NEW) and (now.keys("launches") or launch)) and not ("execute" in callers.waiting and launch == 0)


def callers_agree(raw: Any, callers: Callers) -> bool:
    """Whoever waits, waits for something."""
    now = snapshot(SUPERVISOR, raw)
    assert now is not None
    waits = set(callers.waiting)
    if ("start" in waits) > now.at("gate", G.STARTING) or "abort" in waits:
        return False
    if ("finalize" in waits) > now.at("teardown", W.DRAINING, W.FORCING):
        return False
    return not ("execute" in waits and not now.at("gate", *BUSY, G.SHUT)) and set(map(str, now.keys("calls"))) == waits


def sessions_agree(raw: Any, hosts: Hosts) -> bool:
    """Every session is told what its launch says, and no launch is free whose session is not over."""
    now = snapshot(SUPERVISOR, raw)
    assert now is not None
    return all(now.at("launches", *_states(session, hosts), key=launch) for launch, session in enumerate(hosts.each, 1))


def _states(session: Session, hosts: Hosts) -> tuple[LaunchState, ...]:
    if session.at == "none":
        return (U.ABSENT,)
    if session.told:
        return (U.CLOSING,) if session.told == "close" else (U.ABORTING,)
    if session.at == "starting":
        return (U.STARTING,)
    if session.at == "ready" and not hosts.persistent:
        return (U.RETAINED,) if session.kept else ()
    return (U.OPEN,)


def draining(raw: Any) -> bool:
    """The launches end in their own time."""
    now = snapshot(SUPERVISOR, raw)
    return now is not None and now.at("teardown", W.DRAINING)


def forcing(raw: Any) -> bool:
    """They are forced."""
    now = snapshot(SUPERVISOR, raw)
    return now is not None and now.at("teardown", W.FORCING)
