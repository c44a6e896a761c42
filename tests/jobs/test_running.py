"""A job: what it asks of its trainers, what it makes of their answers, and how it ends."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trio
from trio.testing import MockClock

from tests.jobs.crews import Fake, FakeCrew, Work
from troth.client import FLModel
from troth.jobs.errors import BadField
from troth.jobs.job import Job
from troth.jobs.report import JobReport
from troth.jobs.running import JobRun
from troth.jobs.store import read_model
from troth.runtime.errors import PayloadRefused, SpawnFailed, TrainerLost

MODEL = {"w": np.zeros(2, np.float32)}
LOST = TrainerLost("trainer 'trainer-2' (task 'train') was lost with the task: killed by SIGKILL")


def job(**more: Any) -> Job:
    """A small one."""
    return Job(**{"command": ("{python}",), "trainers": 3, "rounds": 2, "model": MODEL, **more})


def run(work: Work, the_job: Job | None = None, **more: Any) -> tuple[JobReport, list[Fake]]:
    """Run a job over functions, in virtual time."""
    crew = FakeCrew(work, **more)
    report = trio.run(JobRun(the_job or job(), crew=crew).run, clock=MockClock(autojump_threshold=0))
    return report, crew.hired


async def adds(trainer: Fake, _task: str, model: FLModel) -> FLModel:
    """Adds one, two, ... to the model, and takes the longer the lower its number is."""
    await trio.sleep(10 - trainer.index)
    weight = trainer.index + 1
    return FLModel(params={"w": model.params["w"] + np.float32(weight)}, metrics={"num_examples": weight, "accuracy": 0.25 * trainer.index})


async def second_fails(trainer: Fake, task: str, model: FLModel) -> FLModel:
    """The second trainer is lost in the second round; the others would take for ever then."""
    if model.current_round == 1:
        if trainer.index == 1:
            raise LOST
        await trio.sleep_forever()
    return await adds(trainer, task, model)


async def second_goes(trainer: Fake, task: str, model: FLModel) -> FLModel:
    """The second trainer is lost in the second round."""
    if trainer.index == 1 and model.current_round == 1:
        raise LOST
    return await adds(trainer, task, model)


def test_every_round_every_trainer_gets_the_mean_of_the_last() -> None:
    """Weighted by what they say; scored by what they say, where the job has no figure of its own."""
    report, hired = run(adds)
    step = (1 * 1 + 2 * 2 + 3 * 3) / 6

    assert report.ok
    assert report.model is not None
    np.testing.assert_allclose(report.model["w"], [2 * step, 2 * step], rtol=1e-6)
    assert report.model["w"].dtype == np.float32
    assert list(report.accuracy) == pytest.approx([(0 + 2 * 0.25 + 3 * 0.5) / 6] * 2)
    assert (report.accepted, report.settled, report.retries, report.errors) == (6, 6, 0, ())
    assert report.wall_s == pytest.approx(20)
    for trainer in hired:
        assert trainer.events == ["start", "round-1 train", "round-2 train", "end"]


def test_tasks_say_which_round_it_is() -> None:
    """Counted from 0, as models do; with the seed."""
    seen = []

    async def work(trainer: Fake, task: str, model: FLModel) -> FLModel:
        seen.append((trainer.index, model.current_round, model.total_rounds, model.meta))
        return await adds(trainer, task, model)

    run(work, job(trainers=1, seed=3))
    assert seen == [(0, 0, 2, {"seed": 3}), (0, 1, 2, {"seed": 3})]


def test_the_order_of_the_answers_changes_no_bit() -> None:
    """They are added in the order of the trainers."""
    draws = [np.random.default_rng(index).standard_normal(1000).astype(np.float32) for index in range(3)]
    found = []
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):

        async def work(trainer: Fake, _task: str, _model: FLModel, order: list[int] = order) -> FLModel:
            await trio.sleep(order[trainer.index])
            return FLModel(params={"w": draws[trainer.index]}, metrics={"num_examples": 3 + trainer.index})

        report, _ = run(work, job(model={"w": np.zeros(1000, np.float32)}))
        assert report.model is not None
        found.append(report.model["w"].tobytes())
    assert len(set(found)) == 1


def test_the_loss_of_a_trainer_ends_the_job_with_its_error() -> None:
    """The default: the others are aborted in the middle of what they do, and the first rounds' figures stay."""
    report, hired = run(second_fails)

    assert (report.ok, report.interrupted, len(report.accuracy)) == (False, False, 1)
    assert report.failure == f"round-2: {LOST}"
    assert report.errors == (f"round-2: {LOST}",)
    assert [one.lost is None for one in report.by_trainer] == [True, False, True]
    for trainer in hired:
        assert trainer.events[-2:] == ["abort", "end"]


