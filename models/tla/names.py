"""Names and lines that TLA+ can read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

WIDTH = 132
"""Characters in a line of the module, comments apart."""
COMMENT_WIDTH = 200
"""Characters of a state's text that a comment shows."""

KEYWORDS = """
ACTION ASSUME ASSUMPTION AXIOM BOOLEAN BY CASE CHOOSE CONSTANT CONSTANTS COROLLARY DEF DEFINE DEFS DOMAIN ELSE ENABLED EXCEPT EXTENDS
FALSE HAVE HIDE IF IN INSTANCE LAMBDA LEMMA LET LOCAL MODULE NEW OBVIOUS OMITTED ONLY OTHER PICK PROOF PROPOSITION PROVE QED RECURSIVE
STATE STRING SUBSET SUFFICES TAKE TEMPORAL THEN THEOREM TRUE UNCHANGED UNION USE VARIABLE VARIABLES WITH WITNESS
"""
STANDARD = "Append BoundedSeq Head Int Len Nat Real Seq SelectSeq SubSeq Tail"
"""Operators of the modules that an exported module extends."""
USED = "Chain Indexed Init Next Spec Take TypeOK at c gives here item items j k n owner rows vars way ways"
"""What every exported module calls its own."""
RESERVED = frozenset(f"{KEYWORDS} {STANDARD} {USED}".split())


class Names:
    """Identifiers given out so far: each once."""

    def __init__(self) -> None:
        self._taken: set[str] = set(RESERVED)

    def given(self, text: str) -> str:
        """An identifier like ``text`` that nothing else has."""
        base = identifier(text)
        name, count = base, 1
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        return name


def identifier(text: str) -> str:
    """``text`` with everything that may not stand in an identifier replaced; it starts with a letter."""
    arrows = text.replace(">", "_to_")
    plain = re.sub(r"_{2,}", "_", re.sub(r"[^A-Za-z0-9_]", "_", arrows)).strip("_")
    return plain if plain[:1].isalpha() and plain[:3] not in ("WF_", "SF_") else f"n_{plain}"


def module_name(world: str) -> str:
    """``bench/session`` as ``BenchSession``."""
    words = re.findall(r"[A-Za-z0-9]+", world)
    return identifier("".join(word[0].upper() + word[1:] for word in words) or "World")


def comment(text: str, width: int = COMMENT_WIDTH) -> str:
    r"""One comment line: no line breaks, ASCII only (SANY reads nothing else reliably), of bounded length."""
    plain = " ".join(text.split()).encode("ascii", "backslashreplace").decode()
    return r"\* " + (plain if len(plain) <= width else plain[: width - 3] + "...")


def filled(parts: Iterable[str], indent: str, width: int = WIDTH) -> list[str]:
    """``parts`` with commas between them, as many in a line as fit."""
    lines: list[str] = []
    line = ""
    waiting = None
    for part in parts:
        if waiting is not None:
            line = _added(lines, line, f"{waiting},", indent, width)
        waiting = part
    if waiting is not None:
        line = _added(lines, line, waiting, indent, width)
    if line:
        lines.append(line)
    return lines


def _added(lines: list[str], line: str, part: str, indent: str, width: int) -> str:
    if line and len(line) + 1 + len(part) > width:
        lines.append(line)
        line = ""
    return f"{line} {part}" if line else indent + part


def sequence(parts: Sequence[str]) -> str:
    """A TLA+ sequence on one line."""
    return f"<<{', '.join(parts)}>>"


def defined(name: str, parts: Sequence[str]) -> list[str]:
    """``name == <<...>>`` over as many lines as it takes."""
    short = f"{name} == {sequence(parts)}"
    if len(short) <= WIDTH:
        return [short]
    lines = filled(parts, "  ")
    return [f"{name} == <<", *lines[:-1], f"{lines[-1]} >>"]
