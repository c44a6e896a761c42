"""Traces of what ran: one file a party, one line a ``handle``, in the format of ``troth.spec.trace``.

``--trace DIR`` makes DIR and writes ``NAME.jsonl`` for each party, flat, nothing else. A DIR that is not empty is refused before
anything starts. Lines are written through at once, so that a process that is killed leaves all but its last one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from attrs import define, field

from troth.runtime.errors import Misuse
from troth.spec import messages
from troth.spec.codec import Codec
from troth.spec.core import Event, Step
from troth.spec.engine import PartyCore
from troth.spec.fingerprint import declaration_hash, state_digest
from troth.spec.limits import Limits
from troth.spec.trace import Header, Record, header_line, limits_of, record_line
from troth.statemachines import PARTIES

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


@define(eq=False)
class Tracer:
    """Writes the steps of one party, or of all receivers of a party, to one file."""

    name: str
    limits: Limits
    directory: Path
    _codec: Codec = field(init=False)
    _file: TextIO = field(init=False)
    _lines: int = 0
    _latest_ns: int = 0

    def __attrs_post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise Misuse(f"{self.name!r} cannot name a trace: use letters, digits, dots, dashes and underscores")
        self._codec = Codec.of(PARTIES.values(), messages)
        self._file = self._opened()
        header = Header(declaration_hash(PARTIES.values()), limits_of(self.limits))
        self._file.write(header_line(header) + "\n")

    def _opened(self) -> TextIO:
        """A new file; a second session of that name gets a number."""
        for number in range(1, AGAIN_LIMIT + 1):
            path = self.directory / (f"{self.name}.jsonl" if number == 1 else f"{self.name}.{number}.jsonl")
            try:
                return path.open("x", encoding="ascii", buffering=1)
            except FileExistsError:
                continue
        raise Misuse(f"{self.directory}: {AGAIN_LIMIT} traces of {self.name!r} are there already; name a new directory")

    def note(self, core: PartyCore, event: Event, step: Step, *, party: str, t_ns: int, epoch: int | None) -> None:
        """One step that ``party`` took. ``t_ns`` is the driver's clock."""
        self._latest_ns = max(self._latest_ns, t_ns)
        state = state_digest(core.snapshot())
        record = Record.of(step, event, n=self._lines, t_ns=self._latest_ns, party=party, epoch=epoch, state=state)
        self._file.write(record_line(self._codec, record) + "\n")
        self._lines += 1

    def close(self) -> None:
        """Close the file."""
        self._file.close()
