"""Links and budgets: the components that a world brings of its own.

A link's local state is ``(status, messages)``. What the network may do to it (deliver, lose, duplicate, cut) are actions of the world.

An *ordered* link delivers its oldest message. Losing loses any one of them (``Loses.ANY``), or only the oldest
(``Loses.OLDEST``). The latter has fewer edges, and it leaves something out: a later message that is lost makes room, and shortens the
link, while an earlier one is still on its way. Duplicating appends a copy of the oldest, so a duplicate is also late. An *unordered*
link is a bag: any message may be next.

A link that *merges* takes no message that it carries already: asked again before the first question arrived, there is one question, as if
the network had lost the other. So whoever repeats a few messages for ever never fills the link, and holds back nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from enum import Enum
from typing import NamedTuple

from troth.models.canonical import alike, by_text, spelled
from troth.models.errors import WorldError
from troth.models.parties import Push
from troth.models.system import Component, Outcome
from troth.spec.core import LinkLost, LinkUp, Received


class Status(Enum):
    """Whether a link carries anything."""

    UP = "up"
    DOWN = "down"
    CLOSING = "closing"
    """Closed by its sender: what was sent still arrives, nothing more is taken."""


class LinkLocal(NamedTuple):
    """A link's local state; the oldest message first on an ordered link, in canonical order on an unordered one."""

    status: Status
    messages: tuple[Hashable, ...] = ()


class LinkOp(Enum):
    """What may happen to a link, besides ``Push``."""

    DELIVER = "deliver"
    LOSE = "lose"
    DUPLICATE = "duplicate"
    CUT = "cut"
    DROP = "drop"
    """``CUT``, but nothing blocks when the link is down already: what a crash does."""
    OPEN = "open"
    CLOSE = "close"
    TICK = "tick"


class Full(Enum):
    """What happens to a message for which there is no room."""

    LOSES = "loses"
    BLOCKS = "blocks"
    TRUNCATES = "truncates"


class Loses(Enum):
    """Which message of an ordered link may be lost."""

    ANY = "any"
    OLDEST = "oldest"


