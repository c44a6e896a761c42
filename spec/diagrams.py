"""State diagrams of declared machines, as mermaid text (``stateDiagram-v2``).

One line a pair of states, so that a diagram of a hundred rows can be looked at; the label says which trigger takes which rows there.
Ignores and refusals are left out: a diagram shows where a machine can go, and the table, which no diagram replaces, shows why. The
text is the same in every process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum

from attrs import frozen

from troth.spec.errors import UnknownMachine
from troth.spec.machine import Kind, Machine
from troth.spec.party import Party

HEAD = "stateDiagram-v2"

LABEL_ROWS = 4
"""Rows spelled out in a label; the rest are counted."""

RESERVED = frozenset(
    {"as", "class", "classdef", "click", "default", "direction", "end", "fork", "hide", "join", "note", "scale", "state", "style"}
)
"""Words that mean something else to mermaid when a line begins with them."""


@frozen
class Drawn:
    """One machine to draw, with the names it goes by."""

    party: str
    machine: Machine

    @property
    def name(self) -> str:
        """``party.machine``: what tells it from a machine of the same name in another party."""
        return f"{self.party}.{self.machine.name}"

    @property
    def text(self) -> str:
        """The diagram of this machine alone."""
        return mermaid(self.machine)


def mermaid(machine: Machine) -> str:
    """The diagram of one machine, with a newline at its end."""
    return "\n".join([HEAD, *(f"    {line}" for line in _lines(machine))]) + "\n"


def names(parties: Mapping[str, Party]) -> tuple[str, ...]:
    """Every name that ``find`` knows: bare ones first, then ``party.machine``."""
    bare = {machine.name for party in parties.values() for machine in party.machines}
    return (*sorted(bare), *sorted(drawn.name for drawn in find(parties)))


def find(parties: Mapping[str, Party], name: str | None = None) -> tuple[Drawn, ...]:
    """The machines called ``name``, in the order of the parties; all of them if it is ``None``.

    A bare name that several parties use finds a machine in each of them. Raises ``UnknownMachine`` with the names there are.
    """
    everything = (Drawn(called, machine) for called, party in parties.items() for machine in party.machines)
    found = tuple(drawn for drawn in everything if name in (None, drawn.machine.name, drawn.name))
    if not found and name is not None:
        raise UnknownMachine(f"there is no machine {name!r}; there are {', '.join(names(parties))}")
    return found


def together(drawn: Sequence[Drawn]) -> str:
    """One diagram: of a single machine, or of several, each a part under its full name."""
    if len(drawn) == 1:
        return drawn[0].text
    lines = [HEAD]
    for one in drawn:
        part = one.name.replace(".", "_")
        lines.append(f'    state "{one.name}" as {part} {{')
        lines += [f"        {line}" for line in _lines(one.machine, f"{part}_")]
        lines.append("    }")
    return "\n".join(lines) + "\n"


def _lines(machine: Machine, prefix: str = "") -> Iterator[str]:
    """The lines of one machine; with a prefix its states cannot be taken for another's, which mermaid would do."""
    identifiers = {state: f"{prefix}{_identifier(state)}" for state in machine.states}
    for state, identifier in identifiers.items():
        if identifier != str(state.value):
            yield f"{identifier} : {_text(str(state.value))}"
    yield f"[*] --> {identifiers[machine.initial]}"
    for (source, target), label in _labels(machine).items():
        yield f"{identifiers[source]} --> {identifiers[target]} : {label}"
    for state, identifier in identifiers.items():
        if state in machine.final:
            yield f"{identifier} --> [*]"


def _labels(machine: Machine) -> dict[tuple[Enum, Enum], str]:
    pairs: dict[tuple[Enum, Enum], dict[str, list[str]]] = {}
    for (source, trigger), cell in machine.table.items():
        for entry in cell.entries:
            if entry.kind is Kind.ROW and entry.row is not None:
                pairs.setdefault((source, entry.target), {}).setdefault(trigger, []).append(entry.row.id)
    order = {state: place for place, state in enumerate(machine.states)}
    return {pair: _label(pairs[pair]) for pair in sorted(pairs, key=lambda pair: (order[pair[0]], order[pair[1]]))}


def _label(triggers: Mapping[str, Sequence[str]]) -> str:
    parts, left = [], LABEL_ROWS
    for trigger, rows in triggers.items():
        if left <= 0:
            break
        parts.append(f"{_text(trigger)} ({', '.join(_text(row) for row in rows[:left])})")
        left -= len(rows)
    more = sum(len(rows) for rows in triggers.values()) - LABEL_ROWS
    return ", ".join(parts) + (f" and {more} more" if more > 0 else "")


def _identifier(state: Enum) -> str:
    """A state's name as mermaid can take it: plain characters, and none of the words that it keeps for itself."""
    name = "".join(c if c.isalnum() and c.isascii() else "_" for c in state.name.lower())
    return f"{name}_" if name in RESERVED else name


def _text(value: str) -> str:
    """A label without the characters that end one."""
    return value.replace(":", " ").replace(";", " ").replace("\n", " ").replace("-->", "to").replace("%%", "%")
