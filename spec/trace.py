"""The trace format: what ran, one JSON line a ``handle``, so that anybody can replay it on the cores.

A file is a header, then the steps of one party (or of all receivers of a party), then an end if it was closed in order::

    {"v":2,"trace":"troth","declarations":HASH,"limits":{NAME:NUMBER},
     "core":...,"config":{NAME:VALUE},"party":...,"driver":...,"launch":...}
    {"v":2,"n":0,"turn":...,"t_ns":...,"party":...,"epoch":...,"link":...,"event":{...},"rows":[...],"effects":[...],"state":DIGEST}
    {"v":2,"end":1}

The header says all that it takes to make the core again, and who the party is: parties of one *driver* meet on local links, and the two
ends of a *launch* on the links between processes.

``n`` counts the steps of the file from 0, so a lost one shows, and the end says how many there are. ``turn`` counts the steps of the
driver, so that the files of one driver have one order. ``t_ns`` is the driver's clock and never goes back; the steps of one reaction
have one time. ``epoch`` and ``link`` say in which session and on which link it happened, or null. ``state`` is the digest of the
snapshot *after* the step; after a refusal that is the digest before it, and the last of ``rows`` is what refused.

A line is written before the effects of its step are performed. So a process that is killed leaves a file without an end, and whatever
others heard of it is in there. Version 1 had neither ``turn`` nor an end, and its header did not say what the core was.

Reading is strict: a key too many, too few or twice, a number that is not an int, a class that is not registered, a line that is
cut off: each is one ``TraceError`` that names the line and the field. Nothing here opens a file: lines come in, lines go out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn, TypeAlias

import attrs
from attrs import field, frozen

from troth.spec.codec import Codec
from troth.spec.core import Effect, Event, LinkLost, LinkUp, Received, Step
from troth.spec.errors import CodecError, TraceError
from troth.spec.fingerprint import DIGEST_HEX

VERSION = 2
Number: TypeAlias = int | float | bool | None

Setting: TypeAlias = bool | int

_HEADER = ("v", "trace", "declarations", "limits", "core", "config", "party", "driver", "launch")
_RECORD = ("v", "n", "turn", "t_ns", "party", "epoch", "link", "event", "rows", "effects", "state")
_END = ("v", "end")


@frozen
class Header:
    """The first line: under which declarations and limits the steps were taken."""

    declarations: str
    """``fingerprint.declaration_hash`` of the parties."""
    limits: Mapping[str, Number]
    core: str = ""
    """The declared party whose core it is."""
    config: Mapping[str, Setting] = field(factory=dict)
    """The core's configuration, its limits aside."""
    party: str = ""
    """What the driver calls it; of receivers, whose they are."""
    driver: str = ""
    """Who gives it its events; no two drivers of a run are called alike."""
    launch: str | None = None
    """Of which launch it is an end, or ``None``."""


@frozen
class End:
    """The last line: the file is whole, and has so many steps."""

    steps: int


@frozen
class Record:
    """One step."""

    n: int
    turn: int
    t_ns: int
    party: str
    epoch: int | None
    link: str | None
    event: Event
    rows: tuple[str, ...]
    effects: tuple[Effect, ...]
    state: str

    @classmethod
    def of(
        cls, step: Step, event: Event, *, n: int, t_ns: int, party: str, epoch: int | None, state: str, turn: int | None = None
    ) -> Record:
        """The record of a step; the link is the event's. ``turn`` is ``n`` where a driver has one party only."""
        return cls(n, n if turn is None else turn, t_ns, party, epoch, link_of(event), event, step.rows, step.effects, state)


def link_of(event: Event) -> str | None:
    """The link that an event is about."""
    return event.link if isinstance(event, Received | LinkUp | LinkLost) else None


def config_of(config: Any) -> dict[str, Setting]:
    """The values of an attrs class of a configuration, its limits aside, for a header."""
    return {f.name: getattr(config, f.name) for f in attrs.fields(type(config)) if f.name != "limits"}


def limits_of(limits: Any) -> dict[str, Number]:
    """The values of an attrs class of limits, for a header."""
    return {f.name: getattr(limits, f.name) for f in attrs.fields(type(limits))}


def header_line(header: Header) -> str:
    """The first line, without its newline."""
    values = {
        "v": VERSION,
        "trace": "troth",
        "declarations": header.declarations,
        "limits": dict(header.limits),
        "core": header.core,
        "config": dict(header.config),
        "party": header.party,
        "driver": header.driver,
        "launch": header.launch,
    }
    return json.dumps(values, separators=(",", ":"), allow_nan=False)


def end_line(steps: int) -> str:
    """The last line, without its newline."""
    return json.dumps({"v": VERSION, "end": steps}, separators=(",", ":"))


def record_line(codec: Codec, record: Record) -> str:
    """The line of a step, without its newline."""
    values = {
        "v": VERSION,
        "n": record.n,
        "turn": record.turn,
        "t_ns": record.t_ns,
        "party": record.party,
        "epoch": record.epoch,
        "link": record.link,
        "event": codec.encode_event(record.event),
        "rows": list(record.rows),
        "effects": [codec.encode_effect(effect) for effect in record.effects],
        "state": record.state,
    }
    return json.dumps(values, separators=(",", ":"), allow_nan=False)


