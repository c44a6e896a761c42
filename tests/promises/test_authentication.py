"""P64, in simulated sessions and on simulated links: nothing is decoded before its sender is authenticated for this session's epoch."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.runtime.test_regressions import check_nothing_is_decoded_of_who_did_not_show_who_it_is, let_anybody_in
from tests.runtime.wire.pairs import pair
from troth.runtime.wire.codec import decode, encode
from troth.runtime.wire.connection import Connection
from troth.runtime.wire.kinds import PayloadKind, Pull
from troth.spec.limits import MAX_EPOCH


def pulled(epoch: int) -> list[int]:
    """The epochs of the frames that are decoded on a data link of session 2, when one of ``epoch`` comes between two of its own."""
    decoded: list[int] = []

    async def main() -> None:
        async with pair(role="data", epoch=2) as both:
            for place, said in enumerate((2, epoch, 2)):
                pull = Pull(epoch=said, request=place + 1, kind=PayloadKind.TASK, seq=1, receiver=0, offset=0)
                both.dialler.connection.send_nowait(encode(pull), PULL)
            await trio.sleep(1)
            decoded.extend(decode(code, of, body).fields["epoch"] for code, of, body in both.acceptor.frames)

    trio.run(main, clock=MockClock(autojump_threshold=0))
    return decoded


PULL = 80
"""The code of its kind."""


def only_of_its_session(epoch: int) -> None:
    """Whoever was let in for one session says nothing in another's name."""
    assert set(pulled(epoch)) == {2}, f"P64: a frame of session {epoch} was taken on a link of session 2"


def test_p64_holds_for_whoever_did_not_show_who_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """On control and data links of a session, whatever is claimed."""
    check_nothing_is_decoded_of_who_did_not_show_who_it_is(monkeypatch)


@pytest.mark.parametrize("epoch", [1, 3, MAX_EPOCH])
def test_p64_holds_for_whoever_was_let_in_for_another_session(epoch: int) -> None:
    """A frame of another session ends the link, unread."""
    only_of_its_session(epoch)


def test_p64_is_violated_by_a_door_that_lets_anybody_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """The frames behind a proof that is none are decoded."""
    let_anybody_in(monkeypatch)

    with pytest.raises(AssertionError, match="only the heartbeats of the trainer itself were decoded"):
        check_nothing_is_decoded_of_who_did_not_show_who_it_is(monkeypatch)


@pytest.mark.parametrize("epoch", [1, 3])
def test_p64_is_violated_by_a_link_that_does_not_look_at_the_epoch(epoch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was proved for one session is taken as a proof for all."""
    made = Connection.__init__

    def indifferent(link: Connection, *arguments: Any, **given: Any) -> None:
        made(link, *arguments, **given)
        link._low_epoch, link._high_epoch = 0, MAX_EPOCH

    monkeypatch.setattr(Connection, "__init__", indifferent)

    with pytest.raises(AssertionError, match=f"P64: a frame of session {epoch}"):
        only_of_its_session(epoch)
