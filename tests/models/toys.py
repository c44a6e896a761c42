"""Small protocols whose counterexamples are worth telling: a lock of step functions, stop-and-wait of declared machines."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from attrs import evolve, frozen

from troth.models import Bound, Bounds, World, blueprint, deliver, timers
from troth.spec import (
    SAME,
    Called,
    Ignore,
    Machine,
    Message,
    Party,
    PartyCore,
    Refuse,
    Row,
    Send,
    To,
    always,
    atom,
    called,
    cancel_timer,
    keep,
    received,
    send,
    set_timer,
    timer,
)

tell: Any = Send
"""A core's messages are Message objects; a world of step functions takes any hashable."""

# -- a lock, of step functions -----------------------------------------------------------------------------------------


class Msg(Enum):
    """What a client and the server say."""

    ACQUIRE = "acquire"
    GRANT = "grant"
    RELEASE = "release"


def server(holder: str, event: Any) -> tuple[str, list[Any]]:
    """Grants to whoever asks first."""
    if event.message is Msg.ACQUIRE and holder in ("nobody", event.link):
        return event.link, [tell(event.link, Msg.GRANT)]
    return ("nobody" if event.message is Msg.RELEASE else holder), []


def client(state: str, event: Any) -> tuple[str, list[Any]] | None:
    """Asks, holds, releases."""
    if isinstance(event, Called):
        return {
            ("acquire", "idle"): ("waiting", [tell("server", Msg.ACQUIRE)]),
            ("release", "holding"): ("idle", [tell("server", Msg.RELEASE)]),
        }.get((event.call, state))
    return ("holding" if state == "waiting" else state), []


@blueprint("lock", LOSS=Bound(1, "losses"), CRASHES=Bound(1, "crashes of the server"))
def lock(bounds: Bounds) -> World:
    """A lock server that forgets who holds the lock."""
    world = World("lock", "a lock server that forgets who holds the lock")
    keeper = world.party("server", server, initial="nobody")
    clients = [world.party(n, client, initial="idle", observe={"holds": lambda s: s == "holding"}) for n in ("ann", "bob")]
    for one in clients:
        world.link(one, keeper, "server", arrives_as=one.name, lossy=bounds.LOSS)
        world.link(keeper, one, one.name, duplicating=1)
        world.may(one, "acquire")
        world.may(one, "release")
    world.crash(keeper, times=bounds.CRASHES)
    world.always("MUTEX", "never do two hold the lock", ~(clients[0].holds & clients[1].holds))
    world.sometimes("HELD", "somebody can hold it", clients[0].holds)
    world.leads_to("SERVED", "whoever waits gets it", clients[0].where(lambda s: s == "waiting", "waits"), clients[0].holds, fair=[deliver])
    return world


# -- stop and wait, of declared machines -------------------------------------------------------------------------------


@frozen(kw_only=True)
class Frame(Message):
    """A piece of data, with one bit to tell it from the last."""

    bit: int = 0


@frozen(kw_only=True)
class Ack(Message):
    """The bit that was heard."""

    bit: int = 0


class Sending(Enum):
    """States of the sender."""

    IDLE = "idle"
    WAITING = "waiting"


class Taking(Enum):
    """The state of the receiver."""

    READY = "ready"


@frozen
class Bit:
    """The sender's bit."""

    bit: int = 0


@frozen
class Got:
    """The bit that the receiver expects, and how many frames it took."""

    bit: int = 0
    count: int = 0


def flip(data: Bit, event: Any) -> Bit:
    """The next frame has the other bit."""
    return evolve(data, bit=1 - data.bit)


def take(data: Got, event: Any) -> Got:
    """One frame more."""
    return Got(1 - data.bit, min(data.count + 1, 3))


mine = atom("mine", of=lambda view, event: event.bit == view.own.data.bit)
fresh = atom("fresh", of=lambda view, event: event.bit == view.own.data.bit)
FRAME = send("wire", Frame, bit=lambda firing: firing.data.bit)
ACK = send("wire", Ack, bit=lambda firing: firing.event.bit)

SENDER = Machine(
    "sender",
    Sending,
    initial=Sending.IDLE,
    data=Bit,
    timers=["retry"],
    rows=[
        Row("S1", Sending.IDLE, "send", always, Sending.WAITING, keep, [FRAME, set_timer("retry", "RETRY")], "say it"),
        Row("S2", Sending.WAITING, "ack", mine, Sending.IDLE, flip, [cancel_timer("retry")], "it was heard"),
        Row("S3", Sending.WAITING, "due", always, SAME, keep, [FRAME, set_timer("retry", "RETRY")], "say it again"),
    ],
    ignore=[
        Ignore("ack", Sending.WAITING, "an old one", ~mine),
        Ignore("ack", Sending.IDLE, "a late copy"),
        Ignore("due", Sending.IDLE, "a late firing"),
    ],
    refuse=[Refuse("send", Sending.WAITING, "one at a time")],
)
RECEIVER = Machine(
    "receiver",
    Taking,
    initial=Taking.READY,
    data=Got,
    rows=[
        Row("R1", Taking.READY, "frame", fresh, Taking.READY, take, [ACK], "a new one"),
        Row("R2", Taking.READY, "frame", ~fresh, Taking.READY, keep, [ACK], "its ack was lost"),
    ],
)
ALICE = Party(
    "alice",
    machines=[SENDER],
    routes=[called("send", To("sender", "send")), received(Ack, To("sender", "ack"), link="wire"), timer("retry", To("sender", "due"))],
    config=dict,
    observe={"waiting": lambda view: view.sender.state is Sending.WAITING},
)
BERT = Party(
    "bert",
    machines=[RECEIVER],
    routes=[received(Frame, To("receiver", "frame"), link="wire")],
    config=dict,
    observe={"got": lambda view: view.receiver.data.count},
)


def wired(bounds: Mapping[str, int], alice: Party = ALICE, bert: Party = BERT) -> World:
    """Two such parties on two links."""
    world = World("stop-and-wait", "one frame at a time, over links that lose")
    a, b = world.party("alice", lambda: PartyCore(alice)), world.party("bert", lambda: PartyCore(bert))
    world.link(a, b, "wire", lossy=bounds["LOSS"], duplicating=1, capacity=2)
    back = world.link(b, a, "wire", lossy=1, capacity=2)
    left = world.budget("sends", bounds["SENDS"])
    world.may(a, "send", times=left)
    world.always("ONCE", "no frame is taken twice", (b.got + left.left) <= bounds["SENDS"])
    world.always("HEARD", "a sender that is idle was heard", a.waiting | (b.got + left.left == bounds["SENDS"]))
    world.sometimes("ALL", "every frame can arrive", (b.got == bounds["SENDS"]) & ~a.waiting)
    if bounds["LIVE"]:
        world.leads_to("DONE", "a frame that was sent is acknowledged", a.waiting, ~a.waiting, fair=[deliver, timers])
        world.always("QUIET", "nothing is acknowledged unasked", ~back.empty >> (left.left < bounds["SENDS"]))
    return world


@blueprint("stop-and-wait", LOSS=Bound(1, "losses"), SENDS=Bound(2, "sends", 1, 3), LIVE=Bound(1, "1: check liveness", 0, 1))
def stop_and_wait(bounds: Bounds) -> World:
    """One frame at a time, over links that lose."""
    return wired(bounds)
