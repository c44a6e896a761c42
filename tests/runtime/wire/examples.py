"""An example of every kind's message and of what rides beside it, and strategies for all of them."""

from __future__ import annotations

from enum import Enum
from typing import Any, get_type_hints

import attrs
from hypothesis import strategies as st

from troth.runtime.wire import besides, bounds, codec, frames, kinds
from troth.runtime.wire.kinds import BY_CLASS, KINDS, Kind
from troth.spec import messages as m
from troth.spec.core import Message
from troth.spec.samples import sample

MESSAGE_KINDS = [kind for kind in KINDS if kind.code != kinds.CHUNK]

BESIDES: dict[type[Any], Any] = {
    besides.HelloBeside: besides.HelloBeside(1, "job-1", "site-1", 0),
    besides.HelloAcceptedBeside: besides.HelloAcceptedBeside(
        besides.Terms(5.0, 30.0, 600.0), True, besides.Credentials("canary", "signed")
    ),
    besides.SessionReadyBeside: besides.SessionReadyBeside(b"p" * 32),
    besides.SessionOpenBeside: besides.SessionOpenBeside("host-7"),
    besides.TaskBeside: besides.TaskBeside("t-1", "train", b"d" * 16, b"manifest", b"payload", 7),
    besides.ResultBeside: besides.ResultBeside(b"d" * 16, b"manifest", b"payload", 7),
    besides.LogBeside: besides.LogBeside("loss", 0.5, "SCALAR", {"step": 3, "note": None}),
}
HEARTBEAT = codec.encode(m.Heartbeat(epoch=1))


def message_of(kind: Kind) -> Message:
    """The smallest message of a kind."""
    return sample(kind.message)


def beside_of(kind: Kind) -> Any:
    """Something that may ride beside it."""
    return None if kind.beside is None else BESIDES[kind.beside]


def derived_of(kind: Kind, message: Message) -> dict[str, Any]:
    """What the receiver would say to get this message."""
    return {name: getattr(message, name) for name in kind.derived}


def frame_of(kind: Kind) -> bytes:
    """A frame of a kind."""
    return codec.encode(message_of(kind), beside_of(kind))


def parsed(frame: bytes) -> codec.Arrived:
    """A whole frame, decoded."""
    code, epoch, length = frames.parse_head(frame, 0, kinds.BODY_BOUNDS)
    assert len(frame) == frames.HEADER_BYTES + length
    return codec.decode(code, epoch, memoryview(bytearray(frame))[frames.HEADER_BYTES :])


def heartbeat(epoch: int = 1) -> tuple[bytes, int]:
    """A small frame and its kind."""
    return codec.encode(m.Heartbeat(epoch=epoch)), kinds.HEARTBEAT


def status(seq: int, epoch: int = 1) -> tuple[bytes, int]:
    """A small frame that can be told from others, and its kind."""
    return codec.encode(m.TaskStatus(epoch=epoch, seq=seq)), BY_CLASS[m.TaskStatus].code


# -- strategies --------------------------------------------------------------------------------------------------------


def field_values(cls: type[Any], f: attrs.Attribute[Any]) -> st.SearchStrategy[Any]:
    """What a field of a message can be."""
    hint = get_type_hints(cls)[f.name]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(list(hint))
    if hint is bool:
        return st.booleans()
    return st.integers(f.metadata["low"], f.metadata["high"])


def messages(kind: Kind) -> st.SearchStrategy[Message]:
    """Every message of a kind."""
    return st.builds(kind.message, **{f.name: field_values(kind.message, f) for f in attrs.fields(kind.message)})


names = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=bounds.MAX_TEXT)
whole = st.integers(0, bounds.MAX_PAYLOAD_BYTES)
scalars = st.none() | st.booleans() | st.integers(-(2**63 - 1), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=50)
short_names = st.text(max_size=20)
digests = st.binary(min_size=16, max_size=16)
BESIDE_STRATEGIES: dict[type[Any], st.SearchStrategy[Any]] = {
    besides.HelloBeside: st.builds(besides.HelloBeside, st.integers(0, 65535), names, names, st.integers(0, 65535)),
    besides.HelloAcceptedBeside: st.builds(
        lambda interval, credentials: besides.HelloAcceptedBeside(
            besides.Terms(interval, interval * 3, interval * 9), credentials is not None, credentials
        ),
        st.floats(0.01, 1e6),
        st.none() | st.builds(besides.Credentials, names, names),
    ),
    besides.SessionReadyBeside: st.builds(besides.SessionReadyBeside, st.just(b"") | st.binary(min_size=32, max_size=32)),
    besides.SessionOpenBeside: st.builds(besides.SessionOpenBeside, names.map(lambda name: name[: bounds.MAX_INSTANCE_TEXT])),
    besides.TaskBeside: st.builds(besides.TaskBeside, names, names, digests, st.binary(), st.binary(), whole),
    besides.ResultBeside: st.builds(besides.ResultBeside, digests, st.binary(), st.binary(), whole),
    besides.LogBeside: st.builds(
        besides.LogBeside,
        names,
        scalars | st.lists(scalars, max_size=5) | st.dictionaries(short_names, scalars, max_size=5),
        names,
        st.dictionaries(short_names, scalars, max_size=5),
    ),
}


def arrivals() -> st.SearchStrategy[tuple[Kind, Message, Any]]:
    """Any kind, a message of it and what rides beside it."""
    return st.sampled_from(MESSAGE_KINDS).flatmap(
        lambda kind: st.tuples(st.just(kind), messages(kind), st.none() if kind.beside is None else BESIDE_STRATEGIES[kind.beside])
    )
