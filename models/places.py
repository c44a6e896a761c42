"""Where in the user's own code something was declared or went wrong: ``file:line``, for messages."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from types import FrameType

OURS = "troth."
WORLDS = "troth.models.worlds."
"""Worlds that come with Troth are told like the user's own."""


def caller() -> str:
    """The line outside of Troth that led here; nothing if there is none."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - `inspect` reads source files, for every property
    while frame is not None:
        if _is_users(frame):
            return _told(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return ""


def place_of(error: BaseException) -> str:
    """The innermost line of the user's code that led to ``error``; nothing if there is none."""
    from sysconfig import get_paths  # noqa: PLC0415 - only where something went wrong

    libraries = tuple(f"{path}{os.sep}" for path in {*get_paths().values()})
    found = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if _is_users(frame) and not frame.f_code.co_filename.startswith(libraries):
            found = _told(frame.f_code.co_filename, line)
    return found


def said(error: Exception, declared: str) -> str:
    """An error in the user's code, for one line; ``declared`` is told where its own place is not known."""
    place = place_of(error) or declared
    return f"{place}: {type(error).__name__}: {error}" if place else f"{type(error).__name__}: {error}"


def _is_users(frame: FrameType) -> bool:
    name = str(frame.f_globals.get("__name__", ""))
    return (not name.startswith(OURS) or name.startswith(WORLDS)) and not frame.f_code.co_filename.startswith("<")


def _told(filename: str, line: int) -> str:
    path = Path(filename).resolve()
    try:
        here = Path.cwd()
    except OSError:  # the folder was deleted
        return f"{filename}:{line}"
    return f"{path.relative_to(here) if path.is_relative_to(here) else filename}:{line}"
