"""Replay tokens: they bring back the same trace, and say so when they cannot."""

from __future__ import annotations

import pytest

from tests.models.random_worlds import random_world
from tests.models.test_story import SMALL, traced
from tests.models.toys import lock, stop_and_wait
from troth.models import check
from troth.models.render.text import text
from troth.models.replaying import violated_by, witnessed_by
from troth.models.tokens import TokenError, replay, token

NO_TOKEN = "is no replay token"


@pytest.mark.parametrize("seed", range(40))
def test_a_token_brings_back_the_same_trace_and_it_shows_the_same(seed: int) -> None:
    """In a world that was built anew, where nothing has a number yet."""
    result = check(random_world(seed), limits=SMALL, engine="scalar")
    for claim in result.properties:
        if claim.trace is None:
            continue
        again = replay(random_world(seed).system(), token(claim.trace))

        assert text(again) == text(claim.trace)
        assert violated_by(again, claim.property) == (claim.verdict.value == "violated")
        assert witnessed_by(again, claim.property) == (claim.verdict.value == "holds")


@pytest.mark.parametrize("damaged", ["", "x", "xyz", "ü", "AQ", "!!!!", "AAAA" * 40, "AQ" + "_" * 4000])
def test_what_is_no_token_is_refused(damaged: str) -> None:
    """With what to do."""
    with pytest.raises(TokenError, match=NO_TOKEN):
        replay(lock().system(), damaged)


def test_a_changed_letter_never_shows_another_trace() -> None:
    """Whichever letter it is."""
    trace = traced(lock(), "MUTEX")
    good = token(trace)
    for place, letter in enumerate(good):
        spoilt = good[:place] + ("A" if letter != "A" else "B") + good[place + 1 :]
        with pytest.raises(TokenError):
            replay(lock().system(), spoilt)


def test_a_token_of_another_world_does_not_fit() -> None:
    """Other actions, or the same ones with other states."""
    good = token(traced(lock(), "MUTEX"))

    with pytest.raises(TokenError, match="does not fit: at step 3 there are . things that can happen"):
        replay(lock(CRASHES=0).system(), good)
    with pytest.raises(TokenError, match="does not fit"):
        replay(stop_and_wait().system(), good)
