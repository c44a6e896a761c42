"""The trace format: whatever can happen can be written and read back, and nothing else can be read."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any, get_args

import attrs
import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from tests.spec.toys import TURNSTILE_PARTY, Gate, Limits
from troth.spec import Called, EffectFailed, PartyCore, Received, Resolve, Send, SetTimer, core, messages
from troth.spec.codec import EFFECTS, EVENTS, Codec
from troth.spec.core import Key, Message
from troth.spec.errors import CodecError, TraceError
from troth.spec.fingerprint import DIGEST_HEX, declaration_hash, state_digest
from troth.spec.trace import Header, Record, header_line, limits_of, read, read_header, read_record, record_line
from troth.statemachines import PARTIES


class Colour(Enum):
    """An enum in a message."""

    RED = "red"
    BLUE = "blue"


@frozen(kw_only=True)
class Inner:
    """A class in a message."""

    flag: bool = False


@frozen(kw_only=True)
class Rich(Message):
    """A message with a field of every kind a trace can carry."""

    number: int = 0
    flag: bool = False
    colour: Colour = Colour.RED
    maybe: Colour | None = None
    many: tuple[int, ...] = ()
    pair: tuple[int, bool] = (0, False)
    inner: Inner = Inner()
    text: str = ""
    key: Key = None


@frozen
class Arguments:
    """A call's payload."""

    receivers: int = 1


CODEC = Codec([Rich, Arguments])

INTS = st.integers(-(2**63) + 1, 2**63 - 1)
KEYS = st.none() | INTS | st.text(max_size=5) | st.lists(INTS, max_size=3).map(tuple)
RICH = st.builds(
    Rich,
    number=INTS,
    flag=st.booleans(),
    colour=st.sampled_from(Colour),
    maybe=st.none() | st.sampled_from(Colour),
    many=st.lists(INTS, max_size=3).map(tuple),
    pair=st.tuples(INTS, st.booleans()),
    inner=st.builds(Inner, flag=st.booleans()),
    text=st.text(max_size=5),
    key=KEYS,
)


def instances(cls: type) -> st.SearchStrategy[Any]:
    """Any instance of an event or effect class."""
    by_name: dict[str, st.SearchStrategy[Any]] = {
        "message": RICH,
        "key": KEYS,
        "payload": st.none() | st.builds(Arguments, receivers=INTS),
        "effect": st.deferred(lambda: EFFECT),
        "outcome": st.sampled_from(Colour) if cls is Resolve else st.sampled_from(core.TransferOutcome),
        "signal": st.sampled_from(core.ProcessSignal),
        "clean": st.booleans(),
    }
    by_type: dict[Any, st.SearchStrategy[Any]] = {"str": st.text(max_size=5), "int": INTS}
    fields = attrs.fields(cls)
    return st.builds(cls, **{f.name: by_name[f.name] if f.name in by_name else by_type[f.type] for f in fields})


EFFECT: st.SearchStrategy[Any] = st.one_of([instances(cls) for cls in EFFECTS])


@pytest.mark.parametrize("cls", EVENTS, ids=lambda cls: cls.__name__)
@given(data=st.data())
def test_every_event_comes_back_as_it_was(cls: type, data: st.DataObject) -> None:
    """Through JSON text, types and all."""
    event = data.draw(instances(cls))

    again = CODEC.decode_event(json.loads(json.dumps(CODEC.encode_event(event))))

    assert event == again
    assert repr(event) == repr(again)


@pytest.mark.parametrize("cls", EFFECTS, ids=lambda cls: cls.__name__)
@given(data=st.data())
def test_every_effect_comes_back_as_it_was(cls: type, data: st.DataObject) -> None:
    """Through JSON text, types and all."""
    effect = data.draw(instances(cls))

    again = CODEC.decode_effect(json.loads(json.dumps(CODEC.encode_effect(effect))))

    assert effect == again
    assert repr(effect) == repr(again)


def test_every_class_of_events_and_effects_is_known() -> None:
    """Whoever adds one adds it to the format."""
    assert set(EVENTS) == set(get_args(core.Event))
    assert set(EFFECTS) == set(get_args(core.Effect))


