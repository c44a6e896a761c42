"""The challenge that every connection begins with, data connections too: both sides show that they hold the launch's token.

::

    dialler   -> magic, version, role, launch, epoch, nonce                      59 bytes
    acceptor  -> nonce, HMAC(token, "host"    + both of these, in this order)    64
    dialler   -> HMAC(token, "trainer" + the same)                               32
    acceptor  -> 1                                                                1

Rule 1.  The token never travels, and is in no repr, log or exception. Neither is what a proof should have been.
Rule 2.  Everything has a fixed size, and no byte beyond it is read: what follows belongs to the frames. Nothing here is decoded.
Rule 3.  A proof is bound to the role, the launch, the session's epoch and both nonces, and to the side that gives it. So a recorded
         exchange is worth nothing, nor is a proof that is sent back to whom it came from, nor one given for another session.
Rule 4.  Proofs are compared in constant time. A dialler that does not know the token learns nothing but that it was refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn, TypeAlias

import trio
from attrs import field, frozen

from troth.runtime.errors import ChallengeFailed, HungUp, LinkDown, SessionOver
from troth.runtime.ports import Stream
from troth.runtime.randomness import random_bytes
from troth.runtime.wire.besides import Credentials
from troth.runtime.wire.bounds import CHALLENGE_S, MAX_CHALLENGE_BYTES
from troth.runtime.wire.kinds import CONTROL, DATA, Role
from troth.spec.limits import MAX_EPOCH

MAGIC = b"TROTH"
VERSION = 1
TOKEN_BYTES = 32
LAUNCH_BYTES = 16
NONCE_BYTES = 32
PROOF_BYTES = 32
CALL = struct.Struct("!5sBB16sI32s")
"""What a dialler says first: magic, version, role, launch, epoch, nonce."""
DIALLER_BYTES = CALL.size + PROOF_BYTES
"""What a dialler sends before its first frame."""
ACCEPTOR_BYTES = NONCE_BYTES + PROOF_BYTES + 1
"""What an acceptor sends before its first frame."""
CONFIRMED = b"\x01"
ROLES: dict[int, Role] = {1: CONTROL, 2: DATA}
_CODES: dict[Role, int] = {role: code for code, role in ROLES.items()}
_ACCEPTOR, _DIALLER = b"host", b"trainer"

if DIALLER_BYTES + ACCEPTOR_BYTES > MAX_CHALLENGE_BYTES:
    raise AssertionError("the challenge is longer than it may be")


def _check_secret(_token: object, _attribute: object, value: bytes) -> None:
    if type(value) is not bytes or len(value) != TOKEN_BYTES:
        raise ValueError(f"a token has {TOKEN_BYTES} bytes")


@frozen(eq=False, repr=False)
class Token:
    """The secret of a launch. It can be proved with, and written into a bootstrap file; nothing else shows it."""

    _secret: bytes = field(validator=_check_secret)

    @classmethod
    def new(cls) -> Token:
        """A fresh one."""
        return cls(random_bytes(TOKEN_BYTES))

    @classmethod
    def from_text(cls, text: str) -> Token:
        """From what ``text`` gave. Raises ``ValueError``, which does not quote it."""
        try:
            secret = base64.urlsafe_b64decode(text.encode("ascii") + b"=")
        except (ValueError, binascii.Error):
            secret = b""
        token = cls(secret) if len(secret) == TOKEN_BYTES else None
        if token is None or token.text() != text:
            raise ValueError("this is not the text of a token") from None
        return token

    def text(self) -> str:
        """For the bootstrap file, and for nothing else."""
        return base64.urlsafe_b64encode(self._secret).decode("ascii").rstrip("=")

    def proof(self, said: bytes) -> bytes:
        """Shows that whoever said this holds the token."""
        return hmac.digest(self._secret, said, hashlib.sha256)

    def __repr__(self) -> str:
        return "Token(hidden)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a token is neither pickled nor copied")


@frozen(eq=False)
class Authenticated:
    """A connection whose other side has shown that it holds the launch's token. ``prove`` and ``check`` alone make these."""

    stream: Stream = field(repr=False)
    role: Role
    launch: bytes = field(repr=bytes.hex)
    epoch: int
    """The session that it was dialled for; 0 for none yet."""
    nonces: bytes = field(repr=False)
    """The dialler's and the acceptor's: no other connection has the same."""


Find: TypeAlias = Callable[[bytes, Role, int], "Token | None"]
"""The token of (launch, role, epoch), or ``None`` if there is no such launch here, or if it is not in that session."""