def read_header(line: str) -> Header:
    """The header in the first line of a file."""
    found = _object(line, 1, _HEADER)
    _require(1, "trace", found["trace"] == "troth", found["trace"], "must be 'troth': this is not a trace of Troth")
    declarations = _digest(1, "declarations", found["declarations"])
    limits = found["limits"]
    _require(1, "limits", isinstance(limits, dict), limits, "must be an object")
    for name, value in limits.items():
        _require(1, f"limits.{name}", value is None or isinstance(value, int | float), value, "must be a number or null")
    for name in ("core", "party", "driver"):
        _require(1, name, isinstance(found[name], str), found[name], "must be a name")
    config = found["config"]
    _require(1, "config", isinstance(config, dict), config, "must be an object")
    for name, value in config.items():
        _require(1, f"config.{name}", isinstance(value, int), value, "must be true, false or an int")
    launch = found["launch"]
    _require(1, "launch", launch is None or isinstance(launch, str), launch, "must be a name or null")
    return Header(declarations, limits, found["core"], config, found["party"], found["driver"], launch)


def read_record(codec: Codec, line: str, number: int = 2) -> Record:
    """The step in one line; ``number`` is what an error calls the line."""
    found = read_line(codec, line, number)
    if isinstance(found, End):
        raise TraceError(number, "end", "must be a step, and the file ends here")
    return found


def read_line(codec: Codec, line: str, number: int = 2) -> Record | End:
    """The step in one line, or the end; ``number`` is what an error calls the line."""
    found = _object(line, number, _RECORD, _END)
    if "end" in found:
        return End(_count(number, "end", found["end"]))
    rows = found["rows"]
    _require(number, "rows", isinstance(rows, list), rows, "must be a list")
    for place, row in enumerate(rows):
        _require(number, f"rows[{place}]", isinstance(row, str), row, "must be the name of a row")
    effects = found["effects"]
    _require(number, "effects", isinstance(effects, list), effects, "must be a list")
    _require(number, "party", isinstance(found["party"], str), found["party"], "must be a name")
    _require(number, "link", found["link"] is None or isinstance(found["link"], str), found["link"], "must be a name or null")
    try:
        event = codec.decode_event(found["event"], "event")
        decoded = tuple(codec.decode_effect(effect, f"effects[{place}]") for place, effect in enumerate(effects))
    except CodecError as error:
        raise TraceError(number, error.field, error.reason) from error
    return Record(
        _count(number, "n", found["n"]),
        _count(number, "turn", found["turn"]),
        _count(number, "t_ns", found["t_ns"]),
        found["party"],
        None if found["epoch"] is None else _count(number, "epoch", found["epoch"]),
        found["link"],
        event,
        tuple(rows),
        decoded,
        _digest(number, "state", found["state"]),
    )


def read(codec: Codec, lines: Iterable[str]) -> tuple[Header, Iterator[Record]]:
    """The header, and the steps as they are asked for; each of them is checked against the one before."""
    waiting = iter(lines)
    first = next(waiting, None)
    if first is None:
        raise TraceError(1, "v", "the file is empty: there is not even a header")
    return read_header(first), _records(codec, waiting)


def _records(codec: Codec, lines: Iterator[str]) -> Iterator[Record]:
    latest = 0
    ended = False
    for place, line in enumerate(lines):
        record = read_line(codec, line, place + 2)
        if ended:
            raise TraceError(place + 2, "(line)", "must not be here: the file has ended")
        if isinstance(record, End):
            if record.steps != place:
                raise TraceError(place + 2, "end", f"must be {place}, got {record.steps}: a line is missing")
            ended = True
            continue
        if record.n != place:
            raise TraceError(place + 2, "n", f"must be {place}, got {record.n}: a line is missing or out of place")
        if record.t_ns < latest:
            raise TraceError(place + 2, "t_ns", f"goes back from {latest} to {record.t_ns}")
        latest = record.t_ns
        yield record


# -- strict JSON -------------------------------------------------------------------------------------------------------


def _object(line: str, number: int, keys: tuple[str, ...], instead: tuple[str, ...] | None = None) -> dict[str, Any]:
    try:
        found = json.loads(line, object_pairs_hook=_once, parse_constant=_no_constant)
    except CodecError as error:
        raise TraceError(number, error.field, error.reason) from error
    except RecursionError as error:
        raise TraceError(number, "(line)", "is nested too deeply") from error
    except ValueError as error:
        raise TraceError(number, "(line)", f"is not JSON, or was cut off: {error}") from error
    _require(number, "(line)", isinstance(found, dict), found, "must be an object")
    _require(number, "v", found.get("v") == VERSION and type(found["v"]) is int, found.get("v"), f"must be version {VERSION}")
    if instead is not None and instead[-1] in found:
        keys = instead
    for key in keys:
        _require(number, key, key in found, None, "is missing")
    for key in found:
        _require(number, key, key in keys, key, f"is not a field; there are {', '.join(keys)}")
    return dict(found)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise CodecError(key, "is given twice")
        found[key] = value
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _require(number: int, field: str, holds: bool, value: object, reason: str) -> None:
    if not holds:
        raise TraceError(number, field, reason if value is None else f"{reason}, got {str(value)[:60]!r}")


def _count(number: int, field: str, value: object) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise TraceError(number, field, f"must be an int from 0 below 2**63, got {str(value)[:60]!r}")
    return value


def _digest(number: int, field: str, value: object) -> str:
    if not isinstance(value, str) or len(value) != DIGEST_HEX or set(value) - set("0123456789abcdef"):
        raise TraceError(number, field, f"must be {DIGEST_HEX} hexadecimal digits, got {str(value)[:60]!r}")
    return value
