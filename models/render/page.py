"""One page with everything about a check: verdicts, worlds, bounds, counts, and each trace drawn. Nothing is loaded from anywhere.

The page has no times in it: the same check gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape

from attrs import frozen

from troth.models.check import CheckResult, PropertyResult, Verdict
from troth.models.render.drawing import svg
from troth.models.render.story import Story, story
from troth.models.render.text import told
from troth.models.trace import Trace

STYLE = """
:root { color-scheme: light dark; --ink: #1d2433; --soft: #5d6880; --paper: #ffffff; --band: #f3f5f9; --line: #c5ccda; --blue: #2457c5;
  --red: #c22f2f; --green: #1d7f46; --amber: #9a6700; --violet: #7d3cc2; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8f0; --soft: #98a3b8; --paper: #14181f; --band: #1b212b; --line: #3a4455;
  --blue: #7aa7ff; --red: #ff7b72; --green: #5fd08a; --amber: #e3b341; --violet: #c297ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 28px 32px 64px; max-width: 1500px; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 22px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 40px 0 6px; padding-top: 18px; border-top: 1px solid var(--line); }
h3 { font-size: 16px; margin: 30px 0 4px; } p { margin: 4px 0 10px; } .soft { color: var(--soft); }
code, pre, svg text { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
pre { background: var(--band); padding: 12px 14px; overflow-x: auto; font-size: 12.5px; line-height: 1.45; border-radius: 6px; }
table { border-collapse: collapse; margin: 8px 0 4px; } td, th { text-align: left; padding: 3px 18px 3px 0; vertical-align: top; }
th { color: var(--soft); font-weight: 500; } a { color: var(--blue); }
.verdict { font-weight: 650; font-size: 13px; letter-spacing: .03em; white-space: nowrap; } .holds { color: var(--green); }
.violated { color: var(--red); } .unknown { color: var(--amber); } .error { color: var(--violet); }
.picture { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; margin: 10px 0; padding: 6px; } svg { display: block; }
svg text { fill: var(--ink); font-size: 11.5px; white-space: pre; } svg .band { fill: var(--band); }
svg .head { fill: var(--paper); stroke: var(--soft); } svg .name { text-anchor: middle; font-weight: 650; font-size: 12.5px; }
svg .life { stroke: var(--line); stroke-width: 2; } svg .down { stroke: var(--red); stroke-width: 1.5; stroke-dasharray: 2 5; }
svg .arrow { stroke: var(--blue); stroke-width: 1.6; } svg .copied { stroke-dasharray: 6 3; } svg .copy { fill: var(--blue); }
svg .lost { stroke: var(--red); } svg .flying { stroke: var(--soft); stroke-dasharray: 2 3; } svg .tip { fill: var(--blue); }
svg .cross { stroke: var(--red); stroke-width: 2.4; } svg .dot { fill: var(--ink); } svg .timer { fill: var(--amber); }
svg .message { text-anchor: middle; fill: var(--blue); font-weight: 600; paint-order: stroke; stroke: var(--paper); stroke-width: 4px;
  stroke-linejoin: round; } svg .gone { fill: var(--red); } svg .number { font-weight: 700; } svg .who, svg .note { fill: var(--soft); }
svg .did { paint-order: stroke; stroke: var(--paper); stroke-width: 3px; stroke-linejoin: round; }
svg .loop { fill: none; stroke: var(--violet); stroke-width: 2.5; } svg .loophead { fill: var(--violet); }
svg .loopname { fill: var(--violet); text-anchor: middle; font-weight: 650; }
"""


@frozen
class Shown:
    """A result with what only the caller knows: how to replay a property's trace, and how to spell the world on a command line."""

    result: CheckResult
    replay: Callable[[PropertyResult], str]


def page(results: Sequence[Shown]) -> str:
    """The page."""
    violated = sum(p.verdict is Verdict.VIOLATED for shown in results for p in shown.result.properties)
    worlds = ", ".join(shown.result.world for shown in results)
    title = f"troth check: {worlds}"
    parts = [f"<h1>{escape(title)}</h1>", f'<p class="soft">{_sum(results, violated)}</p>']
    for place, shown in enumerate(results):
        parts += _world(shown, place)
    return _whole(title, parts)


def page_of_run(world: str, bounds: Mapping[str, int], trace: Trace, shows: Sequence[PropertyResult], replay: str) -> str:
    """A page with one run, and what it shows of the properties. Of other runs it says nothing."""
    title = f"troth check: one run of {world}"
    of = story(trace)
    parts = [f"<h1>{escape(title)}</h1>", f'<p class="soft">Bounds: {_bounds(bounds)}. {_length(of)}.</p>', *_table(shows, "")]
    if not shows:
        parts.append("<p>It violates nothing that was asked; of other runs it says nothing.</p>")
    return _whole(title, [*parts, *_drawn(of, f"one run of {world}", replay)])


def _whole(title: str, parts: Sequence[str]) -> str:
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title><style>{STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n' + "\n".join(parts) + "\n</body></html>\n"


def _sum(results: Sequence[Shown], violated: int) -> str:
    count = sum(len(shown.result.properties) for shown in results)
    return f"{len(results)} world{'s' * (len(results) != 1)}, {count} properties, {violated} violated"


def _world(shown: Shown, place: int) -> Iterator[str]:
    result = shown.result
    yield f'<h2 id="w{place}">{escape(result.world)} {_verdict(result.verdict)}</h2>'
    cut = f", {result.truncated:,} edges cut off" if result.truncated else ""
    counts = f"{result.states:,} states, {result.edges:,} edges, depth {result.depth}{cut}"
    yield f'<p class="soft">Bounds: {_bounds(result.bounds)}. {counts}.</p>'
    if result.reason:
        yield f'<p class="unknown">{escape(result.reason)}</p>'
    yield from _table(result.properties, f"w{place}")
    for claim in result.properties:
        if claim.trace is not None:
            yield from _trace(shown, claim, place)


def _bounds(bounds: Mapping[str, int]) -> str:
    return escape(", ".join(f"{name} = {number}" for name, number in bounds.items()) or "none")


def _table(claims: Sequence[PropertyResult], anchors: str) -> Iterator[str]:
    """Properties, each with a link to its trace where that is drawn apart."""
    if not claims:
        return
    yield "<table><tr><th>Property</th><th>Verdict</th><th>Statement</th></tr>"
    for claim in claims:
        anchor = f"{anchors}-{escape(claim.property.id)}"
        name = f'<a href="#{anchor}">{escape(claim.property.id)}</a>' if claim.trace and anchors else escape(claim.property.id)
        note = " <em>(vacuous: what it speaks of never happens)</em>" if claim.vacuous else ""
        reason = f'<br><span class="soft">{escape(claim.reason)}</span>' if claim.reason else ""
        yield f"<tr><td>{name}</td><td>{_verdict(claim.verdict)}</td><td>{escape(claim.property.statement)}{note}{reason}</td></tr>"
    yield "</table>"


def _trace(shown: Shown, claim: PropertyResult, place: int) -> Iterator[str]:
    trace = claim.trace
    if trace is None:
        return
    of = story(trace)
    witness = claim.verdict is Verdict.HOLDS
    what = "a witness" if witness else "a counterexample" if claim.verdict is Verdict.VIOLATED else "where it cannot be evaluated"
    yield f'<h3 id="w{place}-{escape(claim.property.id)}">{escape(claim.property.id)} {_verdict(claim.verdict)}</h3>'
    yield f"<p>{escape(claim.property.statement)}. <span class='soft'>Here is {what} of {_length(of)}.</span></p>"
    yield from _drawn(of, f"{what} of {claim.property.id}", shown.replay(claim))


def _length(of: Story) -> str:
    lasso = f", the last {len(of.steps) - of.loop} of them for ever" if of.loop is not None else ""
    lasso = ", after which nothing need happen, for ever" if of.stands_still else lasso
    return ("1 step" if len(of.steps) == 1 else f"{len(of.steps)} steps") + lasso


def _drawn(of: Story, what: str, replay: str) -> Iterator[str]:
    """A run as a drawing, as text, and as the line that shows it again."""
    if of.steps:
        yield f'<div class="picture">{svg(of, what)}</div>'
    opened = "" if of.steps else " open"
    yield f"<details{opened}><summary>as text</summary><pre>{escape(told(of))}</pre></details>"
    yield f"<p>Replay: <code>{escape(replay)}</code></p>"


def _verdict(verdict: Verdict) -> str:
    return f'<span class="verdict {verdict.value}">{verdict.value.upper()}</span>'
