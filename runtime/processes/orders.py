"""What the host checks before it asks its guardian for a process, and how it says that there will be none."""

from __future__ import annotations

import errno
import os
import re

from troth.runtime.errors import SpawnFailed
from troth.runtime.ports import Launch
from troth.runtime.processes.channel import Message

_LAUNCH_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")
NAME_LIMIT = 256
SHOWN_LIMIT = 200
"""Characters of a program or directory that an error shows."""

_WHY = {
    errno.ENOENT: "there is no such program, or the interpreter that its first line names is missing",
    errno.EACCES: "it is not executable for this user",
    errno.ENOEXEC: "it is no program of this machine, and has no first line that names an interpreter",
    errno.E2BIG: "its arguments and its environment together are too large for this system",
}


def spawn_order(launch: Launch) -> Message:
    """The message that asks for a launch. Raises ``SpawnFailed``, which names what is wrong and shows no argument and no value."""
    if not launch.name.strip() or not launch.name.isprintable() or len(launch.name) > NAME_LIMIT:
        raise SpawnFailed(f"the name of a launch must be 1 to {NAME_LIMIT} printable characters, and not blank")
    if not _LAUNCH_ID.fullmatch(launch.launch_id):
        raise SpawnFailed(f"{launch.name}: a launch id must be 1 to 64 letters, digits, '_', '.' or '-'")
    if isinstance(launch.command, str) or not launch.command or not launch.command[0]:
        raise SpawnFailed(f"{launch.name}: the command must be a list of the program and its arguments")
    if any("\0" in part for part in launch.command):
        raise SpawnFailed(f"{launch.name}: a part of the command has a NUL character in it")
    for name, value in launch.environment.items():
        if not name or "=" in name or "\0" in name or "\0" in value:
            raise SpawnFailed(f"{launch.name}: the environment variable {name[:SHOWN_LIMIT]!r} has a character in it that none can have")
    return {
        "do": "spawn",
        "id": launch.launch_id,
        "command": list(launch.command),
        "environment": dict(launch.environment),
        "directory": os.path.abspath(launch.directory),
    }


def why_unable(launch: Launch, step: str, number: int) -> str:
    """What the guardian's refusal means. ``step`` is where it failed, ``number`` the error number or 0."""
    reason = os.strerror(number) if number else "unknown error"
    if step == "directory":
        return f"{launch.name}: cannot enter its directory {os.path.abspath(launch.directory)[:SHOWN_LIMIT]}: {reason}"
    if step == "command":
        program = launch.command[0][:SHOWN_LIMIT]
        return f"{launch.name}: cannot run {program!r}: {_WHY.get(number, reason)}"
    if number == errno.ECANCELED:
        return f"{launch.name}: the guardian is ending and starts nothing more"
    return f"{launch.name}: the guardian cannot make a process: {reason}"
