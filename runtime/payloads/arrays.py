"""A payload: a tree as a manifest and buffers, and back.

    encode(tree) -> Payload -> (manifest and buffers travel) -> decode, or allocate, receive into it and finish

The manifest is msgpack, decoded by type; the buffers are raw memory. Nothing here can run code that came with a payload.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate
from typing import Annotated, Any

import msgspec
import trio
from attrs import field, frozen
from msgspec import Meta, Struct

from troth.runtime.errors import PayloadBroken, PayloadRefused
from troth.runtime.payloads.content import digest_of
from troth.runtime.payloads.layout import Array, dtype_of, new_array, octets_of, settled
from troth.runtime.payloads.tree import ArrayNode, LongNode, Node, Taker, broken, build, check, size
from troth.runtime.ports import Buffer
from troth.runtime.wire.bounds import INLINE_BYTES, MAX_MANIFEST_BYTES

MAX_PAYLOAD_BYTES = 64 * 2**30
"""Buffers of one payload together, unless a caller says otherwise."""
INLINE_LIMIT = INLINE_BYTES
"""Bytes, manifest included, up to which a payload rides in its message."""

ASIDE_BYTES = 8 * 2**20
"""From here on copies and digests would keep an event loop waiting for milliseconds."""

VERSION = 1


class Manifest(Struct, array_like=True, forbid_unknown_fields=True):
    """What travels ahead of the buffers: their size together, and the tree that they belong into."""

    version: Annotated[int, Meta(ge=VERSION, le=VERSION)]
    nbytes: Annotated[int, Meta(ge=0)]
    root: Node


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Manifest).decode


@frozen
class Payload:
    """A tree, ready to travel. The buffers are views of the arrays' own memory, read when they are sent: do not write to them meanwhile."""

    manifest: bytes = field(repr=False)
    """The tree without its arrays."""
    buffers: tuple[memoryview, ...] = field(repr=False)
    """The memory of the arrays, in order."""
    nbytes: int
    """Bytes of the buffers together."""
    digest: bytes = field(repr=bytes.hex)
    """Of manifest and buffers: ``content.DIGEST_BYTES`` bytes."""

    @property
    def inline(self) -> bool:
        """Whether it is small enough to ride in its message."""
        return self.nbytes + len(self.manifest) <= INLINE_LIMIT

    def joined(self) -> bytes:
        """A copy of all buffers as one."""
        return b"".join(self.buffers)

    def riding(self) -> bytes:
        """What rides in its message: the whole of it, or nothing if it is too large for that."""
        return self.joined() if self.inline else b""


def _take(tree: Any, name: str, limit: int) -> tuple[bytes, list[Array | bytes], int]:
    """Manifest, buffers and their size together; quick, whatever the size of the arrays. Raises ``PayloadRefused``."""
    taker = Taker(limit)
    root = taker.nodes(tree, name)
    manifest = _encode(Manifest(VERSION, taker.nbytes, root))
    if len(manifest) > MAX_MANIFEST_BYTES:
        raise PayloadRefused(
            f"{name}: without its arrays it takes {len(manifest)} bytes, {MAX_MANIFEST_BYTES} are the most; put numbers into an array"
        )
    return manifest, taker.buffers, taker.nbytes


def _settle(manifest: bytes, buffers: list[Array | bytes], nbytes: int) -> Payload:
    """The payload of that: copies what does not lie in one piece, and reads all of it for the digest."""
    views = tuple([memoryview(item) if isinstance(item, bytes) else octets_of(settled(item)).toreadonly() for item in buffers])
    return Payload(manifest, views, nbytes, digest_of(manifest, views))


def encode(tree: Any, *, name: str = "payload", limit: int = MAX_PAYLOAD_BYTES) -> Payload:
    """Make a payload of ``tree``. Contiguous arrays are not copied, but all of them are read once, for the digest.

    ``name`` is what errors call the tree, ``limit`` the most bytes that its arrays may have. Raises ``PayloadRefused``.
    """
    return _settle(*_take(tree, name, limit))


async def encode_async(tree: Any, *, name: str = "payload", limit: int = MAX_PAYLOAD_BYTES) -> Payload:
    """The same for a caller in an event loop: of a large tree, whatever takes long is done in a thread. Do not write to it meanwhile."""
    manifest, buffers, nbytes = _take(tree, name, limit)
    if nbytes < ASIDE_BYTES:
        return _settle(manifest, buffers, nbytes)
    return await trio.to_thread.run_sync(_settle, manifest, buffers, nbytes)


