"""A trainer that is not always what its launch expects: another rank, another job, or without the credentials that it was lent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import define, evolve, field

from troth.runtime.session import CONTROL_RANK, PROTOCOL_VERSION
from troth.runtime.trainer import TrainerSession
from troth.runtime.wire.besides import HelloBeside, SessionReadyBeside
from troth.spec import messages as m

ANOTHER_JOB, ANOTHER_RANK = "another", CONTROL_RANK + 1


@define(eq=False)
class Fickle(TrainerSession):
    """Says each time what ``says`` gives: 0 the truth, 1 another rank or no proof, 2 another job."""

    says: Callable[[int], int] = field(kw_only=True)

    def _beside(self, message: Any) -> Any:
        found = TrainerSession._beside(self, message)
        if isinstance(found, HelloBeside):
            said = self.says(3)
            if said:
                return evolve(found, rank=ANOTHER_RANK) if said == 1 else evolve(found, job_id=ANOTHER_JOB)
        if isinstance(found, SessionReadyBeside) and found.proof and self.says(2):
            return SessionReadyBeside(bytes(len(found.proof)))
        return found


def claim_of(beside: HelloBeside, job_id: str, site_name: str) -> m.Claim:
    """What a host must think of that."""
    if (beside.version, beside.job_id, beside.site_name) != (PROTOCOL_VERSION, job_id, site_name):
        return m.Claim.WRONG_IDENTITY
    return m.Claim.MATCHING if beside.rank == CONTROL_RANK else m.Claim.WRONG_RANK
