"""P78, in runs of the runtime: an owner's death is an end-of-file, whatever its process number does; and looking takes no lock."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.test_regressions import check_the_end_of_the_owner_ends_the_session, watch_a_pid
from troth.runtime.errors import BootstrapError
from troth.runtime.processes import bootstrap
from troth.runtime.processes.bootstrap import Bootstrap
from troth.runtime.processes.child import OWNER_FD_VARIABLE, OWNER_PIPE_VARIABLE
from troth.runtime.processes.owner import owner_descriptor
from troth.runtime.system.files import SystemFiles
from troth.runtime.wire.challenge import Token


@contextmanager
def owned(folder: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """What a trainer finds of its owner: the bootstrap file, and the pipe."""
    path = folder / "bootstrap.json"
    Bootstrap(
        name="site-1", job_id="job", site_name="site-1", endpoint=f"unix:{folder}/s", launch=bytes(16), token=Token.new(),
    ).write(SystemFiles(), path)  # fmt: skip
    read, write = os.pipe()
    found = os.fstat(read)
    try:
        yield path, {OWNER_FD_VARIABLE: str(read), OWNER_PIPE_VARIABLE: f"{found.st_dev}:{found.st_ino}"}
    finally:
        os.close(read)
        os.close(write)


def looking_takes_no_lock(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At whatever moment of a look the owner wants the lock on its file, it gets it; and a look does not wait for the owner's lock."""
    refused: list[str] = []
    with owned(folder) as (path, environment), monkeypatch.context() as patched:
        looks: tuple[Callable[[], Any], ...] = (lambda: bootstrap.read(path), lambda: owner_descriptor(environment))
        for name in ("fstat", "close", "set_inheritable"):
            patched.setattr(os, name, _with_the_owner_at_work(getattr(os, name), path, refused))
        for look in looks:
            assert look() is not None
        assert refused == [], f"P78: the owner could not take its own lock during a look ({', '.join(refused)})"
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # the owner's: held all the time that it lives
            for look in looks:
                assert look() is not None


def _with_the_owner_at_work(call: Callable[..., Any], path: Path, refused: list[str]) -> Callable[..., Any]:
    """A call of the reader's, just before which the owner takes its lock and lets go of it again."""

    def between(*arguments: Any) -> Any:
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                refused.append(call.__name__)
        return call(*arguments)

    return between


def what_counts_is_what_was_opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between opening a file that others can read and looking at it, its name is given to one that is all right."""
    with owned(folder) as (path, _), monkeypatch.context() as patched:
        other = folder / "other"
        other.write_bytes(path.read_bytes())
        other.chmod(0o600)
        path.chmod(0o644)
        opens = os.open

        def swapped(name: Any, *arguments: Any, **given: Any) -> int:
            descriptor = opens(name, *arguments, **given)
            os.replace(other, path)
            patched.setattr(os, "open", opens)
            return descriptor

        patched.setattr(os, "open", swapped)
        said = "it was taken"
        try:
            bootstrap.read(path)
        except BootstrapError as error:
            said = str(error)
    assert "has mode 0644" in said, f"P78: a file that others can open is not judged by itself: {said}"


def test_p78_holds_for_an_owner_whose_number_lives_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pipe ends, and the session with it."""
    check_the_end_of_the_owner_ends_the_session(monkeypatch)


def test_p78_holds_for_whoever_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For both things of an owner's that a trainer looks at."""
    looking_takes_no_lock(tmp_path, monkeypatch)


def test_p78_holds_for_the_file_that_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not for the one that has its name."""
    what_counts_is_what_was_opened(tmp_path, monkeypatch)


def test_p78_is_violated_by_a_watch_on_a_process_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number that somebody has is taken for an owner that lives."""
    watch_a_pid(monkeypatch)

    with pytest.raises(AssertionError, match="lost"):
        check_the_end_of_the_owner_ends_the_session(monkeypatch)


def test_p78_is_violated_by_a_look_that_tries_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the reference finds out whether a host lives: by taking its lock for a moment."""
    opens = os.open

    def locking(name: Any, flags: int, *arguments: Any, **given: Any) -> int:
        descriptor = opens(name, flags, *arguments, **given)
        if not flags & os.O_DIRECTORY and not flags & os.O_CREAT:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptor

    monkeypatch.setattr(os, "open", locking)

    with pytest.raises(AssertionError, match="P78: the owner could not take its own lock"):
        looking_takes_no_lock(tmp_path, monkeypatch)


def test_p78_is_violated_by_a_look_at_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Owner and mode are those of whatever has the name by then."""
    monkeypatch.setattr(os, "fstat", lambda _descriptor: os.stat(tmp_path / "bootstrap.json"))

    with pytest.raises(AssertionError, match="P78: a file that others can open is not judged by itself: it was taken"):
        what_counts_is_what_was_opened(tmp_path, monkeypatch)
