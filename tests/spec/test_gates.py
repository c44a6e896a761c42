"""Gates: a row decides whether an event is let through."""

from __future__ import annotations

import pytest

from tests.spec.test_engine import Ring, here, note, noted
from tests.spec.toys import Lamp, core, lamp, row
from troth.spec import Called, Ignore, PartyCore, Received, Refuse, To, called, deliver, received
from troth.spec.core import Refusal, RefusalKind
from troth.spec.errors import CoreError

OFF, ON, BROKEN = Lamp.OFF, Lamp.ON, Lamp.BROKEN


def gated() -> PartyCore:
    """A door that lets a ring through to two machines only while it is on."""
    door = lamp(
        row("D1", OFF, "open", ON),
        row("D2", ON, "knock", ON, [note("in"), deliver]),
        row("D3", ON, "open", BROKEN),
        name="door",
        ignore=[Ignore("knock", OFF, "nobody is in")],
        refuse=[Refuse("knock", BROKEN, "go away")],
    )
    routes = [
        called("open", To("door", "open")),
        received(Ring, To("one", "ring"), To("two", "ring"), link="wire", gate=To("door", "knock")),
    ]
    return core(door, here("one", ("ring", [note("1")])), here("two", ("ring", [note("2")])), routes=routes)


def test_a_gate_decides_whether_an_event_is_delivered() -> None:
    """Ignored, delivered to all in order, refused: each by a row of the gate."""
    subject = gated()

    closed = subject.handle(Received("wire", Ring()))
    subject.handle(Called("open"))
    opened = subject.handle(Received("wire", Ring()))
    subject.handle(Called("open"))
    broken = subject.handle(Received("wire", Ring()))

    assert closed.rows == ("door.off.knock",)
    assert opened.rows == ("door.D2", "one.one0", "two.two0")
    assert noted(opened) == ["in", "1", "2"]
    assert broken.refusal == Refusal(RefusalKind.VIOLATION, "door.broken.knock", "go away")


def test_a_row_of_a_gate_cannot_deliver_on_a_route_that_has_none() -> None:
    """A mutant, or a trigger used both as a gate and not: it would go round and round."""
    door = lamp(row("D1", OFF, "knock", ON, [deliver]), row("D2", ON, "knock", BROKEN), name="door")
    routes = [
        received(Ring, To("one", "ring"), link="wire", gate=To("door", "knock")),
        called("knock", To("door", "knock")),
    ]
    subject = core(door, here("one", ("ring", [])), routes=routes)
    with pytest.raises(CoreError, match=r"row door.D1: it delivers, but the route of Called knock has no gate to let it through"):
        subject.handle(Called("knock"))
