"""A world as one TLA+ module and the configuration for TLC.

The module says what ``troth.models.system`` says. A component's local states are numbers. ``X_does[n]`` lists what component X can do
in state n: triples of the item that it reacts to, its new state, and the number of the list of items that it gives. An action takes a
list of items and works through it, first in, first out; an item that its component does not take there blocks the action.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from attrs import evolve, frozen

from troth.models.check import explore
from troth.models.errors import Exhausted
from troth.models.exploration import Ending, Exploration, Limits, Reporter
from troth.models.expressions import Expr
from troth.models.properties import Property, PropertyKind
from troth.models.system import System
from troth.models.tla.claims import Claims, NotExpressible, Watching, observations
from troth.models.tla.names import Names, comment, defined, module_name
from troth.models.tla.tables import ComponentTable, Tables, tabulated
from troth.models.world import World

COMMENTED = 100
"""Numbers of a component (or items, or lists) whose meaning is told, before the comments stop."""
CHUNK = 256
"""Local states in one definition: SANY gives up on definitions of any length, and a reader sooner."""
LEFT_OUT: Mapping[PropertyKind, str] = {
    PropertyKind.SOMETIMES: "a state that is to be reached; TLC shows it when told that it never is",
    PropertyKind.ALWAYS_EVENTUALLY: "liveness, and fairness is not exported",
    PropertyKind.LEADS_TO: "liveness, and fairness is not exported",
}


@frozen
class Refinement:
    """That the world implements an abstract module: ``mapping`` gives each of its constants and variables.

    A value is an expression over the world's observations, or TLA+ text. ``spec`` names the abstract specification.
    """

    module: str
    mapping: Mapping[str, Expr | str]
    spec: str = "Spec"


@frozen
class Exported:
    """A world as TLA+. TLC should report ``states`` distinct states and generate ``edges`` + 1 (it counts the initial one)."""

    module: str
    text: str
    states: int
    edges: int
    depth: int
    truncated: int
    """Edges that a bound of the world cut off; they are not in the module."""
    invariants: Mapping[str, str]
    """Ids of properties that TLC checks in every state, and the operators that say them."""
    temporal: Mapping[str, str]
    """The same of properties of steps, and of the abstract modules that are implemented."""
    left_out: Mapping[str, str]
    """Ids of the others, with the reason."""

    @property
    def config(self) -> str:
        """The configuration in which TLC checks everything."""
        return self.configured([*self.invariants, *self.temporal])

    def configured(self, ids: Collection[str]) -> str:
        """A configuration for some of the properties, and for ``TypeOK``."""
        lines = [
            comment(f"Run TLC with -deadlock: whether {self.module} may end is a property of its own."),
            "SPECIFICATION Spec",
            "INVARIANTS",
            "TypeOK",
            *(operator for id_, operator in self.invariants.items() if id_ in ids),
        ]
        steps = [operator for id_, operator in self.temporal.items() if id_ in ids]
        return "\n".join([*lines, *(["PROPERTIES", *steps] if steps else [])]) + "\n"

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Write ``MODULE.tla`` and ``MODULE.cfg``; the folder is made if need be."""
        folder.mkdir(parents=True, exist_ok=True)
        paths = folder / f"{self.module}.tla", folder / f"{self.module}.cfg"
        for path, text in zip(paths, (self.text, self.config), strict=True):
            path.write_text(text, encoding="ascii")
        return paths


