"""The trainer of the built-in job: ``python -P -m troth.jobs.digits_trainer --index 0 --trainers 4 --seed 0``.

It is written as any training script is, and may serve as an example of one.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence

import troth.client as flare
from troth.jobs import digits


def step(model: flare.FLModel, share: digits.Examples, *, seed: int, index: int) -> flare.FLModel:
    """One round: train on this trainer's share, starting from the model that was received."""
    params, loss = digits.train(model.params, share, seed=seed, trainer=index, round_number=model.current_round or 0)
    metrics = {"num_examples": len(share), "loss": loss, "accuracy": digits.accuracy(params, share)}
    return flare.FLModel(params=params, metrics=metrics, current_round=model.current_round)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train as long as the host asks for it."""
    parser = ArgumentParser()
    for name in ("index", "trainers", "seed"):
        parser.add_argument(f"--{name}", type=int, required=True)
    asked = parser.parse_args(arguments)
    examples = digits.load()
    share = examples.take(digits.split(len(examples), asked.seed, asked.trainers)[1][asked.index])
    flare.init()
    while flare.is_running():
        model = flare.receive()
        if model is None:  # the host has just ended the session
            break
        flare.send(step(model, share, seed=asked.seed, index=asked.index))


if __name__ == "__main__":
    main()
