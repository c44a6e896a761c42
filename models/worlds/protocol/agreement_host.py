"""What a host's machines must agree on; see ``agreement``."""

from __future__ import annotations

from troth.models.worlds.protocol.inside import Snapshot
from troth.statemachines.host.acceptance import LIVE as UNDECIDED
from troth.statemachines.host.acceptance import TAKEN, AcceptanceState
from troth.statemachines.host.delivery import ACTIVE, OUT, UNANSWERED, DeliveryState
from troth.statemachines.host.states import HostSessionState
from troth.statemachines.shared.source import SourceState

D, A, H, O = DeliveryState, AcceptanceState, HostSessionState, SourceState  # noqa: E741 - as the rows are named


def delivery_agrees(now: Snapshot) -> bool:
    """A task that is out awaits its result; one whose result is being fetched has it; no other result is awaited."""
    seq = now.data("delivery", "seq")
    awaited = now.keys("acceptance", A.AWAITING)
    if now.at("delivery", *OUT):
        return awaited == (seq,)
    if awaited:
        return False
    return not now.at("delivery", D.FETCHING) or now.at("acceptance", *TAKEN, key=seq)


def remembered(now: Snapshot) -> bool:
    """Only tasks that went out are remembered, and what is remembered of them is what there is to say."""
    seq = now.data("delivery", "seq")
    for key in now.keys("acceptance"):
        canonical = now.data("acceptance", "canonical", key=key)
        if key > seq or (now.at("acceptance", *TAKEN, key=key) != (canonical > 0)):
            return False
    return True


def payload_agrees(now: Snapshot) -> bool:
    """A task's payload has a source as long as the task is unanswered, and no other has one."""
    seq, keys = now.data("delivery", "seq"), now.keys("source")
    if now.at("delivery", *UNANSWERED) and not now.data("delivery", "inline"):
        return keys == ((seq, 0),)
    return keys == ()


def end_agrees(now: Snapshot) -> bool:
    """Outside a session nothing is out, and nothing undecided: but for what is safe."""
    if now.at("session", H.READY, H.DRAINING):
        return True
    undecided = now.keys("acceptance", *(state for state in UNDECIDED if state is not A.SAFE))
    return not now.at("delivery", *ACTIVE, D.CANCELLING) and not undecided


def host_waits(now: Snapshot) -> bool:
    """What is unanswered is asked again, a task that is out has its budget, and bytes that stand still are noticed."""
    asked = now.runs("task") == now.at("delivery", *UNANSWERED, D.CANCELLING)
    bounded = now.runs("budget") == now.at("delivery", *OUT)
    return asked and bounded and now.timers("source") == set(now.keys("source", O.MOVING))


HOST_BELIEVES = (payload_agrees, end_agrees)
"""P85: what its trainer and its receivers can tell."""
HOST_AGREES = (delivery_agrees, remembered)
"""P99: what nobody outside can tell, as long as it is right."""
