"""The page of the standard worlds: what they contain, what they claim, how large they are.

``python docs/worlds.py`` writes the page from the declarations and the counts in ``worlds.json``. With ``measure [WORLD...]`` it explores
the worlds first (all of them, where none is named) and replaces their counts. A test says whether both are current.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from troth.cli.finding import Found, find
from troth.models import Limits, Verdict, World, check
from troth.models.worlds import STANDARD
from troth.models.worlds.protocol.order import EIGHT, IMPOSSIBLE, TOO_LATE
from troth.models.worlds.protocol.reach import NO_COUNTERPART
from troth.spec.properties import LEFT_OUT, PROPERTIES, By

HERE = Path(__file__).resolve().parent
COUNTS = HERE / "worlds.json"
PAGE = HERE / "reference" / "worlds.md"
NOTICE = "<!-- Generated from the declarations; change those and run docs/worlds.py. -->"

INTRODUCTION = """\
# Worlds of the protocol

`troth check` explores these worlds, in this order. Each is closed: the real cores, the links between them, whoever calls and orders, and
the faults that are named. Every reachable state is looked at, and every property must hold in each of them.

Some things are the same in all of them. A step whose messages find a link full is *held back* until there is room, so a run in which all
links are full and nobody can go on ends there; where links *merge*, what is said again while it is on its way is said once, and nothing is
held back. Timers may fire whenever they are armed, unless the world has a clock: also that of a lease whose peer is about to answer. Limits
are small: two attempts, one or two entries of each memory.

So in most of these worlds a call returns at the latest because a lease is over. That none needs it while its peer is there shows in
`answers`, of which `external/answers` is the launched form: there the limit on a wait for somebody fires only once that one is gone, and
what else may take its time has no limit. What returns, returns because it was answered.

`session`, `ledger`, `process`, `supervisor` and the first of `transfer` hold one core alone, among everything that its peers can have said
once a network has delayed and repeated it, at any time. That is more than any closed pair of cores does, so what holds there holds with
any peer; and the worlds are so small that every mutant of every row is judged in them. The others say what comes of it end to end."""

FAIRNESS = """\
## Fairness

A claim that something happens in the end is about fair runs. *Weakly* fair: what can happen from some point on without a break, happens.
That is assumed of messages, each by itself, of timers, each by itself, and of what has to come from outside: a process that has nothing
left to do exits, a link that was cut is opened, who died starts again where that is said, bytes that can be had arrive. Losses,
repetitions, cuts and crashes are finite. Of users nothing is assumed, but for P51 in `answers`, where no limit ends the wait for a script
that stops.

It is not enough in two cases, and there it is *strong* for what the table names: what can happen again and again, happens. A full link
holds a trainer's timer back now and then, which is the bound of the world and not the runtime's way; the same claims hold weakly where
links merge. And a link that loses for ever delivers what is said again and again, which is the usual assumption about such a link."""

ORDER = """\
## Order

Eight things can happen to a session at the worst moment: SHUTDOWN, ABORT, CANCEL_TASK, an acceptance that is delivered, one that is lost,
the expiry of a lease, the crash of the trainer, the crash of the host. *One < other* means that in one and the same run the first has
happened and has shown its effect, that the other comes next (its message is the first on the link to a trainer that lives, its timer may
fire, its loss or its crash may be next), and that it *tells*: whoever it comes to goes elsewhere for it. Of each ordered pair `races`
claims that it is reached so, under the name `SHUTDOWN < ABORT`, for example; or that the other comes, but never tells (*late*); and a few
cannot be. The row is what has happened, the column what comes."""

SECONDS = """\
Together {states:,} states in {total:.0f} s, on two cores of {machine}. Seconds are by the clock on the wall, of one check of the world from
its declaration to the last verdict, in a process that has checked the worlds above it, with up to two processes searching. They were taken
one by one, mostly while the machine had other work. All of them at once, by `troth check`, needed {cpu_s:.0f} s of processor time;
{wall_s:.0f} s went by, with other work beside."""

QUIET = 0.5
"""The load of a machine up to which nothing else can be said to run on it."""

RACES_HEAD = """\
## Races

