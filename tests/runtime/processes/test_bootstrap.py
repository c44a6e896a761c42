"""The bootstrap file is private, whole, and understood or refused."""

from __future__ import annotations

import json
import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.runtime.errors import BootstrapError
from troth.runtime.processes.bootstrap import BOOTSTRAP_VARIABLE, MAX_BOOTSTRAP_BYTES, Bootstrap, TaskNames, bootstrap_path, read
from troth.runtime.system.files import SystemFiles
from troth.runtime.wire.challenge import Token
from troth.spec.errors import LimitOrder
from troth.spec.limits import Limits

TOKEN = Token(bytes(range(100, 132)))  # always the same, as it is part of the names of tests
GIVEN = Bootstrap(
    name="site-1.trainer", job_id="job", site_name="site-1", endpoint="unix:/run/x/s", launch=bytes(range(16)), token=TOKEN, secure=True
)


def written(tmp_path: Path, given: Bootstrap = GIVEN) -> Path:
    path = tmp_path / "bootstrap.json"
    given.write(SystemFiles(), path)
    return path


def content(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(written(tmp_path).read_text())
    return found


def put(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "changed.json"
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refused(tmp_path: Path, text: str | bytes) -> str:
    """What is said about a file with this text: one line, which names the file and never shows the token."""
    path = put(tmp_path, text)
    with pytest.raises(BootstrapError) as caught:
        read(path)
    error: BaseException | None = caught.value
    said = str(error)
    while error is not None:
        assert TOKEN.text() not in repr(error) + repr(vars(error))
        assert error is caught.value or not hasattr(error, "doc")
        error = error.__cause__ or error.__context__
    assert said.startswith(f"{path}: ")
    assert "\n" not in said
    return said.removeprefix(f"{path}: ")


texts = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=256)


@given(
    name=texts,
    flags=st.lists(st.booleans(), min_size=3, max_size=3),
    launch=st.binary(min_size=16, max_size=16),
    names=st.lists(texts, min_size=3, max_size=3, unique=True),
    wait_s=st.none() | st.floats(0.001, 1e6) | st.integers(1, 10**6),
)
def test_what_is_written_is_read_again(
    *, tmp_path_factory: pytest.TempPathFactory, name: str, flags: list[bool], launch: bytes, names: list[str], wait_s: float | None
) -> None:
    given = Bootstrap(
        name=name,
        job_id=name,
        site_name=name,
        endpoint="tcp:127.0.0.1:1234",
        launch=launch,
        token=Token.new(),
        secure=flags[0],
        fail_unresponsive=flags[1],
        one_shot=flags[2],
        transfer_type="DIFF" if flags[0] else "FULL",
        tasks=TaskNames(train=names[0], evaluate=names[1], submit=names[2]),
        limits=Limits(result_wait_s=wait_s),
    )

    assert read(written(tmp_path_factory.mktemp("b"), given)) == given


def test_reading_changes_nothing(tmp_path: Path) -> None:
    """No resolved endpoint, nor anything else, is ever written back."""
    path = written(tmp_path)
    before = path.read_bytes(), path.stat().st_mtime_ns
    read(path)

    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert os.listdir(tmp_path) == ["bootstrap.json"]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        GIVEN.endpoint = "tcp:127.0.0.1:1"  # type: ignore[misc]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_the_file_is_for_its_user_alone_from_its_first_byte_on(tmp_path: Path, umask: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever anything of it is there, it has no bit for others."""
    modes: list[int] = []
    whole = os.rename

    def look(source: Any, target: Any, **more: Any) -> None:
        modes.extend(stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir())
        whole(source, target, **more)

    monkeypatch.setattr(os, "rename", look)
    before = os.umask(umask)
    try:
        path = written(tmp_path)
    finally:
        os.umask(before)

    assert modes == [0o600]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_wider_file_of_that_name_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "bootstrap.json").write_text("old")
    (tmp_path / "bootstrap.json").chmod(0o644)

    assert read(written(tmp_path)) == GIVEN


def test_a_link_of_that_name_is_replaced_and_its_target_left_alone(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("theirs")
    (tmp_path / "bootstrap.json").symlink_to(tmp_path / "target")
    path = written(tmp_path)

    assert (tmp_path / "target").read_text() == "theirs"
    assert not path.is_symlink()
    assert read(path) == GIVEN


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path)
    before = path.read_bytes()

    def fail(*_args: Any, **_more: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(OSError, match="No space"):
        attrs.evolve(GIVEN, name="another").write(SystemFiles(), path)

    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["bootstrap.json"]


# -- what is opened ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o610, 0o601, 0o777])
def test_a_file_that_others_can_open_is_refused_with_the_fix(tmp_path: Path, mode: int) -> None:
    path = written(tmp_path)
    path.chmod(mode)
    with pytest.raises(BootstrapError, match=rf"^{path}: has mode {mode:04o}, .* chmod 600 it$"):
        read(path)


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path)
    if os.getuid() == 0:
        os.chown(path, 12345, -1)
    else:
        other = os.geteuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: other)
    with pytest.raises(BootstrapError, match="it must belong to user"):
        read(path)


