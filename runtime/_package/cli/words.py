"""How the commands say numbers and colours. Imports nothing that takes time: every command uses it."""

from __future__ import annotations

import contextlib
import os
import sys

import click


def styled(words: str, **style: object) -> str:
    """``words`` in colour where that can be seen and is wanted."""
    seen = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return click.style(words, **style) if seen else words  # type: ignore[arg-type]


def print_whole(text: str) -> None:
    """Print ``text``, however long. Python drops what a standard output that somebody has made non-blocking does not take at once."""
    with contextlib.suppress(OSError, ValueError):  # not every standard output is a file
        os.set_blocking(sys.stdout.fileno(), True)
    click.echo(text)


def counted(number: int, of: str) -> str:
    """``1 state``, ``1,002 states``."""
    return f"{number:,} {of}{'' if number == 1 else 's'}"


def seconds(number: float) -> str:
    """A duration for a reader."""
    return f"{number:.2f} s" if number < 1 else f"{number:.1f} s" if number < 100 else f"{number:.0f} s"