The interleavings R1 to R30 of the reference's digest, and the worlds that contain them: each is a claim that some state is reached."""


def counts() -> dict[str, Any]:
    """What was measured, by world."""
    found: dict[str, Any] = json.loads(COUNTS.read_text(encoding="utf-8"))
    return found


def measured(name: str) -> dict[str, Any]:
    """Explore one world. Raises ``SystemExit`` unless everything holds, and nothing only because it never happens."""
    result = check(find(name).build({}), limits=Limits(workers=2))
    if result.verdict is not Verdict.HOLDS or result.vacuous:
        raise SystemExit(f"{name}: {result.verdict.value} {result.reason} {', '.join(result.vacuous)}")
    largest = max(result.components.items(), key=lambda item: item[1].local_states)
    return {
        "states": result.states, "edges": result.edges, "depth": result.depth, "seconds": round(result.seconds, 1),
        "largest": [largest[0], largest[1].local_states], "properties": len(result.properties),
    }  # fmt: skip


def page(known: Mapping[str, Any]) -> str:
    """The whole page."""
    worlds = [(found, found.build({})) for found in map(find, STANDARD)]
    claimed = {found.name: [claim.id for claim in world.properties] for found, world in worlds}
    said = {claim.id: claim.statement for _, world in worlds for claim in world.properties}
    parts = [NOTICE, INTRODUCTION, _worlds([found for found, _ in worlds], known), _long(known)]
    parts += [FAIRNESS, _strong([world for _, world in worlds])]
    parts += ["## Properties", _properties(claimed), "## Left out", _left_out(), ORDER, _order(), _reasons()]
    parts += [RACES_HEAD, _races(claimed, said)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _worlds(worlds: Sequence[Found], known: Mapping[str, Any]) -> str:
    rows = []
    total = 0.0
    for found in worlds:
        count = known["worlds"][found.name]
        bounds = found.blueprint.bounds if found.blueprint else {}
        total += count["seconds"]
        rows.append(
            (
                f"`{found.name}`", (found.blueprint.doc if found.blueprint else "").rstrip("."),
                ", ".join(f"`{name}={bound.default}`" for name, bound in bounds.items()),
                f"{count['states']:,}", f"{count['edges']:,}", str(count["depth"]), str(count["properties"]),
                f"{count['largest'][0]} {count['largest'][1]:,}", f"{count['seconds']:.1f}",
            )
        )  # fmt: skip
    head = ("world", "what happens in it", "bounds", "states", "edges", "depth", "claims", "largest component", "s")
    states = sum(known["worlds"][found.name]["states"] for found in worlds)
    return f"{_table(head, rows)}\n\n{SECONDS.format(states=states, total=total, machine=known['machine'], **known['whole'])}"


def _long(known: Mapping[str, Any]) -> str:
    rows = [
        (f"`{command}`", f"{one['states']:,}", f"{one['edges']:,}", str(one["depth"]), f"{one['seconds']:,.0f}", one["verdict"])
        for command, one in known.get("long", {}).items()
    ]
    if not rows:
        return ""
    return "Longer runs, not part of the standard ones:\n\n" + _table(("command", "states", "edges", "depth", "s", "verdict"), rows)


def _properties(claimed: Mapping[str, Sequence[str]]) -> str:
    rows = []
    for id_, found in PROPERTIES.items():
        worlds = [f"`{name}`" for name, ids in claimed.items() if any(one.split()[0] == id_ for one in ids)]
        where = ", ".join(worlds) if worlds else ", ".join(way.value for way in found.by)
        rows.append((id_, found.role.value, found.statement, found.why, found.source, where))
    checked = sum(any(one.split()[0] == id_ for ids in claimed.values() for one in ids) for id_ in PROPERTIES)
    said = (
        f"{checked} of {len(PROPERTIES)} are checked in worlds. Those that are not are about bytes, files and processes, which no core "
        "sees (*simulation*), about a configuration (*limits*), or about the engine that runs every core (*walks*). A plain number in the "
        "source is a statement of the reference's digest, I a field report, D a defect, R a race.\n\n"
        "A *promise* is what a user, or a peer, may rely on. *Conformance* tells the tables a second time, by hand, and compares every "
        "step with it: that finds slips, but promises nothing, so mutants are judged by promises first (decision 0017). What breaks each "
        "of them is told [on a page of its own](witnesses.md)."
    )
    return f"{said}\n\n{_table(('id', 'role', 'what is said', 'why', 'source', 'checked in'), rows)}"


def _strong(worlds: Sequence[World]) -> str:
    found: dict[tuple[str, str], list[str]] = {}
    for world in worlds:
        actions = world.system().actions
        for claim in world.properties:
            of = sorted({actions[number].name for one in claim.fair if one.strong for number in one.actions})
            if of and claim.id in PROPERTIES:
                found.setdefault((f"`{world.name}`", ", ".join(of)), []).append(claim.id)
    return _table(("world", "strongly fair", "for"), [(world, of, ", ".join(ids)) for (world, of), ids in found.items()])


def _left_out() -> str:
    return _table(("source", "statement", "why it has no counterpart"), [(one.source, one.statement, one.reason) for one in LEFT_OUT])


def _order() -> str:
    kinds = {**dict.fromkeys(TOO_LATE, "late"), **dict.fromkeys(IMPOSSIBLE, "impossible")}
    rows = [(one, *("" if one == other else kinds.get((one, other), "reached") for other in EIGHT)) for one in EIGHT]
    return _table(("", *EIGHT), rows)


def _reasons() -> str:
    listed = [("late", TOO_LATE), ("impossible", IMPOSSIBLE)]
    rows = [(f"{one} < {other}", kind, why) for kind, found in listed for (one, other), why in found.items()]
    return _table(("pair", "", "why"), rows)


def _races(claimed: Mapping[str, Sequence[str]], said: Mapping[str, str]) -> str:
    rows = []
    for number in range(1, 31):
        id_ = f"R{number:02}"
        worlds = [f"`{name}`" for name, ids in claimed.items() if id_ in ids]
        rows.append((f"R{number}", said.get(id_, ""), ", ".join(worlds) or NO_COUNTERPART.get(f"R{number}", "")))
    return _table(("race", "what it comes to here", "reached in, or why it has no counterpart"), rows)


def unclaimed() -> list[str]:
    """Races that no world reaches and that nothing is said of, and properties for worlds that no world claims."""
    claimed = {claim.id.split()[0] for name in STANDARD for claim in find(name).build({}).properties}
    races = [f"R{n}" for n in range(1, 31) if f"R{n:02}" not in claimed and f"R{n}" not in NO_COUNTERPART]
    return races + [id_ for id_, found in PROPERTIES.items() if By.WORLDS in found.by and id_ not in claimed]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))


def main(arguments: Sequence[str]) -> None:
    """Write the page; measure first, where that is asked for."""
    known = counts() if COUNTS.exists() else {"machine": "an x86-64 server", "whole": {"cpu_s": 0, "wall_s": 0}, "worlds": {}}
    if arguments and arguments[0] == "measure":
        busy = os.getloadavg()[0]  # before anything runs here
        if busy > QUIET:
            print(f"this machine is busy (load {busy:.1f}), so the seconds will say more of that than of the worlds", file=sys.stderr)
        for name in arguments[1:] or STANDARD:
            found = measured(name)
            print(f"{name}: {found}", flush=True)
            known = counts() if COUNTS.exists() else known  # as it is now: another run may have added to it
            known["worlds"] = {one: {**known["worlds"], name: found}[one] for one in STANDARD if one == name or one in known["worlds"]}
            COUNTS.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(known), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