def test_every_message_of_the_protocol_can_be_traced() -> None:
    """Registered as a module, each with its smallest values."""
    from troth.spec.codec import classes_in
    from troth.spec.samples import sample

    codec = Codec(classes_in(messages))
    for cls in classes_in(messages):
        if issubclass(cls, Message):
            try:
                received = Received("control", sample(cls))
            except ValueError:  # an abstract base, whose smallest values are not those of a subclass
                continue
            assert codec.decode_event(codec.encode_event(received)) == received


def test_a_codec_knows_what_the_declarations_name() -> None:
    """Messages that are sent and received, payloads, outcomes, and what is in them; modules and classes add the rest."""
    codec = Codec.of(PARTIES.values(), messages, Colour)

    assert set(Codec.of([TURNSTILE_PARTY]).classes) == {"TransferOutcome", "ProcessSignal"}
    assert {"TaskReady", "FailReason", "SendArguments", "Outcome", "Colour"} <= set(codec.classes)
    assert set(Codec.of(PARTIES.values()).classes) <= set(codec.classes)


def test_a_field_that_no_trace_can_carry_is_named() -> None:
    """A list could be changed after it was written."""

    @frozen(kw_only=True)
    class Loose(Message):
        items: list[int] = attrs.field(factory=list)

    codec = Codec([Loose])
    event = {"is": "Received", "link": "w", "message": {"is": "Loose", "items": []}}
    with pytest.raises(CodecError, match=r"event.message.items: the annotation list\[int\] is not one that a trace can carry"):
        codec.decode_event(event)
    with pytest.raises(CodecError, match="dict: only attrs classes and enums can be in a trace"):
        Codec([dict])


def test_a_tuple_is_as_long_as_it_must_be() -> None:
    """And is a list in JSON."""
    event: Any = CODEC.encode_event(Received("w", Rich()))
    for pair, says in (([1], "must be a list of 2, got 1"), (7, "must be a list, got 7"), ([1, 2], r"pair\[1\]: must be bool, got 2")):
        event["message"]["pair"] = pair
        with pytest.raises(CodecError, match=says):
            CODEC.decode_event(event)


def test_a_line_is_what_the_design_says() -> None:
    """The keys, in their order; the link is the event's."""
    record = Record.of(
        core.Step(effects=(SetTimer("hold", 2, 1, "WAIT_S"),), rows=("lease.H1",)),
        Received("wire", Rich(colour=Colour.BLUE)),
        n=0,
        t_ns=12,
        party="trainer",
        epoch=3,
        state="0" * DIGEST_HEX,
    )

    line = record_line(CODEC, record)

    assert list(json.loads(line)) == ["v", "n", "turn", "t_ns", "party", "epoch", "link", "event", "rows", "effects", "state"]
    assert '"link":"wire"' in line
    assert '"colour":"Colour.BLUE"' in line
    assert '"effects":[{"is":"SetTimer","timer":"hold","key":2,"generation":1,"limit":"WAIT_S"}]' in line
    assert read_record(CODEC, line) == record


def a_run() -> list[str]:
    """A turnstile's trace: a refusal, a coin, a push."""
    subject, codec = PartyCore(TURNSTILE_PARTY), Codec.of([TURNSTILE_PARTY])
    lines = [header_line(Header(declaration_hash([TURNSTILE_PARTY]), limits_of(Limits())))]
    for n, name in enumerate(("push", "coin", "push")):
        event = Called(name)
        step = subject.handle(event)
        record = Record.of(step, event, n=n, t_ns=10 * n, party="turnstile", epoch=None, state=state_digest(subject.snapshot()))
        lines.append(record_line(codec, record))
    return lines


def test_a_trace_can_be_replayed() -> None:
    """Header, rows, effects and digests: the whole loop."""
    header, records = read(CODEC, a_run())
    subject = PartyCore(TURNSTILE_PARTY)

    assert header == Header(declaration_hash([TURNSTILE_PARTY]), {"SLOTS": 2, "WAIT_S": 5})
    for record in records:
        step = subject.handle(record.event)
        assert (record.rows, record.effects, record.state) == (step.rows, step.effects, state_digest(subject.snapshot()))


def test_a_refused_step_keeps_its_digest() -> None:
    """The row that refused is the last one told."""
    _, records = read(CODEC, a_run())

    first = next(records)

    assert first.rows == ("gate.locked.push",)
    assert first.state == state_digest(PartyCore(TURNSTILE_PARTY).snapshot())


