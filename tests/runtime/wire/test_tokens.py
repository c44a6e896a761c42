"""A token shows itself to nobody, and a proof is good for one thing only."""

from __future__ import annotations

import copy
import pickle
import traceback
from collections.abc import Callable

import attrs
import pytest

from troth.runtime.wire import bounds
from troth.runtime.wire.besides import Credentials
from troth.runtime.wire.challenge import Token, credentials_proof


def secrets_of(token: Token) -> list[str]:
    raw = token._secret
    return [token.text(), raw.hex(), repr(raw), repr(raw)[2:-1]]


def test_a_token_is_in_no_text_and_cannot_be_copied() -> None:
    token = Token.new()
    texts = [repr(token), str(token), f"{token}", f"{token!r:>50}", "%s %r" % (token, token), repr([token]), repr({"t": token})]  # noqa: UP031

    assert not any(secret in text for text in texts for secret in secrets_of(token))
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="neither pickled nor copied"):
            copied(token)
    assert not hasattr(token, "__dict__")


def test_a_token_has_a_text_that_reads_back() -> None:
    token = Token.new()

    assert Token.from_text(token.text()).proof(b"x") == token.proof(b"x")
    assert Token.new().text() != token.text()


@pytest.mark.parametrize(
    "change",
    [lambda t: t[:-1], lambda t: t + "A", lambda t: t + "=", lambda t: "", lambda t: "\N{SNOWMAN}" + t[1:], lambda t: t[:-1] + "!"],
)
def test_a_text_that_is_no_token_is_refused_without_quoting_it(change: Callable[[str], str]) -> None:
    text = change(Token.new().text())
    with pytest.raises(ValueError, match="this is not the text of a token") as caught:
        Token.from_text(text)

    said = "".join(traceback.format_exception(caught.value, chain=True))
    assert not text or text not in said


@pytest.mark.parametrize("secret", [b"", bytes(31), bytes(33), bytearray(32), "x" * 32])
def test_a_secret_of_another_size_is_refused_without_quoting_it(secret: object) -> None:
    with pytest.raises(ValueError, match="a token has 32 bytes"):
        Token(secret)  # type: ignore[arg-type]


# -- credentials -------------------------------------------------------------------------------------------------------


def test_a_proof_of_credentials_is_for_these_credentials_and_this_connection() -> None:
    lent = Credentials("canary", "signed")
    proofs = {
        credentials_proof(lent, b"n" * 64),
        credentials_proof(lent, b"m" * 64),
        credentials_proof(attrs.evolve(lent, token="canarys"), b"n" * 64),
        credentials_proof(attrs.evolve(lent, signature="signe"), b"n" * 64),
        credentials_proof(Credentials("canarys", "igned"), b"n" * 64),
    }

    assert len(proofs) == 5
    assert {len(proof) for proof in proofs} == {bounds.PROOF_BYTES}
    assert credentials_proof(Credentials("canary", "signed"), b"n" * 64) in proofs
