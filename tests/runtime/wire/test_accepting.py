"""The door stays open for whoever may come, whatever else is in front of it."""

from __future__ import annotations

import logging

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.runtime.wire.pairs import ENDPOINT, LAUNCH
from troth.runtime.errors import ChallengeFailed, LinkDown, SessionOver
from troth.runtime.ports import Stream
from troth.runtime.sim.network import SimNetwork
from troth.runtime.wire import bounds, challenge
from troth.runtime.wire.accepting import Refusals, serve
from troth.runtime.wire.challenge import CALL, Authenticated, Token, prove

pytestmark = pytest.mark.trio


class Door:
    """A door, and who came in."""

    def __init__(self) -> None:
        self.network = SimNetwork()
        self.token = Token.new()
        self.came: list[Authenticated] = []
        self.refusals = Refusals(ENDPOINT)
        self.ended = False

    def find(self, launch: bytes, _role: str, _epoch: int) -> Token | None:
        return self.token if launch == LAUNCH else None

    async def open(self, nursery: trio.Nursery) -> None:
        self.listener = await self.network.listen(ENDPOINT)
        nursery.start_soon(self._serve)

    async def _serve(self) -> None:
        await serve(self.listener, self.find, self.came.append, refusals=self.refusals)
        self.ended = True

    async def knock(self, token: Token | None = None, launch: bytes = LAUNCH) -> Authenticated:
        return await prove(await self.network.dial(ENDPOINT), token=token or self.token, role="control", launch=launch, epoch=0)


async def test_whoever_proves_it_is_handed_over_and_the_door_stays_open() -> None:
    door = Door()
    async with trio.open_nursery() as nursery:
        await door.open(nursery)
        for number in range(1, 4):
            await door.knock()
            assert len(door.came) == number
        door.listener.close()

    assert door.ended
    assert door.refusals.total == 0
    assert all(connection.alive for connection in door.network.connections)


@pytest.mark.parametrize("bad", ["wrong token", "wrong launch", "garbage", "gone"])
async def test_a_thousand_bad_dials_do_not_keep_a_good_one_out(bad: str, caplog: pytest.LogCaptureFixture) -> None:
    door = Door()

    async def knock() -> None:
        try:
            if bad == "wrong token":
                await door.knock(Token.new())
            elif bad == "wrong launch":
                await door.knock(launch=bytes(16))
            else:
                stream = await door.network.dial(ENDPOINT)
                if bad == "garbage":
                    await stream.send_all(b"\x80\x04" * 50)
                stream.close()
        except (ChallengeFailed, LinkDown):
            pass

    async with trio.open_nursery() as nursery:
        await door.open(nursery)
        for _ in range(20):
            async with trio.open_nursery() as crowd:
                for _ in range(50):
                    crowd.start_soon(knock)
            await wait_all_tasks_blocked()
        good = await door.knock()
        door.listener.close()

    assert [peer.launch for peer in door.came] == [good.launch]
    assert door.refusals.total == 1000
    assert len(caplog.records) == bounds.REFUSALS_LOGGED + 1
    assert "refused 992 more connections" in caplog.text


async def test_a_crowd_that_only_waits_is_bounded_and_gives_way(autojump_clock: MockClock) -> None:
    door = Door()
    crowd: list[Stream] = []
    async with trio.open_nursery() as nursery:
        await door.open(nursery)
        started = trio.current_time()
        for number in range(1000):
            crowd.append(await door.network.dial(ENDPOINT))
            await crowd[-1].send_all(CALL.pack(challenge.MAGIC, 1, 1, LAUNCH, 0, bytes(32))[: number % 59])
            if number % 40 == 0:
                await wait_all_tasks_blocked()
        await wait_all_tasks_blocked()

        assert sum(connection.alive for connection in door.network.connections) == bounds.MAX_UNAUTHENTICATED
        await door.knock()
        assert trio.current_time() == started
        assert len(door.came) == 1

        await trio.sleep(bounds.CHALLENGE_S)
        await wait_all_tasks_blocked()
        assert sum(connection.alive for connection in door.network.connections) == 1
        assert door.refusals.total == 1000
        door.listener.close()