class LinkComponent(Component):
    """One direction of a link. ``source`` and ``target`` are component indices, ``arrives_as`` the link's name at the target."""

    kind = "link"

    def __init__(
        self,
        name: str,
        *,
        target: int,
        arrives_as: str,
        ordered: bool,
        capacity: int,
        full: Full,
        delay: int | None = None,
        loses: Loses = Loses.ANY,
        merges: bool = False,
    ) -> None:
        super().__init__(name, LinkLocal(Status.UP))
        self.target = target
        self.arrives_as = arrives_as
        self.ordered = ordered
        self.capacity = capacity
        self.full = full
        self.delay = delay
        self.loses = loses
        self.merges = merges

    def react(self, state: Hashable, operation: Hashable) -> tuple[Outcome, ...]:
        """Take messages, or do what the network does."""
        if not isinstance(state, LinkLocal):
            raise TypeError(f"{state!r} is not a link's state")
        if isinstance(operation, Push):
            return self._push(state, operation)
        if not isinstance(operation, LinkOp):
            raise WorldError(f"link {self.name} does not know the operation {operation!r}")
        match operation:
            case LinkOp.DELIVER | LinkOp.LOSE:
                return self._each(state, deliver=operation is LinkOp.DELIVER)
            case LinkOp.DUPLICATE:
                return self._duplicate(state)
            case LinkOp.TICK:
                return self._tick(state)
            case _:
                return self._switched(state, operation)

    def _switched(self, local: LinkLocal, operation: LinkOp) -> tuple[Outcome, ...]:
        """Cut, dropped, opened or closed."""
        down = local.status is Status.DOWN
        if operation is LinkOp.CLOSE:
            return (Outcome(local._replace(status=Status.CLOSING) if local.status is Status.UP else local),)
        if operation is LinkOp.OPEN:
            return (Outcome(LinkLocal(Status.UP), ((self.target, LinkUp(self.arrives_as)),)),) if down else ()
        if down:
            return (Outcome(local),) if operation is LinkOp.DROP else ()
        return (Outcome(LinkLocal(Status.DOWN), ((self.target, LinkLost(self.arrives_as)),)),)

    def _entry(self, message: Hashable) -> Hashable:
        return message if self.delay is None else (message, self.delay)

    def _message(self, entry: Hashable) -> Hashable:
        if self.delay is None:
            return entry
        if not isinstance(entry, tuple):
            raise TypeError(f"{entry!r} is not a message with its remaining delay")
        message: Hashable = entry[0]
        return message

    def _with(self, local: LinkLocal, messages: tuple[Hashable, ...]) -> LinkLocal:
        return LinkLocal(local.status, messages if self.ordered else by_text(messages))

    def _push(self, local: LinkLocal, push: Push) -> tuple[Outcome, ...]:
        if local.status is not Status.UP:
            return (Outcome(local, note=f"{self.name} is {local.status.value}, lost"),)
        room = self.capacity - len(local.messages)
        taken, note = self.fresh(local, push.messages), ""
        if len(taken) > room:
            if self.full is Full.BLOCKS:
                return ()
            if self.full is Full.TRUNCATES:
                return (Outcome(local, note=f"{self.name} is full", truncated=True),)
            taken, note = taken[:room], f"{self.name} is full, {len(taken) - room} lost"
        return (Outcome(self._with(local, (*local.messages, *(self._entry(m) for m in taken))), note=note),)

    def fresh(self, local: LinkLocal, messages: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
        """What is to be put on the link: where it merges, only what is not on its way already."""
        if not self.merges:
            return messages
        there = [self._message(entry) for entry in local.messages]
        taken: list[Hashable] = []
        for message in messages:
            if not any(_same(message, other) for other in (*there, *taken)):
                taken.append(message)
        return tuple(taken)

    def _each(self, local: LinkLocal, *, deliver: bool) -> tuple[Outcome, ...]:
        """One outcome for each message that may be next (or lost), and for the end of a closing link."""
        if not local.messages:
            if deliver and local.status is Status.CLOSING:
                return (Outcome(LinkLocal(Status.DOWN), ((self.target, LinkLost(self.arrives_as)),), variant="closed"),)
            return ()
        if not self.ordered:
            places = _firsts(local.messages)
        elif deliver or self.loses is Loses.OLDEST:
            places = [0]
        else:  # to lose one of several that are alike and stand together is the same, whichever it is
            places = [i for i, m in enumerate(local.messages) if i == 0 or not _same(m, local.messages[i - 1])]
        found = []
        for place in places:
            message = self._message(local.messages[place])
            after = self._with(local, local.messages[:place] + local.messages[place + 1 :])
            emits = ((self.target, Received(self.arrives_as, message)),) if deliver else ()  # type: ignore[arg-type]
            found.append(Outcome(after, emits, variant=message))
        return tuple(found)

    def _duplicate(self, local: LinkLocal) -> tuple[Outcome, ...]:
        if not local.messages or (len(local.messages) >= self.capacity and self.full is Full.BLOCKS):
            return ()
        distinct = local.messages[:1] if self.ordered else tuple(local.messages[i] for i in _firsts(local.messages))
        if len(local.messages) >= self.capacity:
            # One for each copy that there is no room for, as there is one edge for each that there is.
            full = Outcome(local, note=f"{self.name} is full", truncated=True)
            return (full,) * len(distinct) if self.full is Full.TRUNCATES else ()
        return tuple(Outcome(self._with(local, (*local.messages, m)), variant=self._message(m)) for m in distinct)

    def _tick(self, local: LinkLocal) -> tuple[Outcome, ...]:
        """Time passes only while no message is overdue."""
        if self.delay is None:
            return (Outcome(local),)
        aged = []
        for entry in local.messages:
            if not isinstance(entry, tuple) or entry[1] == 0:
                return ()
            aged.append((entry[0], entry[1] - 1))
        return (Outcome(self._with(local, tuple(aged))),)

    def renamed(self, local: LinkLocal, rename: Callable[[Hashable], Hashable]) -> LinkLocal:
        """The same link with every message renamed: for symmetry."""
        if self.delay is None:
            return self._with(local, tuple(rename(m) for m in local.messages))
        entries = [e for e in local.messages if isinstance(e, tuple)]
        return self._with(local, tuple((rename(e[0]), e[1]) for e in entries))

    def messages(self, state: Hashable) -> tuple[Hashable, ...]:
        """The messages in flight."""
        if not isinstance(state, LinkLocal):
            raise TypeError(f"{state!r} is not a link's state")
        return tuple(self._message(entry) for entry in state.messages)

    def observe(self, state: Hashable) -> Mapping[str, bool | int]:
        """``empty``, ``length`` and ``up``."""
        if not isinstance(state, LinkLocal):
            raise TypeError(f"{state!r} is not a link's state")
        count = len(state.messages)
        return {"empty": count == 0, "length": count, "up": state.status is Status.UP}

    def spelled(self, state: Hashable) -> str:
        """The messages, and the status when it is not ``up``."""
        if not isinstance(state, LinkLocal):
            raise TypeError(f"{state!r} is not a link's state")
        text = "[" + ", ".join(spelled(m) for m in state.messages) + "]"
        return text if state.status is Status.UP else f"{state.status.value} {text}"


def _firsts(messages: tuple[Hashable, ...]) -> list[int]:
    """The places of the messages that are not like one before them."""
    return [i for i, m in enumerate(messages) if not any(_same(m, other) for other in messages[:i])]


def _same(one: Hashable, other: Hashable) -> bool:
    return one == other and alike(one, other)


class BudgetOp(Enum):
    """Operations of a budget."""

    SPEND = "spend"


class BudgetComponent(Component):
    """How often something may still happen."""

    kind = "budget"

    def __init__(self, name: str, times: int) -> None:
        super().__init__(name, times)

    def react(self, state: Hashable, operation: Hashable) -> tuple[Outcome, ...]:  # noqa: ARG002
        """Spend one; blocked when nothing is left."""
        if not isinstance(state, int):
            raise TypeError(f"{state!r} is not a budget's state")
        return (Outcome(state - 1),) if state > 0 else ()

    def observe(self, state: Hashable) -> Mapping[str, bool | int]:
        """``left``."""
        return {"left": state if isinstance(state, int) else 0}

    def spelled(self, state: Hashable) -> str:
        """What is left."""
        return f"{state} left"


class StopwatchOp(Enum):
    """Operations of a stopwatch."""

    RUN = "run"
    STOP = "stop"


class StopwatchComponent(Component):
    """Ticks for which a condition has held without a break, up to ``most``."""

    kind = "stopwatch"

    def __init__(self, name: str, most: int) -> None:
        super().__init__(name, 0)
        self.most = most

    def react(self, state: Hashable, operation: Hashable) -> tuple[Outcome, ...]:
        """Count one tick, or start again."""
        if not isinstance(state, int):
            raise TypeError(f"{state!r} is not a stopwatch's state")
        return (Outcome(min(state + 1, self.most) if operation is StopwatchOp.RUN else 0),)

    def observe(self, state: Hashable) -> Mapping[str, bool | int]:
        """``ticks``."""
        return {"ticks": state if isinstance(state, int) else 0}
