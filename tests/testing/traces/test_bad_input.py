"""What is no trace, or not of one run, is one error that names the file and what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.testing.traces.recorded import recorded
from troth.testing.traces import NoTrace, Rejected, check_files

HEADER = recorded("plain").files["site-1.host-1.jsonl"][0]


def header(**changes: Any) -> bytes:
    """A file with nothing but a header, of which some was changed; ``...`` takes a field away."""
    return json.dumps({key: value for key, value in {**HEADER, **changes}.items() if value is not ...}).encode() + b"\n"


CONTENT: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty: nothing was recorded in it, so leave it out"),
    "cut within its header": (header()[:50], "ends within its first line: nothing was recorded in it, so leave it out"),
    "binary": (b"\x89PNG\r\n\x1a\n", "is not a trace: it is not even text; `troth run --trace DIR` records some"),
    "a text": (b"Dear diary,\n", "is not a trace (line 1: (line): is not JSON"),
    "other JSON": (b'{"a": 1}\n', "is not a trace (line 1: v: must be version 2)"),
    "an older version": (
        header(v=1),
        "is a trace of another version (must be version 2, got '1'); check it with the Troth that recorded it",
    ),
    "a newer version": (
        header(v=3),
        "is a trace of another version (must be version 2, got '3'); check it with the Troth that recorded it",
    ),
    "a field less": (header(driver=...), "is not a trace (line 1: driver: is missing)"),
    "another core": (header(core="toaster"), "is of a core 'toaster'; there are trainer, host, receiver, supervisor"),
    "nobody's party": (header(party="Bob"), "its header does not say which host of which driver and launch it is; record it again"),
    "no launch": (header(launch=None), "its header does not say which host of which driver and launch it is; record it again"),
    "other declarations": (header(declarations="0" * 32), "was recorded under other declarations"),
    "a setting less": (header(config={"launched": True}), "its header lacks the setting"),
    "a setting too many": (header(config={**HEADER["config"], "colour": 1}), "its header has the setting 'colour' of a host"),
    "a setting of another kind": (header(config={**HEADER["config"], "launch": True}), "its header says launch = True, which is no int"),
    "limits that are none": (header(limits={**HEADER["limits"], "lease_timeout_s": 0.1}), "limits under which nothing runs"),
}


@pytest.mark.parametrize(("content", "says"), CONTENT.values(), ids=CONTENT)
def test_a_file_that_is_no_trace_is_named_with_what_to_do(tmp_path: Path, content: bytes, says: str) -> None:
    """Before anything is checked."""
    path = tmp_path / "file.jsonl"
    path.write_bytes(content)
    with pytest.raises(NoTrace) as caught:
        check_files([path])
    assert str(caught.value).startswith(f"{path}: ")
    assert says in str(caught.value)


def test_a_directory_without_traces_is_named(tmp_path: Path) -> None:
    """And a file that is not there."""
    (tmp_path / "notes.txt").write_text("none")
    with pytest.raises(NoTrace, match=r"is a directory without a trace \(\*\.jsonl\); `troth run --trace DIR` records some"):
        check_files([tmp_path])
    with pytest.raises(NoTrace, match="cannot be read: No such file"):
        check_files([tmp_path / "missing.jsonl"])


def test_a_file_is_given_once(tmp_path: Path) -> None:
    """A party cannot have done everything twice."""
    paths = recorded("plain").write(tmp_path)
    with pytest.raises(NoTrace, match="of which there is another file: give each file once"):
        check_files([*paths, paths[0]])


def test_files_of_two_runs_are_no_run(tmp_path: Path) -> None:
    """Whether all of both are given, or a party of the one among those of the other."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one = recorded("plain").write(tmp_path / "one")
    other = recorded("plain").copy()
    for lines in other.files.values():
        lines[0]["driver"] = lines[0]["driver"].replace("@", "@f")
    two = other.write(tmp_path / "two")
    with pytest.raises(NoTrace, match="is of another run than .*one.*; check the files of each run by themselves"):
        check_files([*one, *two])
    mixed = [path for path in one if ".host" not in path.name] + [path for path in two if ".host" in path.name]
    with pytest.raises(NoTrace, match="is of another run than"):
        check_files(mixed)


BAD_LINES: dict[str, tuple[Callable[[list[str]], list[str]], int, str]] = {
    "a line that is no JSON": (lambda lines: [*lines[:4], "oops", *lines[5:]], 5, "(line): is not JSON, or was cut off"),
    "an empty line": (lambda lines: [*lines[:4], "", *lines[4:]], 5, "(line): is not JSON, or was cut off"),
    "a second header": (lambda lines: [*lines[:4], lines[0], *lines[4:]], 5, "n: is missing"),
    "a line after the end": (lambda lines: [*lines, lines[-2]], -1, "there is a line after the end of the file"),
    "an end too early": (lambda lines: [*lines[:3], lines[-1]], 4, "the end says that there are "),
    "what is not ASCII": (lambda lines: [*lines[:4], lines[4].replace('"is"', '"ïs"'), *lines[5:]], 5, "is not ASCII"),
}


@pytest.mark.parametrize(("spoil", "line", "says"), BAD_LINES.values(), ids=BAD_LINES)
def test_a_line_that_is_none_is_rejected_at_its_number(
    tmp_path: Path, spoil: Callable[[list[str]], list[str]], line: int, says: str
) -> None:
    """It is a trace, but nothing that a tracer writes."""
    paths = recorded("plain").write(tmp_path)
    path = tmp_path / "site-1.host-1.jsonl"
    lines = spoil(path.read_text().splitlines())
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(Rejected) as caught:
        check_files(paths)
    assert (caught.value.file, caught.value.line) == (str(path), line if line > 0 else len(lines))
    assert says in caught.value.reason