def exported(
    world: World,
    *,
    observed: bool = False,
    definitions: Mapping[str, Expr] | None = None,
    refines: Sequence[Refinement] = (),
    limits: Limits | None = None,
    report: Reporter | None = None,
) -> Exported:
    """Search ``world`` completely and write it as TLA+.

    ``observed`` adds a function for every named observation of every party, ``definitions`` operators of these names, ``refines``
    abstract modules that it must implement. Symmetry is not used. Raises ``Exhausted`` when the search cannot be completed.
    """
    system = world.system()
    chosen = dict(definitions or {})
    mapped = [value for r in refines for value in r.mapping.values() if isinstance(value, Expr)]
    claimed = [e for p in world.properties for e in (p.expr, p.then) if e is not None]
    watching = Watching(system, [*claimed, *chosen.values(), *mapped])
    # In one process: what a second one tabulates and notes stays there, and would be missing here.
    found = explore(system, watching.properties, evolve(limits or Limits(), stop_at_violation=False, workers=1), report=report)
    if found.ending is not Ending.COMPLETE:
        raise Exhausted(
            f"world {world.name}: the search stopped at {found.states:,} states; only a world that was searched completely is exported"
        )
    return _Module(world, system, found, watching, observed=observed, definitions=chosen, refines=refines).exported()


@frozen(eq=False)
class _Property:
    """A property's operator, and how the configuration names it."""

    claim: Property
    lines: tuple[str, ...]
    invariant: str = ""
    temporal: str = ""
    reason: str = ""


