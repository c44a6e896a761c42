"""The built-in job's data, model and trainer step, in this process."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.client import FLModel
from troth.jobs import digits
from troth.jobs.averaging import Average
from troth.jobs.builtin import digits_job
from troth.jobs.digits_trainer import step
from troth.jobs.errors import DemoMissing

COUNT = 1797


@given(st.integers(0, 2**63 - 1), st.integers(1, digits.MAX_SHARES))
def test_shares_are_disjoint_complete_and_uneven(seed: int, shares: int) -> None:
    """Every example is held out or somebody's, and nobody's twice."""
    held_out, parts = digits.split(COUNT, seed, shares)
    places = np.concatenate([held_out, *parts])

    assert sorted(places.tolist()) == list(range(COUNT))
    assert len(held_out) == digits.HELD_OUT
    assert len(parts) == shares
    assert all(len(part) for part in parts)
    if shares > 1:
        assert len(parts[0]) < len(parts[-1])
    if shares <= 8:
        assert len({len(part) for part in parts}) == shares


@given(st.integers(0, 2**32), st.integers(1, 20), st.integers(1, 20))
def test_what_is_held_out_follows_from_the_seed_alone(seed: int, some: int, others: int) -> None:
    """So accuracies can be compared between numbers of trainers, and the same seed splits the same way in every process."""
    assert digits.split(COUNT, seed, some)[0].tolist() == digits.split(COUNT, seed, others)[0].tolist()
    for one, again in zip(digits.split(COUNT, seed, some)[1], digits.split(COUNT, seed, some)[1], strict=True):
        assert one.tolist() == again.tolist()


def test_another_seed_splits_otherwise() -> None:
    """Or it would be no seed."""
    assert digits.split(COUNT, 0, 4)[0].tolist() != digits.split(COUNT, 1, 4)[0].tolist()


def test_too_many_shares_are_refused() -> None:
    """A share without examples cannot be trained on."""
    with pytest.raises(ValueError, match="1437 examples are too few for 1000 shares"):
        digits.split(COUNT, 0, 1000)


def test_the_data_are_scikit_learns_digits() -> None:
    """The file that is read is the one that scikit-learn reads."""
    from sklearn.datasets import load_digits  # type: ignore[import-untyped]

    found = digits.load()
    images, labels = load_digits(return_X_y=True)

    assert found.images.dtype == np.float32
    np.testing.assert_array_equal(found.images * 16, images)
    np.testing.assert_array_equal(found.labels, labels)


def test_missing_data_are_said_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that names the extra."""
    monkeypatch.setattr(digits, "find_spec", lambda _name: None)
    with pytest.raises(DemoMissing, match=r"scikit-learn, which is not installed: pip install 'troth\[demo\]'$"):
        digits_job()


def test_the_trainer_does_not_import_scikit_learn() -> None:
    """It takes a second, in each of them; nor what only a host needs."""
    script = "import sys; from troth.jobs import digits_trainer, digits; digits.load(); print(*{'sklearn', 'rich'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "\n"


def test_the_gradient_is_the_slope_of_the_loss() -> None:
    """Against finite differences, along random directions."""
    draw = np.random.default_rng(1)
    batch = digits.load().take(np.arange(16))
    params = digits.initial(3)
    wide = {name: part.astype(np.float64) for name, part in params.items()}
    _, gradient = digits.loss_and_gradient(wide, batch)  # type: ignore[arg-type]  # in float64, or the differences drown
    for name, part in wide.items():
        direction = draw.standard_normal(part.shape)
        ends = [digits.loss_and_gradient({**wide, name: part + side * 1e-5 * direction}, batch)[0] for side in (1, -1)]  # type: ignore[dict-item]
        slope = (ends[0] - ends[1]) / 2e-5
        assert float((gradient[name] * direction).sum()) == pytest.approx(slope, rel=1e-4, abs=1e-7)


def test_a_step_is_repeatable_leaves_the_model_alone_and_learns() -> None:
    """The same trainer, round and seed give the same bits; other ones do not."""
    examples = digits.load()
    share = examples.take(digits.split(len(examples), 7, 4)[1][2])
    start = digits.initial(7)
    before = {name: part.tobytes() for name, part in start.items()}
    model = FLModel(params=start, current_round=1)
    one, again = step(model, share, seed=7, index=2), step(model, share, seed=7, index=2)
    other = step(FLModel(params=start, current_round=2), share, seed=7, index=2)

    assert {name: part.tobytes() for name, part in start.items()} == before
    assert one.metrics == again.metrics
    assert one.metrics is not None
    assert one.metrics["num_examples"] == len(share)
    assert one.metrics["accuracy"] > digits.accuracy(start, share) + 0.5
    for name, part in one.params.items():
        assert part.tobytes() == again.params[name].tobytes()
        assert part.dtype == np.float32
    assert other.params["hidden.weight"].tobytes() != one.params["hidden.weight"].tobytes()


@pytest.mark.parametrize("trainers", [1, 2, 4, 8])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_five_rounds_are_enough(trainers: int, seed: int) -> None:
    """At least 0.93 on images that no trainer has seen."""
    examples = digits.load()
    _, shares = digits.split(len(examples), seed, trainers)
    job = digits_job(trainers=trainers, seed=seed)
    model = job.model
    for number in range(5):
        average = Average(model)
        for index, share in enumerate(shares):
            found = step(FLModel(params=model, current_round=number), examples.take(share), seed=seed, index=index)
            assert found.metrics is not None
            average.add(job.name_of(index), found.params, found.metrics["num_examples"])
        model = average.result()

    assert job.evaluate is not None
    assert isinstance(model, dict)
    assert job.evaluate(model) >= 0.93
