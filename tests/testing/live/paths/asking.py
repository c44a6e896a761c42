"""Asking the live runtime for what a world has not: a user's call is made, a timer and a frame are looked for where they would be.

So it is the runtime that says why there is no such thing, and not the model.
"""

from __future__ import annotations

from typing import Any

from tests.testing.live.paths.conducting import CannotPerform, Conductor
from tests.testing.live.paths.launched import Launched
from tests.testing.live.paths.supervising import Supervising
from troth.models.system import ActionKind
from troth.models.trace import TraceStep
from troth.runtime.errors import Misuse
from troth.spec.core import Called
from troth.testing.live.calling import Call
from troth.testing.live.lines import Frame, fields_of, same

RUNS = "it runs, as in the world, which does not let it fire yet"


def in_vain(conductor: Conductor, wanted: TraceStep) -> str | None:
    """Why nothing comes of ``wanted``, in the words of the runtime or of whoever has looked there; ``None`` if it was done."""
    if wanted.action.kind is ActionKind.TIMER and _runs(conductor, wanted):
        return RUNS
    before = _calls(conductor)
    try:
        if wanted.action.kind is ActionKind.DELIVER:
            _comes_next(conductor, wanted)
        conductor.perform(wanted, [])
    except CannotPerform as reason:
        if isinstance(reason.__cause__, Misuse):
            _forget(conductor, wanted)
        return str(reason)
    refused = [call for call in _calls(conductor)[len(before) :] if isinstance(call.error, Misuse)]
    if not refused:
        return None
    _forget(conductor, wanted)
    return f"{refused[0].kind}() is refused: {refused[0].error}"


def _forget(conductor: Conductor, wanted: TraceStep) -> None:
    """A call that is refused is an event of the live core, of which nothing may have come; the world, where it is not made, has none."""
    if not isinstance(conductor, (Launched, Supervising)):
        raise TypeError(f"{wanted.action.name}: there are no cores")
    for events in conductor.parties.events.values():
        events[:] = [
            event for event in events if not (isinstance(event, Called) and event.call == wanted.action.name.rpartition(".")[2].split()[0])
        ]


def _calls(conductor: Conductor) -> list[Call]:
    """The calls that the user of a launched pair's trainer has made; other conductors look at theirs themselves."""
    return [call for seat in conductor.stage.seats for call in seat.side.calls] if isinstance(conductor, Launched) else []


def _runs(conductor: Conductor, wanted: TraceStep) -> bool:
    """Whether the live core has armed the timer."""
    if not isinstance(conductor, (Launched, Supervising)):
        raise TypeError(f"{wanted.action.name}: there are no cores")
    reaction = wanted.reactions[0]
    variant: Any = reaction.variant
    core = conductor.parties.cores.get(reaction.name)
    if core is None:
        return False
    snapshot: Any = core.snapshot()
    return (variant[1], variant[2]) in {where for where, _ in snapshot[-2]}


def _comes_next(conductor: Conductor, wanted: TraceStep) -> None:
    """Else whatever comes next would be delivered in its place. Raises ``CannotPerform``."""
    if not isinstance(conductor, Launched):
        raise TypeError(f"{wanted.action.name}: there is no wire")
    link = wanted.action.name.removesuffix(" delivers")
    message: Any = wanted.label.variants[-1]
    line, way, places = conductor.wires._frames(link)
    if places and not same(message, fields_of(Frame.of(line.sim.pipes[way].waiting[places[0]]))):
        raise CannotPerform(f"{link}: {message} does not come next")
