"""The page of findings: ``python docs/findings.py`` writes it. With names (``D5 D9``) it searches those only, and keeps the other diagrams.

Each finding is told by hand; its run is the shortest one to the defect in our own tables, searched anew, in the world that the patch
names. A test says whether the page is current.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import frozen

from troth.cli.finding import find
from troth.models import Limits, Verdict, check
from troth.models.mutants import DEFECTS, Patch, mutated
from troth.models.render.flights import Fate
from troth.models.render.story import StoryStep, story
from troth.models.trace import Trace
from troth.spec.properties import PROPERTIES

HERE = Path(__file__).resolve().parent
PAGE = HERE / "findings.md"
TOLD = HERE / "findings.json"
NOTICE = "<!-- Generated: change findings.json or the patches, and run docs/findings.py. -->"
QUIET = ("network", "switch", "exchange", "notices", "bytes", "task payloads", "fetcher", "nobody", "elsewhere")
"""Parties that only pass on what others say."""


@frozen
class Finding:
    """What is told of one defect by hand."""

    name: str
    title: str
    does: str
    instead: str
    shown: str


def findings() -> list[Finding]:
    """All that have a patch, by number."""
    told = json.loads(TOLD.read_text(encoding="utf-8"))
    return [Finding(patch.name, **told["tables"][patch.name]) for patch in DEFECTS]


def counterexample(patch: Patch) -> Trace:
    """The shortest run to the defect. Raises ``SystemExit`` where there is none."""
    world = mutated(find(patch.world).build({}), patch.mutant())
    (claim,) = check(world, properties=[patch.property], limits=Limits(stop_at_violation=True, workers=1)).properties
    if claim.verdict is not Verdict.VIOLATED or claim.trace is None:
        raise SystemExit(f"{patch.name} is not found in {patch.world}: {claim.verdict.value}")
    return claim.trace


def diagram(trace: Trace) -> str:
    """The run as a sequence diagram of what is said and what happens; what machines do within a step is for ``troth check`` to show."""
    told = story(trace)
    parties = [name for name in told.parties if name not in QUIET]
    names = {name: f"p{place}" for place, name in enumerate(parties)}
    lines = ["sequenceDiagram", *(f"    participant {short} as {_text(name)}" for name, short in names.items())]
    for step in told.steps:
        if told.loop is not None and step.number == told.loop + 1:
            lines.append("    Note over p0: from here on, for ever")
        lines += [f"    {line}" for line in _step(step, names)]
    if told.stands_still:
        lines.append(f"    Note over p0,p{len(parties) - 1}: nothing more happens, for ever")
    return "\n".join(lines) + "\n"


def _step(step: StoryStep, names: dict[str, str]) -> Iterator[str]:
    ends = [flight for flight in step.ended if flight.source in names and flight.target in names]
    for flight in ends:
        arrow, note = ("->>", "") if flight.fate is Fate.DELIVERED else ("-x", " (lost)")
        yield f"{names[flight.source]}{arrow}{names[flight.target]}: {step.number} {_text(flight.message)}{note}"
    if not ends:
        where = names.get(step.about) or next((names[t.party] for t in step.told if t.party in names), "p0")
        yield f"Note over {where}: {step.number} {_text(f'{step.who}: {step.event}')}"
    for flight in step.sent:
        if not flight.link and flight.source in names and flight.target in names:
            yield f"{names[flight.source]}->>{names[flight.target]}: {_text(flight.message)}"


def _text(value: str) -> str:
    for found, instead in (("#", "#35;"), (";", ","), ("\n", " "), ("<", "&lt;"), (">", "&gt;"), ("%%", "%")):
        value = value.replace(found, instead)
    return value


def section(finding: Finding, patch: Patch, drawn: str) -> str:
    """One finding."""
    steps = len(re.findall(r"^    .*?: \d+ |^    Note over \w+: \d+ ", drawn, re.MULTILINE))
    promise = PROPERTIES[patch.property]
    return f"""\
## {patch.name}: {finding.title}

{finding.does}

Violates **{promise.id}**: {promise.statement}. In {steps} steps, as
`troth check {patch.world} --mutant {patch.name} --property {promise.id}` shows;
where it shows first of all, `troth check --mutant {patch.name}` finds out.

```mermaid
{drawn}```

*Troth:* {finding.instead}

*On NVFlare 2.9.0:* {finding.shown}
"""


def page(drawn: dict[str, str]) -> str:
    """The whole page, with these diagrams."""
    told = json.loads(TOLD.read_text(encoding="utf-8"))
    patches = {patch.name: patch for patch in DEFECTS}
    parts = [section(one, patches[one.name], drawn[one.name]) for one in findings()]
    rows = ["| | the reference | Troth | shown by |", "|---|---|---|---|"]
    rows += [f"| {name} | {row['does']} | {row['instead']} | {row['shown']} |" for name, row in told["runtime"].items()]
    head = "\n".join(told["introduction"])
    tail = "\n".join(told["runtime_introduction"])
    return f"{NOTICE}\n\n# Findings\n\n{head}\n\n" + "\n".join(parts) + f"\n## In the runtime\n\n{tail}\n\n" + "\n".join(rows) + "\n"


def known() -> dict[str, str]:
    """The diagrams that the page has."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    return dict(re.findall(r"^## (D\d+): .*?^```mermaid\n(.*?)^```", text, re.MULTILINE | re.DOTALL))


def main(names: Sequence[str]) -> None:
    """Search, and write the page."""
    drawn = known() if names else {}
    for patch in DEFECTS:
        if patch.name in names or patch.name not in drawn:
            drawn[patch.name] = diagram(counterexample(patch))
            print(f"{patch.name}: {patch.world}", flush=True)
    PAGE.write_text(page(drawn), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
