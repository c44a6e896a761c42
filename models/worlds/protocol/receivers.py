"""The receivers of results in a world: the real cores, one for each task and receiver, and how they meet the trainer and the host.

Whoever has a receiver tells it to fetch within the same step; with the source it speaks over data links that lose nothing and take no
time. That these can be slow, lossy or cut is what the world ``transfer`` is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from troth.models.closing import Give
from troth.models.expressions import Expr
from troth.models.handles import ActionHandle
from troth.models.world import World
from troth.models.worlds.protocol.reading import Reading
from troth.models.worlds.protocol.watched import Watched
from troth.models.worlds.protocol.watching_host import receiver_watches
from troth.spec import core as c
from troth.spec import messages as m
from troth.statemachines import ReceiverConfig
from troth.statemachines.receiver import RECEIVER, DownloadState
from troth.statemachines.shared.source import LIVE

if TYPE_CHECKING:
    from troth.models.worlds.protocol.session import Deal


@frozen
class Receivers:
    """The receivers, by (sequence, receiver), and what may become of their downloads."""

    of: Mapping[tuple[int, int], Reading] = field(factory=dict)
    arrive: tuple[ActionHandle, ...] = ()
    """The payload is there: what must have its turn where bytes do not stand still for ever."""


def named(seq: int, receiver: int) -> str:
    """The name of one receiver's party."""
    return f"receiver {seq}.{receiver}"


def receivers(world: World, deal: Deal, trainer: Reading, host: Reading, ids: Iterable[str]) -> Receivers:
    """Build them; none where results ride along."""
    wanted = frozenset(ids)
    of: dict[tuple[int, int], Reading] = {}
    arrive: list[ActionHandle] = []
    for seq in range(1, deal.tasks + 1):
        for number in range(deal.receivers):
            watches = tuple(watch for watch in receiver_watches() if watch.id in wanted)
            core = Watched(RECEIVER, [ReceiverConfig(limits=deal.limits, receiver=number)], watches, deal.without)
            one = Reading(world.party(named(seq, number), core, stale_timers=False), RECEIVER)
            world.ignores(one.handle, c.Pull, c.CancelTransfer)
            of[seq, number] = one
            arrive.append(_ends(world, trainer, one, seq, number))
    if of:
        _switch(world, deal, trainer, host, of)
    return Receivers(of, tuple(arrive))


def _ends(world: World, trainer: Reading, one: Reading, seq: int, number: int) -> ActionHandle:
    """A transfer completes only while its source serves it; it may fail at any time. What completes it."""
    pulling = one.at("download", DownloadState.PULLING)
    served = trainer.at("source", *LIVE, key=(seq, number))

    def ends(outcome: c.TransferOutcome, when: Expr) -> ActionHandle:
        return world.may(one.handle, c.TransferEnded("payload", (seq, number), outcome), when=when, name=f"transfer {outcome.value}")

    complete = ends(c.TransferOutcome.COMPLETE, pulling & served)
    ends(c.TransferOutcome.FAILED, pulling)
    return complete


def _switch(world: World, deal: Deal, trainer: Reading, host: Reading, of: Mapping[tuple[int, int], Reading]) -> None:
    """Messages to receivers go to the one, or to all, that they are for; what receivers say goes to the party it is for."""

    def switch(state: int, event: c.Received) -> tuple[int, tuple[Give, ...]]:
        said: Any = event.message
        if isinstance(said, m.FetchPayload | m.DropPayload):
            to = [Give(named(said.seq, r), c.Received("party", said)) for r in range(deal.receivers) if (said.seq, r) in of]
        elif isinstance(said, m.PayloadReleased | m.PayloadGone):
            to = [Give(named(said.seq, said.receiver), c.Received("data", said))]
        else:
            to = [Give("host", c.Received("receivers", said))] if deal.host_receives and said.receiver == 0 else []
        return state, tuple(to)

    party = world.party("switch", switch, initial=0)
    world.local(host.handle, party, "receivers")
    world.local(trainer.handle, party, "data")
    for one in of.values():
        world.local(one.handle, party, "party")
        world.local(one.handle, trainer.handle, "data")
