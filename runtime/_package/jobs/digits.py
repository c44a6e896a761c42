"""The data and the model of the built-in job: scikit-learn's handwritten digits, and a small network in numpy.

The data are the 1,797 images of 8 x 8 pixels that scikit-learn carries. They are read from its file: to import scikit-learn takes a second,
in every trainer. Who holds which images follows from the seed and the number of trainers alone, so nobody has to send any, and the data of
a trainer never leave it.
"""

from __future__ import annotations

import gzip
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from troth.jobs.errors import DemoMissing

Floats: TypeAlias = NDArray[np.float32]
Labels: TypeAlias = NDArray[np.int64]
Params: TypeAlias = dict[str, NDArray[np.float32]]

PIXELS = 64
CLASSES = 10
HIDDEN = 32
HELD_OUT = 360
"""Images that no trainer sees: a fifth."""
MAX_SHARES = 256
"""With so many trainers the smallest share is still a few images."""

EPOCHS = 5
BATCH = 16
LEARNING_RATE = 0.5

_SPLIT, _INITIAL, _ORDER = range(3)
"""What a random generator is for; seeded with it, no two draw the same numbers."""


@frozen
class Examples:
    """Some images and what they show."""

    images: Floats = field(repr=False)
    """(n, 64), from 0 to 1."""
    labels: Labels = field(repr=False)
    """(n,), from 0 to 9."""

    def __len__(self) -> int:
        """How many."""
        return len(self.labels)

    def take(self, places: NDArray[np.intp]) -> Examples:
        """Those at ``places``."""
        return Examples(self.images[places], self.labels[places])


def load() -> Examples:
    """All of the data. Raises ``DemoMissing`` where scikit-learn is not installed."""
    found = find_spec("sklearn")
    folders = list(found.submodule_search_locations or ()) if found else []
    if not folders:
        raise DemoMissing(
            "the built-in job trains on the digits that come with scikit-learn, which is not installed: pip install 'troth[demo]'"
        )
    path = Path(folders[0]) / "datasets" / "data" / "digits.csv.gz"
    if path.exists():
        with gzip.open(path, "rt", encoding="ascii") as file:
            table = np.loadtxt(file, delimiter=",", dtype=np.float32)
    else:  # another layout of the package: it knows where its data are
        from sklearn.datasets import load_digits  # type: ignore[import-untyped]  # noqa: PLC0415 - slow

        images, labels = load_digits(return_X_y=True)
        table = np.column_stack([images, labels]).astype(np.float32)
    return Examples(table[:, :PIXELS] / np.float32(16), table[:, PIXELS].astype(np.int64))


def split(count: int, seed: int, shares: int) -> tuple[NDArray[np.intp], list[NDArray[np.intp]]]:
    """The places of the held-out examples, and of each share: disjoint, complete, and uneven (the last is three times the first).

    Which examples are held out does not depend on the number of shares. Raises ``ValueError`` if a share would be empty.
    """
    order = np.random.default_rng([seed, _SPLIT]).permutation(count)
    held_out, rest = order[:HELD_OUT], order[HELD_OUT:]
    ends = np.cumsum(np.linspace(1.0, 3.0, shares) if shares > 1 else np.ones(1))
    cuts = (ends / ends[-1] * len(rest)).astype(np.intp)[:-1]
    parts = np.split(rest, cuts)
    if not all(len(part) for part in parts):
        raise ValueError(f"{len(rest)} examples are too few for {shares} shares")
    return held_out, parts


def initial(seed: int) -> Params:
    """The model that the first round starts from: 64 pixels, 32 hidden units (tanh), 10 classes (softmax)."""
    draw = np.random.default_rng([seed, _INITIAL])
    return {
        "hidden.weight": (draw.standard_normal((PIXELS, HIDDEN)) / np.sqrt(PIXELS)).astype(np.float32),
        "hidden.bias": np.zeros(HIDDEN, np.float32),
        "output.weight": (draw.standard_normal((HIDDEN, CLASSES)) / np.sqrt(HIDDEN)).astype(np.float32),
        "output.bias": np.zeros(CLASSES, np.float32),
    }


def train(params: Params, share: Examples, *, seed: int, trainer: int, round_number: int) -> tuple[Params, float]:
    """Some epochs of stochastic gradient descent from ``params``; a new model, and the mean cross-entropy over the last epoch.

    The order of the examples follows from the seed, the trainer and the round, so a round can be repeated bit for bit.
    """
    draw = np.random.default_rng([seed, _ORDER, trainer, round_number])
    model = {name: part.copy() for name, part in params.items()}
    loss = 0.0
    for _ in range(EPOCHS):
        order = draw.permutation(len(share))
        loss = sum(_descend(model, share.take(order[start : start + BATCH])) for start in range(0, len(order), BATCH)) / len(share)
    return model, loss


def _descend(model: Params, batch: Examples) -> float:
    """One step down the gradient, in place; the batch's summed cross-entropy before it."""
    loss, gradient = loss_and_gradient(model, batch)
    for name, slope in gradient.items():
        model[name] -= np.float32(LEARNING_RATE) * slope
    return loss * len(batch)


def loss_and_gradient(params: Params, batch: Examples) -> tuple[float, Params]:
    """The mean cross-entropy over ``batch``, and its gradient."""
    hidden, scores = _forward(params, batch.images)
    rows = np.arange(len(batch))
    scores -= scores.max(axis=1, keepdims=True)
    likely = np.exp(scores)
    total = likely.sum(axis=1, keepdims=True)
    loss = float((np.log(total[:, 0]) - scores[rows, batch.labels]).mean())
    error = likely / total
    error[rows, batch.labels] -= 1
    error /= len(batch)
    back = (error @ params["output.weight"].T) * (1 - hidden * hidden)
    return loss, {
        "hidden.weight": batch.images.T @ back,
        "hidden.bias": back.sum(axis=0),
        "output.weight": hidden.T @ error,
        "output.bias": error.sum(axis=0),
    }


def accuracy(params: Params, examples: Examples) -> float:
    """The fraction of ``examples`` that the model gets right."""
    return float((_forward(params, examples.images)[1].argmax(axis=1) == examples.labels).mean())


def _forward(params: Params, images: Floats) -> tuple[Floats, Floats]:
    hidden = np.tanh(images @ params["hidden.weight"] + params["hidden.bias"])
    return hidden, hidden @ params["output.weight"] + params["output.bias"]
