"""The trace of a stage: its lines as a file would have them, and each step checked as it is taken.

It is what ``--trace`` writes, of all parties in one list, in the order in which things happened. It takes as long as the session itself.
The judge does not need it: it is another look at the same steps, by the replay and the automata that check files.
"""

from __future__ import annotations

from functools import lru_cache

from attrs import define, field

from troth.runtime.tracing import Note
from troth.spec import messages
from troth.spec.codec import Codec
from troth.spec.trace import End, Header, Record, end_line, header_line, record_line
from troth.statemachines import PARTIES
from troth.testing.traces import Network, Rejected, RunCheck


@lru_cache(1)
def _codec() -> Codec:
    """What writes everything that parties take and do. To make it takes as long as ten steps."""
    return Codec.of(PARTIES.values(), messages)


@define(eq=False)
class Recording:
    """Takes the traces of all parties of a stage."""

    lines: list[str] = field(factory=list)
    """Each begins with the name of its party."""
    rejected: Rejected | None = None
    """What no run can have done, if it was done."""
    checked: bool = True
    """Whether each step is checked, and not only written down."""
    _run: RunCheck = field(init=False, factory=lambda: RunCheck(Network.FAULTY, punctual=True, properties=False))
    _codec: Codec = field(init=False, factory=_codec)

    def begin(self, name: str, header: Header) -> Note:
        """See ``troth.runtime.tracing.Recorder``."""
        self.lines.append(f"{name} {header_line(header)}")
        party = self._run.open(name, header)

        def note(said: Record | End) -> None:
            self.lines.append(f"{name} {end_line(said.steps) if isinstance(said, End) else record_line(self._codec, said)}")
            if self.checked and self.rejected is None:
                try:
                    party.close(said) if isinstance(said, End) else party.add(said)
                except Rejected as error:  # raised to whoever looks, not within the step of the runtime
                    self.rejected = error

        return note
