"""Witnesses: for every property that is checked in worlds, one mutant that breaks it, and a small standard world in which it does.

A property that nothing can break says nothing. Where a defect of the reference breaks it, that is the witness; else the smallest
change of a row that does, or a lapse that was written for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from attrs import frozen

from troth.models.errors import WorldError
from troth.models.mutants.machines import Mutant, mutants
from troth.models.mutants.patches import named
from troth.statemachines import PARTIES


@frozen
class Witness:
    """Against one property: the mutant, by the name that ``--mutant`` takes, and the world in which it is seen."""

    mutant: str
    world: str


# fmt: off
WITNESSES: Mapping[str, Witness] = {id_: Witness(mutant, world) for id_, (mutant, world) in {
    "P01": ("P01-unconfirmed", "session/one_shot"),
    "P02": ("trainer.session:S35:silent-3", "ledger/anew"),
    "P03": ("trainer.ledger:K11:stay", "session/one_shot"),
    "P04": ("P04-again", "ledger/callers"),
    "P05": ("P30-passed", "ledger/eviction"),
    "P06": ("P06-unbounded", "ledger"),
    "P07": ("host.delivery:D15:silent-4", "ledger/relay"),
    "P08": ("P08-replaced", "ledger/outcomes"),
    "P09": ("D6", "ledger/relay"),
    "P10": ("D8", "answers"),
    "P11": ("host.session:H54:unguarded", "session/host_strict"),
    "P12": ("D15", "session/one_shot"),
    "P13": ("P13-impatient", "session/one_shot"),
    "P14": ("host.lease:L2:drop", "session/host_strict"),
    "P15": ("trainer.calls:C2:stay", "session/one_shot"),
    "P16": ("host.process:X13:silent-1", "process/death"),
    "P17": ("host.session:H56:unguarded", "session/host_strict"),
    "P18": ("host.session:H32:unguarded", "session/host_strict"),
    "P19": ("P19-uncapped", "answers/backend"),
    "P20": ("supervisor.teardown:W6:unguarded", "supervisor"),
    "P21": ("receiver.download:R24:to-LOST", "transfer/download"),
    "P23": ("D7", "answers/orphan"),
    "P24": ("D12", "external/patient"),
    "P25": ("D22", "session/attached"),
    "P26": ("host.session:H5:unguarded", "session/host_strict"),
    "P27": ("P27-late", "ledger/relay"),
    "P28": ("host.acceptance:A22:stay", "ledger/relay"),
    "P29": ("trainer.ledger:K7:unguarded", "ledger"),
    "P30": ("P30-passed", "ledger/eviction"),
    "P31": ("trainer.ledger:K12:stay", "ledger/anew"),
    "P32": ("host.acceptance:A5:unguarded", "ledger/relay"),
    "P33": ("D10", "ledger/anew"),
    "P34": ("D2", "ledger/relay"),
    "P35": ("trainer.session:S30:unguarded", "session/one_shot"),
    "P36": ("host.acceptance:A16:to-LOST", "ledger/relay"),
    "P37": ("trainer.publication:N17:not-all_held", "answers/receivers"),
    "P38": ("host.acceptance:A20:silent-1", "ledger/relay"),
    "P39": ("D1", "supervisor/tasks"),
    "P40": ("D14", "session/one_shot"),
    "P41": ("host.delivery:D25:stay", "answers/promptly"),
    "P42": ("trainer.publication:N17:unguarded", "ledger/anew"),
    "P43": ("trainer.session:S38:drop", "answers/receivers"),
    "P44": ("supervisor.teardown:W3:silent-1", "supervisor"),
    "P45": ("D5", "lease"),
    "P46": ("trainer.lease:L4:drop", "lease/silence"),
    "P47": ("trainer.publication:N16:silent-2", "ledger/anew"),
    "P48": ("trainer.session:S12:silent-4", "answers/orphan"),
    "P49": ("trainer.session:S40:silent-3", "answers/orphan"),
    "P50": ("D13", "answers/receivers"),
    "P51": ("host.delivery:D17:drop", "answers"),
    "P52": ("supervisor.teardown:W11:drop", "supervisor"),
    "P53": ("host.delivery:D25:silent-3", "ledger/relay"),
    "P54": ("receiver.download:R1:silent-2", "transfer/inline"),
    "P55": ("trainer.session:S48:silent-4", "session/one_shot"),
    "P56": ("trainer.session:S17:no-update", "session/one_shot"),
    "P57": ("host.delivery:D10:unguarded", "ledger/relay"),
    "P58": ("P58-reopened", "session/attached"),
    "P59": ("host.acceptance:A18:drop", "answers/receivers"),
    "P60": ("D16", "ledger/eviction"),
    "P61": ("host.session:H52:drop", "process"),
    "P62": ("trainer.source:O3:to-HELD", "transfer/lease"),
    "P63": ("host.process:X19:silent-2", "process"),
    "P66": ("P66-second", "supervisor"),
    "P67": ("supervisor.teardown:W10:no-update", "supervisor/tasks"),
    "P68": ("supervisor.teardown:W6:silent-1", "supervisor"),
    "P69": ("host.process:X6:silent-1", "session/host_strict"),
    "P70": ("host.process:X14:drop", "process"),
    "P71": ("trainer.session:S40:drop", "answers/orphan"),
    "P72": ("trainer.intake:I15:drop", "ledger/callers"),
    "P73": ("trainer.session:S30:unguarded", "session/one_shot"),
    "P74": ("host.session:H20:drop", "process"),
    "P75": ("D5", "session/host_strict"),
    "P76": ("host.acceptance:A9:no-update", "ledger/outcomes"),
    "P77": ("P77-unasked", "ledger/results"),
    "P79": ("trainer.intake:I7:drop", "ledger/callers"),
    "P81": ("D18", "transfer/download"),
    "P82": ("receiver.download:R1:silent-2", "transfer/inline"),
    "P83": ("supervisor.gate:G7:silent-1", "supervisor"),
    "P84": ("receiver.download:R3:silent-2", "transfer/inline"),
    "P85": ("receiver.download:R1:silent-1", "transfer/inline"),
    "P86": ("trainer.ledger:K19:to-ABSENT", "ledger/anew"),
    "P87": ("trainer.intake:I5:no-update", "ledger/anew"),
    "P88": ("host.delivery:D20:silent-1", "ledger/relay"),
    "P89": ("receiver.download:R3:drop", "transfer/inline"),
    "P90": ("trainer.source:O5:to-FAILED", "ledger/anew"),
    "P91": ("receiver.download:R5:silent-1", "transfer/clock"),
    "P92": ("supervisor.teardown:W6:silent-2", "supervisor"),
    "P93": ("host.session:H52:drop", "process/clock"),
    "P94": ("host.process:X10:silent-2", "process/clock"),
    "P95": ("D4", "session/attached"),
    "P96": ("D7", "answers/orphan"),
    "P97": ("D11", "ledger/host"),
    "P98": ("P98-unplugged", "session/host_attached"),
    "P99": ("trainer.session:S12:silent-3", "session/one_shot"),
    "P100": ("trainer.lease:L11:drop", "session/one_shot"),
    "P101": ("trainer.session:S7:silent-1", "session/one_shot"),
    "P102": ("trainer.lease:L4:drop", "session/one_shot"),
    "P103": ("receiver.download:R22:drop", "transfer/download"),
    "P104": ("trainer.session:S37:silent-1", "session/one_shot"),
    "P105": ("host.session:H34:no-update", "session/host_strict"),
}.items()}
# fmt: on
"""By property. Docs show each with the number of steps that it takes."""


@cache
def _generic(party: str) -> Mapping[str, Mutant]:
    return {mutant.name: mutant for mutant in mutants(PARTIES[party])}


def mutant_named(name: str) -> Mutant:
    """The mutant of the protocol's parties that has this name. Raises ``WorldError`` if there is none."""
    patch = named(name)
    if patch is not None:
        return patch.mutant()
    found = _generic(name.partition(".")[0]).get(name) if name.partition(".")[0] in PARTIES else None
    if found is None:
        raise WorldError(f"no party of the protocol has a mutant {name!r}")
    return found