def credentials_proof(credentials: Credentials, nonces: bytes) -> bytes:
    """Shows that these credentials arrived, on the connection with these nonces. 32 bytes."""
    # Two texts, so the first one's length is part of what is proved.
    token, signature = credentials.token.encode(), credentials.signature.encode()
    said = b"credentials" + nonces + struct.pack("!I", len(token)) + token + signature
    return hmac.digest(token, said, hashlib.sha256)


async def prove(stream: Stream, *, token: Token, role: Role, launch: bytes, epoch: int, limit_s: float = CHALLENGE_S) -> Authenticated:
    """Be let in over a connection that this side dialled, and have the other side show who it is.

    Raises ``ChallengeFailed``; the stream is closed then, and whenever this does not return.
    """
    if len(launch) != LAUNCH_BYTES or not 0 <= epoch <= MAX_EPOCH:
        raise ValueError(f"a launch id has {LAUNCH_BYTES} bytes and an epoch is 0 to {MAX_EPOCH}")
    if role == DATA and epoch == 0:
        raise ValueError("a data connection must name its session")
    own_nonce = random_bytes(NONCE_BYTES)
    call = CALL.pack(MAGIC, VERSION, _CODES[role], launch, epoch, own_nonce)
    with _bounded(stream, limit_s):
        await stream.send_all(call)
        answer = await _exactly(stream, NONCE_BYTES + PROOF_BYTES)
        nonce, proof = answer[:NONCE_BYTES], answer[NONCE_BYTES:]
        transcript = call + nonce
        if not hmac.compare_digest(proof, token.proof(_ACCEPTOR + transcript)):
            raise ChallengeFailed("the other side does not hold this launch's token")
        await stream.send_all(token.proof(_DIALLER + transcript))
        if await _exactly(stream, len(CONFIRMED)) != CONFIRMED:
            raise ChallengeFailed("the other side did not confirm")
    return Authenticated(stream, role, launch, epoch, own_nonce + nonce)


async def check(stream: Stream, *, find: Find, limit_s: float = CHALLENGE_S) -> Authenticated:
    """Let somebody in who shows that they may come, over a connection that this side accepted.

    Raises ``ChallengeFailed``; the stream is closed then, and whenever this does not return.
    """
    own_nonce = random_bytes(NONCE_BYTES)
    with _bounded(stream, limit_s):
        call = await _exactly(stream, CALL.size)
        magic, version, code, launch, epoch, nonce = CALL.unpack(call)
        if magic != MAGIC or version != VERSION or code not in ROLES or epoch > MAX_EPOCH:
            raise ChallengeFailed("what came is not the beginning of a challenge of this version")
        role = ROLES[code]
        if role == DATA and epoch == 0:
            raise ChallengeFailed("a data connection must name its session")
        token = find(launch, role, epoch)
        if token is None:
            refusal = SessionOver if role == DATA else ChallengeFailed
            raise refusal(f"there is no {role} connection to be had for this launch and epoch {epoch}")
        transcript = call + own_nonce
        try:
            await stream.send_all(own_nonce + token.proof(_ACCEPTOR + transcript))
            proof = await _exactly(stream, PROOF_BYTES)
            if not hmac.compare_digest(proof, token.proof(_DIALLER + transcript)):
                raise ChallengeFailed("the other side does not hold this launch's token")
            await stream.send_all(CONFIRMED)
        except (LinkDown, HungUp) as error:
            if role != DATA:
                raise
            raise SessionOver(f"whoever dialled for data went away during the challenge: {error}") from error
    return Authenticated(stream, role, launch, epoch, nonce + own_nonce)


@contextmanager
def _bounded(stream: Stream, limit_s: float) -> Iterator[None]:
    """Bounds a challenge in time, and closes the stream whichever way it fails."""
    try:
        with trio.fail_after(limit_s):
            yield
    except trio.TooSlowError:
        stream.close()
        raise ChallengeFailed(f"the challenge took longer than {limit_s:g} s") from None
    except LinkDown as error:
        stream.close()
        raise HungUp(f"the connection broke during the challenge: {error}") from error
    except BaseException:
        stream.close()
        raise


async def _exactly(stream: Stream, nbytes: int) -> bytes:
    """These many bytes, and none after them."""
    found = bytearray(nbytes)
    view, done = memoryview(found), 0
    while done < nbytes:
        got = await stream.receive_into(view[done:])
        if got == 0:
            raise HungUp("the other side closed the connection instead of answering: it refused, or is another program")
        done += got
    return bytes(found)