def test_the_file_of_root_is_taken_by_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path)
    if path.stat().st_uid != 0:
        pytest.skip("only root can make such a file")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)

    assert read(path) == GIVEN


@pytest.mark.parametrize("kind", ["link", "pipe", "directory", "device", "nothing"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "it"
    if kind == "link":
        path.symlink_to(written(tmp_path))
    elif kind == "pipe":
        os.mkfifo(path, 0o600)
    elif kind == "directory":
        path.mkdir(mode=0o700)
    elif kind == "device":
        path = Path("/dev/zero")
    with pytest.raises(BootstrapError, match=rf"^{path}: "):
        read(path)


def test_what_counts_is_the_file_that_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between opening and looking the name is given to another file, with the right mode. The opened one is judged."""
    path = written(tmp_path)
    path.chmod(0o644)
    whole = os.open

    def swap(name: Any, flags: int, *more: Any, **others: Any) -> int:
        found = whole(name, flags, *more, **others)
        if Path(name) == path:
            path.rename(tmp_path / "moved")
            (tmp_path / "other").touch(mode=0o600)
            (tmp_path / "other").rename(path)
        return found

    monkeypatch.setattr(os, "open", swap)
    with pytest.raises(BootstrapError, match="has mode 0644"):
        read(path)


def test_a_file_that_is_too_long_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = put(tmp_path, b"")
    os.truncate(path, 10 * 2**30)
    with pytest.raises(BootstrapError, match=f"longer than the {MAX_BOOTSTRAP_BYTES} bytes"):
        read(path)


# -- what is in it -----------------------------------------------------------------------------------------------------

EVERY_KEY = [
    *[field.name for field in attrs.fields(Bootstrap) if field.name != "launch"],
    *("schema_version", "execution_mode", "launch_id"),
    *[f"tasks.{field.name}" for field in attrs.fields(TaskNames)],
    *[f"limits.{field.name}" for field in attrs.fields(Limits)],
]


def changed(content: dict[str, Any], key: str, change: Callable[[dict[str, Any], str], None]) -> str:
    place, _, name = key.rpartition(".")
    change(content[place] if place else content, name)
    return json.dumps(content)


@pytest.mark.parametrize("key", EVERY_KEY)
def test_a_missing_key_is_named(tmp_path: Path, key: str) -> None:
    assert refused(tmp_path, changed(content(tmp_path), key, lambda found, name: found.pop(name))).startswith(f"{key}: is missing; ")


@pytest.mark.parametrize("place", ["", "tasks.", "limits."])
def test_an_unknown_key_is_named(tmp_path: Path, place: str) -> None:
    def add(found: dict[str, Any], name: str) -> None:
        found[name] = 1

    assert (
        refused(tmp_path, changed(content(tmp_path), f"{place}extra", add)) == f"{place}extra: is not a key of a bootstrap file; remove it"
    )


@pytest.mark.parametrize("key", EVERY_KEY)
def test_a_key_that_is_there_twice_is_named(tmp_path: Path, key: str) -> None:
    """JSON readers take the last one, and a reviewer sees the first."""
    name = key.rpartition(".")[2]
    text = json.dumps(content(tmp_path))
    twice = text.replace(f'"{name}": ', f'"{name}": 1, "{name}": ', 1)
    assert twice != text

    assert refused(tmp_path, twice) == f"{name}: is there twice; keep one"


WRONG = [None, True, 1, 1.5, "", "  ", "x\ny", [], {}, ["x"], {"x": 1}, "\ud800", TOKEN.text(), "x" * 257]


@pytest.mark.parametrize("key", EVERY_KEY)
def test_a_value_of_another_type_is_named_by_its_key_and_not_shown(tmp_path: Path, key: str) -> None:
    """Including the token, and anything that may be the token in the wrong place."""
    right = content(tmp_path)
    for value in WRONG:

        def replace(found: dict[str, Any], name: str, value: Any = value) -> None:
            found[name] = value

        text = changed(json.loads(json.dumps(right)), key, replace)
        if is_right(key, value):
            read(put(tmp_path, text))
            continue
        # A limit may be wrong beside others that it depends on, and then those are named as well.
        assert refused(tmp_path, text).startswith((f"{key}: ", f"{key}.", "limits." if key.startswith("limits.") else f"{key}: "))


def is_right(key: str, value: Any) -> bool:
    """Whether the value may stand there after all."""
    if key.startswith("limits."):
        name = key.removeprefix("limits.")
        default = getattr(Limits(), name)
        may_be = {type(None), int, float} if default is None else {int, float} if type(default) is float else {int}
        return type(value) in may_be and (value is None or fits(name, value))
    if key == "schema_version":
        return type(value) is int
    if key in ("secure", "fail_unresponsive", "one_shot"):
        return value is True
    free = key in ("name", "job_id", "site_name", "token") or key.startswith("tasks.")
    return free and value == TOKEN.text()


def fits(name: str, value: float) -> bool:
    """Whether a limit may be that, beside the defaults of the others."""
    try:
        Limits(**{name: value})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    except (ValueError, LimitOrder):
        return False
    return True


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "0", "-1", "true", '"5"'])
def test_a_limit_must_be_a_finite_number_above_zero(tmp_path: Path, number: str) -> None:
    text = json.dumps(content(tmp_path)).replace('"heartbeat_interval_s": 5.0', f'"heartbeat_interval_s": {number}')
    said = refused(tmp_path, text)

    assert "number" in said
    assert "heartbeat_interval_s" in said or number in ("NaN", "Infinity", "-Infinity")


def test_limits_out_of_their_order_are_refused(tmp_path: Path) -> None:
    text = json.dumps(content(tmp_path)).replace('"heartbeat_interval_s": 5.0', '"heartbeat_interval_s": 31')

    assert refused(tmp_path, text).startswith("limits.heartbeat_interval_s must be less than lease_timeout_s")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("[]", "must be a JSON object"),
        ('"text"', "must be a JSON object"),
        ("null", "must be a JSON object"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"\xef\xbb\xbf{}", "is not JSON"),
        ("[" * 60_000, "is nested too deep"),
        ('{"a":' * 10_000, "is nested too deep"),
        ("1" * 5000, "a number of 5000 digits"),
        ("{}", "schema_version: is missing"),
    ],
)
def test_what_is_no_bootstrap_at_all_is_refused(tmp_path: Path, text: str | bytes, said: str) -> None:
    assert said in refused(tmp_path, text)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("schema_version", 2, "need the same version"),
        ("schema_version", 1.0, "must be 1"),
        ("execution_mode", "attach", "must be 'external_process'"),
        ("endpoint", "http://x", "must be unix:/PATH or tcp:"),
        ("endpoint", "unix:relative", "must be unix:/PATH or tcp:"),
        ("launch_id", "00 " * 16, "32 hexadecimal digits"),
        ("launch_id", "AB" * 16, "32 hexadecimal digits"),
        ("launch_id", "ab" * 15, "32 hexadecimal digits"),
        ("token", TOKEN.text() + "=", "is not the text of a token"),
        ("tasks", {"train": "t", "evaluate": "t", "submit": "s"}, "must have different names"),
    ],
)
def test_a_value_that_means_nothing_is_refused_with_what_would(tmp_path: Path, key: str, value: Any, said: str) -> None:
    found = refused(tmp_path, json.dumps({**content(tmp_path), key: value}))

    assert found.startswith(f"{key}: ")
    assert said in found


def test_the_token_is_shown_nowhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    found = read(written(tmp_path))

    assert TOKEN.text() not in repr(found) + str(found) + caplog.text
    assert refused(tmp_path, json.dumps({**content(tmp_path), TOKEN.text(): 1})) == f"a key of {len(TOKEN.text())} characters: " + (
        "is not a key of a bootstrap file; remove it"
    )


def test_the_environment_says_where_the_file_is() -> None:
    assert bootstrap_path({BOOTSTRAP_VARIABLE: "/a/b"}) == Path("/a/b")
    for environment in ({}, {BOOTSTRAP_VARIABLE: ""}):
        with pytest.raises(BootstrapError, match=f"{BOOTSTRAP_VARIABLE} is not set"):
            bootstrap_path(environment)


@pytest.mark.parametrize("field", [field.name for field in attrs.fields(Bootstrap)])
def test_a_host_cannot_make_one_that_no_trainer_would_read(field: str) -> None:
    wrong: dict[str, Any] = {field: object()}
    with pytest.raises((ValueError, TypeError), match=field.replace("launch", "launch_id")):
        attrs.evolve(GIVEN, **wrong)
