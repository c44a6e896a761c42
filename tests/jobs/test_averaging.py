"""Federated averaging: right, exact in its order, and clear about what it refuses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from troth.jobs.averaging import Average, check_weight, leaves
from troth.jobs.errors import AveragingError

SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, max_side=4)
FLOATS = st.sampled_from([np.dtype(kind) for kind in ("f2", "f4", "f8", ">f4", ">f8")])
WEIGHTS = st.lists(st.integers(1, 1000), min_size=1, max_size=5)


def mean(*results: tuple[Any, float], base: Any = None, **more: Any) -> Any:
    """The average of some results with their weights."""
    average = Average(base, **more)
    for place, (params, weight) in enumerate(results):
        average.add(f"trainer-{place + 1}", params, weight)
    return average.result()


@st.composite
def rounds(draw: st.DrawFn) -> list[tuple[dict[str, NDArray[Any]], float]]:
    """The results of one round: the same keys, shapes and types, other values and weights."""
    kinds = draw(st.dictionaries(st.text(max_size=3), st.tuples(FLOATS, SHAPES), min_size=1, max_size=3))
    made = []
    for weight in draw(WEIGHTS):
        params = {}
        for key, (kind, shape) in kinds.items():
            params[key] = draw(hnp.arrays(kind, shape, elements=st.floats(-1000, 1000, width=16)))
        made.append((params, float(weight)))
    return made


@given(rounds())
def test_the_mean_is_the_weighted_mean_and_keeps_every_type(results: list[tuple[dict[str, NDArray[Any]], float]]) -> None:
    """Compared with numpy's own, in float64; type, byte order and shape are those of the results."""
    found = mean(*results)

    assert found.keys() == results[0][0].keys()
    for key, array in found.items():
        like = results[0][0][key]
        expected = np.average([np.asarray(params[key], np.float64) for params, _ in results], axis=0, weights=[w for _, w in results])
        assert isinstance(array, np.ndarray)
        assert (array.dtype, array.shape) == (like.dtype, like.shape)
        np.testing.assert_allclose(array, expected.astype(like.dtype), rtol=1e-3 if like.dtype.itemsize == 2 else 1e-6, atol=1e-6)


@given(rounds())
def test_the_same_results_in_the_same_order_give_the_same_bits(results: list[tuple[dict[str, NDArray[Any]], float]]) -> None:
    """What a seed is for."""
    for one, other in zip(leaves(mean(*results)), leaves(mean(*results)), strict=True):
        assert one[1].tobytes() == other[1].tobytes()


@given(rounds())
def test_nothing_that_is_given_is_changed_and_nothing_shared(results: list[tuple[dict[str, NDArray[Any]], float]]) -> None:
    """Neither results nor the model they are added to."""
    base = {key: array.copy() for key, array in results[0][0].items()}
    given_arrays = [array for params, _ in results for array in params.values()] + list(base.values())
    before = [array.tobytes() for array in given_arrays]
    for array in given_arrays:
        array.flags.writeable = False
    for found in (mean(*results, base=base), mean(*results, base=base, diff=True, finite=False)):
        for array in found.values():
            assert not any(np.shares_memory(array, other) for other in given_arrays)

    assert before == [array.tobytes() for array in given_arrays]


@given(st.integers(1, 6), hnp.arrays(np.float32, SHAPES, elements=st.floats(-1e6, 1e6, width=32)))
def test_equal_results_are_their_own_mean(count: int, array: NDArray[np.float32]) -> None:
    """To the last bit: float64 holds the sum of a few float32 exactly."""
    assert mean(*[({"w": array}, 3.0)] * count)["w"].tobytes() == array.tobytes()


@given(hnp.arrays(np.float64, 4, elements=st.floats(-100, 100)), st.lists(st.integers(1, 9), min_size=2, max_size=2))
def test_a_difference_and_the_model_itself_come_to_the_same(base: NDArray[np.float64], weights: list[int]) -> None:
    """DIFF results are what FULL ones are without the model that they started from."""
    news = [{"w": base * 0.5}, {"w": base + 1}]
    full = mean(*zip(news, map(float, weights), strict=True), base={"w": base})
    diff = mean(*[({"w": new["w"] - base}, float(w)) for new, w in zip(news, weights, strict=True)], base={"w": base}, diff=True)

    np.testing.assert_allclose(full["w"], diff["w"], atol=1e-9)


def test_a_difference_keeps_the_type_of_the_model() -> None:
    """However wide the difference is."""
    found = mean(({"w": np.ones(2)}, 1.0), base={"w": np.zeros(2, np.float32)}, diff=True)

    assert found["w"].dtype == np.float32
    assert found["w"].tolist() == [1.0, 1.0]


def test_trees_of_any_shape_are_averaged_leaf_by_leaf() -> None:
    """Dicts, lists, tuples, numbers, 0-d arrays, numpy's scalars; empty ones and what is no number are passed on."""
    one: Any = {"a": [np.array(1.0), (2.0, 3)], "b": {}, "c": np.float32(1), "d": "text", "e": None, "f": np.array([True]), "g": 1j}
    two: Any = {"g": 3j, "a": [np.array(3.0), (4.0, 6)], "b": {}, "c": np.float32(2), "d": "text", "e": None, "f": np.array([True])}
    found = mean((one, 1.0), (two, 1.0))

    assert list(found) == list(one)
    assert isinstance(found["a"][0], np.ndarray)
    assert found["a"][0].shape == ()
    assert (found["a"][0].item(), found["a"][1], found["b"], found["c"]) == (2.0, (3.0, 4), {}, np.float32(1.5))
    assert type(found["c"]) is np.float32
    assert (found["d"], found["e"], found["f"].tolist(), found["g"]) == ("text", None, [True], 2j)
    assert found["f"] is not one["f"]


