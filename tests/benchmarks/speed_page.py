"""Write what ``checker.py --json`` printed into the documentation: a table, and what one state costs at each size as an SVG.

    python tests/benchmarks/checker.py --sizes S M L XL --json > measured.json
    python tests/benchmarks/speed_page.py measured.json

More than one file may be given, say where one tool was run less often; what the first one has counts. The table goes between the
marks in the page.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 110, 30, 50
FOLDER = Path(__file__).resolve().parents[2] / "docs" / "explanation"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
COLOURS = {"troth": "#0b6e4f", "spin": "#b5651d", "tlc": "#4a4e9e", "rumur": "#8a2846"}

Point = tuple[int, float]
"""States, and microseconds of the whole process for each."""


def series(rows: Sequence[dict[str, Any]]) -> dict[str, list[Point]]:
    """The points of each tool, by size."""
    found: dict[str, dict[int, float]] = {}
    for row in rows:
        tool = row["name"].rpartition(" ")[2]
        if row.get("states") and row["median_s"] is not None and tool in COLOURS:
            found.setdefault(tool, {})[row["states"]] = row["median_s"] / row["states"] * 1e6
    return {tool: sorted(points.items()) for tool, points in found.items()}


class Scale:
    """Logarithmic, from one power of ten to another."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        self.low, self.high = floor(log10(min(values))), ceil(log10(max(values)))
        self.high += self.low == self.high
        self.start, self.end = start, end

    def place(self, value: float) -> float:
        """Where ``value`` is drawn."""
        return round(self.start + (log10(value) - self.low) / (self.high - self.low) * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        """The powers of ten."""
        return [10.0**power for power in range(self.low, self.high + 1)]


def svg(drawn: dict[str, list[Point]]) -> str:
    """The picture."""
    points = [point for some in drawn.values() for point in some]
    across = Scale([states for states, _ in points], LEFT, WIDTH - RIGHT)
    upward = Scale([cost for _, cost in points], HEIGHT - BOTTOM, TOP)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        "<title>Microseconds of the whole process for each distinct state, by number of states</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for tick in across.ticks():
        x = across.place(tick)
        lines.append(f'<line x1="{x}" y1="{TOP}" x2="{x}" y2="{HEIGHT - BOTTOM}" stroke="#dddddd"/>')
        lines.append(f'<text x="{x}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{tick:,.0f}</text>')
    for tick in upward.ticks():
        y = upward.place(tick)
        lines.append(f'<line x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}" stroke="#dddddd"/>')
        lines.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{tick:g}</text>')
    lines.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">distinct states</text>')
    lines.append(f'<text x="{LEFT}" y="{TOP - 12}">microseconds a state, whole process</text>')
    for tool, some in drawn.items():
        lines += _line(tool, [(across.place(states), upward.place(cost)) for states, cost in some])
    return "\n".join([*lines, "</svg>"]) + "\n"


def _line(tool: str, places: Sequence[tuple[float, float]]) -> list[str]:
    colour = COLOURS[tool]
    path = " ".join(f"{x},{y}" for x, y in places)
    dots = [f'<circle cx="{x}" cy="{y}" r="3.5" fill="{colour}"/>' for x, y in places]
    x, y = places[-1]
    label = f'<text x="{x + 8}" y="{y + 4}" fill="{colour}">{tool}</text>'
    return [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>', *dots, label]


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows of tools, by size, as a table in markdown."""
    lines = [
        "| size | tool | seconds, median | least | processor seconds | MB | times as long as Troth | runs |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        size, _, tool = row["name"].rpartition(" ")
        if row.get("states") and row["median_s"] is not None and tool in COLOURS:
            ratio = "" if row["ratio"] is None else f"{row['ratio']:g}"
            numbers = f"{row['median_s']:.2f} | {row['min_s']:.2f} | {row['cpu_s']:.2f} | {row['peak_mb']:,.0f} | {ratio} | {row['n']}"
            lines.append(f"| {size} | {tool} | {numbers} |")
    return "\n".join(lines)


def with_table(page: str, lines: str) -> str:
    """``page`` with this between its marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN} and {END}")
    return f"{before}{begin}\n{lines}\n{end}{after}"


def _by_size(row: dict[str, Any]) -> tuple[int, int]:
    tool = row["name"].rpartition(" ")[2]
    return row.get("states", 0), list(COLOURS).index(tool) if tool in COLOURS else 0


def main(arguments: Sequence[str], folder: Path = FOLDER) -> int:
    """Read what was measured, write the picture and the table."""
    if not arguments:
        print((__doc__ or "").strip(), file=sys.stderr)
        return 2
    found: dict[str, dict[str, Any]] = {}
    for file in arguments:
        for row in json.loads(Path(file).read_text())["rows"]:
            found.setdefault(row["name"], row)
    rows = sorted(found.values(), key=_by_size)
    (folder / "checker-cost.svg").write_text(svg(series(rows)), encoding="utf-8")
    page = folder / "checker-speed.md"
    page.write_text(with_table(page.read_text(encoding="utf-8"), table(rows)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