class Landing:
    """Memory for a payload that is coming in: ``views`` or ``window`` to receive into, then ``finish``."""

    __slots__ = ("_fields", "_root", "_starts", "nbytes", "views")

    def __init__(self, root: Any, nodes: list[ArrayNode | LongNode], sizes: list[int]) -> None:
        self._root = root
        self._fields = [(node, _memory(node, octets)) for node, octets in zip(nodes, sizes, strict=True)]
        self.views = [octets_of(array) for (_, array), octets in zip(self._fields, sizes, strict=True) if octets]
        """The buffers that are not empty, writable, in order."""
        self._starts = list(accumulate(map(len, self.views), initial=0))
        self.nbytes = self._starts[-1]
        """Bytes of the buffers together."""

    def window(self, offset: int, length: int) -> memoryview:
        """Where the bytes from ``offset`` on go: ``length`` of them, or as many as one buffer takes. Past the end ``PayloadBroken``."""
        if not 0 <= offset <= offset + length <= self.nbytes:
            broken(f"bytes {offset} to {offset + length} of a payload of {self.nbytes}")
        index = bisect_right(self._starts, offset) - 1
        if index == len(self.views):
            return memoryview(b"")
        start = offset - self._starts[index]
        return self.views[index][start : start + length]

    def put(self, offset: int, data: Buffer) -> None:
        """Copy bytes to where they go, over as many buffers as they reach. Raises ``PayloadBroken`` past the end."""
        rest = memoryview(data)
        while rest:
            view = self.window(offset, len(rest))
            view[:] = rest[: len(view)]
            rest, offset = rest[len(view) :], offset + len(view)

    def finish(self) -> Any:
        """The tree, once all bytes are there. The landing is empty afterwards. Raises ``PayloadBroken``."""
        fields, self._fields, self.views = self._fields, [], []
        return build(self._root, iter([_value(node, array) for node, array in fields]))


def _memory(node: ArrayNode | LongNode, octets: int) -> Array:
    if isinstance(node, ArrayNode):
        return new_array(dtype_of(node.dtype), node.shape, fortran=node.fortran)
    return new_array(dtype_of("|u1"), (octets,), fortran=False)


def _value(node: ArrayNode | LongNode, array: Array) -> Any:
    if isinstance(node, ArrayNode):
        return array
    if not node.text:
        return array.tobytes()
    try:
        return str(octets_of(array), "utf-8")
    except UnicodeDecodeError as error:
        broken(f"a text that is not UTF-8: {error}")


def _read(manifest: bytes, nbytes: int | None, limit: int) -> tuple[Any, list[ArrayNode | LongNode], list[int]]:
    """Root node, nodes with a buffer, and the sizes of those, of a manifest that can be right. Raises ``PayloadBroken``."""
    if len(manifest) > MAX_MANIFEST_BYTES:
        broken(f"a manifest of {len(manifest)} bytes; {MAX_MANIFEST_BYTES} are the most")
    try:
        read = _decode(manifest)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise PayloadBroken(f"not a manifest: {error}") from None
    nodes = check(read.root)
    sizes = [size(node) for node in nodes]
    total = sum(sizes)
    if total != read.nbytes or (nbytes is not None and total != nbytes):
        broken(f"a manifest of {total} bytes that says {read.nbytes}" + ("" if nbytes is None else f", with {nbytes} announced beside it"))
    if total > limit:
        broken(f"a payload of {total} bytes; {limit} are the most")
    return read.root, nodes, sizes


def allocate(manifest: bytes, *, nbytes: int | None = None, limit: int = MAX_PAYLOAD_BYTES) -> Landing:
    """Check a manifest and make room for its buffers.

    ``nbytes`` is what its sender said beside it, where it did; ``limit`` the most that is allocated. Raises ``PayloadBroken`` before it
    allocates, and ``MemoryError`` if the system does not have that much.
    """
    return Landing(*_read(manifest, nbytes, limit))


def decode(manifest: bytes, buffers: Buffer | Iterable[Buffer], *, digest: bytes | None = None, limit: int = MAX_PAYLOAD_BYTES) -> Any:
    """The tree of a manifest whose buffers are at hand: as one, or in order and cut anywhere. Arrays are copies.

    Raises ``PayloadBroken``, also if a ``digest`` is given and another one is found.
    """
    parts = [memoryview(part).cast("B") for part in ((buffers,) if isinstance(buffers, bytes | bytearray | memoryview) else buffers)]
    root, nodes, sizes = _read(manifest, sum(map(len, parts)), limit)
    if digest is not None and digest != digest_of(manifest, parts):
        broken("the bytes that came are not those that were announced: another digest")
    if not nodes:
        return build(root, iter(()))
    landing, offset = Landing(root, nodes, sizes), 0
    for part in parts:
        landing.put(offset, part)
        offset += len(part)
    return landing.finish()
