"""Reference pages of declared machines, as markdown: prose, diagram, and the table row by row.

The prose is the docstring of the module that declares the machine's states, so that what a reader of the docs sees is what a reader
of the code sees. The text is the same in every process, and a test can say whether a committed page is still current.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

from troth.spec.diagrams import mermaid
from troth.spec.emits import Emission
from troth.spec.guards import Guard, always
from troth.spec.machine import Ignore, Machine, Refuse, Row
from troth.spec.party import Party

NOTICE = "<!-- Generated from the declarations; change those and run docs/generate.py. -->"


def pages(parties: Mapping[str, Party]) -> dict[str, str]:
    """Every page by file name: one a machine, and ``index.md`` with the routes of each party."""
    found = {"index.md": _index(parties)}
    for name, party in parties.items():
        for machine in party.machines:
            found[f"{name}.{machine.name}.md"] = machine_page(name, machine)
    return found


def machine_page(party: str, machine: Machine) -> str:
    """The page of one machine."""
    parts = [NOTICE, f"# {party}.{machine.name}", *_prose(machine), *_facts(machine), f"```mermaid\n{mermaid(machine)}```"]
    parts += ["## Rows", _table(("row", "from", "on", "when", "to", "update", "causes", "why"), map(_row, machine.rows))]
    if machine.ignore:
        parts += ["## Ignored", "Nothing changes, and that is right.", _table(("on", "in", "when", "why"), map(_rule, machine.ignore))]
    if machine.refuse:
        parts += ["## Refused", "The event is not taken, and the core is unchanged."]
        parts.append(_table(("on", "in", "when", "what the sender is told"), map(_rule, machine.refuse)))
    return "\n\n".join(parts) + "\n"


def _index(parties: Mapping[str, Party]) -> str:
    parts = [NOTICE, "# Machines", "Every decision of the protocol is a row in one of these tables."]
    for name, party in parties.items():
        parts += [f"## {name}", "\n".join(f"- [{machine.name}]({name}.{machine.name}.md)" for machine in party.machines)]
        rows = [(f"`{route}`", f"`{route.gate}`" if route.gate else "", ", ".join(f"`{to}`" for to in route.to)) for route in party.routes]
        parts.append(_table(("event", "gate", "goes to"), rows))
    listed = "\n".join(f"{name}.{machine.name}" for name, party in parties.items() for machine in party.machines)
    parts.append(f"```{{toctree}}\n:hidden:\n\n{listed}\n```")
    return "\n\n".join(parts) + "\n"


def _prose(machine: Machine) -> Iterator[str]:
    module = sys.modules.get(machine.states.__module__)
    text = (module.__doc__ if module else None) or ""
    for paragraph in text.strip().split("\n\n"):
        lines: list[str] = []
        for line in paragraph.splitlines():
            rule = re.match(r"(Rule \d+\.)\s+(.*)", line)
            if rule:
                lines.append(f"- **{rule[1]}** {rule[2]}")
            elif lines and lines[-1].startswith("- "):
                lines[-1] += f" {line.strip()}"
            else:
                lines.append(line.strip())
        if lines:
            yield "\n".join(lines)


def _facts(machine: Machine) -> Iterator[str]:
    facts = []
    if machine.family:
        limit = machine.family.limit
        facts.append(f"- One instance a {machine.family.key}; limit: {f'`{limit}`' if isinstance(limit, str) else limit}.")
    if machine.timers:
        facts.append(f"- Timers: {', '.join(f'`{timer}`' for timer in machine.timers)}.")
    facts += [f"- The guard `{atom.name}` reads {', '.join(f'`{name}`' for name in atom.reads)}." for atom in machine.atoms if atom.reads]
    if facts:
        yield "\n".join(facts)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _row(row: Row) -> tuple[str, ...]:
    sources = ", ".join(f"`{state.value}`" for state in row.sources)
    target = f"`{row.target.value}`" if row.goes_to(row.sources[0]) is row.target else "(same)"
    update = "" if row.keeps else f"`{row.update.__name__}`"
    return row.id, sources, f"`{row.trigger}`", _when(row.guard), target, update, _causes(row.emit), _cell(row.why)


def _rule(rule: Ignore | Refuse) -> tuple[str, ...]:
    triggers = ", ".join(f"`{trigger}`" for trigger in rule.triggers)
    return triggers, ", ".join(f"`{state.value}`" for state in rule.states), _when(rule.guard), _cell(rule.why)


def _when(guard: Guard) -> str:
    return "" if guard is always else f"`{_cell(str(guard))}`"


def _causes(emissions: Iterable[Emission]) -> str:
    return "; ".join(_cell(str(emission)) for emission in emissions)


def _cell(text: str) -> str:
    """Text that cannot end the cell it stands in."""
    return text.replace("|", "\\|").replace("\n", " ")
