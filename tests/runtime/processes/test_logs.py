"""What a trainer prints comes out line by line, bounded and harmless."""

from __future__ import annotations

import logging
import os
import unicodedata
from itertools import pairwise
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.processes.alive import LIMIT_S
from tests.runtime.processes.guarded import guarded
from troth.runtime.ports import ExitStatus, Launch
from troth.runtime.processes import logs
from troth.runtime.processes.logs import LINE_LIMIT_BYTES, Lines, TrainerOutput, safe_name


def lines_of(*parts: bytes) -> list[str]:
    """All lines of this output, given in these parts."""
    lines = Lines()
    return [line for part in parts for line in lines.feed(part)] + lines.finish()


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([b"one\ntwo\n"], ["one", "two"]),
        ([b"o", b"ne", b"\n", b"two"], ["one", "two"]),
        ([b"\n\n"], ["", ""]),
        ([b"windows\r\nlines\r\n"], ["windows", "lines"]),
        ([b"10%\r20%\r30%\n"], ["30%"]),
        ([b"10%\r20%\r"], ["20%"]),
        ([b"\xc3", b"\xa4\n"], ["ä"]),
        ([b"\xff\x00\x1b[31m\n"], ["\\xff\\x00\\x1b[31m"]),
        ([b"tab\there\n"], ["tab\there"]),
        ([], []),
    ],
)
def test_output_becomes_lines(parts: list[bytes], expected: list[str]) -> None:
    assert lines_of(*parts) == expected


@given(data=st.binary(max_size=5 * LINE_LIMIT_BYTES), cuts=st.lists(st.integers(0, 5 * LINE_LIMIT_BYTES)))
def test_whatever_is_printed_lines_are_bounded_and_hold_no_control_character(data: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(data)]
    for line in lines_of(*(data[low:high] for low, high in pairwise(edges))):
        assert len(line) <= 4 * LINE_LIMIT_BYTES
        assert not [character for character in line if unicodedata.category(character) in ("Cc", "Zl", "Zp") and character != "\t"]


@given(st.lists(st.text(alphabet=st.characters(codec="ascii", exclude_categories=["C"]), max_size=30)), st.integers(1, 7))
def test_lines_do_not_depend_on_how_they_arrive(lines: list[str], size: int) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()

    assert lines_of(*(data[at : at + size] for at in range(0, len(data), size))) == lines


def test_a_line_that_is_too_long_comes_in_pieces() -> None:
    line = b"x" * (3 * LINE_LIMIT_BYTES + 5)

    for parts in ([line], [line, b"\n"], [line[:100], line[100:], b"\n"]):
        assert [len(piece) for piece in lines_of(*parts)] == [LINE_LIMIT_BYTES] * 3 + [5]


def test_a_progress_bar_without_end_is_not_kept() -> None:
    lines = Lines()
    for percent in range(100_000):
        assert lines.feed(f"{percent}\r".encode()) == []
    assert lines.finish() == ["99999"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("site-1", "site-1"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ("a b/ä", "a_b__"),
        (".hidden", "hidden"),
        ("", "_"),
        ("x" * 500, "x" * 128),
    ],
)
def test_a_name_is_made_safe_for_a_file(name: str, expected: str) -> None:
    assert safe_name(name) == expected


@pytest.mark.trio
async def test_lines_are_logged_under_the_trainers_name_and_written_to_its_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "troth.trainer")
    read, write = os.pipe()
    output = TrainerOutput("site-1", read, tmp_path / "site-1.log")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(output.run)
        os.write(write, b"first\nsec")
        os.write(write, b"ond\nlast")
        os.close(write)

    assert [(record.name, record.getMessage()) for record in caplog.records] == [
        ("troth.trainer.site-1", f"site-1: {line}") for line in ("first", "second", "last")
    ]
    assert (tmp_path / "site-1.log").read_text() == "first\nsecond\nlast\n"
    assert (tmp_path / "site-1.log").stat().st_mode & 0o777 == 0o600
    assert list(output.last) == ["first", "second", "last"]


@pytest.mark.trio
async def test_a_pipe_that_somebody_holds_open_does_not_hold_up_the_end() -> None:
    read, write = os.pipe()
    output = TrainerOutput("site-1", read)
    with trio.fail_after(LIMIT_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(output.run)
            await trio.testing.wait_all_tasks_blocked()
            os.write(write, b"its last word")
            output.finish()
            output.finish()
    assert list(output.last) == ["its last word"]
    os.close(write)


@pytest.mark.trio
async def test_a_log_file_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "FILE_LIMIT_BYTES", 100)
    read, write = os.pipe()
    output = TrainerOutput("site-1", read, tmp_path / "log")
    os.write(write, b"".join(b"%d\n" % number * 10 for number in range(1000)))
    os.close(write)
    await output.run()

    assert (tmp_path / "log").read_text().endswith("[cut: this file has 100 bytes]\n")
    assert (tmp_path / "log").stat().st_size < 200


@pytest.mark.trio
async def test_a_log_file_is_not_written_through_a_link(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "target").write_text("theirs")
    (tmp_path / "log").symlink_to(tmp_path / "target")
    read, write = os.pipe()
    output = TrainerOutput("site-1", read, tmp_path / "log")
    os.write(write, b"line\n")
    os.close(write)
    await output.run()

    assert (tmp_path / "target").read_text() == "theirs"
    assert "is not written to" in caplog.text


@pytest.mark.trio
async def test_all_output_of_a_launch_is_there_when_its_end_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Standard output and error in the order of writing. Neither the command nor its environment is ever logged."""
    caplog.set_level(logging.DEBUG)
    script = "i=0; while [ $i -lt 3000 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done; printf unfinished"
    async with guarded(tmp_path, logs=tmp_path) as g:
        secret = {"SECRET": "CANARY-IN-ENVIRONMENT"}
        await g.guardian.spawn(Launch("x", "site-1", ["sh", "-c", script, "CANARY-IN-ARGUMENT"], secret, tmp_path))
        assert (await g.event()).status == ExitStatus(code=0)  # type: ignore[union-attr]
        said = (tmp_path / "site-1.log").read_text().splitlines()

    expected = [f"{kind} {number}" for number in range(3000) for kind in ("out", "err")]
    assert said == [*expected, "unfinished"]
    assert [record.getMessage() for record in caplog.records if record.name == "troth.trainer.site-1"] == [
        f"site-1: {line}" for line in said
    ]
    assert "CANARY" not in caplog.text


@pytest.mark.trio
async def test_the_last_lines_of_a_launch_that_lives_can_be_asked_for(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        launch = Launch("x", "site-1", ["sh", "-c", "seq 100; cat /dev/zero >/dev/null"], {"PATH": os.environ["PATH"]}, tmp_path)
        await g.guardian.spawn(launch)
        with trio.fail_after(LIMIT_S):
            while g.guardian.last_lines("x") != [str(number) for number in range(81, 101)]:
                await trio.sleep(0.01)
        assert g.guardian.last_lines("unknown") == []
