"""The few files that the runtime writes: the Files port on the system's file system."""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
from pathlib import Path

from troth.runtime.system.network import MAX_PATH_BYTES

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
ROOM_BYTES = 48
"""What a private directory and a socket in it need of the length of a socket's path."""


class SystemFiles:
    """The Files port."""

    def private_directory(self) -> Path:
        """See ``ports.Files``. In TMPDIR; in /tmp, under a new name as well, if a socket's path could be too long there."""
        parent = tempfile.gettempdir()
        if len(os.fsencode(parent)) + ROOM_BYTES > MAX_PATH_BYTES:
            parent = "/tmp"  # noqa: S108
        return Path(tempfile.mkdtemp(prefix="troth-", dir=parent))

    def write_private(self, path: Path, data: bytes) -> None:
        """See ``ports.Files``. Raises ``OSError``; then nothing has changed."""
        # By the opened directory and a new unguessable name: whoever swaps a path for a link meanwhile gets nothing written.
        folder = os.open(path.parent, _FOLDER)
        try:
            name = f".{path.name}.{secrets.token_hex(8)}"
            file = os.open(name, _CREATE, 0o600, dir_fd=folder)
            try:
                with open(file, "wb") as opened:
                    opened.write(data)
                os.rename(name, path.name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.unlink(name, dir_fd=folder)
                raise
        finally:
            os.close(folder)

    def remove(self, path: Path) -> None:
        """See ``ports.Files``. Raises ``OSError`` for a directory with something in it."""
        try:
            path.unlink()
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno not in (errno.EISDIR, errno.EPERM):
                raise
            path.rmdir()
