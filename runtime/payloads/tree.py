"""Trees of Python values and arrays as nodes of a manifest, and back.

Rule 1.  A tree is made of dict (with str keys), list, tuple, None, bool, int (64 bits, signed), float, str, bytes, numpy scalars and numpy
         arrays, each of exactly that type. Anything else is refused, with the place where it is and what to do about it.
Rule 2.  Arrays, and strings and bytes that are long, leave a node that describes them; their bytes are the payload's *buffers*, in the
         order in which the nodes come.
Rule 3.  A manifest that arrived is checked as a whole before anything is allocated for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import NoneType
from typing import Annotated, Any, Final, Never

import numpy as np
from msgspec import Meta, Struct

from troth.runtime.errors import PayloadBroken, PayloadRefused
from troth.runtime.payloads.layout import (
    Array,
    Unfit,
    array_of,
    dtype_of,
    is_fortran,
    name_of,
    scalar_octets,
    scalar_of,
    size_of,
)

MAX_DEPTH = 32
"""Dicts, lists and tuples inside one another."""
MAX_KEY = 512
"""Characters of a dict's key."""
MAX_BUFFERS = 16_384
"""Arrays and long strings of one tree."""
MAX_VALUES = 2**18
"""Values of one tree, the dicts, lists and tuples among them."""
LONG = 4096
"""Bytes, or characters, from which on a string is carried like an array."""

_MIN_INT, _MAX_INT = -(2**63), 2**63 - 1


class DictNode(Struct, array_like=True, forbid_unknown_fields=True, tag=1):
    """A dict, in its order."""

    keys: list[Annotated[str, Meta(max_length=MAX_KEY)]]
    values: list[Node]


class ListNode(Struct, array_like=True, forbid_unknown_fields=True, tag=2):
    """A list."""

    values: list[Node]


class TupleNode(Struct, array_like=True, forbid_unknown_fields=True, tag=3):
    """A tuple."""

    values: list[Node]


class ArrayNode(Struct, array_like=True, forbid_unknown_fields=True, tag=4):
    """An array; its memory is the next buffer."""

    dtype: str
    shape: list[int]
    fortran: bool


class BytesNode(Struct, array_like=True, forbid_unknown_fields=True, tag=7):
    """A short ``bytes``. msgspec has no union of ``str`` and ``bytes``, so it is a node."""

    octets: bytes


class ScalarNode(Struct, array_like=True, forbid_unknown_fields=True, tag=5):
    """A numpy scalar, with its bytes. ``S`` and ``U`` are strings of the width that they have."""

    dtype: str
    octets: bytes


class LongNode(Struct, array_like=True, forbid_unknown_fields=True, tag=6):
    """A long ``bytes``, or ``str`` in UTF-8 if it is ``text``; its bytes are the next buffer."""

    size: Annotated[int, Meta(ge=0)]
    text: bool


Node = (
    DictNode
    | ListNode
    | TupleNode
    | ArrayNode
    | ScalarNode
    | LongNode
    | BytesNode
    | None
    | bool
    | Annotated[int, Meta(ge=_MIN_INT, le=_MAX_INT)]
    | float
    | str
)

_CONTAINERS: Final = frozenset({DictNode, ListNode, TupleNode})
_BUFFERED: Final = frozenset({ArrayNode, LongNode})
_AS_IS: Final = frozenset({NoneType, bool, float})


# -- a tree into nodes -------------------------------------------------------------------------------------------------


