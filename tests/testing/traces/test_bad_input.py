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
    with pytest.raises(NoTrace, match="is the same file as .*: give each file once"):
        check_files([*paths, paths[0]])


@pytest.mark.parametrize("name", sorted(recorded("launched_again").files))
def test_a_copy_beside_a_file_is_found_by_what_is_in_it(tmp_path: Path, name: str) -> None:
    """Whatever it is called, and whichever party it is of: a directory stands for all files in it."""
    recorded("launched_again").write(tmp_path)
    copy = tmp_path / f"a-copy-of-{name}"
    copy.write_bytes((tmp_path / name).read_bytes())
    with pytest.raises(NoTrace) as caught:
        check_files([tmp_path])
    assert str(caught.value) == f"{tmp_path / name}: is the same file as {copy}: give each file once"


def test_a_shorter_copy_is_of_the_same_party(tmp_path: Path) -> None:
    """It is not the same file, and no other session of a script that joins again, which has a number."""
    recorded("plain").write(tmp_path)
    path = tmp_path / "site-1.trainer.jsonl"
    copy = tmp_path / "older.jsonl"
    copy.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2]))
    with pytest.raises(NoTrace) as caught:
        check_files([tmp_path])
    assert str(caught.value) == f"{path}: is of the same party as {copy} and says something else; give one file a party, all of one run"


def test_a_trainer_of_another_launch_is_asked_about(tmp_path: Path) -> None:
    """It may be of the same run, whose other files are missing: so it is no error, but nobody has to guess."""
    run, other = recorded("plain").copy(), recorded("launched_again")
    for name in ("site-1.trainer.jsonl", "site-1.trainer.receivers.jsonl"):
        run.files[name] = other.files[name]
    run.write(tmp_path)
    asks = f"{tmp_path / 'site-1.trainer.jsonl'}: is of a launch whose host's file is not here, unlike those of others: "
    assert [one for one in check_files([tmp_path]).partial if one.endswith("?")] == [f"{asks}are these the files of one run?"]

    (tmp_path / "site-1.host-1.jsonl").unlink()
    (tmp_path / "site-1.host-1.receivers.jsonl").unlink()
    assert f"{tmp_path / 'site-1.trainer.jsonl'}: the file of its host is not here" in check_files([tmp_path]).partial


def test_a_host_without_the_supervisor_of_another_is_asked_about(tmp_path: Path) -> None:
    """Two backends of a run have a supervisor each."""
    recorded("plain").write(tmp_path)
    other = recorded("launched_again").copy().files["site-1.host-1.jsonl"]
    other[0]["driver"] = "site-2@0"
    (tmp_path / "site-2.host-1.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in other))
    asks = "site-2@0: the supervisor's file is not here, and that of another is: are these the files of one run?"
    assert asks in check_files([tmp_path]).partial


@pytest.mark.parametrize("torn", [False, True])
def test_what_is_taken_on_trust_where_a_file_ends_early_is_counted(tmp_path: Path, *, torn: bool) -> None:
    """The trainer heard all of these from the host, and nobody can look them up."""
    run = recorded("plain").copy()
    lines = run.files["site-1.host-1.jsonl"]
    keep = next(n for n, line in enumerate(lines) if "event" in line and any("TaskReady" in str(effect) for effect in line["effects"]))
    gone, lines[keep:] = lines[keep:], []
    heard = [line for line in run.steps("site-1.trainer.jsonl") if line["event"].get("link") == "control" and "message" in line["event"]]
    first = next(n for n, line in enumerate(heard) if "TaskReady" in str(line["event"]))
    run.write(tmp_path)
    path = tmp_path / "site-1.host-1.jsonl"
    if torn:
        path.write_text(path.read_text() + json.dumps(gone[0])[:40])
    [said] = [one for one in check_files([tmp_path]).partial if one.startswith(f"{path}: ") and "trust" in one]
    what = "its last line is cut off" if torn else "was not closed in order"
    assert said == f"{path}: {what}; {len(heard) - first} messages that came from it later were taken on trust"


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
