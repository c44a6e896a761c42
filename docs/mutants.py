"""The page of mutants: how many there are of each machine, what kills them, and what only a second telling of the tables minds.

``python docs/mutants.py`` writes the page from ``mutants.json``. ``python docs/mutants.py take FILE`` first replaces that by what a whole
campaign said, ``troth check --mutants --json > FILE``. Tests say whether the names in it are those of the tables, and whether the page is
current; the hundred mutants that every run of the tests draws are judged in the worlds that it names.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from troth.models.mutants import CORE, Mutant, mutants, registered
from troth.spec.properties import PROPERTIES, Role
from troth.statemachines import PARTIES

HERE = Path(__file__).resolve().parent
FATES = HERE / "mutants.json"
PAGE = HERE / "reference" / "mutants.md"
NOTICE = "<!-- Generated from mutants.json; run docs/mutants.py. -->"

INTRODUCTION = """\
# Mutants

A property is worth what it minds. So every row, guard atom, emission and update of every table is changed, one at a time: a *mutant*.
`troth check --mutants` judges all of them, and the named patches, in all standard worlds. A mutant is *killed* in a world where a
property is violated, and *equivalent* where the labelled reachable graph is the original's in every world that holds its machine, which
is computed. None survives, and none is left undecided.

What kills a mutant matters. A *promise* is what somebody relies on. What a world must *reach* says that something can be done at all.
*Conformance* compares every step with a second, hand-written telling of the tables (decision 0017), so it minds every change that can be
seen; a mutant that only conformance kills breaks no promise in the worlds that were searched for one. They are listed below: each is a
row whose harm is small, or shows only in longer runs than those worlds have.

`core` is no numbered property: the mutant's core cannot go on at all, because it leaves a timer behind at its end, makes a message that
cannot be, signals without end, or outgrows a family. It keeps no promise then; it is counted for itself."""

REPEATED = """\
## How to repeat it

```sh
troth check --mutants --json --record mutants.jsonl > mutants.out
python docs/mutants.py take mutants.out
```

A run that was interrupted goes on from its record. Promises are looked for in worlds of together {patience:,} states before a mutant is
put to what comes after them; `--patience` says how long otherwise. Every run of the tests draws a hundred mutants by a seed and judges
them anew."""


@frozen
class Fate:
    """What became of one mutant."""

    role: Role | None
    """``None`` where it is equivalent."""
    property: str = ""
    world: str = ""
    depth: int | None = None


def every() -> dict[str, Mutant]:
    """All mutants of the protocol's parties by name, named patches first."""
    named = [patch.mutant() for party in PARTIES.values() for patch in registered(party)]
    return {mutant.name: mutant for mutant in (*named, *(mutant for party in PARTIES.values() for mutant in mutants(party)))}


def told() -> dict[str, Any]:
    """The file as it is."""
    found: dict[str, Any] = json.loads(FATES.read_text(encoding="utf-8"))
    return found


def fates(known: Mapping[str, Any]) -> dict[str, Fate]:
    """Each mutant's, by name."""
    found = {name: Fate(None) for name in known["equivalent"]}
    for world, by_property in known["killed"].items():
        for id_, (role, names) in by_property.items():
            found.update({name: Fate(Role(role), id_, world, depth) for name, depth in names.items()})
    return found