GOOD = json.loads(a_run()[2])


def spoiled(**changes: Any) -> str:
    """A good line with some fields changed; ``...`` takes one away."""
    return json.dumps({key: value for key, value in {**GOOD, **changes}.items() if value is not ...})


BAD_LINES: dict[str, tuple[str, str]] = {
    "cut off": (a_run()[2][:-7], "line 9: (line): is not JSON, or was cut off"),
    "not an object": ("[]", "line 9: (line): must be an object"),
    "too deep": ("[" * 100_000, "line 9: (line): is nested too deeply"),
    "not a number": (spoiled(n=float("nan")), "line 9: (line): is not JSON, or was cut off: NaN is not a number"),
    "a key twice": (spoiled()[:-1] + ', "n": 1}', "line 9: n: is given twice"),
    "another version": (spoiled(v=1), "line 9: v: must be version 2, got '1'"),
    "a true for a version": (spoiled(v=True), "line 9: v: must be version 2, got 'True'"),
    "a key too few": (spoiled(rows=...), "line 9: rows: is missing"),
    "a key too many": (spoiled(mood="fine"), "line 9: mood: is not a field; there are v, n, turn, t_ns"),
    "a bool for an int": (spoiled(n=True), "line 9: n: must be an int from 0 below 2**63, got 'True'"),
    "a float for an int": (spoiled(t_ns=1.0), "line 9: t_ns: must be an int from 0 below 2**63, got '1.0'"),
    "a negative epoch": (spoiled(epoch=-1), "line 9: epoch: must be an int from 0"),
    "a number for a party": (spoiled(party=7), "line 9: party: must be a name, got '7'"),
    "a number for a link": (spoiled(link=7), "line 9: link: must be a name or null, got '7'"),
    "rows that are none": (spoiled(rows="gate.G1"), "line 9: rows: must be a list, got 'gate.G1'"),
    "a row that is none": (spoiled(rows=["gate.G1", 2]), "line 9: rows[1]: must be the name of a row, got '2'"),
    "effects that are none": (spoiled(effects={}), "line 9: effects: must be a list, got '{}'"),
    "a short digest": (spoiled(state="abc"), "line 9: state: must be 32 hexadecimal digits, got 'abc'"),
    "no event": (spoiled(event=None), "line 9: event: must be an object, got None"),
    "an unknown event": (spoiled(event={"is": "Guessed"}), "line 9: event.is: 'Guessed' is not a known class here"),
    "an effect for an event": (spoiled(event={"is": "Send"}), "line 9: event.is: 'Send' is not a known class here"),
    "an event's field missing": (
        spoiled(event={"is": "TimerFired", "timer": "t", "key": None}),
        "line 9: event.generation: is missing from this TimerFired",
    ),
    "an event's field unknown": (
        spoiled(event={"is": "OwnerLost", "owner": 1}),
        "line 9: event.owner: OwnerLost has no such field; it has none",
    ),
    "a bool in an effect": (
        spoiled(effects=[{"is": "Spawn", "process": 0}, {"is": "Spawn", "process": True}]),
        "line 9: effects[1].process: must be int, got True",
    ),
    "a huge int in an effect": (spoiled(effects=[{"is": "Spawn", "process": 2**63}]), "line 9: effects[0].process: is beyond 63 bits"),
    "a wrong key": (
        spoiled(effects=[{"is": "CancelTimer", "timer": "t", "key": [1, None]}]),
        "line 9: effects[0].key: must be int, got [1, None]; or must be str, got [1, None]; or must be int, got None; or must be null",
    ),
    "a message that is not registered": (
        spoiled(event={"is": "Received", "link": "w", "message": {"is": "Poor"}}),
        "line 9: event.message.is: 'Poor' is not a known Message here",
    ),
    "a payload for a message": (
        spoiled(event={"is": "Received", "link": "w", "message": {"is": "Arguments", "receivers": 1}}),
        "line 9: event.message.is: 'Arguments' is not a known Message here",
    ),
    "an unknown member": (
        spoiled(effects=[{"is": "SignalProcess", "signal": "ProcessSignal.STOP", "process": 0}]),
        "line 9: effects[0].signal: must be a member of ProcessSignal as CLASS.MEMBER, got 'ProcessSignal.STOP'",
    ),
    "a member of another enum": (
        spoiled(effects=[{"is": "SignalProcess", "signal": "Colour.RED", "process": 0}]),
        "line 9: effects[0].signal: must be a member of ProcessSignal",
    ),
}


