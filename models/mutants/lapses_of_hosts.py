"""Lapses in the tables of a host and of a supervisor: for a property that no smaller change of a row breaks, the mistake itself."""

from __future__ import annotations

from functools import partial

from attrs import evolve

from troth.models.mutants.patches import Patch, added, altered, unbounded
from troth.spec import Machine, Row, always, atom
from troth.spec.machine import SAME
from troth.statemachines.host import delivery, session
from troth.statemachines.host.acceptance import take
from troth.statemachines.host.session import BOUND
from troth.statemachines.host.states import HostSessionState
from troth.statemachines.shared.words import then
from troth.statemachines.supervisor import gate
from troth.statemachines.supervisor.gate import BUSY

S = HostSessionState


def last_attempt_wins(machine: Machine) -> Machine:
    """A result that comes again is taken again: its newest attempt becomes the canonical one: row A5."""
    return altered(machine, "A5", partial(evolve, update=take))


bound = atom("open", reads=["session"], of=lambda view, event: view.session.state in BOUND)


def handed_out_late(machine: Machine) -> Machine:
    """A task still goes out after the end of its session began: the guards of rows D1 to D4 take draining for open."""
    guards = {
        "D1": bound & delivery.room & delivery.payload_inline,
        "D2": bound & delivery.room & ~delivery.payload_inline,
        "D3": ~bound,
        "D4": bound & ~delivery.room,
    }
    for id_, guard in guards.items():
        machine = altered(machine, id_, partial(evolve, guard=guard))
    return machine


def launched_above(machine: Machine) -> Machine:
    """A task is launched for whether there is room or not, and nothing else counts the launches: row G11, and the family."""
    if machine.name == "launches":
        return unbounded(machine)
    return altered(machine, "G11", partial(evolve, guard=~gate.persistent))


def second_task(machine: Machine) -> Machine:
    """A second execute() is taken while a task is out, and its arguments replace the first one's: the refusal of Rule 1."""
    return added(machine, Row("P66", BUSY, "execute", always, SAME, gate.request, [], "the newer one counts"))


def lost_with_the_link(machine: Machine) -> Machine:
    """A link that breaks is a trainer that is lost: the session ends, whatever its lease says: the ignored link_lost, of Rule 3."""
    lost = then(session.lose_all, session.stop_process, session.wind_up)
    return added(machine, Row("P98", BOUND, "link_lost", always, S.CLOSING, session.verdict_lost, lost, "not connected"))


HOSTS = (
    Patch("P08-replaced", "the last attempt wins", "host", ("acceptance",), last_attempt_wins),
    Patch("P19-uncapped", "a launch without room for it", "supervisor", ("gate", "launches"), launched_above),
    Patch("P27-late", "a task that goes out while its session ends", "host", ("delivery",), handed_out_late),
    Patch("P66-second", "a second execute() that is taken", "supervisor", ("gate",), second_task),
    Patch("P98-unplugged", "a session that ends with its link", "host", ("session",), lost_with_the_link),
)
