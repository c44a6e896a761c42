"""The page of witnesses: what breaks each property, and where that is seen.

``python docs/witnesses.py`` writes the page from the declarations and the depths in ``witnesses.json``. With ``measure [P01...]`` it
searches the witnesses' worlds first (all of them, where no property is named). Tests search them again, and say whether the page is
current.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Any

from troth.cli.finding import find
from troth.models import Limits, Verdict, check
from troth.models.check import PropertyResult
from troth.models.mutants import LAPSES, mutated
from troth.models.mutants.patches import named
from troth.models.mutants.witnesses import WITNESSES, mutant_named
from troth.spec.properties import PROPERTIES, By
from troth.statemachines import PARTIES

HERE = Path(__file__).resolve().parent
DEPTHS = HERE / "witnesses.json"
PAGE = HERE / "reference" / "witnesses.md"
NOTICE = "<!-- Generated from the declarations; change those and run docs/witnesses.py. -->"

INTRODUCTION = """\
# What breaks each property

A property that nothing can break says nothing. For each one that is checked in worlds, here is a change of our own tables that breaks it,
and a small world in which that is seen; the steps are those of the shortest run there. `troth check WORLD --mutant NAME --property ID`
shows it.

A name like `D6` is a [defect of the reference](../findings.md), brought back. One like `host.session:H54:unguarded` is made from a row by
rule: its guard is dropped; *silent-2* leaves out its second emission, *stay* and *to-LOST* change where it goes, *drop* ignores its cases.
One like `P04-again` is a lapse that was written for its property, as somebody might who had not thought of it."""

ELSEWHERE = """\
## Properties that no world checks

{ids} are about bytes, files, processes, a configuration, or the engine below the tables. `tests/promises` checks each of them in runs of
the runtime, in random walks or whenever a configuration is made, and breaks each with a patch of the code that it is about: a test whose
name begins like `test_p64_holds` and one like `test_p64_is_violated_by`."""


def depths() -> dict[str, Any]:
    """What was measured, by property."""
    found: dict[str, Any] = json.loads(DEPTHS.read_text(encoding="utf-8"))
    return found


def searched(id_: str) -> PropertyResult:
    """What a search for the property finds in the world of its witness, with the mutant in it."""
    witness = WITNESSES[id_]
    world = mutated(find(witness.world).build({}), mutant_named(witness.mutant))
    (found,) = check(world, properties=[id_], limits=Limits(stop_at_violation=True, workers=1)).properties
    return found


def measured(id_: str) -> dict[str, Any]:
    """Search for one witness. Raises ``SystemExit`` where it breaks nothing."""
    started = process_time()
    found = searched(id_)
    if found.verdict is not Verdict.VIOLATED or found.trace is None:
        raise SystemExit(f"{id_}: {WITNESSES[id_].mutant} in {WITNESSES[id_].world}: {found.verdict.value} {found.reason}")
    return {"depth": len(found.trace.steps), "seconds": round(process_time() - started)}


def _what(name: str) -> str:
    patch = named(name)
    if patch is not None:
        told = " ".join((patch.change.__doc__ or "").split()) if patch in LAPSES else patch.brings_back
        return told.rstrip(".")
    mutant = mutant_named(name)
    row = PARTIES[mutant.party].by_name[mutant.machines[0]].row(mutant.what.split()[0])
    rest = mutant.what.removeprefix(f"{row.id} ").replace("|", "\\|")
    return f"row {row.id}, of `{row.trigger}`, {rest}"


def page(known: Mapping[str, Any]) -> str:
    """The whole page."""
    rows = []
    for id_, witness in WITNESSES.items():
        statement = PROPERTIES[id_].statement
        rows.append((id_, statement, f"`{witness.mutant}`", _what(witness.mutant), f"`{witness.world}`", str(known[id_]["depth"])))
    head = ("id", "what is broken", "by the mutant", "which is", "seen in", "steps")
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))
    ids = ", ".join(id_ for id_, found in PROPERTIES.items() if By.WORLDS not in found.by)
    return "\n\n".join([NOTICE, INTRODUCTION, table, ELSEWHERE.format(ids=ids)]) + "\n"


def main(arguments: Sequence[str]) -> None:
    """Write the page; measure first, where that is asked for."""
    known = depths() if DEPTHS.exists() else {}
    if arguments and arguments[0] == "measure":
        for id_ in arguments[1:] or WITNESSES:
            known[id_] = measured(id_)
            print(f"{id_}: {WITNESSES[id_].mutant} in {WITNESSES[id_].world}: {known[id_]}", flush=True)
        known = {id_: known[id_] for id_ in WITNESSES if id_ in known}
        DEPTHS.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(known), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
