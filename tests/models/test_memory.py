"""How much memory a search may use, and what it says when the system gives less."""

from __future__ import annotations

import errno
import os
import resource
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.models.test_limits import counters
from troth.models import CheckResult, Limits, Verdict, check
from troth.models.exploration import Ending
from troth.models.vector import driver, memory, parallel, table

GIB = 1 << 30


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 8 GiB available, without control groups or limits."""
    monkeypatch.setattr(memory, "PROC", tmp_path / "proc")
    monkeypatch.setattr(memory, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(resource, "getrlimit", lambda which: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    put(tmp_path / "proc/meminfo", f"MemTotal: {16 * GIB // 1024} kB\nMemAvailable: {8 * GIB // 1024} kB\n")
    return tmp_path


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="ascii")


def test_without_limits_it_is_what_the_machine_has(machine: Path) -> None:
    assert memory.available_bytes() == 8 * GIB


def test_the_least_of_a_control_group_and_those_above_it_counts(machine: Path) -> None:
    put(machine / "proc/self/cgroup", "0::/a/b\n")
    put(machine / "cgroup/a/b/memory.max", "max\n")
    put(machine / "cgroup/a/memory.max", f"{3 * GIB}\n")
    put(machine / "cgroup/a/memory.current", f"{2 * GIB}\n")
    put(machine / "cgroup/a/memory.stat", f"anon 7\ninactive_file {GIB}\n")
    assert memory.available_bytes() == 2 * GIB

    put(machine / "cgroup/memory.max", f"{GIB}\n")
    assert memory.available_bytes() == GIB


def test_version_1_of_control_groups(machine: Path) -> None:
    put(machine / "proc/self/cgroup", "5:cpu:/x\n4:memory:/x\n0::/\n")
    put(machine / "cgroup/memory/x/memory.limit_in_bytes", f"{2 * GIB}\n")
    put(machine / "cgroup/memory/x/memory.usage_in_bytes", f"{GIB}\n")
    assert memory.available_bytes() == GIB


def test_what_the_address_limit_leaves(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (GIB, resource.RLIM_INFINITY))
    put(machine / "proc/self/statm", "1000 1 1 1 0 1 0\n")
    assert memory.available_bytes() == GIB - 1000 * resource.getpagesize()

    put(machine / "proc/self/statm", f"{GIB} 1 1 1 0 1 0\n")
    assert memory.available_bytes() == 0


def searched(workers: int = 1) -> CheckResult:
    world = counters(20, 20, 20)
    world.always("EARLY", "it is small", world.handles[0].see("n") < 5)
    world.always("LATE", "never all are 19", ~((world.handles[0].see("n") + world.handles[1].see("n") + world.handles[2].see("n")) == 57))
    return check(world, engine="vector", limits=Limits(workers=workers))


def is_unknown(result: CheckResult) -> bool:
    """What was found before is said, the rest unknown."""
    early, late = result.properties
    assert (early.verdict, late.verdict) == (Verdict.VIOLATED, Verdict.UNKNOWN)
    assert early.trace is not None
    assert len(early.trace.steps) == 5
    assert "before memory ran out" in late.reason
    assert 0 < result.states < 8000
    return result.ending is Ending.MEMORY


def test_no_memory_for_the_table_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def reserved(slots: int) -> Any:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(table, "reserved", reserved)
    result = searched()

    assert (result.verdict, result.ending, result.states) == (Verdict.UNKNOWN, Ending.MEMORY, 0)


def out_of_memory(monkeypatch: pytest.MonkeyPatch, most: int, where: Any) -> None:
    """From ``most`` states in one table on there is no memory, in those processes for which ``where`` holds."""
    insert = table.Table.insert

    def failing(self: table.Table, states: Any) -> Any:
        if self.count > most and where(os.getpid()):
            raise MemoryError
        return insert(self, states)

    monkeypatch.setattr(table.Table, "insert", failing)


def test_no_memory_on_the_way_is_unknown_and_what_was_found_before_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    out_of_memory(monkeypatch, 1500, lambda pid: True)

    assert is_unknown(searched())


@pytest.mark.parametrize("home", [True, False])
def test_no_memory_in_one_of_two_processes_is_unknown(home: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "FORK_FRONTIER", 20)
    here = os.getpid()
    out_of_memory(monkeypatch, 1000, lambda pid: (pid == here) is home)

    assert is_unknown(searched(workers=2))


def test_no_memory_for_a_team_leaves_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def shared(slots: int) -> Any:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(driver, "FORK_FRONTIER", 20)
    monkeypatch.setattr(parallel, "shared", shared)
    result = searched(workers=2)

    assert (result.ending, result.states) == (Ending.COMPLETE, 8000)


def test_another_os_error_is_not_taken_for_want_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def reserved(slots: int) -> Any:
        raise BrokenPipeError

    monkeypatch.setattr(table, "reserved", reserved)
    with pytest.raises(BrokenPipeError):
        searched()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_AS is only kept on Linux")
def test_a_search_under_an_address_limit_ends_with_a_verdict() -> None:
    """Enough for numpy and a small table, not for a team: in a process of its own."""
    import subprocess

    script = (
        "import resource; from tests.models.test_limits import counters; from troth.models import Limits, check\n"
        "import numpy; used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 28), resource.RLIM_INFINITY))\n"
        "found = check(counters(40, 40, 40), engine='vector', limits=Limits(workers=2))\n"
        "print(found.verdict.value, found.states)\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False, timeout=60)

    assert (done.stdout.strip(), done.returncode) == ("holds 64000", 0), done.stderr