class _Refused(Exception):
    """A value that cannot be carried. On its way up it gathers the keys that led to it, innermost first, and what they were keys of."""

    def __init__(self, why: str, *, deep: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.deep = deep
        self.keys: list[Any] = []
        self.containers: list[int] = []


class Taker:
    """Takes a tree apart, once: ``nodes`` gives its root node, and then ``buffers`` holds what does not go into the manifest."""

    __slots__ = ("_count", "_limit", "buffers", "nbytes")

    def __init__(self, limit: int) -> None:
        self.buffers: list[Array | bytes] = []
        """As they lie: nothing is copied here, so that a tree can be refused, or handed to a thread, before anything is."""
        self.nbytes = 0
        self._limit = limit
        self._count = 1

    def nodes(self, tree: Any, name: str) -> Any:
        """The root node of ``tree``, which errors call ``name``. Raises ``PayloadRefused``."""
        try:
            return self._node(tree, 0)
        except _Refused as refused:
            place = name + "".join(f"[{_shown(key)}]" for key in reversed(refused.keys))
            why = refused.why
            if refused.deep:
                loops = len(set(refused.containers)) < len(refused.containers)
                place = name if loops else f"{name}{place[len(name) :][:60]}..."
                why = "it contains itself" if loops else f"nested more than {MAX_DEPTH} deep; flatten it"
            raise PayloadRefused(f"{place}: {why}") from None

    def _node(self, value: Any, depth: int) -> Any:
        take = _TAKERS.get(type(value))
        return self._other(value) if take is None else take(self, value, depth)

    def whole(self, value: int, _depth: int) -> int:
        """An int."""
        if not _MIN_INT <= value <= _MAX_INT:
            raise _Refused("an int of more than 64 bits cannot be carried; send it as a str")
        return value

    def octets(self, value: bytes, _depth: int) -> Any:
        """A bytes; a long one becomes a buffer."""
        return BytesNode(value) if len(value) < LONG else self._long(value, text=False)

    def listed(self, value: list[Any], depth: int) -> ListNode:
        """A list."""
        return ListNode(self._values(value, range(len(value)), value, depth))

    def tupled(self, value: tuple[Any, ...], depth: int) -> TupleNode:
        """A tuple."""
        return TupleNode(self._values(value, range(len(value)), value, depth))

    def _other(self, value: Any) -> Any:
        try:
            if isinstance(value, np.ndarray):
                return self._array(array_of(value))
            if isinstance(value, np.generic):
                return ScalarNode(*scalar_octets(value))
        except Unfit as unfit:
            raise _Refused(str(unfit)) from None
        except UnicodeEncodeError as error:
            raise _Refused(f"a string that UTF-8 cannot carry ({error.reason}); send it as bytes") from None
        raise _Refused(f"a {_called(type(value))} cannot be carried; {_way_out(value)}")

    def text(self, value: str, _depth: int) -> Any:
        """A str; a long one becomes a buffer."""
        if value.isascii():
            return value if len(value) < LONG else self._long(value.encode(), text=True)
        try:
            octets = value.encode()
        except UnicodeEncodeError as error:
            raise _Refused(f"a string that UTF-8 cannot carry ({error.reason}); send it as bytes") from None
        return value if len(octets) < LONG else self._long(octets, text=True)

    def mapping(self, value: dict[Any, Any], depth: int) -> DictNode:
        """A dict, its keys checked."""
        keys = list(value)
        for key in keys:
            if type(key) is not str:
                raise self._at(key, value, f"keys must be str, this one is {_called(type(key))}; use str(key)")
            if len(key) > MAX_KEY:
                raise self._at(key, value, f"a key of {len(key)} characters; {MAX_KEY} are the most")
            if not key.isascii() and not _is_utf8(key):
                raise self._at(key, value, "a key that UTF-8 cannot carry")
        return DictNode(keys, self._values(value, keys, list(value.values()), depth))

    def _values(self, owner: Any, keys: Any, values: Any, depth: int) -> list[Any]:
        """The nodes of what a dict, list or tuple holds."""
        if depth >= MAX_DEPTH:
            raise _Refused("", deep=True)
        self._count += len(values)
        if self._count > MAX_VALUES:
            raise _Refused(f"more than {MAX_VALUES} values; put numbers into an array")
        found: list[Any] = []
        try:
            for value in values:
                found.append(value if type(value) in _AS_IS else self._node(value, depth + 1))  # noqa: PERF401
        except _Refused as refused:
            refused.keys.append(keys[len(found)])
            refused.containers.append(id(owner))
            raise
        return found

    def _at(self, key: Any, owner: Any, why: str) -> _Refused:
        refused = _Refused(why)
        refused.keys.append(key)
        refused.containers.append(id(owner))
        return refused

    def _array(self, array: Array) -> ArrayNode:
        node = ArrayNode(name_of(array.dtype), list(array.shape), is_fortran(array) and array.flags.f_contiguous)
        self._room(array.nbytes)
        self.buffers.append(array)
        return node

    def _long(self, octets: bytes, *, text: bool) -> LongNode:
        self._room(len(octets))
        self.buffers.append(octets)
        return LongNode(len(octets), text)

    def _room(self, size: int) -> None:
        """Count one more buffer."""
        self.nbytes += size
        if self.nbytes > self._limit:
            raise _Refused(f"with this the payload has {self.nbytes} bytes, {self._limit} are the most; send it in parts")
        if len(self.buffers) >= MAX_BUFFERS:
            raise _Refused(f"more than {MAX_BUFFERS} arrays and long strings; join some of them into one array")


_TAKERS: dict[type, Callable[[Taker, Any, int], Any]] = {
    NoneType: lambda _taker, value, _depth: value,
    bool: lambda _taker, value, _depth: value,
    float: lambda _taker, value, _depth: value,
    int: Taker.whole,
    str: Taker.text,
    bytes: Taker.octets,
    dict: Taker.mapping,
    list: Taker.listed,
    tuple: Taker.tupled,
}
"""By exact type; a subclass would not come back as what it was."""


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _called(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _shown(key: Any) -> str:
    text = ascii(key)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _way_out(value: Any) -> str:
    if hasattr(type(value), "__array__"):
        return "send np.asarray(x)"
    for plain in (dict, list, tuple, bool, int, float, str, bytes):
        if isinstance(value, plain):
            return f"send {plain.__name__}(x)"
    return "send what it holds as dicts, lists, numbers, strings and arrays"


# -- nodes into a tree -------------------------------------------------------------------------------------------------


def broken(why: str) -> Never:
    """Say that a manifest, or what came for it, cannot be right."""
    raise PayloadBroken(why)


def check(root: Any) -> list[Any]:
    """Rule 3: check the nodes and return those with a buffer, in order. Raises ``PayloadBroken``."""
    found: list[Any] = []
    if type(root) in _CONTAINERS:
        _check(root, 0, found)
    elif type(root) in _BUFFERED:
        found.append(root)
    if len(found) > MAX_BUFFERS:
        broken(f"a payload of {len(found)} buffers; {MAX_BUFFERS} are the most")
    return found


def _check(node: Any, depth: int, found: list[Any]) -> None:
    if depth >= MAX_DEPTH:
        broken(f"a manifest nested more than {MAX_DEPTH} deep")
    if type(node) is DictNode and not len(node.keys) == len(node.values) == len(set(node.keys)):
        broken("a dict with a key twice, or with more keys than values")
    for value in node.values:
        kind = type(value)
        if kind in _CONTAINERS:
            _check(value, depth + 1, found)
        elif kind in _BUFFERED:
            found.append(value)


def size(node: ArrayNode | LongNode) -> int:
    """Bytes of the buffer of one node. Raises ``PayloadBroken``."""
    if isinstance(node, LongNode):
        return node.size
    try:
        return size_of(dtype_of(node.dtype), node.shape)
    except ValueError as error:
        broken(str(error))


def build(node: Any, supply: Iterator[Any]) -> Any:
    """The tree of a checked node; ``supply`` gives what its buffers hold, in order. Raises ``PayloadBroken``."""
    kind = type(node)
    if kind in _AS_IS or kind is int or kind is str:
        return node
    maker = _MAKERS.get(kind)
    if maker is None:
        return next(supply)
    return maker(node, supply)


def _dict_of(node: DictNode, supply: Iterator[Any]) -> dict[str, Any]:
    return dict(zip(node.keys, _list_of(node, supply), strict=True))


def _list_of(node: DictNode | ListNode | TupleNode, supply: Iterator[Any]) -> list[Any]:
    return [value if type(value) in _AS_IS else build(value, supply) for value in node.values]


def _tuple_of(node: TupleNode, supply: Iterator[Any]) -> tuple[Any, ...]:
    return tuple(_list_of(node, supply))


def _scalar_of(node: ScalarNode, supply: Iterator[Any]) -> Any:  # noqa: ARG001
    try:
        return scalar_of(node.dtype, node.octets)
    except ValueError as error:
        broken(f"a scalar that is none: {error}")


def _bytes_of(node: BytesNode, supply: Iterator[Any]) -> bytes:  # noqa: ARG001
    return node.octets


_MAKERS: dict[type, Callable[[Any, Iterator[Any]], Any]] = {
    DictNode: _dict_of,
    ListNode: _list_of,
    TupleNode: _tuple_of,
    ScalarNode: _scalar_of,
    BytesNode: _bytes_of,
}