def test_a_job_can_go_on_without_a_trainer() -> None:
    """Its error is told, its part of the round is left out, and it gets no more tasks."""
    report, hired = run(second_goes, job(rounds=3, on_trainer_lost="continue", min_trainers=2))

    assert report.ok
    assert report.errors == (f"round-2: {LOST}",)
    assert report.model is not None
    np.testing.assert_allclose(report.model["w"], [14 / 6 + 2 * (1 + 9) / 4] * 2, rtol=1e-6)
    assert [trainer.events[-1] for trainer in hired] == ["end"] * 3
    assert hired[1].events == ["start", "round-1 train", "round-2 train", "abort", "end"]
    assert hired[2].events == ["start", "round-1 train", "round-2 train", "round-3 train", "end"]


def test_with_too_few_trainers_a_job_does_not_go_on() -> None:
    """Both reasons are told."""
    report, _ = run(second_goes, job(on_trainer_lost="continue", min_trainers=3))

    assert report.failure == "2 of 3 trainers are left, and min_trainers is 3"
    assert report.errors == (f"round-2: {LOST}", report.failure)


@pytest.mark.parametrize("error", [SpawnFailed("no such program"), TrainerLost("trainer 'trainer-1' did not join: exited with status 1")])
def test_a_trainer_that_does_not_start_is_lost(error: Exception) -> None:
    """Named, whether its error names it or not."""

    async def starts(trainer: Fake) -> None:
        if trainer.index == 0:
            raise error
        await trio.sleep(1)

    report, _ = run(adds, starts=starts)
    assert report.failure == ("start: trainer-1: no such program" if isinstance(error, SpawnFailed) else f"start: {error}")

    report, _ = run(adds, job(on_trainer_lost="continue"), starts=starts)
    assert report.ok
    assert [one.accepted for one in report.by_trainer] == [0, 2, 2]


def test_a_start_that_takes_for_ever_is_given_up_with_the_job() -> None:
    """The trainers that wait are not waited for."""

    async def starts(trainer: Fake) -> None:
        if trainer.index == 0:
            raise SpawnFailed("no such program")
        await trio.sleep_forever()

    assert run(adds, starts=starts)[0].failure == "start: trainer-1: no such program"


def test_the_first_model_can_be_a_trainers() -> None:
    """The first one's that is there."""

    async def work(trainer: Fake, task: str, model: FLModel) -> FLModel:
        if task == "submit_model":
            assert model.params is None
            if trainer.index == 0:
                raise TrainerLost("trainer 'trainer-1' is gone")
            return FLModel(params={"w": np.full(2, 7.0)})
        assert model.current_round == 1 or model.params["w"].tolist() == [7.0, 7.0]
        return await adds(trainer, task, model)

    report, hired = run(work, job(model=None, on_trainer_lost="continue"))
    assert report.ok
    assert report.errors == ("first-model: trainer 'trainer-1' is gone",)
    assert hired[1].events[1] == "first-model submit_model"
    assert hired[2].events[1] == "round-1 train"


