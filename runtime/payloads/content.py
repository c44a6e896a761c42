"""The digest of a payload: what tells one content from another, and a whole payload from a damaged one.

It is XXH3-128 over the manifest and then the buffers, as one stream. A manifest says where it ends itself (msgpack), so no two
payloads give the same stream. The digest finds accidents, not attacks: whoever may send a payload has proven who it is.
"""

from __future__ import annotations

from collections.abc import Iterable

import xxhash

from troth.runtime.ports import Buffer
from troth.runtime.wire.bounds import DIGEST_BYTES

__all__ = ["DIGEST_BYTES", "ContentHash", "digest_of"]


class ContentHash:
    """A digest in the making. Give it the manifest, then the bytes of the buffers in order, in pieces of any size."""

    __slots__ = ("_hash",)

    def __init__(self, manifest: bytes) -> None:
        self._hash = xxhash.xxh3_128(manifest)

    def update(self, data: Buffer) -> None:
        """Take the next bytes in."""
        self._hash.update(data)

    def digest(self) -> bytes:
        """The digest of everything so far, ``DIGEST_BYTES`` long."""
        return self._hash.digest()


def digest_of(manifest: bytes, buffers: Iterable[Buffer]) -> bytes:
    """The digest of a whole payload, ``DIGEST_BYTES`` long."""
    content = ContentHash(manifest)
    for buffer in buffers:
        content.update(buffer)
    return content.digest()
