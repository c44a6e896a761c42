"""Nobody speaks before both sides have shown that they hold the token, and nothing that is overheard helps anybody."""

from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import MockClock

from tests.runtime.wire.pairs import ENDPOINT, LAUNCH, authenticated, read
from tests.runtime.wire.test_tokens import secrets_of
from troth.runtime.errors import ChallengeFailed
from troth.runtime.ports import Stream
from troth.runtime.sim.faults import DOWN, UP, Cut, End, Faults, Slow
from troth.runtime.sim.network import SimNetwork
from troth.runtime.wire import bounds, challenge
from troth.runtime.wire.challenge import CALL, Authenticated, Token, check, prove
from troth.runtime.wire.kinds import Role

pytestmark = pytest.mark.trio

Outcome = Authenticated | ChallengeFailed


async def outcome(of: Awaitable[Authenticated]) -> Outcome:
    try:
        return await of
    except ChallengeFailed as error:
        return error


async def meet(
    dialler: Callable[[Stream], Awaitable[Authenticated]],
    acceptor: Callable[[Stream], Awaitable[Authenticated]],
    network: SimNetwork | None = None,
) -> tuple[Outcome, Outcome]:
    """What becomes of a dialler and an acceptor."""
    network = network or SimNetwork()
    listener = await network.listen(ENDPOINT)
    ends: dict[str, Outcome] = {}

    async def accept() -> None:
        ends["acceptor"] = await outcome(acceptor(await listener.accept()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(accept)
        ends["dialler"] = await outcome(dialler(await network.dial(ENDPOINT)))
    return ends["dialler"], ends["acceptor"]


def proving(token: Token, role: Role = "control", epoch: int = 0, launch: bytes = LAUNCH) -> Callable[[Stream], Awaitable[Authenticated]]:
    return lambda stream: prove(stream, token=token, role=role, launch=launch, epoch=epoch)


def checking(token: Token | None) -> Callable[[Stream], Awaitable[Authenticated]]:
    return lambda stream: check(stream, find=lambda *_named: token)


def saying(*sent: bytes, answers: int = challenge.ACCEPTOR_BYTES) -> Callable[[Stream], Awaitable[Authenticated]]:
    """A dialler, or an acceptor, that sends what it likes."""

    async def speak(stream: Stream) -> Authenticated:
        for data in sent:
            await stream.send_all(data)
        await read(stream, answers)
        stream.close()
        raise ChallengeFailed("it only spoke")

    return speak


# -- who is let in -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("role", "epoch"), [("control", 0), ("control", 7), ("data", 1), ("data", 2**31 - 1)])
async def test_both_sides_agree_on_who_they_are(role: Role, epoch: int) -> None:
    token = Token.new()
    asked: list[tuple[bytes, Role, int]] = []

    def find(*named: object) -> Token:
        asked.append(named)  # type: ignore[arg-type]
        return token

    dialler, acceptor = await meet(proving(token, role, epoch), lambda stream: check(stream, find=find))

    assert asked == [(LAUNCH, role, epoch)]
    for end in (dialler, acceptor):
        assert isinstance(end, Authenticated)
        assert (end.role, end.launch, end.epoch) == (role, LAUNCH, epoch)
    assert isinstance(dialler, Authenticated)
    assert isinstance(acceptor, Authenticated)
    assert dialler.nonces == acceptor.nonces
    assert len(dialler.nonces) == 64


async def test_it_has_a_fixed_size_well_below_the_bound_and_reads_nothing_beyond() -> None:
    network = SimNetwork()
    dialler, acceptor = await authenticated(network)

    assert network.connections[0].up.arrived_bytes == challenge.DIALLER_BYTES == 91
    assert network.connections[0].down.arrived_bytes == challenge.ACCEPTOR_BYTES == 65
    assert challenge.DIALLER_BYTES + challenge.ACCEPTOR_BYTES < bounds.MAX_CHALLENGE_BYTES
    await dialler.stream.send_all(b"the first frame")
    assert await read(acceptor.stream, 15) == b"the first frame"


async def test_it_works_a_byte_at_a_time() -> None:
    await authenticated(SimNetwork(most_at_once=1))
    await authenticated(SimNetwork(capacity=1))


async def test_two_connections_never_have_the_same_nonces() -> None:
    ends = [(await authenticated(SimNetwork()))[0] for _ in range(20)]

    assert len({end.nonces for end in ends}) == 20


# -- who is not --------------------------------------------------------------------------------------------------------


async def test_a_wrong_token_is_refused_by_the_side_that_hears_of_it_first() -> None:
    dialler, acceptor = await meet(proving(Token.new()), checking(Token.new()))

    # The acceptor shows first, so the dialler with the wrong token, or at the wrong door, says nothing more.
    assert str(dialler) == "the other side does not hold this launch's token"
    assert "closed the connection" in str(acceptor)


async def test_a_dialler_that_goes_on_without_the_token_is_refused() -> None:
    token = Token.new()
    call = CALL.pack(challenge.MAGIC, challenge.VERSION, 1, LAUNCH, 0, bytes(32))
    for proof in (bytes(32), Token.new().proof(b"trainer" + call)):
        _dialler, acceptor = await meet(saying(call, proof), checking(token))

        assert str(acceptor) == "the other side does not hold this launch's token"


async def test_an_unknown_launch_role_or_epoch_gets_no_answer() -> None:
    network = SimNetwork()
    dialler, acceptor = await meet(proving(Token.new(), "data", 5), checking(None), network)

    assert "there is no data connection to be had for this launch and epoch 5" in str(acceptor)
    assert "closed the connection instead of answering" in str(dialler)
    assert network.connections[0].down.written_bytes == 0


async def test_a_recorded_exchange_is_worth_nothing_when_it_is_played_again() -> None:
    token = Token.new()
    network = SimNetwork()
    dialler, _acceptor = await meet(proving(token), checking(token), network)
    assert isinstance(dialler, Authenticated)
    up, down = bytes(network.connections[0].up.written), bytes(network.connections[0].down.written)

    _replaying, acceptor = await meet(saying(up), checking(token))
    assert "does not hold" in str(acceptor)

    answered, _replaying = await meet(proving(token), saying(down, answers=challenge.DIALLER_BYTES))
    assert "does not hold" in str(answered)


@pytest.mark.parametrize("change", ["role", "epoch", "launch", "nonce"])
async def test_a_proof_is_for_its_role_epoch_launch_and_nonce_only(change: str) -> None:
    """Somebody in the middle changes what the dialler asks for, and passes on everything else as it is."""
    token = Token.new()
    network = SimNetwork()
    door = await network.listen(ENDPOINT)
    behind = await network.listen("unix:/behind")
    found: dict[str, Outcome] = {}

    async def dialler() -> None:
        found["dialler"] = await outcome(proving(token, "control", 3)(await network.dial(ENDPOINT)))

    async def acceptor() -> None:
        found["acceptor"] = await outcome(checking(token)(await behind.accept()))

    async def middle() -> None:
        near, far = await door.accept(), await network.dial("unix:/behind")
        magic, version, role, launch, epoch, nonce = CALL.unpack(await read(near, CALL.size))
        changed = {"role": role, "epoch": epoch, "launch": launch, "nonce": nonce}
        changed |= {change: {"role": 2, "epoch": 4, "launch": bytes(16), "nonce": bytes(32)}[change]}
        await far.send_all(CALL.pack(magic, version, changed["role"], changed["launch"], changed["epoch"], changed["nonce"]))
        await near.send_all(await read(far, 64))
        near.close()
        far.close()

    async with trio.open_nursery() as nursery:
        for side in (dialler, acceptor, middle):
            nursery.start_soon(side)

    assert "does not hold" in str(found["dialler"])
    assert isinstance(found["acceptor"], ChallengeFailed)


async def test_an_acceptors_own_proof_sent_back_to_it_is_refused() -> None:
    async def reflect(stream: Stream) -> Authenticated:
        await stream.send_all(CALL.pack(challenge.MAGIC, challenge.VERSION, 1, LAUNCH, 0, bytes(32)))
        answer = await read(stream, 64)
        await stream.send_all(answer[32:])
        await read(stream, 1)
        raise ChallengeFailed("reflected")

    _reflecting, acceptor = await meet(reflect, checking(Token.new()))

    assert "does not hold" in str(acceptor)


async def test_a_diallers_call_sent_back_to_it_is_refused() -> None:
    """An acceptor that does not know the token opens a connection of its own to the dialler's side, and lets that one answer for it."""

    async def reflect(stream: Stream) -> Authenticated:
        call = await read(stream, CALL.size)
        await stream.send_all(call[-32:] + bytes(32))
        await read(stream, 32)
        raise ChallengeFailed("reflected")

    dialler, _reflecting = await meet(proving(Token.new()), reflect)

    assert "does not hold" in str(dialler)


GARBAGE = {
    "http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + b" " * 40,
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(60),
    "a frame": b"TR\x01\x1e\x00\x00\x00\x01\x00\x00\x00\x01\x90" + bytes(60),
    "a pickle": pickle.dumps({"canary": list(range(40))}),
    "version": CALL.pack(challenge.MAGIC, 2, 1, LAUNCH, 0, bytes(32)),
    "role 0": CALL.pack(challenge.MAGIC, 1, 0, LAUNCH, 0, bytes(32)),
    "role 3": CALL.pack(challenge.MAGIC, 1, 3, LAUNCH, 0, bytes(32)),
    "epoch": CALL.pack(challenge.MAGIC, 1, 1, LAUNCH, 2**31, bytes(32)),
}


@pytest.mark.parametrize("sent", GARBAGE.values(), ids=GARBAGE.keys())
async def test_what_is_no_call_is_refused_before_a_token_is_looked_for(sent: bytes) -> None:
    def find(*_named: object) -> Token:
        raise AssertionError("asked for a token")

    network = SimNetwork()
    _dialler, acceptor = await meet(saying(sent), lambda stream: check(stream, find=find), network)

    assert "not the beginning of a challenge" in str(acceptor)
    assert network.connections[0].down.written_bytes == 0


async def test_a_data_connection_names_its_session() -> None:
    call = CALL.pack(challenge.MAGIC, challenge.VERSION, 2, LAUNCH, 0, bytes(32))
    _dialler, acceptor = await meet(saying(call), checking(Token.new()))

    assert "must name its session" in str(acceptor)


@pytest.mark.parametrize(
    ("launch", "epoch", "role"), [(b"short", 0, "control"), (LAUNCH, -1, "control"), (LAUNCH, 2**31, "control"), (LAUNCH, 0, "data")]
)
async def test_a_call_that_cannot_be_made_is_refused_where_it_is_made(launch: bytes, epoch: int, role: Role) -> None:
    network = SimNetwork()
    await network.listen(ENDPOINT)
    with pytest.raises(ValueError, match=r"launch id has|name its session"):
        await prove(await network.dial(ENDPOINT), token=Token.new(), role=role, launch=launch, epoch=epoch)


# -- how it ends -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nbytes", range(challenge.DIALLER_BYTES))
async def test_a_dialler_that_ends_anywhere_is_refused(nbytes: int) -> None:
    token = Token.new()
    for fault in (Cut(at=nbytes), End(at=nbytes)):
        faults = Faults()
        faults.bytes(fault, direction=UP)
        dialler, acceptor = await meet(proving(token), checking(token), SimNetwork(faults))

        assert isinstance(acceptor, ChallengeFailed)
        assert isinstance(dialler, ChallengeFailed)


@pytest.mark.parametrize("nbytes", range(challenge.ACCEPTOR_BYTES))
async def test_an_acceptor_that_ends_anywhere_is_refused(nbytes: int) -> None:
    token = Token.new()
    faults = Faults()
    faults.bytes(Cut(at=nbytes), direction=DOWN)
    dialler, _acceptor = await meet(proving(token), checking(token), SimNetwork(faults))

    assert isinstance(dialler, ChallengeFailed)


async def test_a_silent_side_has_five_seconds(autojump_clock: MockClock) -> None:
    async def silent(stream: Stream) -> Authenticated:
        await trio.sleep(60)
        stream.close()
        raise ChallengeFailed("silent")

    for sides in ((silent, checking(Token.new())), (proving(Token.new()), silent)):
        started = trio.current_time()
        outcomes = await meet(*sides)

        assert any("took longer than 5 s" in str(found) for found in outcomes)
        assert trio.current_time() - started == 60  # the silent one


async def test_a_dialler_that_sends_a_byte_a_second_has_five_seconds_in_all(autojump_clock: MockClock) -> None:
    token = Token.new()
    over: list[float] = []

    async def slow(stream: Stream) -> Authenticated:
        for byte in CALL.pack(challenge.MAGIC, challenge.VERSION, 1, LAUNCH, 0, bytes(32)):
            await stream.send_all(bytes([byte]))
            await trio.sleep(1)
        raise ChallengeFailed("slow")

    async def acceptor(stream: Stream) -> Authenticated:
        try:
            return await check(stream, find=lambda *_named: token)
        finally:
            over.append(trio.current_time())

    started = trio.current_time()
    with pytest.raises(BaseExceptionGroup) as caught:
        await meet(slow, acceptor)

    assert "nobody reads" in str(caught.value.exceptions[0])
    assert over == [started + 5]


async def test_a_network_that_takes_four_seconds_is_not_too_slow_for_one_that_takes_one(autojump_clock: MockClock) -> None:
    token = Token.new()
    faults = Faults()
    faults.bytes(Slow(1.0), direction=UP)
    dialler, acceptor = await meet(proving(token), checking(token), SimNetwork(faults))

    assert isinstance(dialler, Authenticated)
    assert isinstance(acceptor, Authenticated)


async def test_whatever_goes_wrong_the_stream_is_closed() -> None:
    network = SimNetwork()
    await meet(proving(Token.new()), checking(Token.new()), network)
    listener = await network.listen("unix:/again")
    stream = await network.dial("unix:/again")
    with trio.move_on_after(0.01):
        await prove(stream, token=Token.new(), role="control", launch=LAUNCH, epoch=0)
    listener.close()

    assert not any(connection.alive for connection in network.connections)


# -- no secrets --------------------------------------------------------------------------------------------------------


async def test_no_failure_says_the_token_or_what_a_proof_should_have_been(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    token, other = Token.new(), Token.new()
    network = SimNetwork()
    ends = [*await meet(proving(token), checking(other), network)]
    call = CALL.pack(challenge.MAGIC, challenge.VERSION, 1, LAUNCH, 0, bytes(32))
    ends += await meet(saying(call, bytes(32)), checking(token))
    ends += await authenticated(SimNetwork())
    said = caplog.text
    for end in ends:
        said += repr(end) + str(end)
        if isinstance(end, Exception):
            said += "".join(traceback.format_exception(end))

    proofs = [bytes(network.connections[0].down.written[32:64]).hex(), token.proof(b"host" + call).hex()]
    assert not any(secret in said for secret in [*secrets_of(token), *secrets_of(other), *proofs])
    nonces = [end.nonces for end in ends if isinstance(end, Authenticated)]
    assert not any(nonce.hex() in said or repr(nonce) in said for nonce in nonces)