def test_a_round_can_be_evaluated_by_the_trainers() -> None:
    """By a task of its own, on the new model; the figures that came with the training are not used then."""

    async def work(trainer: Fake, task: str, model: FLModel) -> FLModel:
        if task == "test":
            return FLModel(metrics={"auc": float(model.params["w"][0]), "num_examples": 1})
        return await adds(trainer, task, model)

    report, _ = run(work, job(evaluate_rounds=True, evaluate_task="test", score="auc", rounds=1))
    assert list(report.accuracy) == pytest.approx([14 / 6])
    assert report.accepted == 6


def test_a_job_can_evaluate_by_itself() -> None:
    """Then that figure is the accuracy."""
    assert list(run(adds, job(evaluate=lambda params: float(params["w"].sum())))[0].accuracy) == pytest.approx([28 / 6, 56 / 6])


def test_without_any_figure_there_is_none() -> None:
    """NaN here, null in JSON."""

    async def work(_trainer: Fake, _task: str, model: FLModel) -> FLModel:
        return FLModel(params=model.params)

    report, _ = run(work)
    assert all(map(math.isnan, report.accuracy))
    assert json.loads(json.dumps(report.data(), allow_nan=False))["accuracy"] == [None, None]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (FLModel(metrics={"loss": 1.0}), "round-1: trainer-2: the result has no params"),
        (FLModel(params={"v": np.zeros(2)}), "round-1: trainer-2: params['v'] is not in the global model"),
        (FLModel(params=MODEL, params_type="DIFF"), "round-1: trainer-2: the result is DIFF, and those of the trainers before it are not"),
        (FLModel(params=MODEL, metrics={"accuracy": "high"}), "round-1: trainer-2: metric 'accuracy' must be a number, got 'high'"),
        (
            FLModel(params=MODEL, metrics={"num_examples": 3}),
            "round-1: trainer-2: 'num_examples' must be among the metrics of all results of a round, or of none",
        ),
    ],
)
def test_a_result_that_cannot_be_averaged_fails_the_job_by_name(answer: FLModel, says: str) -> None:
    """Whatever is done about trainers that are lost: this one is a bug in a script."""

    async def work(trainer: Fake, _task: str, _model: FLModel) -> FLModel:
        return answer if trainer.index == 1 else FLModel(params={"w": np.zeros(2, np.float32)})

    report, _ = run(work, job(on_trainer_lost="continue"))
    assert report.failure == says


def test_a_payload_that_cannot_be_carried_fails_the_job_by_name() -> None:
    """The trainer is not to blame, but the task is named."""

    async def work(trainer: Fake, _task: str, _model: FLModel) -> FLModel:
        raise PayloadRefused("params['w']: object arrays cannot be carried")

    assert run(work, job(trainers=1))[0].failure == "round-1: trainer-1: params['w']: object arrays cannot be carried"


def test_weights_may_be_numpys_and_may_be_in_meta() -> None:
    """Wherever the script has put its count."""

    async def work(trainer: Fake, _task: str, _model: FLModel) -> FLModel:
        return FLModel(params={"w": np.full(2, trainer.index, np.float32)}, meta={"steps": np.int64(trainer.index)})

    report, _ = run(work, job(weight="steps", rounds=1))
    assert report.model is not None
    np.testing.assert_allclose(report.model["w"], [5 / 3] * 2, rtol=1e-6)


def test_an_interrupt_ends_every_trainer_and_is_no_failure() -> None:
    """In the middle of a round."""
    crew = FakeCrew(second_fails)

    async def main() -> JobReport:
        job_run = JobRun(job(), crew=crew, on_round=lambda _round, _accuracy: job_run.interrupt())
        return await job_run.run()

    report = trio.run(main, clock=MockClock(autojump_threshold=0))
    assert (report.interrupted, report.ok, report.failure, report.errors, len(report.accuracy)) == (True, False, None, (), 1)
    assert [trainer.events[-2:] for trainer in crew.hired] == [["abort", "end"]] * 3


