"""Whether a mutated world is the original: by the calls that were made, or by both graphs side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from troth.models.errors import ComponentFailed
from troth.models.mutants.derived import Derived, Known
from troth.models.system import TRUNCATED, Branch, State, System


def differs(base: System, of: Mapping[int, Known], made: Derived) -> bool:
    """Whether any call that the original made answers differently; rows and guards aside, which are not part of the graph."""
    system = made.world.system()
    for index, again in made.affected.items():
        table, calls = system.components[index], of[index].calls
        if table.states[0] != base.components[index].states[0]:
            return True
        for local, item in calls if again is None else again:
            try:
                answer = system.call(index, local, item)
            except ComponentFailed:
                return True  # whether a mutant's own search gets here is for the search to say
            if [_outcome(b) for b in answer] != [_outcome(b) for b in calls[local, item]]:
                return True
    return False


def _outcome(branch: Branch) -> tuple[object, ...]:
    return branch.target, branch.emits, branch.variant, branch.truncated


def same_graph(base: System, other: System) -> bool:
    """Both graphs side by side, from the initial state, until an edge differs. The two systems number everything alike."""
    if any(b.states[0] != o.states[0] for b, o in zip(base.components, other.components, strict=True)):
        return False
    seen = {base.initial}
    level = [base.initial]
    while level:
        after: list[State] = []
        for state in level:
            edges = _labelled(base, state)
            if edges != _labelled(other, state):
                return False
            for target, _ in edges:
                if target not in seen:
                    seen.add(target)
                    after.append(target)
        level = after
    return True


def _labelled(system: System, state: State) -> Counter[tuple[State, object]]:
    edges = system.successors(state, labelled=True)
    return Counter((target, None if symbol == TRUNCATED else system.label_of(symbol)) for target, symbol in edges)
