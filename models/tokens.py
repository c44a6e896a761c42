"""Replay tokens: a whole trace in a few letters.

A token holds which edge was taken at each step, by its place in the order of the actions, and a fingerprint of the states on the
way. Replaying it calls the real cores again; a token of another world, another bound or an older version of the code does not fit,
and is told apart from one that does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from troth.models.errors import WorldError
from troth.models.letters import packed, spelled, unpacked, unspelled
from troth.models.system import System
from troth.models.trace import Trace, edges

VERSION = 1
CHECK_BYTES = 4
BITS = 35
CHOICES_LIMIT = 1 << 20
"""Steps of a trace that a token may hold; more is a token that somebody made up."""


class TokenError(WorldError):
    """A token does not belong to this world."""


def token(trace: Trace) -> str:
    """The token that replays ``trace``."""
    numbers = (0 if trace.loop is None else trace.loop + 1, *trace.choices)
    return spelled(bytes([VERSION]) + packed(numbers) + _check(trace))


def replay(system: System, text: str) -> Trace:
    """The trace of a token, executed again step by step. Raises ``TokenError`` where it does not fit ``system``."""
    try:
        raw = unspelled(text)
        numbers = list(unpacked(raw[1:-CHECK_BYTES], BITS))
    except (ValueError, IndexError) as error:
        raise TokenError(f"{text!r} is no replay token; copy it whole from the line that troth check printed") from error
    if len(raw) < 2 + CHECK_BYTES or raw[0] != VERSION or len(numbers) > CHOICES_LIMIT or spelled(raw) != text:
        raise TokenError(f"{text!r} is no replay token; copy it whole from the line that troth check printed")
    loop, *choices = numbers
    if loop > len(choices) + 1:
        raise TokenError(f"{text!r} is no replay token: it returns to a step that it has not")
    trace = _run(system, choices)
    trace = Trace(trace.system, trace.start, trace.steps, loop - 1 if loop else None)
    if trace.loop is not None and trace.states[trace.loop] != trace.states[-1]:
        raise TokenError(f"the token does not fit: its last step does not lead back to the state after step {trace.loop}")
    if _check(trace) != raw[-CHECK_BYTES:]:
        raise TokenError("the token does not fit: the same steps lead to other states; it is of another world, bound or version")
    return trace


def _run(system: System, choices: Sequence[int]) -> Trace:
    state, steps = system.initial, []
    for number, choice in enumerate(choices, start=1):
        found = edges(system, state)
        if choice >= len(found):
            raise TokenError(
                f"the token does not fit: at step {number} there are {len(found)} things that can happen, it wants number {choice + 1};"
                " it is of another world, bound or version"
            )
        steps.append(found[choice])
        state = found[choice].state
    return Trace(system, system.initial, tuple(steps))


def _check(trace: Trace) -> bytes:
    found = hashlib.blake2b(digest_size=CHECK_BYTES)
    for state in trace.states:
        found.update(trace.system.digest(state).to_bytes(8, "little"))
    for step in trace.steps:
        found.update(step.action.name.encode() + b"\0")
    return found.digest()
