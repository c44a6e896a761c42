"""The files of a run, checked together: each in its own order, and no message before it was sent.

The clocks of two processes have nothing to do with each other, so the files of a run have no order among them but that of the messages.
Here they are read side by side: whoever waits for a message waits until its sender's file was read that far.
"""

from __future__ import annotations

import filecmp
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from attrs import define, field

from troth.spec import core as c
from troth.spec import messages
from troth.spec.codec import Codec
from troth.spec.errors import TraceError
from troth.spec.trace import End, Header, Record, read_header, read_line
from troth.statemachines import HOST, PARTIES, RECEIVER, SUPERVISOR, TRAINER
from troth.statemachines.shared.words import CONTROL, DATA
from troth.testing.traces.run import NOT_CLOSED, PartyCheck, RunCheck
from troth.testing.traces.verdicts import Checked, NoTrace, Rejected, Wrong
from troth.testing.traces.wires import Network, on_the_wire

MAX_LINE_BYTES = 1 << 20
"""A longer line is no trace's."""
TORN = "its last line is cut off"
AGAIN = "record the run again with `--trace`"

Seen = Callable[[PartyCheck, Record, int], object]
"""Takes a step, and when it was on one clock for all, in nanoseconds."""


@lru_cache(1)
def codec() -> Codec:
    """Of everything that a session can say."""
    return Codec.of(PARTIES.values(), messages)


@define(eq=False)
class TraceFile:
    """One file, read line by line."""

    path: Path
    header: Header = field(init=False)
    line: int = field(init=False, default=1)
    """The line that was read last."""
    cut: bool = field(init=False, default=False)
    """It has no end: its process was killed, or it is not all of it."""
    torn: bool = field(init=False, default=False)
    """Its last line is not whole."""
    end: End | None = field(init=False, default=None)
    _lines: Iterator[bytes] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._lines = self._read()
        first = next(self._lines, None)
        if first is None:
            what = "ends within its first line" if self.torn else "is empty"
            raise NoTrace(self.name, f"{what}: nothing was recorded in it, so leave it out")
        self.header = self._header(first)

    @property
    def name(self) -> str:
        """As it was named."""
        return str(self.path)

    def _read(self) -> Iterator[bytes]:
        try:
            with self.path.open("rb") as file:
                while line := file.readline(MAX_LINE_BYTES):
                    if not line.endswith(b"\n"):
                        self.torn = True
                        return
                    yield line
        except OSError as error:
            raise NoTrace(self.name, f"cannot be read: {error.strerror}") from error

    def _header(self, line: bytes) -> Header:
        try:
            return read_header(line.decode("ascii"))
        except UnicodeDecodeError as error:
            raise NoTrace(self.name, "is not a trace: it is not even text; `troth run --trace DIR` records some") from error
        except TraceError as error:
            if error.field == "v" and "must be version" in error.reason and "got" in error.reason:
                raise NoTrace(
                    self.name, f"is a trace of another version ({error.reason}); check it with the Troth that recorded it, or {AGAIN}"
                ) from error
            raise NoTrace(self.name, f"is not a trace ({error}); `troth run --trace DIR` records some") from error

    def steps(self) -> Iterator[Record]:
        """Step by step. Raises ``Rejected`` for a line that is none."""
        for line in self._lines:
            self.line += 1
            try:
                found = read_line(codec(), line.decode("ascii").rstrip("\n"), self.line)
            except UnicodeDecodeError as error:
                raise Rejected(self.name, self.line, "is not ASCII, so it is not a line of a trace") from error
            except TraceError as error:
                raise Rejected(self.name, self.line, f"{error.field}: {error.reason}") from error
            if self.end is not None:
                raise Rejected(self.name, self.line, "there is a line after the end of the file")
            if isinstance(found, End):
                self.end = found
            else:
                yield found
        self.cut = self.end is None

    def mentions(self, *words: bytes) -> int:
        """In how many lines all of these words are. Looked up before anything is read."""
        with self.path.open("rb") as file:
            return sum(all(word in line for word in words) for line in file)


@define(eq=False)
class Reading:
    """A file that is being checked."""

    file: TraceFile
    party: PartyCheck
    head: Record | None = field(init=False, default=None)
    """The step that comes next."""
    _steps: Iterator[Record] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._steps = self.file.steps()

    def advance(self, *, killed: bool) -> None:
        """Look at the next step; at the end, say how the file ends. ``killed``: nothing of its process is left unrecorded. Raises
        ``Rejected`` for a step that is out of its place, before anybody else misses it."""
        before, self.head = self.head, next(self._steps, None)
        if self.head is not None:
            if self.head.n != self.party.steps:
                raise self.party.rejected(self.party.misplaced(self.head), self.head)
            if before is not None and self.head.t_ns < before.t_ns:
                raise self.party.rejected(Wrong(f"t_ns goes back from {before.t_ns} to {self.head.t_ns}"), self.head)
            return
        if self.file.end is not None:
            self.party.close(self.file.end)
        elif self.file.torn or not killed:
            self.party.cut()


