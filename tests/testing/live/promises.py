"""What the runtime promises its parties, and a watch for it.

From these promises it is derived which rows cannot fire (``possible``). They say how the runtime is made, so each session is watched for
them: a runtime that is made otherwise breaks one, and what was derived is no longer so.
"""

from __future__ import annotations

from attrs import define, field, frozen

from tests.testing.live.possible import Possible, Promise
from troth.spec.core import Event, Received, Step
from troth.spec.messages import FetchPayload
from troth.spec.party import selector
from troth.statemachines import PARTIES
from troth.testing.coverage import guard_name
from troth.testing.live.parties import Shadow

UNKEPT = frozenset({"EffectFailed Offer"})
FETCH = "Received FetchPayload party"

PROMISES: dict[str, tuple[Promise, ...]] = {
    "host": (
        Promise(
            answers={"session.launched": True, "acceptance.sole": True, "delivery.own_receiver": True},
            never=UNKEPT,
            first="Received StartSession supervisor",
        ),
    ),
    "trainer": (
        Promise(
            answers={"session.launched": True, "lease.peer_alive": True, "publication.superseded": False},
            never=UNKEPT | {"Received SessionOpen control"},
        ),
    ),
    "supervisor": (Promise(first="Called start"),),
    "receiver": (
        Promise(answers={"download.inline": False, "download.mine": True}, first=FETCH),
        Promise(
            answers={"download.inline": True, "download.mine": True},
            first=FETCH,
            never=frozenset({"Received DropPayload party", "TimerFired stall", "EffectFailed Pull"}),
        ),
    ),
}
"""By party, and case: a payload rides in its message, or does not. A session is of one of them."""


@frozen
class Derived:
    """What the tables come to at all, all parties and cases together, by the names that coverage has."""

    rows: frozenset[str]
    guards: frozenset[str]
    others: frozenset[str]


def derived() -> Derived:
    """From the promises."""
    found = [Possible(PARTIES[party], promise) for party, cases in PROMISES.items() for promise in cases]
    return Derived(*(frozenset().union(*(getattr(one, kind) for one in found)) for kind in ("rows", "guards", "others")))


class Broken(AssertionError):
    """The runtime does not keep to what is derived from."""


@define(eq=False)
class Watch:
    """Of one session."""

    cases: dict[int, tuple[Shadow, Promise]] = field(factory=dict)
    """By party, from its first event on. It is kept here, so that no other takes its place."""

    def heard(self, shadow: Shadow, event: Event) -> None:
        """A party is about to take that. Raises ``Broken``."""
        route = str(PARTIES[shadow.kind].by_selector[selector(event)])
        new = id(shadow) not in self.cases
        if new:
            self.cases[id(shadow)] = shadow, _case(shadow, event)
        promise = self.cases[id(shadow)][1]
        if promise.first and new is not (route == promise.first):
            raise Broken(f"{shadow.name} takes {event} {'first' if new else 'again'}")
        if route in promise.never:
            raise Broken(f"{shadow.name} takes {event}, which never comes")

    def stepped(self, shadow: Shadow, step: Step) -> None:
        """It took that step. Raises ``Broken``."""
        answers = self.cases[id(shadow)][1].answers
        for atom, answer in step.guards:
            if answers.get(atom, answer) is not answer:
                raise Broken(f"{shadow.name}: {guard_name(shadow.kind, atom, value=answer)} is never said, and was")


def _case(shadow: Shadow, event: Event) -> Promise:
    cases = PROMISES[shadow.kind]
    inline = isinstance(event, Received) and isinstance(event.message, FetchPayload) and event.message.inline
    return cases[1 if inline and len(cases) > 1 else 0]
