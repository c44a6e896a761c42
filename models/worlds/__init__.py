"""Worlds that come with Troth. ``STANDARD`` names those that ``troth check`` checks when it is given none, in that order."""

from __future__ import annotations

STANDARD: tuple[str, ...] = (
    "races",
    "external",
    "external/returns",
    "external/tasks",
    "external/receivers",
    "external/calls",
    "external/cut",
    "external/patient",
    "attach",
    "attach/tasks",
    "attach/repeats",
    "attach/receivers",
    "attach/host_again",
    "attach/trainer_again",
    "lease",
    "lease/silence",
    "lease/patience",
    "published/die_hard",
    "published/peterson",
    "published/dining_philosophers",
    "published/two_phase_commit",
    "published/paxos",
)
"""Names as on the command line: the path of the module from here."""

PARTS = "protocol"
"""The folder of what worlds are built from: there are no worlds in it."""