@pytest.mark.parametrize(("line", "says"), BAD_LINES.values(), ids=BAD_LINES)
def test_a_bad_line_is_one_error_that_names_line_and_field(line: str, says: str) -> None:
    """Nothing is converted, defaulted or skipped."""
    with pytest.raises(TraceError) as caught:
        read_record(CODEC, line, 9)

    assert says in str(caught.value)
    assert caught.value.line == 9


@given(st.data())
def test_any_one_changed_value_is_an_error_or_another_record(data: st.DataObject) -> None:
    """Tampering never goes unseen: what is read back differs, or is not read."""
    line = a_run()[2]
    place = data.draw(st.integers(0, len(line) - 1))
    changed = line[:place] + data.draw(st.characters(exclude_characters=line[place])) + line[place + 1 :]
    try:
        record = read_record(CODEC, changed)
    except TraceError:
        return
    assert record != read_record(CODEC, line)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([], "line 1: v: the file is empty: there is not even a header"),
        (a_run()[1:], "line 1: trace: is missing"),
        ([a_run()[0], a_run()[2]], "line 2: n: must be 0, got 1: a line is missing or out of place"),
        ([*a_run()[:2], a_run()[1]], "line 3: n: must be 1, got 0: a line is missing or out of place"),
        ([a_run()[0], *[line.replace('"t_ns":10', '"t_ns":99') for line in a_run()[1:]]], "line 4: t_ns: goes back from 99 to 20"),
        (["", *a_run()], "line 1: (line): is not JSON, or was cut off"),
    ],
)
def test_lines_stand_in_their_order(lines: list[str], says: str) -> None:
    """A lost line, a doubled one, a clock that goes back."""
    with pytest.raises(TraceError) as caught:
        list(read(CODEC, lines)[1])

    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"trace": "other"}, "trace: must be 'troth': this is not a trace of Troth, got 'other'"),
        ({"declarations": "?"}, "declarations: must be 32 hexadecimal digits"),
        ({"limits": []}, "limits: must be an object, got '[]'"),
        ({"limits": {"WAIT_S": "long"}}, "limits.WAIT_S: must be a number or null, got 'long'"),
    ],
)
def test_a_bad_header_is_one_error(changes: dict[str, Any], says: str) -> None:
    """The first line is checked like the others."""
    with pytest.raises(TraceError) as caught:
        read_header(json.dumps({**json.loads(a_run()[0]), **changes}))

    assert f"line 1: {says}" in str(caught.value)


def test_what_was_not_registered_is_not_written() -> None:
    """The writer fails, and not the reader a week later."""

    @frozen(kw_only=True)
    class Poor(Message):
        pass

    with pytest.raises(CodecError, match=r"effect.message: .*Poor is not registered; give it to the codec"):
        CODEC.encode_effect(Send("wire", Poor()))
    with pytest.raises(CodecError, match=r"effect.outcome: .*Gate is not registered"):
        CODEC.encode_effect(Resolve("push", 0, Gate.OPEN))


def test_two_classes_of_one_name_are_refused() -> None:
    """A name in a file must mean one class."""
    other = attrs.make_class("Rich", [], bases=(Message,), frozen=True)
    with pytest.raises(CodecError, match="Rich: two classes have this name"):
        Codec([Rich, other])


def test_a_value_that_its_class_refuses_is_an_error() -> None:
    """The class validates, as it does everywhere."""
    codec = Codec([messages.SessionAccepted])
    with pytest.raises(CodecError, match=r"event.message: no SessionAccepted can be so: .*epoch"):
        codec.decode_event({"is": "Received", "link": "w", "message": {"is": "SessionAccepted", "epoch": -1}})


def test_a_failed_effect_carries_its_effect() -> None:
    """The one event that has an effect in it."""
    failed = EffectFailed(Send("wire", Rich(number=4)))

    assert CODEC.decode_event(CODEC.encode_event(failed)) == failed
