"""What a job came to."""

from __future__ import annotations

import math
from array import array
from typing import Any

from attrs import field, frozen

from troth.jobs.job import Params


@frozen(kw_only=True)
class TrainerReport:
    """One trainer's part."""

    name: str
    accepted: int
    """Results that the host has taken."""
    settled: int
    """Of these, those whose payload arrived whole."""
    retries: int
    """Messages about tasks and results that were sent again."""
    bytes_down: int
    bytes_up: int
    exit: str | None
    """How its process ended, or ``None`` if that is not known."""
    lost: str | None
    """Why it was given up, or ``None``."""


@frozen(kw_only=True)
class JobReport:
    """How a job ended. It was successful if ``failure`` is ``None`` and it was not interrupted."""

    name: str
    mode: str = "external"
    trainers: int
    rounds: int
    """As asked for; those that were finished are as many as ``accuracy`` has entries."""
    seed: int
    accuracy: array[float]
    """One entry a finished round, NaN where there is no figure. Eight bytes each: the one thing about a job that grows with its rounds."""
    failure: str | None = None
    interrupted: bool = False
    errors: tuple[str, ...] = ()
    """What went wrong, the failure included; a job that continues without a trainer has errors and no failure."""
    wall_s: float
    """From before the first trainer was started until after the last one was gone, in seconds."""
    by_trainer: tuple[TrainerReport, ...] = ()
    model: Params | None = field(default=None, repr=False)
    """The model of the last finished round."""

    @property
    def ok(self) -> bool:
        """Whether all rounds were finished."""
        return self.failure is None and not self.interrupted

    @property
    def accepted(self) -> int:
        """Results that the host has taken, of all trainers."""
        return sum(one.accepted for one in self.by_trainer)

    @property
    def settled(self) -> int:
        """Results whose payload arrived whole."""
        return sum(one.settled for one in self.by_trainer)

    @property
    def retries(self) -> int:
        """Messages about tasks and results that were sent again."""
        return sum(one.retries for one in self.by_trainer)

    def data(self) -> dict[str, Any]:
        """For JSON; a round without a figure, or with one that JSON has no number for, is ``None``."""
        return {
            "job": self.name,
            "mode": self.mode,
            "trainers": self.trainers,
            "rounds": self.rounds,
            "seed": self.seed,
            "accuracy": [figure if math.isfinite(figure) else None for figure in self.accuracy],
            "accepted": self.accepted,
            "settled": self.settled,
            "retries": self.retries,
            "wall_s": self.wall_s,
            "ok": self.ok,
            "interrupted": self.interrupted,
            "errors": list(self.errors),
            "by_trainer": {
                one.name: {
                    "accepted": one.accepted,
                    "settled": one.settled,
                    "retries": one.retries,
                    "bytes_down": one.bytes_down,
                    "bytes_up": one.bytes_up,
                    "exit": one.exit,
                    "lost": one.lost,
                }
                for one in self.by_trainer
            },
        }
