"""Files in memory."""

from __future__ import annotations

from pathlib import Path

from attrs import define, field


@define(eq=False)
class SimFiles:
    """The Files port: directories, and what is in their files."""

    contents: dict[Path, bytes] = field(factory=dict)
    directories: set[Path] = field(factory=set)
    _made: int = 0

    def private_directory(self) -> Path:
        """See ``ports.Files``."""
        self._made += 1
        path = Path(f"/sim/{self._made}")
        self.directories.add(path)
        return path

    def write_private(self, path: Path, data: bytes) -> None:
        """See ``ports.Files``."""
        if path.parent not in self.directories:
            raise FileNotFoundError(f"{path.parent} is not there")
        self.contents[path] = data

    def remove(self, path: Path) -> None:
        """See ``ports.Files``."""
        if path in self.directories:
            if any(other.parent == path for other in self.contents):
                raise OSError(f"{path} is not empty")
            self.directories.remove(path)
        self.contents.pop(path, None)