@define(eq=False)
class Process:
    """The files of one driver."""

    name: str
    readings: list[Reading] = field(factory=list)
    offset: int | None = None
    """What is added to its clock to compare it with others; ``None`` until it is known."""
    latest: int = 0

    @property
    def head(self) -> Reading | None:
        """The file whose step comes next: the driver has counted them."""
        return min((r for r in self.readings if r.head is not None), key=lambda r: _turn(r.head), default=None)


def _turn(record: Record | None) -> int:
    return -1 if record is None else record.turn


def files_of(paths: Iterable[Path]) -> tuple[Path, ...]:
    """The files that are named: a directory stands for all ``*.jsonl`` in it. Raises ``NoTrace`` for one without any."""
    found: list[Path] = []
    for path in paths:
        within = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
        if not within:
            raise NoTrace(str(path), "is a directory without a trace (*.jsonl); `troth run --trace DIR` records some")
        found += within
    return tuple(found)


def check_files(paths: Iterable[Path], *, network: Network = Network.SOUND, properties: bool = True, seen: Seen | None = None) -> Checked:
    """Check the files of one run together; a directory stands for those in it. Raises ``Rejected``, or ``NoTrace`` for what cannot be
    checked. ``seen`` is told of every step that was taken, in an order in which they can have happened."""
    files = [TraceFile(path) for path in files_of(paths)]
    _refuse_again(files)
    run = RunCheck(network, late=True, properties=properties)
    readings = [Reading(file, run.open(file.name, file.header)) for file in files]
    _refuse_mixed(readings)
    _note_gaps(readings)
    merging = Merging(run, readings, seen)
    merging.run_all()
    found = run.finish()
    return Checked(found.steps, tuple(_torn(files, found.partial)))


def _torn(files: list[TraceFile], partial: tuple[str, ...]) -> Iterator[str]:
    """What is missing, where of some files the last line is, too."""
    said = {f"{file.name}: {NOT_CLOSED}": f"{file.name}: {TORN}" for file in files if file.torn}
    for one in partial:
        begins = one.partition(";")[0]
        yield one if begins not in said else said.pop(begins) + one.removeprefix(begins)
    yield from said.values()


@define(eq=False)
class Merging:
    """Reads the files of a run side by side."""

    run: RunCheck
    readings: list[Reading]
    seen: Seen | None
    processes: list[Process] = field(init=False)
    _killed: set[str] = field(factory=set)
    _now_ns: int = field(default=0, init=False)
    """When the last step was whose clock is known. What a clock says that is not known yet is taken for no earlier than that."""

    def __attrs_post_init__(self) -> None:
        found: dict[str, Process] = {}
        for reading in self.readings:
            found.setdefault(reading.party.driver.name, Process(reading.party.driver.name)).readings.append(reading)
        self.processes = list(found.values())
        for process in self.processes:
            if not any(reading.party.file.core == TRAINER.name for reading in process.readings):
                process.offset = 0
        for reading in self.readings:
            header = reading.file.header
            killed = header.core == HOST.name and reading.file.mentions(b'"is":"ProcessExited"', b'"clean":false')
            if killed and header.launch is not None:
                self._killed.add(header.launch)

    def _advance(self, reading: Reading) -> None:
        header = reading.file.header
        trainer = any(r.party.file.core == TRAINER.name for r in self.readings if r.party.driver is reading.party.driver)
        reading.advance(killed=trainer and header.launch in self._killed)

    def run_all(self) -> None:
        """Every step of every file."""
        for reading in self.readings:
            self._advance(reading)
        while True:
            heads = [(process, head) for process in self.processes if (head := process.head) is not None]
            if not heads:
                return
            heads.sort(key=self._order)
            process, reading = self._next(heads) or self._culprit(heads)
            self._take(process, reading)

    def _next(self, heads: list[tuple[Process, Reading]]) -> tuple[Process, Reading] | None:
        """Whose turn it is: the earliest step that can be taken. Of a process with an unknown clock, the steps that somebody waits for."""
        for each in heads:
            if self._may(*each):
                return each
            launch = each[1].party.file.launch
            for other in heads:
                if other[0].offset is None and other[1].party.file.launch is launch and launch is not None and self._may(*other):
                    return other
        return None

    def _order(self, each: tuple[Process, Reading]) -> tuple[bool, int, bool]:
        process, reading = each
        record = _record(reading)
        waits = isinstance(record.event, c.Received)
        return process.offset is None, record.t_ns + (process.offset or 0), waits

    def _may(self, process: Process, reading: Reading) -> bool:
        base, _, life = process.name.rpartition("/")
        if base and life.isdigit():  # a script that joins again has ended its session before
            before = base if life == "2" else f"{base}/{int(life) - 1}"
            if any(other.name == before and other.head is not None for other in self.processes):
                return False
        return reading.party.may(_record(reading))

    def _take(self, process: Process, reading: Reading) -> None:
        record = _record(reading)
        reading.party.add(record)
        process.latest = record.t_ns
        if isinstance(record.event, c.Received) and record.event.link in (CONTROL, DATA):
            self._align(process, reading, record)
        if process.offset is not None:
            self._now_ns = record.t_ns + process.offset
        if self.seen is not None:
            self.seen(reading.party, record, self._now_ns)
        self._advance(reading)

    def _align(self, process: Process, reading: Reading, record: Record) -> None:
        """A message was taken: as far as anybody can tell, its sender's clock stood where it was sent."""
        launch = reading.party.file.launch
        for other in self.processes:
            if other is process or not any(r.party.file.launch is launch for r in other.readings) or launch is None:
                continue
            if other.offset is None and process.offset is not None:
                other.offset = record.t_ns + process.offset - other.latest
            elif process.offset is None and other.offset is not None:
                process.offset = other.latest + other.offset - record.t_ns

    def _culprit(self, heads: list[tuple[Process, Reading]]) -> tuple[Process, Reading]:
        """Everybody waits for a message. Who waits for one that is in nobody's file?"""
        for each in heads:
            event = _record(each[1]).event
            if isinstance(event, c.Received) and not self._follows(each[1], event):
                return each
        return heads[0]

    def _follows(self, waiting: Reading, event: c.Received) -> bool:
        """Whether the other end of the launch says it later on."""
        key, launch = on_the_wire(event.message), waiting.party.file.launch
        for reading in self.readings:
            if reading.party.file.launch is not launch or reading.party.driver is waiting.party.driver:
                continue
            again = TraceFile(reading.file.path)
            for record in _as_far_as_it_goes(again.steps()):
                if record.n < reading.party.steps:
                    continue
                if any(isinstance(e, c.Send) and e.link == event.link and on_the_wire(e.message) == key for e in record.effects):
                    return True
        return False


