"""What is private is private from its first byte, and nobody is tricked into writing elsewhere."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from troth.runtime.ports import Files
from troth.runtime.system.files import ROOM_BYTES, SystemFiles
from troth.runtime.system.network import MAX_PATH_BYTES

FILES: Files = SystemFiles()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_private_directory_is_new_and_its_users_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = os.umask(0)
    try:
        first, second = FILES.private_directory(), FILES.private_directory()
    finally:
        os.umask(before)

    assert first != second
    assert mode(first) == mode(second) == 0o700
    assert first.stat().st_uid == os.geteuid()
    for made in (first, second):  # they may be in /tmp, where nobody clears up
        made.rmdir()


def test_a_private_directory_leaves_room_for_the_path_of_a_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    made = FILES.private_directory()
    made.rmdir()

    assert len(os.fsencode(made)) + ROOM_BYTES // 2 < MAX_PATH_BYTES


def test_a_file_is_written_whole_and_for_its_user_alone_whatever_the_umask(folder: Path) -> None:
    before = os.umask(0)
    try:
        FILES.write_private(folder / "f", b"secret")
    finally:
        os.umask(before)

    assert (folder / "f").read_bytes() == b"secret"
    assert mode(folder / "f") == 0o600
    assert os.listdir(folder) == ["f"]


def test_it_is_private_at_every_moment_and_seen_only_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, int, int]] = []
    real = os.rename

    def rename(*args: str, **named: int) -> None:
        seen.extend((path.name, mode(path), path.stat().st_size) for path in folder.iterdir())
        real(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "rename", rename)
    before = os.umask(0)
    try:
        FILES.write_private(folder / "f", b"secret")
    finally:
        os.umask(before)

    ((name, found, size),) = seen
    assert name.startswith(".f.")
    assert len(name) > 16
    assert (found, size) == (0o600, 6)


def test_a_file_that_is_replaced_becomes_private_and_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    (folder / "open").write_text("old")
    (folder / "open").chmod(0o666)
    target = tmp_path / "target"
    target.write_text("not ours")
    (folder / "link").symlink_to(target)
    for name in ("open", "link"):
        FILES.write_private(folder / name, b"new")

        assert (folder / name).read_bytes() == b"new"
        assert mode(folder / name) == 0o600
        assert not (folder / name).is_symlink()
    assert target.read_text() == "not ours"


def test_a_directory_that_is_a_link_is_not_written_into(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        FILES.write_private(tmp_path / "link" / "f", b"x")

    assert os.listdir(folder) == []


def test_what_fails_leaves_everything_as_it_was(folder: Path) -> None:
    (folder / "d" / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        FILES.write_private(folder / "d", b"x")
    with pytest.raises(FileNotFoundError):
        FILES.write_private(folder / "nothing" / "f", b"x")

    assert os.listdir(folder) == ["d"]


def test_files_links_and_empty_directories_are_removed_and_nothing_else(folder: Path) -> None:
    (folder / "f").write_text("x")
    (folder / "d").mkdir()
    (folder / "full").mkdir()
    (folder / "full" / "f").write_text("x")
    (folder / "link").symlink_to(folder / "full")
    for name in ("f", "d", "link", "nothing"):
        FILES.remove(folder / name)
        FILES.remove(folder / name)
    with pytest.raises(OSError, match="not empty"):
        FILES.remove(folder / "full")

    assert os.listdir(folder) == ["full"]
    assert (folder / "full" / "f").exists()
