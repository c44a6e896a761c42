"""The catalogue of properties: nothing that was stated before is forgotten, and ids mean one thing."""

from __future__ import annotations

import re

from troth.spec.properties import LEFT_OUT, PROPERTIES, By

STATED = [*(found.source for found in PROPERTIES.values()), *(found.source for found in LEFT_OUT)]
SOURCES = {name for source in STATED for name in re.split(r"[,\s]+", source)}


def test_every_statement_of_the_reference_is_restated_or_left_out() -> None:
    """Statements 1 to 52 of the digest, and the ten invariants of the field reports."""
    stated = {str(n) for n in range(1, 53)} | {f"I{n}" for n in range(1, 11)}

    assert stated - SOURCES == set()


def test_ids_have_no_gaps_and_no_twins() -> None:
    """P01, P02, ..., each with a statement of its own."""
    assert list(PROPERTIES) == [f"P{n:02}" for n in range(1, len(PROPERTIES) + 1)]
    assert len({found.statement for found in PROPERTIES.values()}) == len(PROPERTIES)


def test_most_properties_can_be_checked_in_a_world() -> None:
    """The others are about bytes, files and processes, which no core sees, or about configurations."""
    elsewhere = {id_: found.parties for id_, found in PROPERTIES.items() if By.WORLDS not in found.by and By.WALKS not in found.by}

    assert sum(By.WORLDS in found.by for found in PROPERTIES.values()) >= 45
    assert set(elsewhere.values()) == {()}
