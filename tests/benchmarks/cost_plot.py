"""Draw what one state costs at each size, from what ``checker.py --json`` printed, as an SVG of plain text.

python tests/benchmarks/checker.py --sizes S M L XL --json > measured.json
python tests/benchmarks/cost_plot.py measured.json docs/explanation/checker-cost.svg
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
COLOURS = {"troth": "#0b6e4f", "spin": "#b5651d", "tlc": "#4a4e9e", "rumur": "#8a2846"}

Point = tuple[int, float]
"""States, and microseconds of the whole process for each."""


def series(rows: Sequence[dict[str, Any]]) -> dict[str, list[Point]]:
    """The points of each tool, by size."""
    found: dict[str, list[Point]] = {}
    for row in rows:
        tool = row["name"].rpartition(" ")[2]
        if row.get("states") and row["median_s"] is not None and tool in COLOURS:
            found.setdefault(tool, []).append((row["states"], row["median_s"] / row["states"] * 1e6))
    return {tool: sorted(points) for tool, points in found.items()}


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


def main(arguments: Sequence[str]) -> int:
    """Read what was measured, write the picture."""
    if len(arguments) < 2:
        print((__doc__ or "").strip(), file=sys.stderr)
        return 2
    *measured, picture = map(Path, arguments)
    rows = [row for file in measured for row in json.loads(file.read_text())["rows"]]
    picture.write_text(svg(series(rows)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
