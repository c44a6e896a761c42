"""Diagrams: one line a pair of states, and nothing that the tables do not say."""

from __future__ import annotations

import re
from enum import Enum

import pytest

from tests.spec.test_timers import LEASE, lease
from tests.spec.toys import TURNSTILE, TURNSTILE_PARTY, lamp, party, row
from troth.spec import Machine
from troth.spec.diagrams import find, mermaid, names, together
from troth.spec.errors import UnknownMachine
from troth.spec.machine import Kind

PARTIES = {"kiosk": TURNSTILE_PARTY, "tenant": lease().party, "landlord": lease().party}


def test_a_turnstile_is_drawn() -> None:
    """The whole text."""
    expected = """\
stateDiagram-v2
    [*] --> locked
    locked --> open : coin (G1)
    open --> locked : push (G3)
    open --> open : coin (G1), push (G2)
"""

    assert expected == mermaid(TURNSTILE)


def test_a_final_state_is_drawn_as_one() -> None:
    """And an ignore or refusal is not."""
    expected = """\
stateDiagram-v2
    [*] --> free
    free --> held : take (H1)
    held --> free : free (H3)
    held --> held : take (H2)
    held --> lost : due (H4)
    lost --> [*]
"""

    assert expected == mermaid(LEASE)


@pytest.mark.parametrize("machine", [TURNSTILE, LEASE], ids=lambda machine: machine.name)
def test_there_is_one_line_a_pair_of_states(machine: Machine) -> None:
    """No pair twice, none missing, none made up."""
    drawn = re.findall(r"^    (\w+) --> (\w+) : ", mermaid(machine), flags=re.MULTILINE)
    rows = [entry for cell in machine.table.values() for entry in cell.entries if entry.kind is Kind.ROW]

    assert len(drawn) == len(set(drawn))
    assert set(drawn) == {(entry.state.name.lower(), entry.target.name.lower()) for entry in rows}


class Odd(Enum):
    """States with names that mermaid would stumble over."""

    START = "the start: here"
    END = "end"
    STATE_2 = "state-2"


def test_labels_stay_short_and_names_safe() -> None:
    """Words of mermaid's own get a tail, other values stand as descriptions, and a long list of rows is counted."""
    machine = lamp(
        row("M1", Odd.START, "go", Odd.END),
        *(row(f"M{n}", Odd.END, f"t{n}", Odd.STATE_2) for n in range(2, 9)),
        states=Odd,
        initial=Odd.START,
        name="odd",
    )
    expected = """\
stateDiagram-v2
    start : the start  here
    end_ : end
    state_2 : state-2
    [*] --> start
    start --> end_ : go (M1)
    end_ --> state_2 : t2 (M2), t3 (M3), t4 (M4), t5 (M5) and 3 more
"""

    assert expected == mermaid(machine)


def test_a_machine_is_found_by_its_bare_name_and_by_its_full_one() -> None:
    """A name that two parties share finds both, in the order of the parties."""
    assert [drawn.name for drawn in find(PARTIES, "gate")] == ["kiosk.gate"]
    assert [drawn.name for drawn in find(PARTIES, "landlord.lease")] == ["landlord.lease"]
    assert [drawn.name for drawn in find(PARTIES, "lease")] == ["tenant.lease", "landlord.lease"]
    assert [drawn.name for drawn in find(PARTIES)] == ["kiosk.gate", "tenant.lease", "landlord.lease"]


def test_an_unknown_name_is_told_the_known_ones() -> None:
    """All of them, bare ones first."""
    with pytest.raises(
        UnknownMachine, match=r"there is no machine 'door'; there are gate, lease, kiosk.gate, landlord.lease, tenant.lease$"
    ):
        find(PARTIES, "door")

    assert names({}) == ()


def test_several_machines_are_one_diagram_of_labelled_parts() -> None:
    """The states of each part are its own, though they are called alike."""
    text = together(find(PARTIES, "lease"))
    lines = text.splitlines()

    assert lines[0] == "stateDiagram-v2"
    assert text.count("stateDiagram-v2") == 1
    assert '    state "tenant.lease" as tenant_lease {' in lines
    assert '    state "landlord.lease" as landlord_lease {' in lines
    assert "        tenant_lease_free : free" in lines
    assert "        tenant_lease_free --> tenant_lease_held : take (H1)" in lines
    assert "        landlord_lease_free --> landlord_lease_held : take (H1)" in lines
    assert lines.count("    }") == 2


def test_a_machine_alone_needs_no_label() -> None:
    """It is drawn as if it were the only one."""
    assert together(find(PARTIES, "gate")) == mermaid(TURNSTILE)
    assert together(()) == "stateDiagram-v2\n"
    assert find({"empty": party()}) == ()