def test_integers_are_rounded_to_the_nearest_and_stay_in_range() -> None:
    """Also those of 64 bits, which a float64 does not hold."""
    largest = np.iinfo(np.int64).max
    found = mean(({"n": np.array([1, 2, largest])}, 1.0), ({"n": np.array([2, 3, largest])}, 1.0))

    assert found["n"].dtype == np.int64
    assert found["n"].tolist() == [2, 2, largest]  # 1.5 and 2.5: ties go to even
    assert mean(({"n": 7}, 1.0), ({"n": 8}, 3.0)) == {"n": 8}
    grown = mean(({"n": np.array([100], np.int8)}, 1.0), base={"n": np.array([100], np.int8)}, diff=True)
    assert grown["n"].tolist() == [127]


def test_a_result_of_no_weight_counts_for_nothing() -> None:
    """A trainer that had no examples."""
    assert mean(({"w": 5.0}, 0.0), ({"w": 1.0}, 2.0)) == {"w": 1.0}


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"layer": {"w": np.zeros(3)}}, "trainer-2: params['layer']['w'] has shape (3,) where trainer-1 has (2,)"),
        ({"layer": {}}, "trainer-2: params['layer'] is not in trainer-1"),
        ({"layer": {"w": np.zeros(2), "b": 1.0}}, "trainer-2: params['layer']['b'] is not in trainer-1"),
        (
            {"layer": {"w": np.zeros(2, np.float32)}},
            "trainer-2: params['layer']['w'] is an array of float32 where trainer-1 has an array of float64",
        ),
        ({"layer": {"w": "zeros"}}, "trainer-2: params['layer']['w'] is str 'zeros' where trainer-1 has an array of float64"),
        ({"layer": {"w": np.array([0, np.nan])}}, "trainer-2: params['layer']['w'] has NaN or infinity in it"),
        ({"layer": {"w": np.array([0, -np.inf])}}, "trainer-2: params['layer']['w'] has NaN or infinity in it"),
    ],
)
def test_a_result_that_does_not_fit_is_refused_by_name(other: Any, says: str) -> None:
    """And is then as if it had never come."""
    average = Average()
    average.add("trainer-1", {"layer": {"w": np.ones(2)}}, 1.0)
    with pytest.raises(AveragingError) as caught:
        average.add("trainer-2", other, 1.0)

    assert str(caught.value) == says
    assert average.weight == 1.0
    assert average.result()["layer"]["w"].tolist() == [1.0, 1.0]


def test_a_missing_key_is_named() -> None:
    """With who has it."""
    with pytest.raises(AveragingError, match=r"^trainer-1: params\['b'\] of the global model is missing$"):
        mean(({"w": np.ones(2)}, 1.0), base={"w": np.zeros(2), "b": np.zeros(1)})
    with pytest.raises(AveragingError, match=r"^trainer-1: params\['w'\] has shape \(2,\) where the global model has \(\)$"):
        mean(({"w": np.ones(2)}, 1.0), base={"w": 0.0}, diff=True)


@pytest.mark.parametrize("value", ["other", None, False])
def test_what_is_no_number_must_be_the_same_everywhere(value: object) -> None:
    """Nobody can say what the mean of two words is."""
    with pytest.raises(AveragingError, match=r"^trainer-2: params\['kind'\]: .* cannot be averaged, and differs from that of trainer-1$"):
        mean(({"kind": "one"}, 1.0), ({"kind": value}, 1.0))


@pytest.mark.parametrize("weight", [-1, math.nan, math.inf, True, "3", None])
def test_a_weight_is_a_finite_number_that_is_not_negative(weight: Any) -> None:
    """The trainer is named."""
    with pytest.raises(AveragingError, match="^berlin: the weight must be a finite number"):
        check_weight("berlin", weight)


def test_infinities_can_be_allowed() -> None:
    """Some models mask with them."""
    assert mean(({"mask": np.array([0, -np.inf])}, 2.0), finite=False)["mask"].tolist() == [0, -np.inf]


def test_a_mean_that_its_type_cannot_hold_is_refused() -> None:
    """A difference can lead there."""
    large = np.array([65000], np.float16)
    with pytest.raises(AveragingError, match=r"^params\['w'\]: the mean is too large for an array of float16$"):
        mean(({"w": large}, 1.0), base={"w": large}, diff=True)


def test_nothing_has_no_mean() -> None:
    """Neither no results nor results of no weight."""
    with pytest.raises(AveragingError, match="no result has a weight above 0"):
        Average().result()
    with pytest.raises(AveragingError, match="no result has a weight above 0"):
        mean(({"w": 1.0}, 0.0))
    with pytest.raises(AveragingError, match="a DIFF can only be added to a model"):
        Average(diff=True)
