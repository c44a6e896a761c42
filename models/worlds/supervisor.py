"""One backend with its hosts: start, execute, back-pressure, abort and finalize.

A real Supervisor; its host sessions, callers and job are small step functions. Persistent: one trainer for all tasks. Otherwise a
trainer a task, each kept alive for its result, and no more than two at once.
"""

from __future__ import annotations

from collections.abc import Mapping

from troth.models import jointly, timers
from troth.models.bounds import Bounds, blueprint
from troth.models.claims import FairSelector
from troth.models.expressions import Expr
from troth.models.handles import PartyHandle
from troth.models.world import World
from troth.models.worlds.protocol import watching_supervisor as watching
from troth.models.worlds.protocol.backend import HAPPENS, Callers, Hosts, Session, callers_step, hosts_step
from troth.models.worlds.protocol.inside import seen
from troth.models.worlds.protocol.watched import Watched, broken
from troth.spec.core import Resolve
from troth.spec.limits import Limits
from troth.spec.messages import Outcome
from troth.spec.properties import PROPERTIES
from troth.statemachines import SUPERVISOR, SupervisorConfig

RETURNS: Mapping[str, tuple[Outcome, ...]] = {
    "start": (Outcome.OK, Outcome.CLOSED),
    "execute": (Outcome.RESULT, Outcome.TIMEOUT, Outcome.LOST, Outcome.CLOSED, Outcome.CANCELLED),
    "finalize": (Outcome.OK, Outcome.FORCED, Outcome.CANCELLED),
    "abort": (Outcome.OK,),
}
"""How every call returns in some run."""

RETURNS_TOO = {"start": (Outcome.FAILED, Outcome.LOST, Outcome.CANCELLED)}
"""And with one trainer for all tasks."""

TICKS = {"finalize_budget_s": 3, "force_budget_s": 2}


class Backend:
    """The parts of these worlds."""

    def __init__(self, name: str, doc: str, *, persistent: bool, launches: int, without: frozenset[str] = frozenset()) -> None:
        self.world = world = World(name, doc)
        self.persistent, self.launches = persistent, launches
        config = SupervisorConfig(persistent=persistent, limits=Limits(retained_limit=launches))
        self.supervisor = world.party("supervisor", Watched(SUPERVISOR, [config], watching.WATCHES, without), stale_timers=False)
        sessions = Hosts((Session(),) * launches, persistent)
        self.hosts = world.party("hosts", hosts_step, initial=sessions, observe=lambda hosts: {"fault": hosts.fault})
        self.callers = world.party("callers", callers_step, initial=Callers(), observe=_seen_of_callers)
        self.job = world.party("job", lambda told, _event: (min(told + 1, 2), ()), initial=0, observe={"failed": int})
        world.local(self.supervisor, self.hosts, "hosts")
        world.local(self.supervisor, self.job, "job")
        world.takes(self.callers, Resolve, by=self.supervisor)
        for call in ("start", "execute", "finalize", "abort"):
            world.may(self.callers, call)
        for call in ("start", "execute", "finalize"):
            world.may(self.callers, "give up", payload=call, name=f"give up {call}")
        self.obeys: list[FairSelector] = []
        """What comes of an order, in the end."""
        for launch in range(1, launches + 1):
            for what in HAPPENS:
                action = world.may(self.hosts, what, number=launch, name=f"{launch} {what}")
                if what in ("has no result", "ends"):
                    self.obeys.append(action)


def _seen_of_callers(callers: Callers) -> dict[str, bool]:
    waits = {f"in_{call}": call in callers.waiting for call in ("start", "execute", "finalize")}
    return waits | {"fault": callers.fault}


def _claims(made: Backend) -> None:
    world, backend, callers = made.world, made.supervisor, made.callers
    for watch in watching.WATCHES:
        if watch.id not in ("ended", "P67"):
            world.never(watch.id, PROPERTIES[watch.id].statement, backend.see(broken(watch.id)))
    world.never("P15", PROPERTIES["P15"].statement, callers.fault)
    world.always("P19", PROPERTIES["P19"].statement, backend.launches <= made.launches)
    world.always("P44", PROPERTIES["P44"].statement, ~backend.done | (backend.shut & ~callers.in_execute & ~callers.in_finalize))
    world.always("P67", PROPERTIES["P67"].statement, ~backend.see(broken("P67")) & (made.job.failed <= 1))
    world.always("P82", PROPERTIES["P82"].statement, seen(backend, SUPERVISOR, watching.waits))
    world.always("P85", PROPERTIES["P85"].statement, _agree(made))


def _agree(made: Backend) -> Expr:
    backend, hosts, callers = made.supervisor, made.hosts, made.callers
    told = ~hosts.fault & jointly(watching.sessions_agree, backend, hosts)
    asked = jointly(watching.callers_agree, backend, callers) & jointly(watching.gate_agrees, backend, hosts, callers)
    ends = seen(backend, SUPERVISOR, watching.ends) & (backend.ended == backend.shut)
    return told & asked & ends


def _in_the_end(made: Backend) -> None:
    world, callers = made.world, made.callers
    begun = callers.in_start | callers.in_execute
    world.leads_to("P52", PROPERTIES["P52"].statement, callers.in_finalize, ~callers.in_finalize, fair=[timers])
    world.leads_to("P83", PROPERTIES["P83"].statement, begun, ~begun, fair=made.obeys)
    for call, outcomes in RETURNS.items():
        for outcome in (*outcomes, *(RETURNS_TOO.get(call, ()) if made.persistent else ())):
            world.sometimes(f"{call} {outcome.value}", f"{call}() returns {outcome.value}", told(callers, call, outcome))


def told(callers: PartyHandle, call: str, outcome: Outcome) -> Expr:
    """The last call of that kind returned so."""

    def so(state: Callers) -> bool:
        return state.told(call) is outcome

    return callers.where(so, f"{call}() returned {outcome.value}")


@blueprint("supervisor")
def supervisor(_bounds: Bounds) -> World:
    """A backend with one trainer for all tasks: start, execute, cancel, abort, finalize."""
    made = Backend("supervisor", supervisor.doc, persistent=True, launches=1)
    _claims(made)
    _in_the_end(made)
    return made.world


@blueprint("supervisor/tasks")
def tasks(_bounds: Bounds) -> World:
    """A backend with a trainer a task, two at once: the third task waits, and a launch that fails costs no other."""
    made = Backend("supervisor/tasks", tasks.doc, persistent=False, launches=2)
    _claims(made)
    _in_the_end(made)
    return made.world


@blueprint("supervisor/clock")
def clock(_bounds: Bounds) -> World:
    """How long finalize() may take, by the clock: two budgets, and one after an abort."""
    made = Backend("supervisor/clock", clock.doc, persistent=True, launches=1)
    world, backend = made.world, made.supervisor
    world.clock(TICKS)
    _claims(made)
    draining = world.stopwatch("draining", backend.where(watching.draining, "supervisor drains"), most=5)
    forcing = world.stopwatch("forcing", backend.where(watching.forcing, "supervisor forces"), most=4)
    bounded = (draining.ticks <= TICKS["finalize_budget_s"]) & (forcing.ticks <= TICKS["force_budget_s"])
    world.always("P52 in time", PROPERTIES["P52"].statement, bounded)
    world.sometimes("spent", "both budgets are spent", forcing.ticks == TICKS["force_budget_s"])
    return world
