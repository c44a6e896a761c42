"""A trainer finds the end of its owner pipe, and takes nothing else for it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime.processes.guarded import guarded
from troth.runtime.ports import ExitStatus
from troth.runtime.processes.child import OWNER_FD_VARIABLE, OWNER_PIPE_VARIABLE
from troth.runtime.processes.owner import owner_descriptor


def test_the_pipe_is_known_by_what_it_is_and_not_by_its_number() -> None:
    read, write = os.pipe()
    found = os.fstat(read)
    given = {OWNER_FD_VARIABLE: str(read), OWNER_PIPE_VARIABLE: f"{found.st_dev}:{found.st_ino}"}
    os.set_inheritable(read, True)

    assert owner_descriptor(given) == read
    assert not os.get_inheritable(read)

    other, another = os.pipe()
    os.dup2(other, read)
    assert owner_descriptor(given) is None
    for descriptor in (read, write, other, another):
        os.close(descriptor)


@pytest.mark.parametrize("number", ["", "x", "-1", "99999", str(10**30), None])
def test_without_the_descriptor_there_is_none(number: str | None) -> None:
    given = {OWNER_PIPE_VARIABLE: "1:2"} if number is None else {OWNER_FD_VARIABLE: number, OWNER_PIPE_VARIABLE: "1:2"}

    assert owner_descriptor(given) is None


def test_a_descriptor_that_is_no_pipe_is_not_taken() -> None:
    with socket.socket() as other:
        found = os.fstat(other.fileno())
        given = {OWNER_FD_VARIABLE: str(other.fileno()), OWNER_PIPE_VARIABLE: f"{found.st_dev}:{found.st_ino}"}

        assert owner_descriptor(given) is None


SCRIPT = """
import subprocess, sys
from troth.runtime.processes.owner import owner_descriptor
child = [sys.executable, "-c", "from troth.runtime.processes.owner import owner_descriptor; assert owner_descriptor() is None"]
subprocess.run(child, check=True)                                          # subprocess does not pass it on
assert owner_descriptor() == 3
"""


@pytest.mark.trio
async def test_a_launched_process_has_it_and_what_that_starts_has_not(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        launch = g.launch()
        environment = {**launch.environment, "PYTHONPATH": os.pathsep.join(sys.path)}
        await g.guardian.spawn(type(launch)(launch.launch_id, "site-1", [sys.executable, "-c", SCRIPT], environment, tmp_path))

        assert (await g.exited(launch)).status == ExitStatus(code=0)


def test_a_process_that_nobody_launched_has_none() -> None:
    subprocess.run(
        [sys.executable, "-c", "from troth.runtime.processes.owner import owner_descriptor; assert owner_descriptor() is None"], check=True
    )
