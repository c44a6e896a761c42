"""A trainer's session by itself: how it joins, what it answers, how it ends, and when it gives its host up.

A real Trainer; every message that its host can have sent, at any time; a link that comes and goes; an owner that may be lost; and a user
who may call anything.
"""

from __future__ import annotations

from troth.models.bounds import Bounds, blueprint
from troth.models.world import World
from troth.models.worlds.protocol import host_session_alone
from troth.models.worlds.protocol.host_session_alone import Hosting
from troth.models.worlds.protocol.session_alone import Joining, alone


@blueprint("session")
def session(_bounds: Bounds) -> World:
    """A launched trainer: HELLO, the end at any moment, a result under way, and a host that falls silent."""
    return alone("session", session.doc, Joining())


@blueprint("session/attached")
def attached(_bounds: Bounds) -> World:
    """An attached trainer: opened, opened again, opened by another host, and resumed."""
    return alone("session/attached", attached.doc, Joining(launched=False))


@blueprint("session/one_shot")
def one_shot(_bounds: Bounds) -> World:
    """A trainer for one task that closes by itself, whose host is not waited for, and bytes that move while it is silent."""
    return alone("session/one_shot", one_shot.doc, Joining(one_shot=True, patient=False, large=True, strangers=False))


@blueprint("session/host")
def host(_bounds: Bounds) -> World:
    """A host and the trainer that it launched: HELLO of whomever, orders at any moment, a task out, and a trainer that falls silent."""
    return host_session_alone.alone("session/host", host.doc, Hosting(room=2))


@blueprint("session/host_attached")
def host_attached(_bounds: Bounds) -> World:
    """A host and a trainer that somebody else started: opened above its epoch, resumed, refused, and bytes that move while it is silent."""
    return host_session_alone.alone("session/host_attached", host_attached.doc, Hosting(launched=False, patient=False, inline=False))


@blueprint("session/host_strict")
def host_strict(_bounds: Bounds) -> World:
    """A host that gives a silent trainer up although its process lives."""
    return host_session_alone.alone("session/host_strict", host_strict.doc, Hosting(patient=False, task=False))