def taken(said: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a whole campaign. Raises ``SystemExit`` where a mutant survived it, is unknown, or is missing."""
    for left in ("survived", "unknown"):
        if said[left]:
            raise SystemExit(f"{len(said[left])} mutants are {left}: {', '.join(said[left])}")
    missing = set(every()) - {*said["kills"], *said["equivalent"]}
    if missing:
        raise SystemExit(f"{len(missing)} mutants were not judged: {', '.join(sorted(missing))}")
    killed: dict[str, dict[str, Any]] = {}
    for name, kill in sorted(said["kills"].items()):
        killed.setdefault(kill["world"], {}).setdefault(kill["property"], [kill["role"], {}])[1][name] = kill["depth"]
    run = {key: round(said.get(key, 1)) for key in ("seconds", "cpu_s", "parts")}
    return {
        "run": run,
        "killed": {world: dict(sorted(killed[world].items())) for world in sorted(killed)},
        "equivalent": sorted(said["equivalent"]),
    }


def page(known: Mapping[str, Any]) -> str:
    """The whole page."""
    from troth.models.mutants.campaign import PATIENCE  # noqa: PLC0415

    of, all_of = fates(known), every()
    parts = [NOTICE, INTRODUCTION, _machines(of, all_of), _run(known, of), "## Named patches", _named(of, all_of)]
    parts += ["## Killed by conformance only", *_second(of, all_of, Role.CONFORMANCE), "## Killed by what must be reached"]
    parts += [*_second(of, all_of, Role.REACH), REPEATED.format(patience=PATIENCE)]
    return "\n\n".join(parts) + "\n"


def _machines(of: Mapping[str, Fate], all_of: Mapping[str, Mutant]) -> str:
    counts: dict[str, Counter[Role | str | None]] = {}
    for name, mutant in all_of.items():
        where = f"{mutant.party}.{mutant.machines[0]}" if ":" in name else "named patches"
        counts.setdefault(where, Counter())[CORE if of[name].property == CORE else of[name].role] += 1
    total = sum(counts.values(), Counter[Role | str | None]())
    columns = (Role.PROMISE, CORE, Role.REACH, Role.CONFORMANCE, None)
    rows = [
        (where, str(sum(count.values())), *(str(count[role]) for role in columns))
        for where, count in (*counts.items(), ("**together**", total))
    ]
    heads = ("machine", "mutants", "killed by a promise", "`core`", "by what must be reached", "by conformance only", "equivalent")
    return _table(heads, rows)


def _run(known: Mapping[str, Any], of: Mapping[str, Fate]) -> str:
    run = known["run"]
    killed = Counter(fate.property for fate in of.values() if fate.role is Role.PROMISE and fate.property != CORE)
    most = ", ".join(f"{id_} {count}" for id_, count in killed.most_common(12))
    parts = f" in {run['parts']} parts, between which promises were added" if run["parts"] > 1 else ""
    return (
        f"The whole run took {run['cpu_s']:,} s of processor time; {run['seconds']:,} s went by{parts}, on two cores that had other work "
        "too. "
        f"The promises that killed most: {most}."
    )


def _named(of: Mapping[str, Fate], all_of: Mapping[str, Mutant]) -> str:
    rows = []
    for name, mutant in all_of.items():
        if ":" not in name:
            fate = of[name]
            rows.append((name, mutant.what, fate.property, f"`{fate.world}`", "" if fate.depth is None else str(fate.depth)))
    said = (
        "`troth check --mutant NAME` finds each in the smallest world where a promise is broken. That is the one named here, unless it is "
        "conformance that is named: then it is a larger one, beyond the patience of the campaign."
    )
    return f"{said}\n\n{_table(('patch', 'what it does', 'breaks', 'in', 'steps'), rows)}"


def _second(of: Mapping[str, Fate], all_of: Mapping[str, Mutant], role: Role) -> Iterator[str]:
    rows = []
    for name, mutant in all_of.items():
        fate = of[name]
        if fate.role is role:
            said = PROPERTIES[fate.property].id if fate.property in PROPERTIES else fate.property
            rows.append((f"`{name}`", mutant.what, said, f"`{fate.world}`"))
    yield _table(("mutant", "what it does", "killed by", "in"), rows) if rows else "None."


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *cells))


def main(arguments: Sequence[str]) -> None:
    """Write the page; take a campaign's answer first, where one is given."""
    if arguments and arguments[0] == "take":
        said = json.loads(Path(arguments[1]).read_text(encoding="utf-8"))
        FATES.write_text(json.dumps(taken(said), indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(told()), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
