"""Named patches: mutants that bring a known defect back, each with the defect's name.

A patch is registered once, at import, under a name of its own; ``troth check --mutant NAME`` then runs a world with the defect in it,
and ``--mutants`` wants every one of them killed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attrs import evolve, field, frozen

from troth.models.errors import WorldError
from troth.models.mutants.machines import Mutant
from troth.spec import Family, Machine, Party, Row
from troth.spec.errors import BadRow


@frozen(eq=False)
class Patch:
    """A named patch. ``change`` is applied to each of ``machines`` of ``party``; it may return a machine that is not total.

    ``property`` is the promise that the defect is about, and ``world`` a standard one in which breaking it makes the best story: the
    findings tell that one. A search for the patch begins at neither.
    """

    name: str
    brings_back: str
    party: str
    machines: tuple[str, ...]
    change: Callable[[Machine], Machine] = field(repr=False)
    property: str = ""
    world: str = ""

    def mutant(self) -> Mutant:
        """The patch as a mutant."""
        return Mutant(self.name, f"brings back: {self.brings_back}", self.party, self.machines, self.change)


_registry: dict[str, Patch] = {}


def register(patch: Patch) -> Patch:
    """Make ``patch`` known by its name. Raises ``WorldError`` if another one has it."""
    known = _registry.setdefault(patch.name, patch)
    if known is not patch:
        raise WorldError(f"there are two patches {patch.name!r}, of {known.party} and of {patch.party}; give one another name")
    return patch


def named(name: str) -> Patch | None:
    """The patch of that name, if there is one."""
    return _registry.get(name)


def registered(party: Party) -> Iterator[Patch]:
    """The patches of a party, in the order they were registered. Raises ``WorldError`` for one whose machine the party has not."""
    for patch in _registry.values():
        if patch.party != party.name:
            continue
        for machine in patch.machines:
            if machine not in party.by_name:
                have = ", ".join(party.by_name)
                raise WorldError(f"patch {patch.name}: party {party.name} has no machine {machine!r}; it has {have}")
        yield patch


def without(machine: Machine, *ids: str) -> Machine:
    """``machine`` without these rows, for a patch."""
    for id_ in ids:
        machine.row(id_)
    return evolve(machine, rows=[row for row in machine.rows if row.id not in ids], validate=False)


def altered(machine: Machine, id_: str, change: Callable[[Row], Row]) -> Machine:
    """``machine`` with ``change`` applied to one row, for a patch."""
    machine.row(id_)
    return evolve(machine, rows=[change(row) if row.id == id_ else row for row in machine.rows], validate=False)


def added(machine: Machine, *rows: Row) -> Machine:
    """``machine`` with these rows put first, so that they win over the rows they contradict; for a patch."""
    known = {row.id for row in machine.rows}
    for row in rows:
        if row.id in known:
            raise BadRow(f"a patch of {machine.name} adds a row {row.id!r}, which is there already; use altered")
    return evolve(machine, rows=(*rows, *machine.rows), validate=False)


UNBOUNDED = 1000
"""As good as no limit, in a world that has few of everything."""


def unbounded(machine: Machine) -> Machine:
    """A family without its limit, for a patch: the engine would stop one that outgrows it, so that no property could see it."""
    if machine.family is None:
        raise BadRow(f"{machine.name} is no family, so it has no limit")
    return evolve(machine, family=Family(machine.family.key, UNBOUNDED), validate=False)