def _as_far_as_it_goes(steps: Iterator[Record]) -> Iterator[Record]:
    try:
        yield from steps
    except Rejected:
        return


def _record(reading: Reading) -> Record:
    if reading.head is None:
        raise ValueError(f"{reading.file.name} has no more steps")
    return reading.head


def _note_gaps(readings: list[Reading]) -> None:
    """Which drivers lack a file, so that their steps are not numbered without a gap here."""
    by_driver: dict[str, dict[tuple[str, str], Reading]] = {}
    for reading in readings:
        header = reading.file.header
        by_driver.setdefault(reading.party.driver.name, {})[header.core, header.party] = reading
    for files in by_driver.values():
        wanted: set[tuple[str, str]] = {(RECEIVER.name, party) for core, party in files if core in (HOST.name, TRAINER.name)}
        if any(core == RECEIVER.name and party == "trainer" for core, party in files):
            wanted.add((TRAINER.name, "trainer"))
        if not any(core == TRAINER.name or party == "trainer" for core, party in files):
            wanted.add((SUPERVISOR.name, "supervisor"))
            supervisor: Any = files.get((SUPERVISOR.name, "supervisor"))
            hosts = 0 if supervisor is None else supervisor.file.mentions(b'"is":"StartSession"')
            wanted |= {pair for n in range(1, hosts + 1) for pair in ((HOST.name, f"host-{n}"), (RECEIVER.name, f"host-{n}"))}
        if wanted - files.keys():
            next(iter(files.values())).party.driver.whole = False


def _refuse_again(files: list[TraceFile]) -> None:
    """Whatever it is called, a file of the same party of the same driver is the same file, or not of this run. Raises ``NoTrace``."""
    known: dict[tuple[str, str, str], TraceFile] = {}
    for file in files:
        header = file.header
        other = known.setdefault((header.driver, header.core, header.party), file)
        if other is file:
            continue
        if filecmp.cmp(file.path, other.path, shallow=False):
            raise NoTrace(file.name, f"is the same file as {other.name}: give each file once")
        raise NoTrace(file.name, f"is of the same party as {other.name} and says something else; give one file a party, all of one run")


def _refuse_mixed(readings: list[Reading]) -> None:
    """Files of several runs make no run. Raises ``NoTrace``."""
    named: dict[tuple[str, str, str], Reading] = {}
    for reading in readings:
        header = reading.file.header
        where = header.driver.partition("@")[0], header.core, header.party
        other = named.setdefault(where, reading)
        if other is not reading and reading.file.path.resolve().parent != other.file.path.resolve().parent:
            raise NoTrace(reading.file.name, f"is of another run than {other.file.name}; check the files of each run by themselves")
    launches = {r.file.header.launch: r for r in readings if r.file.header.core == HOST.name}
    for reading in readings:
        header = reading.file.header
        if header.core == TRAINER.name and header.launch not in launches:
            name, _, number = header.driver.partition("@")[0].rpartition(".trainer-")
            host = named.get((name, HOST.name, f"host-{number}"))
            if host is not None:
                raise NoTrace(reading.file.name, f"is of another run than {host.file.name}; give the files of one run")
    drivers: dict[str, Reading] = {r.file.header.driver: r for r in readings if r.file.header.core == SUPERVISOR.name}
    for reading in readings:
        header = reading.file.header
        supervisor = named.get((header.driver.partition("@")[0], SUPERVISOR.name, "supervisor"))
        if header.core == HOST.name and supervisor is not None and header.driver not in drivers:
            raise NoTrace(reading.file.name, f"is of another run than {supervisor.file.name}; give the files of one run")
