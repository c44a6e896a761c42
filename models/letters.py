"""Numbers as a few letters, and back: what replay tokens are made of."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator


def packed(numbers: Iterable[int]) -> bytes:
    """Numbers from 0 on, seven bits a byte, the lowest first."""
    found = bytearray()
    for number in numbers:
        rest = number
        while rest > 127:
            found.append(rest & 127 | 128)
            rest >>= 7
        found.append(rest)
    return bytes(found)


def unpacked(raw: bytes, bits: int) -> Iterator[int]:
    """The numbers, each of at most so many bits, a multiple of 7. Raises ``ValueError`` if it is nothing that was packed."""
    number = shift = 0
    for byte in raw:
        number |= (byte & 127) << shift
        shift += 7
        if shift > bits:
            raise ValueError("a number without end")
        if not byte & 128:
            yield number
            number = shift = 0
    if shift:
        raise ValueError("it is cut off")


def spelled(raw: bytes) -> str:
    """Bytes as letters, digits, ``-`` and ``_``."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def unspelled(text: str) -> bytes:
    """The bytes. Raises ``ValueError`` if they are not spelled so."""
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
