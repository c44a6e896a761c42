"""Our own parties, as they are fuzzed when nothing else is asked for.

Alone: each core at the limits of production, among all events of its alphabet, with those watches that need no honest peer. Together:
sessions with more of everything than a world that is searched whole can have: tasks, receivers, room on the links, losses, repeats, cuts,
restarts, and both sides' real limits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import evolve

from troth.models.world import World
from troth.models.worlds.protocol.configured import ALWAYS, FETCHED, SCRIPT, configured
from troth.models.worlds.protocol.session import Deal
from troth.models.worlds.protocol.watched import Watch, broken
from troth.models.worlds.protocol.watching_host import host_watches, receiver_watches
from troth.models.worlds.protocol.watching_trainer import trainer_watches
from troth.spec import Party
from troth.spec.limits import Limits
from troth.spec.properties import PROPERTIES
from troth.statemachines import HOST, RECEIVER, SUPERVISOR, TRAINER
from troth.testing.cores import Play
from troth.testing.single import alone

TASKS = 6
EPOCHS = 3
REAL = Limits()

HONEST: Mapping[str, Mapping[str, str]] = {
    "host": {"P16": "a driver says only once that a process started"},
}
"""What is not watched of a party alone, by party: it takes an honest peer, or a driver that tells the truth; and which truth."""


def _alone(party: Party, watches: Sequence[Watch] = ()) -> Callable[[], World]:
    known = [watch for watch in watches if watch.id not in HONEST.get(party.name, {}) and broken(watch.id) in watch.observe]

    def build() -> World:
        world, handle = alone(party, watches=known)
        for watch in known:
            world.never(watch.id, PROPERTIES[watch.id].statement, handle.see(broken(watch.id)))
        return world

    return build


def _together(name: str, deal: Deal, promises: tuple[str, ...]) -> Callable[[], World]:
    return lambda: configured(name, "a session with more of everything", deal, promises)


ORDERLY = (*ALWAYS, *FETCHED, "P05", "P06", "P30", "P79")
CALLS = (*SCRIPT, "resend", "other", "shutdown", "give up init", "give up receive", "give up send")
LAUNCHED = Deal(
    limits=REAL, launched=True, fail_unresponsive=False, tasks=TASKS, receivers=2, capacity=6, losses=12, duplicates=12, cuts=4,
    calls=CALLS, trainer_crashes=1, host_crashes=1, strangers=2, task_payload_fails=4,
)  # fmt: skip
ATTACHED = Deal(
    limits=REAL, tasks=TASKS, epochs=EPOCHS, receivers=2, capacity=6, losses=12, duplicates=12, cuts=4, calls=CALLS, inits=4,
    trainer_crashes=2, trainer_restarts=True, host_crashes=1, host_restarts=True, task_payload_fails=4,
)  # fmt: skip
"""Either side may die and be started anew, and both: then neither remembers an epoch."""
HOST_AGAIN = evolve(ATTACHED, trainer_crashes=0, trainer_restarts=False)
"""The host alone is started anew, and meets the trainer that its predecessor left."""

PLAYS: Mapping[str, Play] = {
    play.name: play
    for play in (
        Play("trainer", _alone(TRAINER, trainer_watches(EPOCHS, TASKS))),
        Play("host", _alone(HOST, host_watches(EPOCHS, TASKS))),
        Play("receiver", _alone(RECEIVER, receiver_watches())),
        Play("supervisor", _alone(SUPERVISOR)),
        Play("wide/launched", _together("wide/launched", LAUNCHED, ORDERLY)),
        Play("wide/attached", _together("wide/attached", ATTACHED, ORDERLY)),
        Play("wide/host_again", _together("wide/host_again", HOST_AGAIN, ORDERLY)),
    )
}
"""By the name that the command line has for each."""
