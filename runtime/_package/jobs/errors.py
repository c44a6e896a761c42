"""What can go wrong with a job, as exceptions."""

from __future__ import annotations

from troth.runtime.errors import TrothError


class JobError(TrothError):
    """Base of everything that this package raises on purpose."""


class BadJob(JobError):
    """A job that cannot be run as it is described. Nothing was started."""


class BadField(BadJob):
    """One field of a job is wrong; says which, and what it must be."""

    def __init__(self, name: str, why: str) -> None:
        """``name`` is the field's, or in a job file the key's."""
        super().__init__(f"{name}: {why}")
        self.name = name
        self.why = why


class DemoMissing(BadJob):
    """The built-in job needs a package that is not installed."""


class AveragingError(JobError):
    """Results that cannot be averaged. Names the trainer and the entry."""


class JobFailed(JobError):
    """A job that ended before its last round, and why."""
