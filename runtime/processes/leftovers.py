"""Files, sockets and directories that must not outlive their owner, and their removal.

Only the standard library: the guardian runs without anything else.

Rule 1.  Only what was registered is removed, and only if it is a file, a socket, a pipe or an empty directory of this user.
Rule 2.  No link is followed: neither the thing itself nor the directory that it is in may be one.
"""

from __future__ import annotations

import os
import stat

PATHS_LIMIT = 65536
"""Paths that can be registered at a time."""


class Leftovers:
    """The registered paths, in the order in which they were registered."""

    def __init__(self) -> None:
        self._paths: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._paths)

    def add(self, path: str) -> None:
        """Register an absolute path, which need not exist yet. Raises ``OverflowError`` if there are too many."""
        if len(self._paths) >= PATHS_LIMIT and path not in self._paths:
            raise OverflowError(f"more than {PATHS_LIMIT} paths are registered for removal")
        self._paths[path] = None

    def drop(self, path: str) -> None:
        """Forget a path; nothing happens if it is not known."""
        self._paths.pop(path, None)

    def remove(self) -> list[str]:
        """Remove everything, directories last and the deepest first; say, in a line each, what could not be removed."""
        said: list[str] = []
        paths = list(self._paths)
        self._paths.clear()
        for path in paths:
            _attempt(path, False, said)
        for path in sorted(paths, key=lambda path: -path.count("/")):
            _attempt(path, True, said)
        return said


def _attempt(path: str, directories: bool, said: list[str]) -> None:
    try:
        _remove(path, directories)
    except FileNotFoundError:
        return
    except OSError as error:
        said.append(f"{path} was not removed: {error.strerror}")


def _remove(path: str, directories: bool) -> None:
    parent, name = os.path.split(path)
    folder = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if found.st_uid != os.geteuid():
            return
        if stat.S_ISDIR(found.st_mode):
            if directories:
                os.rmdir(name, dir_fd=folder)
        elif stat.S_ISREG(found.st_mode) or stat.S_ISSOCK(found.st_mode) or stat.S_ISFIFO(found.st_mode):
            os.unlink(name, dir_fd=folder)
    finally:
        os.close(folder)
