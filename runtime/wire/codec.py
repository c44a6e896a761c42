"""Messages as frames, and frames as messages. Both strictly.

A body is a msgpack array of exact length: the message's fields in their order, without the epoch (the header has it) and without what
the receiver derives, then the fields of what rides beside it.

Rule 1.  One decoder a kind, made once, that knows the type and bound of every element. It never sees another kind, so there are no unions
         of classes and no names in the bytes.
Rule 2.  Then the classes themselves are built, and check again. What the decoder let through and a class refuses is a ``FrameError`` too.
Rule 3.  Whatever the bytes are, ``decode`` returns what they say or raises ``FrameError``. Nothing else, and never more memory than the
         body has a right to.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from operator import attrgetter
from typing import Annotated, Any, TypeAlias, get_type_hints

import attrs
import msgspec
from attrs import define, frozen
from msgspec import Meta

from troth.runtime.errors import FrameError, RuntimeFault
from troth.runtime.ports import Buffer
from troth.runtime.wire import frames
from troth.runtime.wire.kinds import BY_CODE, CHUNK, KINDS, Kind
from troth.spec.core import Message

_encode = msgspec.msgpack.Encoder().encode
_pack = frames.HEADER.pack
Getter: TypeAlias = Callable[[Any], tuple[Any, ...]]


@define(slots=True)
class Arrived:
    """A decoded frame: its kind, the fields that it carried (the epoch too), and what rode beside them."""

    kind: Kind
    fields: dict[str, Any]
    beside: Any = None

    def message(self, **derived: Any) -> Message:
        """The message, with the fields that the receiver derives. Raises ``FrameError`` if there can be no such message."""
        kind = self.kind
        if tuple(derived) != kind.derived:
            raise RuntimeFault(f"{kind.name}: the receiver must say {list(kind.derived)}, and says {list(derived)}")
        try:
            return kind.message(**self.fields, **derived)
        except (ValueError, TypeError) as error:
            raise FrameError(f"{kind.name}: {error}") from error


@frozen(eq=False)
class _Coder:
    """How one kind is encoded and decoded."""

    kind: Kind
    names: tuple[str, ...]
    values: Getter
    beside_values: Getter | None
    decode: Callable[[Buffer], tuple[Any, ...]]
    beside_of: Callable[[tuple[Any, ...]], Any] | None
    low_epoch: int
    high_epoch: int


# -- what a field is on the wire ---------------------------------------------------------------------------------------


def _wire_type(field: attrs.Attribute[Any], hint: Any) -> Any:
    if "wire" in field.metadata:
        return field.metadata["wire"]
    if hint is int:
        return Annotated[int, Meta(ge=field.metadata["low"], le=field.metadata["high"])]
    if hint is bool or (isinstance(hint, type) and issubclass(hint, Enum)):
        return hint
    raise TypeError(f"{field.name}: no wire type for {hint!r}")


def _getter(names: tuple[str, ...]) -> Getter:
    if not names:
        return lambda _instance: ()
    if len(names) == 1:
        (name,) = names
        return lambda instance: (getattr(instance, name),)
    return attrgetter(*names)


def _optional(inner: Getter) -> Callable[[Any], Any]:
    return lambda value: None if value is None else inner(value)


def _packer(cls: type[Any]) -> Getter:
    """The wire values of a beside. A field that is a class of its own becomes an array."""
    fields = attrs.fields(cls)
    plain = _getter(tuple(f.name for f in fields))
    packs: list[tuple[int, Callable[[Any], Any]]] = []
    for index, f in enumerate(fields):
        if "of" in f.metadata:
            inner = _packer(f.metadata["of"])
            packs.append((index, _optional(inner)))
        elif "pack" in f.metadata:
            packs.append((index, f.metadata["pack"]))
    if not packs:
        return plain

    def values(instance: Any) -> tuple[Any, ...]:
        found = list(plain(instance))
        for index, pack in packs:
            found[index] = pack(found[index])
        return tuple(found)

    return values


def _unpacker(cls: type[Any]) -> Callable[[tuple[Any, ...]], Any]:
    inner = [(index, f.metadata["of"]) for index, f in enumerate(attrs.fields(cls)) if "of" in f.metadata]
    if not inner:
        return lambda values: cls(*values)

    def made(values: tuple[Any, ...]) -> Any:
        found = list(values)
        for index, of in inner:
            found[index] = None if found[index] is None else of(*found[index])
        return cls(*found)

    return made


def _coder(kind: Kind) -> _Coder:
    hints = get_type_hints(kind.message)
    fields = [f for f in attrs.fields(kind.message) if f.name != "epoch" and f.name not in kind.derived]
    epoch = attrs.fields_dict(kind.message)["epoch"]
    types = [_wire_type(f, hints[f.name]) for f in fields]
    if kind.beside is not None:
        types += [_wire_type(f, None) for f in attrs.fields(kind.beside)]
    names = tuple(f.name for f in fields)
    return _Coder(
        kind=kind,
        names=names,
        values=_getter(names),
        beside_values=None if kind.beside is None else _packer(kind.beside),
        decode=msgspec.msgpack.Decoder(tuple[tuple(types)]).decode,  # type: ignore[misc]
        beside_of=None if kind.beside is None else _unpacker(kind.beside),
        low_epoch=epoch.metadata["low"],
        high_epoch=epoch.metadata["high"],
    )


_CODERS: dict[int, _Coder] = {kind.code: _coder(kind) for kind in KINDS if kind.code != CHUNK}
_BY_CLASS: dict[type[Message], _Coder] = {coder.kind.message: coder for coder in _CODERS.values()}


# -- in both directions ------------------------------------------------------------------------------------------------


def encode(message: Message, beside: Any = None) -> bytes:
    """The frame of ``message``, header and body. Raises ``RuntimeFault`` if it is none that goes between processes, if what is beside it
    is not of the class of its kind, or if both together are longer than such a frame may be."""
    coder = _BY_CLASS.get(type(message))
    if coder is None:
        raise RuntimeFault(f"{type(message).__name__} has no frame")
    kind = coder.kind
    values = coder.values(message)
    if coder.beside_values is not None:
        if type(beside) is not kind.beside:
            raise RuntimeFault(f"{kind.name} goes with a {kind.beside.__name__ if kind.beside else None}, not with {type(beside).__name__}")
        values += coder.beside_values(beside)
    elif beside is not None:
        raise RuntimeFault(f"nothing rides beside {kind.name}")
    body = _encode(values)
    if len(body) > kind.max_body:
        raise RuntimeFault(f"a {kind.name} has at most {kind.max_body} bytes, this one would have {len(body)}")
    return _pack(frames.MAGIC, frames.VERSION, kind.code, message.epoch, len(body)) + body  # type: ignore[attr-defined]


def chunk_head(epoch: int, request: int, offset: int, nbytes: int) -> bytes:
    """What goes before the ``nbytes`` bytes of a CHUNK: the header, the request and the offset."""
    length = frames.CHUNK_HEAD_BYTES + nbytes
    if nbytes < 1 or length > BY_CODE[CHUNK].max_body:
        raise RuntimeFault(f"a chunk has 1 to {BY_CODE[CHUNK].max_body - frames.CHUNK_HEAD_BYTES} bytes, not {nbytes}")
    return _pack(frames.MAGIC, frames.VERSION, CHUNK, epoch, length) + frames.CHUNK_HEAD.pack(request, offset)


def decode(code: int, epoch: int, body: Buffer) -> Arrived:
    """What a frame says. ``body`` may be a view of a buffer that is used again: nothing of it is kept. Raises ``FrameError``."""
    coder = _CODERS.get(code)
    if coder is None:
        raise FrameError(f"there is no kind {code} with a body to decode")
    kind = coder.kind
    if not coder.low_epoch <= epoch <= coder.high_epoch:
        raise FrameError(f"{kind.name}: an epoch is {coder.low_epoch} to {coder.high_epoch}, this one is {epoch}")
    if len(body) > kind.max_body:
        raise FrameError(f"{kind.name}: at most {kind.max_body} bytes, got {len(body)}")
    try:
        values = coder.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise FrameError(f"{kind.name}: {error}") from error
    fields = {"epoch": epoch}
    names = coder.names
    if names:
        fields.update(zip(names, values, strict=False))  # what is beside the message comes behind its fields
    if coder.beside_of is None:
        return Arrived(kind, fields)
    try:
        return Arrived(kind, fields, coder.beside_of(values[len(names) :]))
    except (ValueError, TypeError) as error:
        raise FrameError(f"{kind.name}: {error}") from error