def test_a_trainers_figures_are_kept_for_whoever_watches() -> None:
    """The newest of each name, and not very many names."""

    async def work(trainer: Fake, task: str, model: FLModel) -> FLModel:
        trainer.logged("lr", 0.5)
        trainer.logged("more", {"depth": 3, "kind": "text", "flag": True})
        for place in range(100):
            trainer.logged(f"x{place}", place)
        return await adds(trainer, task, model)

    async def main() -> JobRun:
        job_run = JobRun(job(), crew=FakeCrew(work))
        await job_run.run()
        return job_run

    metrics = trio.run(main, clock=MockClock(autojump_threshold=0)).seats[2].metrics
    assert metrics["lr"] == 0.5
    assert metrics["depth"] == 3
    assert len(metrics) == 16
    assert not {"kind", "flag"} & set(metrics)


def test_the_last_model_is_saved(tmp_path: Path) -> None:
    """And can be what another job starts from."""
    report, _ = run(adds, job(save=tmp_path / "end.npz"))

    assert report.model is not None
    assert read_model(tmp_path / "end.npz")["w"].tolist() == report.model["w"].tolist()
    assert run(adds, job(model=tmp_path / "end.npz"))[0].ok


def test_what_cannot_be_started_is_refused_before_anything_is(tmp_path: Path) -> None:
    """No trainer is hired for a job whose model cannot be read."""
    (tmp_path / "start.npz").write_text("no zip")
    crew = FakeCrew(adds)
    with pytest.raises(BadField, match="^model: "):
        trio.run(JobRun(job(model=tmp_path / "start.npz"), crew=crew).run)
    assert crew.hired == []


def test_nothing_of_a_round_is_kept_but_its_figure() -> None:
    """A thousand rounds hold what two do."""
    report, hired = run(adds, job(rounds=1000, trainers=1))

    assert len(report.accuracy) == 1000
    assert report.accuracy.itemsize == 8
    assert hired[0].accepted == 1000


def test_a_report_has_the_keys_that_are_fixed() -> None:
    """And is plain JSON."""
    data = run(second_fails)[0].data()

    assert {"mode", "trainers", "rounds", "accuracy", "accepted", "settled", "retries", "wall_s", "errors"} <= set(data)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert (data["mode"], data["trainers"], data["rounds"], len(data["accuracy"])) == ("external", 3, 2, 1)
    assert data["by_trainer"]["trainer-2"]["lost"] == f"round-2: {LOST}"


@pytest.mark.parametrize("figure", [math.inf, -math.inf, math.nan])
def test_a_figure_that_is_not_finite_ends_the_job_or_is_none_in_json(figure: float) -> None:
    async def diverges(trainer: Fake, task: str, model: FLModel) -> FLModel:
        found = await adds(trainer, task, model)
        return FLModel(params=found.params, metrics={"accuracy": figure if trainer.index == 1 else 0.5})

    report, _ = run(diverges)
    assert report.failure == f"round-1: trainer-2: metric 'accuracy' is {figure}, and a job whose 'finite' is on takes no such result"

    report, _ = run(diverges, job(finite=False))
    assert report.ok
    assert json.loads(json.dumps(report.data(), allow_nan=False))["accuracy"] == [None, None]


def test_what_the_evaluation_raises_is_raised_as_it_is() -> None:
    """Not in the groups of nurseries; and the trainers are ended first."""

    def fails(_model: Any) -> float:
        raise ZeroDivisionError

    crew = FakeCrew(adds)
    with pytest.raises(ZeroDivisionError):
        trio.run(JobRun(job(evaluate=fails), crew=crew).run, clock=MockClock(autojump_threshold=0))
    assert [fake.events[-1] for fake in crew.hired] == ["end"] * 3


@pytest.mark.parametrize("value", [None, "0.5", True, 1j])
def test_an_evaluation_that_returns_no_number_is_named(value: Any) -> None:
    with pytest.raises(TypeError, match="evaluate: must return a number, and returned"):
        run(adds, job(evaluate=lambda _model: value))
