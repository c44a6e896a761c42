"""Frames: how the bytes of a connection are cut into messages.

A frame is a header of 12 bytes and a body: magic ``TR``, version, kind, session epoch, length of the body. All of it is big-endian.

Rule 1.  The header is judged before a byte of the body is: magic and version, then the kind, then the length against the bound of
         that kind. Nothing is allocated for a length that was not checked.
Rule 2.  What is not a frame ends the connection. There is no way to find the next frame in bytes that are not understood.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from troth.runtime.errors import FrameError
from troth.runtime.ports import Buffer

MAGIC = b"TR"
VERSION = 1
HEADER = struct.Struct("!2sBBII")
HEADER_BYTES = HEADER.size
CHUNK_HEAD = struct.Struct("!IQ")
"""What a CHUNK's body starts with: the request and the offset of its bytes in the payload. The bytes themselves follow, as they are."""
CHUNK_HEAD_BYTES = CHUNK_HEAD.size
UNKNOWN = -1
"""In a table of bounds: there is no such kind."""


def pack_head(code: int, epoch: int, length: int) -> bytes:
    """The header of a frame whose body has ``length`` bytes."""
    return HEADER.pack(MAGIC, VERSION, code, epoch, length)


def parse_head(buffer: Buffer, start: int, bounds: Sequence[int]) -> tuple[int, int, int]:
    """The kind, epoch and body length that the header at ``start`` names.

    ``bounds`` has the longest body of each of the 256 kinds, ``UNKNOWN`` where there is none. Raises ``FrameError``.
    """
    magic, version, code, epoch, length = HEADER.unpack_from(buffer, start)
    if magic != MAGIC:
        raise FrameError(f"a frame starts with {MAGIC.hex()}, not {magic.hex()}: the other side speaks another protocol")
    if version != VERSION:
        raise FrameError(f"the frame has version {version}; this side speaks version {VERSION}")
    bound = bounds[code]
    if length > bound:
        if bound == UNKNOWN:
            raise FrameError(f"there is no kind {code}")
        raise FrameError(f"a frame of kind {code} has at most {bound} bytes, this one says {length}")
    return code, epoch, length
