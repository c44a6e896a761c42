"""What did happen is accepted: whole runs, parts of them, and files that end in the middle."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.testing.traces.recorded import SCENARIOS, Run, recorded
from troth.testing.traces import Checked, Network, check_files


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_run_that_happened_is_accepted_whole(name: str) -> None:
    """Every step of every party, and nothing is missing of it."""
    run = recorded(name)
    found = run.check()

    assert found == Checked(sum(len(run.steps(file)) for file in run.files))
    assert found.steps > 25


def test_the_scenarios_are_what_they_say() -> None:
    """A link that was lost, a process that was killed, an attempt that was repeated: else they would show nothing."""
    says: dict[str, tuple[str, Callable[[dict[str, Any]], bool]]] = {
        "redialled": ("host", lambda line: line["event"]["is"] == "LinkLost"),
        "killed": ("host", lambda line: line["event"]["is"] == "ProcessExited" and not line["event"]["clean"]),
        "pulled": ("receivers", lambda line: line["event"].get("outcome") == "TransferOutcome.FAILED"),
        "cancelled": ("supervisor", lambda line: line["event"]["is"] == "CallCancelled"),
        "retried": ("trainer", lambda line: any(e.get("message", {}).get("attempt") == 2 for e in line["effects"])),
        "launched_again": ("host-3", lambda line: line["event"]["is"] == "ProcessExited"),
    }
    for name, (part, fits) in says.items():
        assert part in recorded(name).find(part, fits)[0]


@pytest.mark.parametrize("name", SCENARIOS)
def test_one_partys_file_alone_is_accepted_and_said_to_be_partial(name: str) -> None:
    """Whoever is not there is believed."""
    run = recorded(name)
    for file, lines in run.files.items():
        found = Run(name, {file: lines}).check()
        assert found.steps == len(run.steps(file))
        assert found.partial, file


@pytest.mark.parametrize("name", ["plain", "pulled", "launched_again"])
def test_any_two_files_are_accepted_and_said_to_be_partial(name: str) -> None:
    """Also those that belong together only by a third."""
    run = recorded(name)
    for pair in combinations(run.files, 2):
        found = Run(name, {file: run.files[file] for file in pair}).check()
        assert found.partial


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_file_that_is_cut_anywhere_is_accepted_and_said_to_be_partial(name: str, tmp_path: Path) -> None:
    """In the middle of a line, as a killed process or a full disk leaves it, or at its end. What the others heard of it later is
    believed; what they heard before is not."""
    run, chance = recorded(name), random.Random(name)
    killed = {file for file in run.files if name == "killed" and ".trainer" in file}  # there a whole line is the last that there was
    for file in run.files:
        paths = run.write(tmp_path)
        content = (tmp_path / file).read_bytes()
        for _ in range(4):
            cut = chance.randrange(content.index(b"\n") + 1, len(content) - 1)
            if content[cut - 1 : cut] == b"\n" and file in killed:
                continue
            (tmp_path / file).write_bytes(content[:cut])
            found = check_files(paths, network=run.network)
            assert any(file in reason for reason in found.partial), (file, cut)


def test_a_killed_trainers_file_is_whole_and_a_cut_one_is_not() -> None:
    """The host was told of the kill, and what was written is all that there was."""
    run = recorded("killed").copy()
    [main] = [file for file in run.files if file.endswith(".trainer.jsonl")]
    if "end" in run.files[main][-1]:  # a simulated process closes its files as it dies; a real one cannot
        run.files[main].pop()
    assert run.check().partial == ()

    run = recorded("plain").copy()
    run.files[main].pop()
    assert [reason.partition(": ")[2] for reason in run.check().partial] == ["was not closed in order"]


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_run_is_checked_step_by_step_while_it_goes_on(name: str) -> None:
    """The same records in the order in which they were taken, without files: time stands still while anything happens, so no timer is
    late."""
    run = recorded(name)
    assert run.check_live() == Checked(sum(len(run.steps(file)) for file in run.files))


def test_a_sound_network_does_not_explain_what_a_faulty_one_did() -> None:
    """A message that was lost in the middle, or came twice, is accepted only where the network is said to do that."""
    run = recorded("retried")
    with pytest.raises(Exception, match="has not sent it"):
        Run("sound", run.files).check()
    assert run.network is Network.FAULTY
    assert run.check().partial == ()