class _Module:
    """One module being written."""

    def __init__(
        self,
        world: World,
        system: System,
        found: Exploration,
        watching: Watching,
        *,
        observed: bool,
        definitions: Mapping[str, Expr],
        refines: Sequence[Refinement],
    ) -> None:
        self.world = world
        self.found = found
        self.tables: Tables = tabulated(system, watching.resting)
        self.names = Names()
        self.ids = {p.id: self.names.given(p.id) for p in world.properties}
        self.defined = {self.names.given(name): expr for name, expr in definitions.items()}
        self.variables = [self.names.given(table.name) for table in self.tables.components]
        self.does = [self.names.given(f"{variable}_does") for variable in self.variables]
        taken = {way.item for table in self.tables.components for ways in table.rows for way in ways}
        self.possible = [(self.names.given(a.name), a, items) for a, items in self.tables.actions if taken.issuperset(items)]
        self.never = [a.name for a, items in self.tables.actions if not taken.issuperset(items)]
        self.claims = Claims(system, self.tables, self.variables, self.names, watching)
        self.observed = observed
        self.refines = tuple(refines)
        self.name = module_name(world.name)

    def exported(self) -> Exported:
        """Put the parts together."""
        if self.observed:
            for table in self.tables.components:
                if table.kind == "party":
                    observations(self.claims, table)
        properties = [self._property(claim) for claim in self.world.properties]
        operators = [f"{name} == {self.claims.value(expr)}" for name, expr in self.defined.items()]
        abstract, implied = self._refinements()
        lines = [
            f"---- MODULE {self.name} ----",
            *self._header(properties),
            "EXTENDS Integers, Sequences",
            "",
            *self._variables(),
            *self._items(),
            *self._components(),
            *self._composition(),
            *self._behaviour(),
            *(["", comment("What can be observed of each local state.")] if self.claims.lines else []),
            *self.claims.lines,
            *[line for one in properties for line in one.lines],
            *([""] if operators else []),
            *operators,
            *abstract,
            "====",
        ]
        return Exported(
            module=self.name,
            text="\n".join(lines) + "\n",
            states=self.found.states,
            edges=self.found.edges,
            depth=self.found.depth,
            truncated=self.found.truncated,
            invariants={p.claim.id: p.invariant for p in properties if p.invariant},
            temporal={p.claim.id: p.temporal for p in properties if p.temporal} | implied,
            left_out={p.claim.id: p.reason for p in properties if p.reason},
        )

    # -- the parts, in their order -------------------------------------------------------------------------------------

    def _header(self, properties: Sequence[_Property]) -> list[str]:
        world, found = self.world, self.found
        bounds = ", ".join(f"{name} = {value}" for name, value in world.bounds.items())
        lines = [
            comment(f"{world.name}: {world.doc}"),
            comment(f"Written by `troth export tla {world.name}`; {f'bounds {bounds}' if bounds else 'it has no bounds'}."),
            comment(
                f"Troth counts {found.states:,} distinct states, {found.edges:,} edges and depth {found.depth}; TLC should report as many"
            ),
            comment(f"distinct states, {found.edges + 1:,} generated (it counts the initial one) and depth {found.depth + 1} (in states)."),
        ]
        if self.world.symmetries:
            lines.append(comment("The world declares a symmetry, which is not used here: these are the counts without it."))
        if found.truncated:
            lines.append(
                comment(f"{found.truncated:,} edges that a bound cuts off are not here: nothing here holds of the whole protocol.")
            )
        return lines + [comment(f"Not checked: {one.claim.id}, {one.reason}.") for one in properties if one.reason]

    def _variables(self) -> list[str]:
        lines = ["VARIABLES"]
        last = len(self.variables) - 1
        for place, (variable, table) in enumerate(zip(self.variables, self.tables.components, strict=True)):
            says = comment(f"{table.kind} {table.name}: {_count(table.resting, 'local state')}")
            lines.append(f"  {variable}{',' if place < last else ' '}  {says}")
        return [*lines, "", *defined("vars", self.variables), ""]

    def _items(self) -> list[str]:
        """Items, and the lists of items that reactions give."""
        tables = self.tables
        lines = [comment("Items: what may be put to a component. owner[i] is the component, by its place in vars, that item i is for.")]
        lines += _told([f"{number}  {text}" for number, text in enumerate(tables.items, 1)])
        lines += [*defined("owner", [str(o) for o in tables.owners]), ""]
        lines.append(comment("What reactions may give: lists of items, to be worked through after those that are waiting."))
        lines += [*defined("gives", [f"<<{', '.join(map(str, items))}>>" for items in tables.gives]), ""]
        return lines

    def _components(self) -> list[str]:
        lines = []
        for table, does in zip(self.tables.components, self.does, strict=True):
            lines += self._component(table, does)
        return lines

    def _component(self, table: ComponentTable, does: str) -> list[str]:
        passed = len(table.rows) - table.resting
        extra = f"; {_count(passed, 'more')} only passed through by actions that are blocked later on" if passed else ""
        lines = [comment(f"{table.kind} {table.name}: {_count(table.resting, 'local state')}{extra}.")]
        lines += _told([f"{number}  {text}" for number, text in enumerate(table.texts, 1)])
        rows = ["<<" + ", ".join(f"<<{w.item}, {w.target}, {w.gives}>>" for w in ways) + ">>" for ways in table.rows]
        if len(rows) <= CHUNK:
            return [*lines, *defined(does, rows), ""]
        parts = []
        for start in range(0, len(rows), CHUNK):
            parts.append(self.names.given(f"{does}_{start + 1}"))
            lines += defined(parts[-1], rows[start : start + CHUNK])
        return [*lines, f"{does} ==", "  " + "\n    \\o ".join(parts), ""]

    def _composition(self) -> list[str]:
        places = enumerate(self.variables, 1)
        after = [f"{'  THEN ' if place == 1 else '       '}/\\ {variable}' = at[{place}]" for place, variable in places]
        return [
            comment(
                "The same by item: for each local state the items that can be taken in it, and for each of them the ways to go, with their"
            ),
            comment("places in the row, so that two ways that come to the same are two steps. TLC works this out once."),
            "Indexed(rows) ==",
            "  [n \\in DOMAIN rows |->",
            "    [item \\in {rows[n][k][1] : k \\in DOMAIN rows[n]} |->",
            "      {<<k, rows[n][k][2], rows[n][k][3]>> : k \\in {j \\in DOMAIN rows[n] : rows[n][j][1] = item}}]]",
            *defined("ways", [f"Indexed({does})" for does in self.does]),
            "",
            comment(
                "An action works through its items, first in, first out. The component that an item is for goes one of the ways that it"
            ),
            comment("has for it; what that gives goes to the end of the list. An item without a way blocks the action."),
            "RECURSIVE Chain(_, _)",
            "Chain(at, items) ==",
            "  IF items = <<>>",
            *after,
            "  ELSE LET item == Head(items)",
            "           c == owner[item]",
            "           here == ways[c][at[c]]",
            "       IN /\\ item \\in DOMAIN here",
            "          /\\ \\E way \\in here[item] : Chain([at EXCEPT ![c] = way[2]], Tail(items) \\o gives[way[3]])",
            "",
            "Take(items) == Chain(vars, items)",
            "",
        ]

    def _behaviour(self) -> list[str]:
        initial = [f"/\\ {variable} = 1" for variable in self.variables]
        resting = [f"/\\ {v} \\in 1..{t.resting}" for v, t in zip(self.variables, self.tables.components, strict=True)]
        lines = []
        for name, action, items in self.possible:
            lines += [
                comment(f"{action.name} ({action.kind.value}, by the {action.who})"),
                f"{name} == Take(<<{', '.join(map(str, items))}>>)",
            ]
        return [
            *lines,
            *([comment(f"Never possible: {', '.join(self.never)}.")] if self.never else []),
            "",
            "Init ==",
            *[f"  {line}" for line in initial],
            "Next ==",
            *[f"  \\/ {name}" for name, *_ in self.possible],
            "Spec == Init /\\ [][Next]_vars",
            "",
            comment("Every component is in a state that Troth saw it in between two actions."),
            "TypeOK ==",
            *[f"  {line}" for line in resting],
        ]

    # -- properties ----------------------------------------------------------------------------------------------------

    def _property(self, claim: Property) -> _Property:
        name = self.ids[claim.id]
        says = comment(f"{claim.id}: {claim.statement}")
        try:
            body = self._body(claim)
        except NotExpressible as error:
            return _Property(claim, (), reason=str(error))
        lines = ("", says, f"{name} == {body}")
        if claim.kind is PropertyKind.NO_DEADLOCK and self.found.truncated:
            return _Property(claim, lines, reason="a state whose edges were all cut off has none here")
        if claim.kind in LEFT_OUT:
            return _Property(claim, lines, reason=LEFT_OUT[claim.kind])
        if claim.kind is PropertyKind.STEP:
            return _Property(claim, lines, temporal=name)
        return _Property(claim, lines, invariant=name)

    def _body(self, claim: Property) -> str:
        condition = self.claims.condition
        match claim.kind:
            case PropertyKind.STEP:
                looked = ", ".join(self.variables[i] for i in sorted(claim.expr.components))
                return f"[][{condition(claim.expr)}]_<<{looked}>>"
            case PropertyKind.NO_DEADLOCK:
                ends = condition(claim.then) if claim.then is not None else "FALSE"
                return f"ENABLED Next \\/ {ends}"
            case PropertyKind.ALWAYS_EVENTUALLY:
                return f"[]<>{condition(claim.expr)}"
            case PropertyKind.LEADS_TO:
                if claim.then is None:
                    raise NotExpressible("it has no consequence")
                return f"({condition(claim.expr)} ~> {condition(claim.then)})"
            case _:
                return condition(claim.expr)

    def _refinements(self) -> tuple[list[str], dict[str, str]]:
        """Instances of abstract modules, and the operators that say that they are implemented."""
        lines: list[str] = []
        claims: dict[str, str] = {}
        for refinement in self.refines:
            instance = self.names.given(f"{refinement.module}_instance")
            claim = claims[refinement.module] = self.names.given(f"Implements_{refinement.module}")
            values = [f"{k} <- {v if isinstance(v, str) else self.claims.value(v)}" for k, v in refinement.mapping.items()]
            lines += ["", comment(f"This world implements {refinement.module}, seen through this mapping.")]
            lines.append(f"{instance} == INSTANCE {refinement.module}{' WITH' if values else ''}")
            lines += [f"  {v}{',' if place < len(values) else ''}" for place, v in enumerate(values, 1)]
            lines.append(f"{claim} == {instance}!{refinement.spec}")
        return lines, claims


def _told(texts: Sequence[str]) -> list[str]:
    """What numbers mean, as comments, up to a limit."""
    lines = [comment(f"  {text}") for text in texts[:COMMENTED]]
    return [*lines, comment(f"  ... and {len(texts) - COMMENTED:,} more")] if len(texts) > COMMENTED else lines


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 or noun == 'more' else 's'}"
