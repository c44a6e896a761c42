"""JSON, drawings and the page: what they hold, and that nothing is fetched from anywhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from tests.models.test_story import traced, walked
from tests.models.toys import lock, stop_and_wait
from troth.models import World, check
from troth.models.render.data import result_data, trace_data
from troth.models.render.drawing import svg
from troth.models.render.page import Shown, page
from troth.models.render.sequence import sequence
from troth.models.render.story import story
from troth.models.tokens import token
from troth.models.trace import Trace


def drawn(trace: Trace) -> ET.Element:
    """The drawing, parsed."""
    return ET.fromstring(svg(story(trace), "a trace"))


def shapes(picture: ET.Element, kind: str, cls: str) -> list[ET.Element]:
    """The shapes of that class."""
    return [shape for shape in picture.iter(kind) if cls in (shape.get("class") or "").split()]


def words(picture: ET.Element) -> list[str]:
    """Every line of text."""
    return ["".join(t for t in (text.text or "", *(child.tail or "" for child in text))) for text in picture.iter("text")]


def test_a_drawing_has_a_lifeline_for_each_party_and_an_arrow_for_each_message() -> None:
    """With the crash marked and the time it was down."""
    picture = drawn(traced(lock(), "MUTEX"))

    assert [t for t in words(picture) if t in ("server", "ann", "bob")] == ["server", "ann", "bob"]
    assert len(shapes(picture, "line", "arrow")) == 4
    assert len(shapes(picture, "line", "cross")) == 2
    assert len(shapes(picture, "line", "down")) == 1
    assert [t for t in words(picture) if t in ("1", "8", "9")] == ["1", "8"]


def test_a_drawing_marks_what_is_lost_copied_and_still_in_flight() -> None:
    """And what stands still or repeats for ever."""
    trace = walked(stop_and_wait(), "alice.send", "alice>bert:wire duplicates", "alice>bert:wire loses", "alice timer")
    picture = drawn(trace)

    assert len(shapes(picture, "line", "lost")) == 1
    assert len(shapes(picture, "line", "copied")) == 1
    assert len(shapes(picture, "circle", "copy")) == 1
    assert len(shapes(picture, "line", "flying")) == 2
    assert "Frame(bit 0) lost" in words(picture)
    assert not shapes(picture, "path", "loop")


def test_a_drawing_brackets_the_loop() -> None:
    """From its first step to the last."""
    world = World("spin")
    party = world.party("a", lambda s, e: ((s % 3) + 1, []), initial=0)
    world.may(party, "go")
    world.always_eventually("BACK", "it comes back", party.where(lambda s: s == 0), fair=["a.go"])
    picture = drawn(traced(world, "BACK"))

    assert len(shapes(picture, "path", "loop")) == 1
    assert "for ever" in words(picture)


@pytest.mark.parametrize("trace", [traced(lock(), "MUTEX"), traced(stop_and_wait(), "ALL")])
def test_everything_drawn_is_inside_the_picture(trace: Trace) -> None:
    """Nothing is cut off at the edge."""
    picture = drawn(trace)
    width, height = (float(picture.get(name, "0")) for name in ("width", "height"))
    for shape in picture.iter():
        for name, most in (("x", width), ("x1", width), ("x2", width), ("y", height), ("y1", height), ("y2", height)):
            assert 0 <= float(shape.get(name, "0")) <= most


class Outside(HTMLParser):
    """Collects whatever a page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Anything with an address that is not an anchor on the page."""
        self.tags.append(tag)
        self.loaded += [f"{tag} {name}={v}" for name, v in attrs if name in ("src", "href", "xlink:href") and not (v or "").startswith("#")]


def test_a_page_shows_everything_and_loads_nothing() -> None:
    """Statement, world, bounds, counts, verdicts, drawing, text and the line that replays it."""
    result = check(lock())
    found = page([Shown(result, lambda claim: f"troth check lock.py --property {claim.property.id}")])
    outside = Outside()
    outside.feed(found)

    assert outside.loaded == []
    assert not {"script", "link", "img", "iframe"} & set(outside.tags)
    assert not re.search(r"url\(|@import|https?:", found)
    for part in (
        "lock",
        "LOSS = 1, CRASHES = 1",
        f"{result.states:,} states, {result.edges:,} edges, depth {result.depth}",
        "never do two hold the lock",
        "troth check lock.py --property MUTEX",
        "a counterexample of 8 steps",
        "  2  network  delivers ACQUIRE  server  nobody → bob",
        "VIOLATED",
    ):
        assert part in found
    assert found.count("<svg") == sum(claim.trace is not None for claim in result.properties)


def test_names_that_look_like_markup_stay_names() -> None:
    """In the page and in mermaid."""
    world = World("<b>")
    party = world.party("a<&>", lambda s, e: (min(s + 1, 1), []), initial=0)
    world.may(party, "go", name="<i>;#")
    world.never("P<", "a < b & c", party.where(lambda s: s == 1))
    result = check(world)
    found = page([Shown(result, lambda claim: "<replay>")])
    outside = Outside()
    outside.feed(found)

    assert not {"b", "i", "replay"} & set(outside.tags)
    assert "a &lt; b &amp; c" in found
    assert "&lt;i&gt;,#35," in sequence(traced(world, "P<"))


def test_json_has_the_keys_that_the_design_fixes() -> None:
    """And survives a round trip."""
    data = json.loads(json.dumps(result_data(check(lock()))))

    assert {
        *("world", "bounds", "verdict", "states", "edges", "depth", "seconds", "tabulation_s", "components"),
        *("truncated", "properties", "vacuous"),
    } <= set(data)
    assert data["components"]["ann"].keys() == {"local_states", "calls"}
    mutex, held, served = data["properties"]
    assert (mutex["verdict"], held["verdict"], served["verdict"]) == ("violated", "holds", "violated")
    assert "trace" in mutex
    assert "trace" not in held
    assert len(held["witness"]["steps"]) == 3


def test_a_trace_as_json_says_what_its_text_says() -> None:
    """Rows, changes, messages and their fates."""
    trace = traced(stop_and_wait(), "ALL")
    data = trace_data(trace)
    first = data["steps"][0]

    assert (first["n"], first["who"], first["event"], first["party"]) == (1, "user", "send()", "alice")
    assert first["did"][0]["rows"] == ["sender.S1"]
    assert first["did"][0]["changes"][0] == {"machine": "sender", "what": "", "before": "idle", "after": "waiting"}
    assert first["sent"][0]["message"] == "Frame(bit 0)"
    assert first["sent"][0]["fate"] == "delivered"
    assert data["replay"] == token(trace)
    assert data["loop"] is None


SAME = """
import json, sys
from tests.models.toys import lock, stop_and_wait
from troth.models import Limits, check
from troth.models.render.data import result_data, steady
from troth.models.render.page import Shown, page
engine, workers = sys.argv[1], int(sys.argv[2])
shown = []
for world in (lock(), stop_and_wait(SENDS=3)):
    result = check(world, engine=engine, limits=Limits(workers=workers))
    print(json.dumps(steady(result_data(result))))
    shown.append(Shown(result, lambda claim: "again"))
print(page(shown))
"""


def test_every_run_gives_the_same_bytes() -> None:
    """Whatever the hash seed, the engine and the number of workers: each in a process of its own."""
    found = set()
    for seed, engine, workers in (("0", "scalar", 1), ("1", "vector", 1), ("77", "vector", 2)):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        done = subprocess.run(
            [sys.executable, "-c", SAME, engine, str(workers)], capture_output=True, text=True, check=True, env=environment
        )
        found.add(done.stdout)

    assert len(found) == 1
    assert "never do two hold the lock" in found.pop()
