"""Checks of traces: whatever was recorded is replayed on the real cores, beside automata of the links and timers between them.

``RunCheck`` takes steps one at a time, while a run goes on; ``check_files`` takes the files that ``--trace`` has written.
"""

from troth.testing.traces.files import check_files, files_of
from troth.testing.traces.run import PartyCheck, RunCheck
from troth.testing.traces.verdicts import Checked, Near, NoTrace, Rejected
from troth.testing.traces.wires import Network

__all__ = ["Checked", "Near", "Network", "NoTrace", "PartyCheck", "Rejected", "RunCheck", "check_files", "files_of"]
