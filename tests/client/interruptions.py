"""Interrupts a call wherever a signal handler may: a trace function is asked before each of its instructions.

A handler that returns is tried before every instruction. One that raises is tried only where the interpreter runs handlers, which is
at calls, returns and jumps back; between the last instruction of a ``with`` block and the lock's release, say, it never does.
"""

from __future__ import annotations

import dis
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import troth.client
from tests.client.doubles import MadeHost
from troth.client import process as processes
from troth.client.process import Process

INTERRUPTED = (str(Path(troth.client.__file__ or "").parent), threading.__file__)
"""Where an interruption may strike: in this package, and in what it uses of the standard library's threads."""
HANDLERS_RUN_AT = ("CALL", "RESUME", "JUMP_BACKWARD")
"""How instructions begin at which the interpreter looks for signals."""


@functools.cache
def _where_handlers_run(code: CodeType) -> frozenset[int]:
    """Offsets of instructions before which an exception is possible. Not before a ``with`` block leaves: its ``__exit__`` has then been
    called, or the exception belongs to the block."""
    shown = [one for one in dis.get_instructions(code) if one.opname not in ("CACHE", "PRECALL")]
    leaving = {shown[index].offset for index in range(3, len(shown)) if all(_is_none(before) for before in shown[index - 3 : index])}
    return frozenset(one.offset for one in shown if one.opname.startswith(HANDLERS_RUN_AT) and one.offset not in leaving)


def _is_none(instruction: dis.Instruction) -> bool:
    return instruction.opname == "LOAD_CONST" and instruction.argval is None


class Interrupter:
    """Counts the instructions of a block, and calls ``act`` before the one whose number is ``at``."""

    def __init__(self, at: int, act: Callable[[], object], *, raises: bool) -> None:
        self.at = at
        self.act = act
        self.raises = raises
        self.seen = 0

    def trace(self, frame: FrameType, event: str, _argument: Any) -> Any:
        """What ``sys.settrace`` takes."""
        if not frame.f_code.co_filename.startswith(INTERRUPTED):
            return None
        frame.f_trace_opcodes = True
        if self._may_strike(frame, event):
            self.seen += 1
            if self.seen == self.at:
                self.act()
        return self.trace

    def _may_strike(self, frame: FrameType, event: str) -> bool:
        if not self.raises:
            return event == "opcode"
        return event == "return" or (event == "opcode" and frame.f_lasti in _where_handlers_run(frame.f_code))


@contextmanager
def interrupted(at: int, act: Callable[[], object], *, raises: bool = False) -> Iterator[Interrupter]:
    """Let ``act`` interrupt the block before its ``at``-th instruction."""
    interrupter = Interrupter(at, act, raises=raises)
    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # Python 3.12 looks once, when tracing begins, whether anybody wants instructions
    sys.settrace(interrupter.trace)
    try:
        yield interrupter
    finally:
        sys.settrace(before)


def everywhere(run: Callable[[int], Interrupter], *, step: int = 1) -> int:
    """Call ``run`` with each number of an instruction, until a run has none of that number; how many there were."""
    at = 0
    while True:
        at += step
        if run(at).seen < at:
            return at


def unjoined(host: MadeHost) -> Process:
    """A process without a session, and a host that answers it once."""
    processes._process = process = processes.Process()

    def soon(function: Callable[..., object], *arguments: object) -> None:
        assert process._loop is not None
        process._loop.soon(function, *arguments)

    host.soon = soon
    host.trainers.clear()
    host.answers.clear()
    host.answers.append(None)
    return process
