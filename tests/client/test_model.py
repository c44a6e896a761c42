"""Models, differences and log records, away from any session."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
import pytest

from troth.client.difference import difference, remember
from troth.client.model import FIELDS, FLModel, NotAModel, ParamsType, from_tree, to_tree
from troth.client.records import AnalyticsDataType, record
from troth.runtime.payloads import decode, encode


def carried(tree: Any) -> Any:
    """A tree on the other side of the wire."""
    payload = encode(tree)
    return decode(payload.manifest, [bytes(buffer) for buffer in payload.buffers])


def test_a_model_comes_out_as_it_went_in() -> None:
    """Every field, every kind of array, and numpy's scalars among the metrics."""
    model = FLModel(
        params_type="DIFF",
        params={"w": np.arange(6, dtype=">f4").reshape(2, 3), "deep": {"b": [np.array(1.5), None]}},
        optimizer_params={"step": 3},
        metrics={"loss": np.float32(0.5), "n": np.int64(7), "name": "x"},
        start_round=1,
        current_round=np.int64(2),
        total_rounds=3,
        meta={"site": "a"},
    )
    found = from_tree(carried(to_tree(model)))

    assert found.params_type is ParamsType.DIFF
    np.testing.assert_array_equal(found.params["w"], model.params["w"])
    assert found.params["w"].dtype == ">f4"
    assert found.params["deep"]["b"][0].shape == ()
    assert found.metrics == model.metrics
    assert (found.start_round, found.current_round, found.total_rounds) == (1, 2, 3)
    assert (found.optimizer_params, found.meta) == ({"step": 3}, {"site": "a"})


def test_nothing_is_copied_on_the_way_into_a_tree_and_out_of_it() -> None:
    array = np.array(3.0)
    model = FLModel(params={"w": array})

    assert to_tree(model)["params"] is model.params
    assert from_tree(to_tree(model)).params["w"] is array


def test_a_model_is_full_unless_it_says_otherwise() -> None:
    assert FLModel(params={}).params_type is ParamsType.FULL
    assert FLModel(metrics={}).params_type is None
    assert FLModel("DIFF", {}).params_type is ParamsType.DIFF


def test_a_model_that_was_emptied_is_still_one() -> None:
    model = FLModel(params={"w": 1}, metrics={"a": 1})
    model.params = None

    assert from_tree(to_tree(model)).metrics == {"a": 1}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"params_type": "HALF"}, "params_type: must be FULL, DIFF or None, got 'HALF'"),
        ({"params_type": "FULL"}, "params_type is FULL, but there are no params"),
        ({"metrics": [1]}, "metrics: must be a dict or None, got list"),
        ({"metrics": {1: 2}}, "metrics: keys must be str, got 1"),
        ({"meta": "x"}, "meta: must be a dict or None, got str"),
        ({"current_round": -1}, "current_round: must be an int of at least 0 or None, got -1"),
        ({"total_rounds": True}, "total_rounds: must be an int of at least 0 or None, got True"),
        ({"start_round": 1.5}, "start_round: must be an int of at least 0 or None, got 1.5"),
    ],
)
def test_what_is_no_model_cannot_be_made_nor_read(fields: dict[str, Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError)) as made:
        FLModel(**fields)
    assert said in str(made.value)
    with pytest.raises(NotAModel) as read:
        from_tree(fields)
    assert said in str(read.value)


@pytest.mark.parametrize("tree", [None, 1, [1], {"w": 1}, {1: 2}, {"params": 1, "filename": "x"}])
def test_a_payload_of_another_kind_is_no_model(tree: Any) -> None:
    with pytest.raises(NotAModel, match="not a model: "):
        from_tree(tree)


def test_a_field_cannot_be_set_to_what_it_may_not_be() -> None:
    model = FLModel(metrics={})
    with pytest.raises(ValueError, match="current_round"):
        model.current_round = -1
    with pytest.raises(AttributeError):
        model.parms = {}  # type: ignore[attr-defined]


def test_the_text_of_a_model_does_not_spill_its_arrays() -> None:
    assert "<1 named>" in repr(FLModel(params={"w": np.arange(3)}))


