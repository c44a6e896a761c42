"""The job that ``troth run`` runs when it is given none: federated averaging on handwritten digits."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from troth.jobs import digits
from troth.jobs.job import Job

COMMAND = ("{python}", "-P", "-m", "troth.jobs.digits_trainer", "--index", "{index}", "--trainers", "{trainers}", "--seed", "{seed}")
"""``-P``: whatever lies in the directory that the command is called from is not imported."""

ENVIRONMENT: Mapping[str, str] = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""The matrices are small; threads for them would only get in the way of the other trainers, and change the last bits."""


def digits_job(*, trainers: int = 4, rounds: int = 5, seed: int = 0) -> Job:
    """The job. Its accuracies are those of the averaged model on 360 images that no trainer has. Raises ``DemoMissing``, ``BadField``."""
    examples = digits.load()
    held_out, _ = digits.split(len(examples), seed, 1)
    return Job(
        name="digits",
        command=COMMAND,
        trainers=trainers,
        rounds=rounds,
        seed=seed,
        environment=ENVIRONMENT,
        model=digits.initial(seed),
        evaluate=partial(digits.accuracy, examples=examples.take(held_out)),
    )