async def test_a_crowd_that_keeps_coming_does_not_keep_a_good_one_out_either() -> None:
    """While the good one is being let in, others come all the time."""
    door = Door()
    async with trio.open_nursery() as nursery:
        await door.open(nursery)

        async def flood() -> None:
            while True:
                for _ in range(20):
                    await door.network.dial(ENDPOINT)

        nursery.start_soon(flood)
        for _ in range(50):
            await trio.lowlevel.checkpoint()
        for _ in range(20):
            await door.knock()
        nursery.cancel_scope.cancel()

    assert len(door.came) == 20
    assert len(door.network.connections) > 3 * bounds.MAX_UNAUTHENTICATED


async def test_refusals_are_logged_one_by_one_up_to_a_number_and_then_counted(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    refusals = Refusals("here")
    for _ in range(10):
        for _ in range(1000):
            refusals.note(ChallengeFailed("no"))
        await trio.sleep(bounds.REFUSALS_PERIOD_S)
    refusals.say_rest()

    assert refusals.total == 10_000
    assert len(caplog.records) == 10 * (bounds.REFUSALS_LOGGED + 1)
    assert caplog.records[-1].getMessage() == "here: refused 992 more connections"


async def test_closing_the_door_ends_the_challenges_behind_it() -> None:
    door = Door()
    async with trio.open_nursery() as nursery:
        await door.open(nursery)
        stream = await door.network.dial(ENDPOINT)
        await wait_all_tasks_blocked()
        door.listener.close()
        await wait_all_tasks_blocked()
        with pytest.raises(LinkDown):
            stream.send_nowait(b"x")

    assert door.ended
    assert not door.network.connections[0].alive


async def test_no_log_line_shows_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    door = Door()
    async with trio.open_nursery() as nursery:
        await door.open(nursery)
        await door.knock()
        with pytest.raises(ChallengeFailed):
            await door.knock(Token.new())
        await wait_all_tasks_blocked()
        door.listener.close()

    assert "refused a connection" in caplog.text
    assert door.token.text() not in caplog.text + repr(door.came)
    assert door.token._secret.hex() not in caplog.text + repr(door.came)


@pytest.mark.parametrize(("why", "level"), [(SessionOver("over"), logging.INFO), (ChallengeFailed("no token"), logging.WARNING)])
async def test_only_a_refusal_that_no_orderly_end_has_is_a_warning(
    caplog: pytest.LogCaptureFixture, why: ChallengeFailed, level: int
) -> None:
    """A session may end while its trainer still dials for data."""
    caplog.set_level(logging.DEBUG)
    Refusals("here").note(why)

    assert [record.levelno for record in caplog.records] == [level]


@pytest.mark.parametrize("how", ["closes", "breaks"])
@pytest.mark.parametrize(
    ("role", "whole", "level"),
    [("data", True, logging.INFO), ("control", True, logging.WARNING), ("data", False, logging.WARNING)],
    ids=["data", "control", "a stranger"],
)
async def test_whoever_dials_for_data_may_go_away_before_he_is_in(
    caplog: pytest.LogCaptureFixture, role: str, whole: bool, level: int, how: str
) -> None:
    """As at the end of a short session, whether its end is read or breaks the answer; nobody else may, who has not even said who he is."""
    caplog.set_level(logging.INFO, "troth.runtime.accepting")
    door = Door()
    code = next(code for code, name in challenge.ROLES.items() if name == role)
    call = CALL.pack(challenge.MAGIC, challenge.VERSION, code, LAUNCH, 1, bytes(challenge.NONCE_BYTES))
    async with trio.open_nursery() as nursery:
        await door.open(nursery)
        stream = await door.network.dial(ENDPOINT)
        await stream.send_all(call if whole else call[:-1])
        await wait_all_tasks_blocked()  # it is read, and answered if there is an answer
        if how == "breaks":
            door.network.connections[0].cut()
        else:
            stream.close()
        await wait_all_tasks_blocked()
        door.listener.close()

    assert door.came == []
    assert [record.levelno for record in caplog.records] == [level]
