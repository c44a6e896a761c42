"""Small alphabets: every event that a core can be given, over small numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product

from attrs import fields_dict, frozen

from troth.spec import core
from troth.spec import messages as m
from troth.spec.engine import PartyCore
from troth.spec.limits import Limits
from troth.spec.party import Party
from troth.spec.samples import sample
from troth.statemachines import (
    HOST,
    RECEIVER,
    SUPERVISOR,
    TRAINER,
    Host,
    HostConfig,
    Receiver,
    ReceiverConfig,
    Supervisor,
    SupervisorConfig,
    Trainer,
    TrainerConfig,
)


@frozen(kw_only=True)
class Domains:
    """The values that each field of a message takes. A field that is not named takes its sample value only."""

    values: dict[str, tuple[object, ...]]

    def messages(self, cls: type[core.Message]) -> Iterator[core.Message]:
        """Every message of the class over the domains."""
        base = sample(cls)
        names = list(fields_dict(cls))
        choices = [self.values.get(f"{cls.__name__}.{name}", self.values.get(name, (getattr(base, name),))) for name in names]
        for chosen in product(*choices):
            yield cls(**dict(zip(names, chosen, strict=True)))


Keys = dict[str, tuple[core.Key, ...]]


def alphabet(party: Party, domains: Domains, *, keys: Keys, leave_out: Iterable[object] = ()) -> list[core.Event]:
    """Every event that the party has a route for. ``keys`` gives the keys of keyed timers and transfers."""
    left_out = set(leave_out)
    found: list[core.Event] = []
    for route in party.routes:
        if not left_out & set(route.selector):
            found += _events(route.sample, domains, keys)
    return found


def _events(event: core.Event, domains: Domains, keys: Keys) -> list[core.Event]:
    match event:
        case core.Received(link=link, message=message):
            return [core.Received(link, each) for each in domains.messages(type(message))]
        case core.TimerFired(timer=timer):
            return [core.TimerFired(timer, key, generation) for key in keys.get(f"timer {timer}", (None,)) for generation in (0, 1)]
        case core.Called(call=call):
            return [core.Called(call, 1, payload) for payload in payloads(call, domains)]
        case core.CallCancelled(call=call):
            return [core.CallCancelled(call, 1)]
        case core.ProcessExited():
            return [core.ProcessExited(0, clean) for clean in (False, True)]
        case _:
            return _transfer_events(event, keys)


def _transfer_events(event: core.Event, keys: Keys) -> list[core.Event]:
    match event:
        case core.TransferProgressed(kind=kind):
            return [core.TransferProgressed(kind, key) for key in keys[f"transfer {kind}"]]
        case core.TransferEnded(kind=kind):
            return [core.TransferEnded(kind, key, outcome) for key in keys[f"transfer {kind}"] for outcome in core.TransferOutcome]
        case core.EffectFailed(effect=core.Offer(kind=kind)):
            return [core.EffectFailed(core.Offer(kind, key)) for key in keys[f"transfer {kind}"]]
        case _:
            return [event]


def payloads(call: str, domains: Domains) -> list[object]:
    """The arguments of a call over the domains."""
    flags = (False, True)
    match call:
        case "init":
            return [m.InitArguments(control_rank=True)]
        case "send":
            contents = domains.values.get("content", (0,))
            inlines = domains.values.get("inline", flags)
            return [m.SendArguments(content=int(str(c)), inline=bool(i)) for c in contents for i in inlines]
        case "execute":
            return [m.ExecuteArguments(receivers=1, inline=bool(i)) for i in domains.values.get("inline", flags)]
        case _:
            return [None]


@frozen
class Alphabet:
    """What a walk of one core alone needs."""

    make: Callable[[], PartyCore]
    events: list[core.Event]
    starts: list[list[core.Event]]
    """Ways to begin: nothing, and the events of an ordinary session up to some point."""


FLAGS = (False, True)
SMALL = Limits(ledger_limit=2, acceptance_limit=2, result_attempts=2, task_attempts=2, pull_attempts=2, retained_limit=2)
ONE = Limits(ledger_limit=1, acceptance_limit=1, result_attempts=2, task_attempts=2, pull_attempts=2, retained_limit=2)


def trainer_events(
    *, epochs: tuple[int, ...], tasks: tuple[int, ...], contents: tuple[int, ...], leave_out: Iterable[object] = ()
) -> list[core.Event]:
    """Everything a trainer can be given."""
    domains = Domains(
        values={
            "epoch": epochs, "instance": (0, 1) if len(epochs) > 1 else (0,), "resume": FLAGS,
            "seq": tasks, "floor": tasks, "attempt": (1, 2), "content": contents, "inline": FLAGS, "retry": FLAGS,
            "reason": (m.RejectReason.STALE,),
        }
    )  # fmt: skip
    sources = tuple((seq, 0) for seq in tasks)
    keys: Keys = {"timer result": tasks, "timer source": sources, "transfer result": sources, "transfer task": sources}
    return alphabet(TRAINER, domains, keys=keys, leave_out=leave_out)


def host_events(*, tasks: tuple[int, ...], contents: tuple[int, ...], leave_out: Iterable[object] = ()) -> list[core.Event]:
    """Everything a host can be given."""
    domains = Domains(
        values={
            "claim": tuple(m.Claim), "Hello.epoch": (0, 1, 2), "SessionRejected.epoch": (1, 2), "opened": (1, 2),
            "receiver": (0,), "seq": tasks, "attempt": (1, 2),
            "content": contents, "inline": FLAGS, "retry": FLAGS, "proven": FLAGS, "delivered": FLAGS, "last": FLAGS,
            "reason": (m.FailReason.BUSY, m.FailReason.STALE),
        }
    )  # fmt: skip
    sources = tuple((seq, 0) for seq in tasks)
    return alphabet(
        HOST, domains, keys={"timer source": sources, "transfer task": sources, "transfer result": sources}, leave_out=leave_out
    )


def receiver_events() -> list[core.Event]:
    """Everything a receiver can be given."""
    return alphabet(RECEIVER, Domains(values={"inline": FLAGS, "lost": FLAGS}), keys={"transfer payload": ((1, 0),)})


def supervisor_events() -> list[core.Event]:
    """Everything a supervisor can be given."""
    outcomes = (m.TaskOutcome.RESULT, m.TaskOutcome.TRAINER_LOST)
    return alphabet(SUPERVISOR, Domains(values={"launch": (1, 2), "outcome": outcomes, "inline": (True,)}), keys={})


def alphabets() -> dict[str, Alphabet]:
    """The alphabets of the walks, two tasks and two epochs wide."""
    trainer, host = ordinary_session()
    orders = [core.Received("supervisor", m.StartSession(launch=1))]
    return {
        "trainer": Alphabet(
            lambda: Trainer(TrainerConfig(limits=SMALL)),
            trainer_events(epochs=(1, 2), tasks=(1, 2), contents=(0, 1)),
            [trainer[:length] for length in range(len(trainer) + 1)],
        ),
        "host": Alphabet(
            lambda: Host(HostConfig(limits=SMALL)),
            host_events(tasks=(1, 2), contents=(0, 1)),
            [[], [*orders], *(host[:length] for length in range(1, len(host) + 1))],
        ),
        "receiver": Alphabet(lambda: Receiver(ReceiverConfig(limits=SMALL)), receiver_events(), [[]]),
        "supervisor": Alphabet(
            lambda: Supervisor(SupervisorConfig(limits=SMALL, persistent=False)), supervisor_events(), [[], [core.Called("start")]]
        ),
    }


def ordinary_session() -> tuple[list[core.Event], list[core.Event]]:
    """The events that a trainer and its host see while one task is done and its result is served."""
    script: list[tuple[str, core.Event]] = [
        ("trainer", core.Called("init", 1, m.InitArguments(control_rank=True))),
        ("trainer", core.LinkUp("control")),
        ("trainer", core.Received("control", m.HelloAccepted(epoch=1))),
        ("trainer", core.Received("control", m.SessionConfirmed(epoch=1))),
        ("trainer", core.Called("receive", 2)),
        ("trainer", core.Received("control", m.TaskReady(epoch=1, seq=1, attempt=1, floor=1, content=0, receivers=1, inline=False))),
        ("trainer", core.Received("receivers", m.PayloadArrived(epoch=1, seq=1, receiver=0))),
        ("trainer", core.Called("take", 2)),
        ("trainer", core.Called("send", 3, m.SendArguments(content=0, inline=False))),
        ("trainer", core.Received("control", m.ResultAccepted(epoch=1, seq=1, attempt=1))),
        ("trainer", core.Received("data", m.PayloadHeld(epoch=1, seq=1, receiver=0))),
        ("host", core.Received("supervisor", m.StartSession(launch=1))),
        ("host", core.ProcessStarted()),
        ("host", core.Received("control", m.Hello(epoch=0, claim=m.Claim.MATCHING))),
        ("host", core.Received("control", m.SessionReady(epoch=1, proven=True))),
        ("host", core.Received("supervisor", m.ExecuteTask(launch=1, receivers=1, inline=False))),
        ("host", core.Received("data", m.PayloadHeld(epoch=1, seq=1, receiver=0))),
        ("host", core.Received("control", m.TaskAccepted(epoch=1, seq=1))),
        ("host", core.Received("control", m.ResultReady(epoch=1, seq=1, attempt=1, content=0, inline=False))),
        ("host", core.Received("receivers", m.PayloadArrived(epoch=1, seq=1, receiver=0))),
    ]  # fmt: skip
    return [event for who, event in script if who == "trainer"], [event for who, event in script if who == "host"]
