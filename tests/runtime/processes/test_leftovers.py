"""What must not outlive its owner is removed, and nothing else."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from troth.runtime.processes import leftovers as module
from troth.runtime.processes.leftovers import Leftovers


def removed(*paths: Path) -> list[str]:
    """Register these and remove them; what could not be removed."""
    leftovers = Leftovers()
    for path in paths:
        leftovers.add(str(path))
    said = leftovers.remove()
    assert len(leftovers) == 0
    return said


def test_files_go_first_and_then_the_directories_that_are_empty_from_the_deepest_on(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "file").touch()
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "a" / "s"))
    os.mkfifo(deep / "pipe")

    assert removed(tmp_path / "a", deep, deep / "file", deep / "pipe", tmp_path / "a" / "s", tmp_path / "a" / "never-there") == []
    assert list(tmp_path.iterdir()) == []


def test_a_directory_with_something_else_in_it_stays_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "theirs").touch()

    [said] = removed(tmp_path / "a")
    assert said.startswith(f"{tmp_path / 'a'} was not removed: ")
    assert (tmp_path / "a" / "theirs").exists()


def test_a_link_is_neither_followed_nor_removed(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "file").symlink_to(tmp_path / "target" / "file")

    said = removed(tmp_path / "link", tmp_path / "link" / "file", tmp_path / "file")
    assert (tmp_path / "target" / "file").exists()
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").is_symlink()
    assert {line.split(" was ")[0] for line in said} == {str(tmp_path / "link" / "file")}


def test_what_belongs_to_somebody_else_by_then_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)

    assert removed(tmp_path / "file", tmp_path / "folder") == []
    assert (tmp_path / "file").exists()
    assert (tmp_path / "folder").exists()


def test_what_was_removed_in_order_is_forgotten(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    leftovers = Leftovers()
    leftovers.add(str(tmp_path / "file"))
    leftovers.drop(str(tmp_path / "file"))
    leftovers.drop(str(tmp_path / "never-registered"))

    assert leftovers.remove() == []
    assert (tmp_path / "file").exists()


def test_only_so_many_paths_can_be_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATHS_LIMIT", 2)
    leftovers = Leftovers()
    for path in ("/a", "/b", "/a"):
        leftovers.add(path)
    with pytest.raises(OverflowError, match="more than 2 paths"):
        leftovers.add("/c")
