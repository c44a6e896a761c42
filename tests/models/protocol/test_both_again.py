"""Both sides of an attached session die and are started anew: neither remembers an epoch, and no session is taken for another."""

from __future__ import annotations

from troth.models import Verdict, World, check
from troth.models.worlds.protocol.configured import ALWAYS, HELD_BACK, NO_BEATS
from troth.models.worlds.protocol.promises import promise
from troth.models.worlds.protocol.session import Deal, session
from troth.models.worlds.protocol.watching_host import accepted_of
from troth.models.worlds.protocol.watching_trainer import told_of

BOTH = Deal(
    tasks=2, epochs=2, inits=2, orders=("close",), without=NO_BEATS,
    trainer_crashes=1, trainer_restarts=True, host_crashes=1, host_restarts=True,
)  # fmt: skip
FIRST, SECOND = ((0, 1), 1), ((1, 1), 1)
"""The first task of the first epoch, of the first host and of the second."""


def test_epochs_that_begin_anew_are_other_epochs() -> None:
    """The same task of the same epoch comes twice, from two hosts to two trainers, and no property is broken by it."""
    world = World("both again", "everybody dies once")
    ids = tuple(id_ for id_ in (*ALWAYS, "P05", "P30", "P48", "P50", "P61", "P63", "P74") if id_ != "P98")
    made = session(world, BOTH, ids)
    promise(made, ids, HELD_BACK)
    for name, see, handle in (("told", told_of, made.trainer.handle), ("accepted", accepted_of, made.host.handle)):
        world.sometimes(f"{name} twice", "of two sessions with one epoch", handle.see(see(*FIRST)) & handle.see(see(*SECOND)))
    found = check(world)

    assert found.verdict is Verdict.HOLDS, [one.property.id for one in found.properties if one.verdict is not Verdict.HOLDS]
    assert found.states > 100_000