def test_a_difference_leaves_both_models_alone() -> None:
    new = FLModel(params={"w": np.array([3.0]), "l": [np.array([1]), 2], "new": 1}, metrics={"a": 1}, current_round=2)
    old: dict[str, Any] = {"w": np.array([1.0]), "l": [np.array([1]), 1], "old": 1}
    found = difference(new, old)

    assert found.params_type is ParamsType.DIFF
    assert (found.params["w"].tolist(), found.params["l"][0].tolist(), found.params["l"][1]) == ([2.0], [0], 1)
    assert set(found.params) == {"w", "l"}
    assert (found.metrics, found.current_round) == ({"a": 1}, 2)
    assert (new.params["w"].tolist(), old["w"].tolist(), new.params_type) == ([3.0], [1.0], ParamsType.FULL)


@pytest.mark.parametrize(
    ("new", "old", "said"),
    [
        ({"a": 1}, {"b": 1}, "params: no name in common"),
        ({"a": [1]}, {"a": [1, 2]}, "params\\['a'\\]: 1 values, but 2"),
        ({"a": np.zeros(2)}, {"a": np.zeros(3)}, "params\\['a'\\]: has the shape \\(2,\\), but \\(3,\\)"),
        ({"a": "x"}, {"a": "y"}, "params\\['a'\\]: cannot be subtracted"),
    ],
)
def test_models_without_a_difference_say_why(new: Any, old: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        difference(FLModel(params=new), old)


def test_what_is_remembered_is_out_of_reach_of_training_in_place() -> None:
    weights: dict[str, Any] = {"w": np.asfortranarray(np.zeros((2, 2))), "l": [np.zeros(1)], "n": 1}
    kept = remember(weights)
    weights["w"] += 1
    weights["l"][0] += 1

    assert kept["w"].sum() == kept["l"][0].sum() == 0
    assert kept["w"].flags.f_contiguous


class Elsewhere(Enum):
    """Another library's names for the same."""

    SCALAR = "SCALAR"


@pytest.mark.parametrize(
    ("value", "data_type", "carried_as"),
    [
        (np.float32(0.5), "SCALAR", 0.5),
        (np.array(2), Elsewhere.SCALAR, 2),
        ({"a": np.float64(1), "b": 2}, AnalyticsDataType.METRICS, {"a": 1.0, "b": 2}),
        ("words", "TEXT", "words"),
        ({"a": "b"}, "TAGS", {"a": "b"}),
        ([1, np.int8(2)], "IMAGE", (1, 2)),
    ],
)
def test_a_record_is_carried_as_plain_values(value: Any, data_type: Any, carried_as: Any) -> None:
    made = record("key", value, data_type, {"global_step": np.int64(3), "path": "p"})

    assert made.value == carried_as
    assert type(made.data_type) is str
    assert dict(made.extra) == {"global_step": 3, "path": "p"}


@pytest.mark.parametrize(
    ("key", "value", "data_type", "extra", "said"),
    [
        ("", 1, "SCALAR", {}, "key: must be a str"),
        (1, 1, "SCALAR", {}, "key: must be a str"),
        ("k", "x", "SCALAR", {}, "value: must be a number for SCALAR"),
        ("k", True, "METRIC", {}, "value: must be a number for METRIC"),
        ("k", 1, "METRICS", {}, "value: must be a dict of numbers for METRICS"),
        ("k", {"a": "b"}, "SCALARS", {}, "value: must be a dict of numbers for SCALARS"),
        ("k", 1, "TAGS", {}, "value: must be a dict for TAGS"),
        ("k", 1, "TEXT", {}, "value: must be a str for TEXT"),
        ("k", 1, "GUESS", {}, "data_type: must be one of SCALAR, "),
        ("k", 1, "SCALAR", {"global_step": -1}, "global_step: must be an int of at least 0"),
        ("k", 1, "SCALAR", {"global_step": True}, "global_step: must be an int of at least 0"),
        ("k", 1, "SCALAR", {"path": 1}, "path: must be a str"),
        ("k", np.zeros(3), "IMAGE", {}, "log\\('k'\\): cannot be carried"),
        ("k", 1, "SCALAR", {"other": np.zeros(3)}, "log\\('k'\\): cannot be carried"),
    ],
)
def test_a_record_that_is_none_says_what_is_wrong(key: Any, value: Any, data_type: Any, extra: dict[str, Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        record(key, value, data_type, extra)


def test_the_fields_of_a_payload_are_those_of_a_model() -> None:
    """They are on the wire, so they stay."""
    assert FIELDS == (
        "params_type",
        "params",
        "optimizer_params",
        "metrics",
        "start_round",
        "current_round",
        "total_rounds",
        "meta",
    )
