"""The lease: how long silence may last before a peer is given up.

Rule 1.  Only an authenticated message of this epoch is life, and any such message is; so are bytes that move.
Rule 2.  A stalled observer must not punish a healthy peer: silence makes a peer suspect, and only a second, shorter silence expires
         it. Between the two the observer has read whatever was already waiting in its sockets.
Rule 3.  While bytes should move, silence is judged by the transfer's stall, not by the lease.
Rule 4.  A peer whose process is known to live is unresponsive, not lost: it is waited for, up to a limit, unless the policy says
         to fail.
Rule 5.  A lease lasts as long as this side depends on the peer, draining included; and the verdict is written once.

Detection: timeout + 2 intervals + one delay after the last message; a stalled transfer adds its stall, and where Rule 4 applies
the unresponsive limit follows.
A trainer beats; a host answers each beat. Terms come from the host's handshake, never from local settings.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from troth.spec.emits import cancel_timer, send, set_timer, signal
from troth.spec.guards import always, atom
from troth.spec.machine import SAME, Ignore, Machine, Row, keep
from troth.spec.messages import Heartbeat
from troth.statemachines.shared.words import CONTROL, session_epoch, then


class LeaseState(Enum):
    """What this side believes of its peer."""

    UNARMED = "unarmed"
    ARMED = "armed"
    SUSPENDED = "suspended"
    SUSPECT = "suspect"
    UNRESPONSIVE = "unresponsive"
    EXPIRED = "expired"
    RELEASED = "released"


S = LeaseState
WATCHING = (S.ARMED, S.SUSPENDED, S.SUSPECT, S.UNRESPONSIVE)
OVER = (S.EXPIRED, S.RELEASED)


def lease(
    *,
    beats: bool,
    moving_reads: tuple[str, ...],
    moving: Callable[[Any, Any], bool],
    alive_reads: tuple[str, ...],
    alive: Callable[[Any, Any], bool],
) -> Machine:
    """The lease of one side. ``moving``: a transfer with the peer is under way; ``alive``: its process is known to live."""
    bytes_moving = atom("bytes_moving", reads=moving_reads, of=moving)
    peer_alive = atom("peer_alive", reads=alive_reads, of=alive)
    patient = atom("patient", of=lambda view, event: not view.config.fail_unresponsive)

    watch = [set_timer("lease", "lease_timeout_s")]
    doubt = [set_timer("lease", "heartbeat_interval_s")]
    stall = [set_timer("lease", "transfer_stall_s")]
    bear = [set_timer("lease", "unresponsive_limit_s")]
    start = then(watch, set_timer("beat", "heartbeat_interval_s")) if beats else watch
    stop = then(cancel_timer("lease"), cancel_timer("beat")) if beats else [cancel_timer("lease")]
    hush = [cancel_timer("beat")] if beats else []
    lost = then(hush, signal("session", "lost"))
    say = send(CONTROL, Heartbeat, epoch=session_epoch)

    # fmt: off
    rows = [
    Row("L1",  (S.UNARMED, *WATCHING, S.RELEASED), "grant", always,  S.ARMED, keep, start, "a new session starts with a fresh lease"),
    Row("L2",  WATCHING,       "life",     always,                   S.ARMED, keep, watch, "Rule 1"),
    Row("L3",  WATCHING,       "progress", always,                   S.ARMED, keep, watch, "Rule 1: bytes that move are life"),
    Row("L4",  S.ARMED,        "silence",  ~bytes_moving,            S.SUSPECT, keep, doubt, "Rule 2"),
    Row("L5",  S.ARMED,        "silence",  bytes_moving,             S.SUSPENDED, keep, stall, "Rule 3"),
    Row("L6",  S.SUSPENDED,    "silence",  always,                   S.SUSPECT, keep, doubt, "Rule 3: the transfer has stalled, so it is no life"),
    Row("L7",  S.SUSPECT,      "silence",  peer_alive & patient,     S.UNRESPONSIVE, keep, bear, "Rule 4"),
    Row("L8",  S.SUSPECT,      "silence",  ~(peer_alive & patient),  S.EXPIRED, keep, lost, "Rule 2: the only quick way to expire"),
    Row("L9",  S.UNRESPONSIVE, "silence",  always,                   S.EXPIRED, keep, lost, "Rule 4: even patience has its limit"),
    Row("L10", WATCHING,       "end",      always,                   S.RELEASED, keep, stop, "Rule 5: nobody depends on the peer any more"),
    ]
    if beats:
        rows += [Row("L11", WATCHING, "beat", always, SAME, keep, [say, set_timer("beat", "heartbeat_interval_s")], "this side says that it lives")]
    else:
        rows += [Row("L11", WATCHING, "beat", always, SAME, keep, [say], "each beat is answered, draining included: the trainer counts on it")]
    ignore = [
    Ignore(("life", "progress", "end"), S.UNARMED, "no session yet, so nothing to judge"),
    Ignore(("life", "progress", "end", "grant"), S.EXPIRED, "Rule 5: the verdict is written once"),
    Ignore(("life", "progress", "end"), S.RELEASED, "Rule 5: nobody depends on the peer any more"),
    Ignore("silence", (S.UNARMED, *OVER), "its timer was stopped; a firing that was under way means nothing"),
    Ignore("beat", (S.UNARMED, *OVER), "no lease, no beat"),
    ]
    # fmt: on
    timers = ("lease", "beat") if beats else ("lease",)
    return Machine("lease", LeaseState, initial=S.UNARMED, final={S.EXPIRED}, timers=timers, rows=rows, ignore=ignore)
