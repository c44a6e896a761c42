"""How a session refines ``spec/tla/Settlement.tla``: what each variable of the abstraction is, read off the states of the real cores.

A party that has crashed is in no state. Of a dead trainer nothing is known; what a dead host had decided is read from what was seen
of it, because what it has said may still be on its way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from troth.models.expressions import Expr
from troth.models.tla import Refinement
from troth.models.worlds.protocol.inside import Snapshot, snapshot
from troth.models.worlds.protocol.reading import Reading
from troth.models.worlds.protocol.session import Session
from troth.models.worlds.protocol.watched import Kept
from troth.spec.messages import Verdict
from troth.statemachines.receiver import DownloadState
from troth.statemachines.shared.source import LIVE

MODULE = "Settlement"
HOST = ("out", "in", "draining", "aborting", "over", "dead")
HOST_OF = {"READY": "in", "DRAINING": "draining", "ABORTING": "aborting", "CLOSING": "over", "CLOSED": "over"}
TRAINER = ("out", "in", "draining", "aborted", "closed", "dead")
TRAINER_OF = {"READY": "in", "DRAINING": "draining", "ABORTED": "aborted", "CLOSED": "closed"}
VERDICT = tuple(verdict.value for verdict in (Verdict.NONE, Verdict.STOPPED, Verdict.ABORTED, Verdict.LOST))
TASK = ("absent", "coming", "queued", "held", "publishing", "complete", "gone")
TASK_OF = {
    "RESERVED": "coming", "QUEUED": "queued", "HANDED": "queued", "DELIVERED": "held", "PUBLISHING": "publishing",
    "COMPLETE": "complete", "CANCELLED": "gone",
}  # fmt: skip
WORD = ("none", "open", "accepted", "settling", "settled", "rejected", "cancelled")
WORD_OF = {"ABSENT": "none", "SENDING": "open", "ASKING": "open"}
DECISION = ("none", "awaited", "accepted", "safe", "settled", "lost", "retired", "rejected")
DECISION_OF = {"ABSENT": "none", "AWAITING": "awaited"}

WATCHED = ("P08", "P09")
"""What must be watched of a host that may crash: which attempts it called canonical, and what it decided."""


@frozen(kw_only=True)
class Refined:
    """What an export needs: operators of the exported module, and the mapping that is written with them."""

    definitions: Mapping[str, Expr]
    refinement: Refinement


def refined(made: Session) -> Refined:
    """The mapping of one session, in its first epoch. Raises ``ValueError`` if it has more: the abstraction knows one."""
    if made.deal.epochs != 1 or made.deal.trainer_restarts or made.deal.host_restarts:
        raise ValueError("Settlement is about one session; nobody may start again in it")
    tasks = range(1, made.deal.tasks + 1)
    definitions: dict[str, Expr] = {}

    def word(name: str, words: tuple[str, ...], of: Expr) -> str:
        definitions[name] = of
        return "<<" + ", ".join(f'"{one}"' for one in words) + f">>[{name} + 1]"

    def number(name: str, of: Expr) -> str:
        definitions[name] = of
        return name

    def each(text: Callable[[int], str]) -> str:
        return f"<<{', '.join(text(task) for task in tasks)}>>"

    def those(name: str, of: Mapping[int, Expr]) -> str:
        for receiver, expr in of.items():
            definitions[f"{name}_{receiver}"] = expr
        return " \\cup ".join(f"(IF {name}_{receiver} THEN {{{receiver}}} ELSE {{}})" for receiver in of) or "{}"

    fetch = range(made.deal.receivers)
    trainer, host, downloads = made.trainer, made.host, made.receivers.of
    holding = (DownloadState.HELD, DownloadState.DONE)
    mapping = {
        "Tasks": f"1 .. {made.deal.tasks}",
        "Receivers": f"{{{', '.join(map(str, fetch))}}}",
        "Attempts": str(made.deal.limits.result_attempts),
        "host": word("Host_at", HOST, _read(host, _host, dead=HOST.index("dead"))),
        "trainer": word("Trainer_at", TRAINER, _read(trainer, _trainer, dead=TRAINER.index("dead"))),
        "verdict": word("Trainer_verdict", VERDICT, _read(trainer, _verdict, dead=0)),
        "task": each(lambda t: word(f"Task_{t}", TASK, _read(trainer, lambda s: _task(s, t), dead=0))),
        "word": each(lambda t: word(f"Word_{t}", WORD, _read(trainer, lambda s: _word(s, t), dead=0))),
        "source": each(lambda t: those(f"Source_{t}", {r: trainer.at("source", *LIVE, key=(t, r)) for r in fetch})),
        "decision": each(lambda t: word(f"Decision_{t}", DECISION, _decision(host, t))),
        "canonical": each(lambda t: number(f"Canonical_{t}", _canonical(host, t))),
        "fenced": each(lambda t: number(f"Fenced_{t}", _read(host, lambda s: _fenced(s, t), dead=0))),
        "holders": each(lambda t: those(f"Holder_{t}", {r: downloads[t, r].at("download", *holding) for r in fetch})),
    }
    return Refined(definitions=definitions, refinement=Refinement(MODULE, mapping, spec="Safety"))


def _read(party: Reading, fn: Callable[[Snapshot], int], *, dead: int) -> Expr:
    def of(raw: Any) -> int:
        found = snapshot(party.party, raw)
        return dead if found is None else fn(found)

    return party.handle.where(of, f"{party.handle.name} as the abstraction has it")


def _host(host: Snapshot) -> int:
    return HOST.index(HOST_OF.get(host.name("session"), "out"))


def _trainer(trainer: Snapshot) -> int:
    return TRAINER.index(TRAINER_OF.get(trainer.name("session"), "out"))


def _verdict(trainer: Snapshot) -> int:
    verdict = trainer.data("session", "verdict")
    return VERDICT.index(str(getattr(verdict, "value", verdict)).lower())


def _task(trainer: Snapshot, task: int) -> int:
    at = trainer.name("ledger", task)
    if at == "ABSENT":
        highest, floor, again = (trainer.data("intake", name) for name in ("highest", "floor", "retry"))
        return TASK.index("gone" if task < floor or (task <= highest and again != task) else "absent")
    return TASK.index(TASK_OF[at])


def _word(trainer: Snapshot, task: int) -> int:
    at = trainer.name("publication", task)
    return WORD.index(WORD_OF.get(at, at.lower()))


def _fenced(host: Snapshot, task: int) -> int:
    return int(host.data("acceptance", "fenced", task)) if host.name("acceptance", task) == "AWAITING" else 0


def _decision(host: Reading, task: int) -> Expr:
    def of(raw: Any) -> int:
        found = snapshot(host.party, raw)
        if found is not None:
            at = found.name("acceptance", task)
            return DECISION.index(DECISION_OF.get(at, at.lower()))
        return DECISION.index("lost" if _seen(raw, task) else "rejected")

    return host.handle.where(of, f"the host about the result of task {task}")


def _canonical(host: Reading, task: int) -> Expr:
    def of(raw: Any) -> int:
        found = snapshot(host.party, raw)
        return _seen(raw, task) if found is None else int(found.data("acceptance", "canonical", task) or 0)

    return host.handle.where(of, f"the canonical attempt of task {task}")


def _seen(raw: Any, task: int) -> int:
    """The attempt that a host which has crashed was seen to accept: the memory of P08, wherever it stands."""
    assert isinstance(raw, Kept)
    for part in raw.memory:
        if isinstance(part, tuple):
            for entry in part:
                if isinstance(entry, tuple) and len(entry) == 3 and type(entry[2]) is int and entry[:2] == ((0, 1), task):
                    return entry[2]
    return 0
