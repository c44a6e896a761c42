"""About how many states each standard world has: for whoever searches several, smallest first. Only the order matters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

ABOUT: Mapping[str, int] = {
    "published/die_hard": 20,
    "transfer/inline": 20,
    "transfer/download": 40,
    "published/peterson": 60,
    "published/dining_philosophers": 70,
    "session/host_strict": 80,
    "session/one_shot": 100,
    "session": 200,
    "ledger/relay": 300,
    "published/two_phase_commit": 300,
    "session/attached": 300,
    "ledger/outcomes": 340,
    "ledger/receivers": 400,
    "session/host_attached": 400,
    "transfer/clock": 500,
    "process/death": 600,
    "ledger/payload": 700,
    "ledger/anew": 800,
    "answers/orphan": 1_000,
    "ledger": 1_000,
    "ledger/callers": 1_000,
    "ledger/host": 1_000,
    "ledger/results": 1_000,
    "process": 1_000,
    "session/host": 1_000,
    "answers/receivers": 2_000,
    "supervisor": 3_000,
    "answers/bytes": 4_000,
    "ledger/eviction": 4_000,
    "published/paxos": 4_000,
    "transfer/lease": 4_000,
    "answers": 5_000,
    "answers/backend": 10_000,
    "answers/promptly": 10_000,
    "external/answers": 10_000,
    "supervisor/clock": 10_000,
    "transfer/sole": 10_000,
    "answers/gone": 20_000,
    "external/patient": 20_000,
    "process/clock": 20_000,
    "supervisor/tasks": 20_000,
    "transfer/given_up": 20_000,
    "transfer/task": 20_000,
    "answers/lossy": 40_000,
    "transfer/result": 40_000,
    "answers/tasks": 50_000,
    "answers/process": 70_000,
    "external/returns": 70_000,
    "lease": 70_000,
    "external/receivers": 80_000,
    "lease/patience": 80_000,
    "transfer/death": 90_000,
    "answers/ends": 100_000,
    "attach": 100_000,
    "attach/repeats": 100_000,
    "attach/host_again": 200_000,
    "attach/trainer_again": 200_000,
    "external": 300_000,
    "external/calls": 400_000,
    "external/tasks": 400_000,
    "lease/silence": 400_000,
    "attach/receivers": 500_000,
    "attach/tasks": 800_000,
    "external/cut": 900_000,
    "races": 3_000_000,
}


def about(name: str) -> int:
    """About how many states a world has; of one that is not known, more than any other."""
    return ABOUT.get(name, 10**12)


def smallest_first(names: Iterable[str]) -> list[str]:
    """These worlds, smallest first; one whose size is not known comes last."""
    return sorted(names, key=lambda name: (about(name), name))
