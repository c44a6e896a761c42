"""Traces of what ran: one file a party, one line a ``handle``, in the format of ``troth.spec.trace``.

``--trace DIR`` makes DIR and writes ``NAME.jsonl`` for each party, flat, nothing else. A DIR that is not empty is refused before
anything starts. Lines are written through at once, before the effects of their step are performed, so that a process that is killed
leaves all that others heard of it. A file that was closed in order says so in its last line.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TextIO, TypeAlias

from attrs import define, evolve, field, frozen

from troth.runtime.errors import Misuse
from troth.spec import messages
from troth.spec.codec import Codec
from troth.spec.core import Event, Step
from troth.spec.engine import PartyCore
from troth.spec.fingerprint import declaration_hash, state_digest
from troth.spec.trace import End, Header, Record, config_of, end_line, header_line, limits_of, record_line
from troth.statemachines import PARTIES, TRAINER

TRACE_VARIABLE = "TROTH_TRACE"
"""The environment variable that tells a launched trainer where its trace goes: a directory, and the name of the party in it."""
AGAIN_LIMIT = 100
"""Sessions of one launch that can be traced; a script may join again after its session has ended."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""What a party of a trace may be called: its name becomes a file's."""


def trace_of_launch(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Where the trace of this launched process goes; its last part is the party's name. ``None`` if nobody wants one."""
    found = environment.get(TRACE_VARIABLE)
    return Path(found) if found else None


def new_directory(path: Path) -> Path:
    """The directory for traces: made, or empty already. Raises ``Misuse``."""
    if path.exists() and not path.is_dir():
        raise Misuse(f"{path}: must be a directory for traces, and is a file; name another")
    if path.is_dir() and any(path.iterdir()):
        raise Misuse(f"{path}: must be empty, so that nothing is overwritten; name a new directory")
    path.mkdir(parents=True, exist_ok=True)
    return path


Note: TypeAlias = Callable[["Record | End"], object]
"""Takes the steps of one file, and its end."""


class Recorder(Protocol):
    """Takes traces instead of a directory: a test that looks at every step while a run goes on."""

    def begin(self, name: str, header: Header) -> Note:
        """A new file, as it were. ``name`` has no suffix, and may come up again."""
        ...


Goal: TypeAlias = "Path | Recorder"


@frozen(kw_only=True)
class Subject:
    """Whose steps are traced; see ``troth.spec.trace.Header``."""

    core: str
    config: Any
    """The core's, with its limits."""
    party: str
    driver: str
    launch: bytes | None = None


@cache
def declarations() -> str:
    """The hash of what all parties declare. It takes a hundredth of a second, and every file begins with it."""
    return declaration_hash(PARTIES.values())


def driver_name(name: str, place: Path | bytes) -> str:
    """What a driver is called in traces: by name, and by where it lives or which launch it is, so that two runs are not taken for one.

    The same in every run of a simulation, where directories and launches are counted.
    """
    told = place if isinstance(place, bytes) else str(place).encode()
    return f"{name}@{hashlib.sha256(told).hexdigest()[:8]}"


@define(eq=False)
class Tracer:
    """Writes the steps of one party, or of all receivers of a party, to one file."""

    name: str
    subject: Subject
    goal: Goal
    driver: str = field(init=False)
    """The subject's; one of its own for each session of a script that joins again."""
    _note: Note = field(init=False)
    _close: Callable[[], object] | None = field(init=False, default=None)
    """Closes the file; ``None`` once that is done."""
    _lines: int = 0
    _latest_ns: int = 0

    def __attrs_post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise Misuse(f"{self.name!r} cannot name a trace: use letters, digits, dots, dashes and underscores")
        self.driver = self.subject.driver
        header = Header(
            declarations(),
            limits_of(self.subject.config.limits),
            core=self.subject.core,
            config=config_of(self.subject.config),
            party=self.subject.party,
            driver=self.subject.driver,
            launch=None if self.subject.launch is None else self.subject.launch.hex(),
        )
        if isinstance(self.goal, Path):
            self._write(self.goal, header)
        else:
            self._note, self._close = self.goal.begin(self.name, header), _nothing

    def _write(self, directory: Path, header: Header) -> None:
        codec = Codec.of(PARTIES.values(), messages)
        file, number = self._opened(directory)
        if number > 1 and self.subject.core == TRAINER.name:
            self.driver = f"{self.driver}/{number}"
        file.write(header_line(evolve(header, driver=self.driver)) + "\n")

        def note(said: Record | End) -> None:
            file.write((end_line(said.steps) if isinstance(said, End) else record_line(codec, said)) + "\n")

        self._note, self._close = note, file.close

    def _opened(self, directory: Path) -> tuple[TextIO, int]:
        """A new file; a second session of that name gets a number."""
        for number in range(1, AGAIN_LIMIT + 1):
            path = directory / (f"{self.name}.jsonl" if number == 1 else f"{self.name}.{number}.jsonl")
            try:
                return path.open("x", encoding="ascii", buffering=1), number
            except FileExistsError:
                continue
        raise Misuse(f"{directory}: {AGAIN_LIMIT} traces of {self.name!r} are there already; name a new directory")

    def note(self, core: PartyCore, event: Event, step: Step, *, party: str, turn: int, t_ns: int, epoch: int | None) -> None:
        """One step that ``party`` took. ``turn`` and ``t_ns`` are the driver's count and clock. Nothing once the file is closed: whoever
        calls what is over is told so, and that is no part of the run."""
        if self._close is None:
            return
        self._latest_ns = max(self._latest_ns, t_ns)
        state = state_digest(core.snapshot())
        self._note(Record.of(step, event, n=self._lines, turn=turn, t_ns=self._latest_ns, party=party, epoch=epoch, state=state))
        self._lines += 1

    def close(self) -> None:
        """Say that this is all, and close the file. May be called again."""
        if self._close is not None:
            close, self._close = self._close, None
            self._note(End(self._lines))
            close()


def _nothing() -> None:
    """There is nothing to close."""
