"""The calls of a script, one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import troth.client as flare
from tests.client.doubles import MadeHost, make_bootstrap, other_thread
from troth.client.process import Process
from troth.runtime.errors import (
    BootstrapError,
    JoinFailed,
    Misuse,
    ResultRejected,
    ResultUndelivered,
    SessionAborted,
    SessionClosed,
    SessionLost,
)
from troth.spec.messages import Verdict


def a_model(value: float = 0.0) -> dict[str, Any]:
    return {"params": {"w": np.full(3, value)}, "current_round": 1, "total_rounds": 2}


def test_a_script_loops_over_tasks_until_the_host_ends_the_session(host: MadeHost) -> None:
    """The loop of every script, moved over from elsewhere."""
    flare.init()
    host.offer("train", a_model(1.0))
    seen = []
    while flare.is_running():
        model = flare.receive()
        assert model is not None
        seen.append((flare.get_task_name(), flare.is_train(), flare.is_evaluate(), flare.is_submit_model(), model.current_round))
        flare.send(flare.FLModel(params={"w": model.params["w"] + 1}, metrics={"loss": 0.5}))
        if len(seen) < 3:
            host.offer(["validate", "submit_model"][len(seen) - 1], a_model())
        else:
            host.end()

    assert seen == [
        ("train", True, False, False, 1),
        ("validate", False, True, False, 1),
        ("submit_model", False, False, True, 1),
    ]
    assert [tree["params"]["w"][0] for tree in host.trainer.sent] == [2.0, 1.0, 1.0]
    assert host.trainer.sent[0]["metrics"] == {"loss": 0.5}
    assert flare.receive() is None


def test_every_rank_is_told_who_it_is(host: MadeHost) -> None:
    flare.init()

    assert flare.system_info() == {"job_id": "job-7", "site_name": "site-1"}
    assert (flare.get_job_id(), flare.get_site_name()) == ("job-7", "site-1")
    assert flare.get_config()["TASK_EXCHANGE"]["train_task_name"] == "train"


def test_the_configuration_shows_no_address_and_no_secret(host: MadeHost, tmp_path: Path) -> None:
    made = make_bootstrap(tmp_path / "bootstrap.json")
    flare.init()

    shown = repr(flare.get_config()) + repr(flare.system_info()) + repr(flare.init())
    assert made.endpoint not in shown
    assert made.token.text() not in shown


def test_calls_without_init_say_so(process: Process) -> None:
    for call in (flare.receive, flare.is_running, flare.get_job_id, flare.clear, lambda: flare.send(flare.FLModel(metrics={}))):
        with pytest.raises(Misuse, match="call init\\(\\) first"):
            call()
    assert flare.shutdown()


def test_without_a_bootstrap_file_there_is_one_clear_error(process: Process) -> None:
    with pytest.raises(BootstrapError, match="TROTH_BOOTSTRAP"):
        flare.init()


def test_a_file_that_is_named_is_used_or_is_an_error(host: MadeHost, tmp_path: Path) -> None:
    """What the environment names does not stand in for it."""
    with pytest.raises(BootstrapError, match=r"other\.json"):
        flare.init(config_file=tmp_path / "other.json")
    assert not host.trainers

    make_bootstrap(tmp_path / "other.json", site_name="site-2")
    flare.init(config_file=str(tmp_path / "other.json"))
    assert flare.get_site_name() == "site-2"


def test_init_again_finds_the_same_session(host: MadeHost, caplog: pytest.LogCaptureFixture) -> None:
    first = flare.init()

    assert flare.init() is first
    assert flare.init(rank=0) is first
    assert len(host.trainers) == 1
    assert "again" in caplog.text


def test_init_after_shutdown_joins_anew(host: MadeHost) -> None:
    """An ended session is never given out again."""
    first = flare.init()
    assert flare.shutdown()
    host.answers.append(None)
    second = flare.init()

    assert second is not first
    host.offer("train", a_model())
    assert flare.is_running()


def test_init_after_the_host_ended_the_session_joins_anew(host: MadeHost) -> None:
    first = flare.init()
    host.end()
    assert not flare.is_running()
    host.answers.append(None)

    assert flare.init() is not first


def test_a_failed_init_leaves_nothing_behind_and_may_be_tried_again(host: MadeHost, tmp_path: Path) -> None:
    """What is in the file does not change by trying, and what is tried the second time is what is in the file then."""
    host.answers.clear()
    host.answers.extend([JoinFailed("nobody answered"), None])
    written = (tmp_path / "bootstrap.json").read_bytes()
    with pytest.raises(JoinFailed):
        flare.init()
    with pytest.raises(Misuse, match="call init"):
        flare.receive()
    assert written == (tmp_path / "bootstrap.json").read_bytes()
    assert not host.trainer.running

    make_bootstrap(tmp_path / "bootstrap.json", endpoint="tcp:127.0.0.1:2")
    flare.init()
    assert [one.settings.bootstrap.endpoint for one in host.trainers] == ["tcp:127.0.0.1:1", "tcp:127.0.0.1:2"]


def test_a_session_of_two_ranks_at_once_is_two_contexts(host: MadeHost) -> None:
    """Whoever names a context is answered by it; whoever does not, by the last one."""
    control, passive = flare.init(), flare.init(rank=1)
    host.offer("train", a_model())

    assert flare.is_running() is False
    assert flare.is_running(ctx=control) is True
    assert flare.receive(ctx=passive) is None


@pytest.mark.parametrize("rank", [1, "1", " 3 "])
def test_another_rank_opens_nothing(host: MadeHost, process: Process, rank: str | int) -> None:
    flare.init(rank=rank)
    model = flare.FLModel(params={"w": np.zeros(1)})

    assert flare.receive() is None
    assert flare.receive(timeout=1.5) is None
    assert flare.is_running() is False
    flare.send(model)
    assert model.params is not None
    assert (flare.get_job_id(), flare.get_site_name()) == ("job-7", "site-1")
    assert not host.trainers
    assert process._loop is None or not process._loop.running
    for call in (flare.is_train, flare.is_evaluate, flare.is_submit_model, flare.get_task_name, lambda: flare.log("a", 1, "SCALAR")):
        with pytest.raises(Misuse, match="only rank 0"):
            call()
    assert flare.shutdown()


def test_the_rank_comes_from_the_environment_where_it_is_not_said(host: MadeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "2")
    flare.init()
    assert flare.get_config()["rank"] == "2"
    flare.init(rank=0)
    assert flare.get_config()["rank"] == "0"


@pytest.mark.parametrize("rank", [-1, "one", "", True, 1.0, "²"])
def test_a_rank_that_is_none_is_refused(host: MadeHost, rank: Any) -> None:
    with pytest.raises(ValueError, match="rank: must be a whole number"):
        flare.init(rank=rank)


def test_receive_waits_no_longer_than_it_was_told(host: MadeHost) -> None:
    """And not at all for no time; a task that is there is received even so."""
    flare.init()
    assert flare.receive(timeout=0) is None
    assert flare.receive(timeout=0.01) is None
    host.offer("train", a_model())
    assert flare.receive(timeout=0) is not None
    flare.send(flare.FLModel(metrics={"a": 1}))

    with host.when("receive", lambda: host.offer("train", a_model())):
        assert flare.receive() is not None


@pytest.mark.parametrize("timeout", [-1, float("nan"), float("inf"), "1", True])
def test_a_timeout_that_is_none_is_refused(host: MadeHost, timeout: Any) -> None:
    flare.init()
    with pytest.raises((TypeError, ValueError), match="timeout: must be"):
        flare.receive(timeout=timeout)


def test_a_task_can_be_read_again_until_its_result_was_sent(host: MadeHost) -> None:
    flare.init()
    host.offer("train", a_model())

    assert flare.is_running()
    first = flare.receive()
    assert first is not None
    assert flare.receive() is first


def test_is_running_does_not_arm_send(host: MadeHost) -> None:
    flare.init()
    host.offer("train", a_model())
    assert flare.is_running()

    with pytest.raises(Misuse, match=r"call receive\(\) first"):
        flare.send(flare.FLModel(metrics={"a": 1}))
    assert not host.trainer.sent


def test_a_result_is_for_the_task_that_was_received(host: MadeHost) -> None:
    """A newer task that ``is_running`` took must be received before anything is sent for it."""
    flare.init()
    host.offer("train", a_model())
    flare.receive()
    host.offer("train", a_model())
    assert flare.is_running()

    with pytest.raises(Misuse, match=r"call receive\(\) first"):
        flare.send(flare.FLModel(metrics={"a": 1}))


@pytest.mark.parametrize(("model", "error"), [({"params": 1}, TypeError), (None, TypeError), (flare.FLModel(), ValueError)])
def test_what_is_no_result_is_not_sent(host: MadeHost, model: Any, error: type[Exception]) -> None:
    flare.init()
    host.offer("train", a_model())
    flare.receive()

    with pytest.raises(error, match="model: "):
        flare.send(model)
    assert not host.trainer.sent


def test_send_empties_the_models_only_if_it_may_and_only_after_success(host: MadeHost) -> None:
    flare.init()
    host.settles = False
    host.offer("train", a_model())
    received, made = flare.receive(), flare.FLModel(params={"w": np.ones(2)}, optimizer_params={"m": 1}, metrics={"a": 1})
    assert received is not None

    with host.when("send", lambda: host.settle(ResultRejected("no"))), pytest.raises(ResultRejected):
        flare.send(made)
    assert None not in (received.params, made.params, made.optimizer_params)

    with host.when("send", host.settle):
        flare.send(made, clear_cache=False)
    assert None not in (received.params, made.params, made.optimizer_params)
    assert flare.get_task_name() == "train"

    host.settles = True
    flare.send(made)
    assert (received.params, made.params, made.optimizer_params) == (None, None, None)
    assert made.metrics == {"a": 1}
    with pytest.raises(Misuse):
        flare.get_task_name()


def test_a_new_task_wins_after_a_result_that_did_not_arrive(host: MadeHost) -> None:
    """Nothing that was received before is given out again."""
    flare.init()
    host.settles = False
    host.offer("train", a_model(1.0))
    flare.receive()
    with host.when("send", lambda: host.settle(ResultUndelivered("lost"))), pytest.raises(ResultUndelivered):
        flare.send(flare.FLModel(metrics={"a": 1}))
    host.settles = True

    assert flare.receive(timeout=0.01) is None
    host.offer("train", a_model(2.0))
    assert flare.is_running()
    model = flare.receive()
    assert model is not None
    assert model.params["w"][0] == 2.0


def test_a_new_task_wins_after_a_result_that_was_kept(host: MadeHost) -> None:
    """``clear_cache=False`` keeps the caller's models, not the task."""
    flare.init()
    host.offer("train", a_model(1.0))
    flare.receive()
    flare.send(flare.FLModel(metrics={"a": 1}), clear_cache=False)
    host.offer("train", a_model(2.0))

    model = flare.receive()
    assert model is not None
    assert model.params["w"][0] == 2.0


@pytest.mark.parametrize("received", [False, True])
def test_send_on_a_closed_session_raises(host: MadeHost, received: bool) -> None:
    flare.init()
    host.offer("train", a_model())
    flare.receive()
    if not received:
        flare.send(flare.FLModel(metrics={"a": 1}))
    flare.shutdown()

    with pytest.raises(SessionClosed):
        flare.send(flare.FLModel(metrics={"a": 2}))


@pytest.mark.parametrize(("verdict", "error"), [(Verdict.ABORTED, SessionAborted), (Verdict.LOST, SessionLost)])
def test_a_session_that_was_aborted_or_lost_is_said_so_where_it_matters(host: MadeHost, verdict: Verdict, error: type[Exception]) -> None:
    """A loop ends; an explicit call raises."""
    flare.init()
    with host.when("receive", lambda: host.end(verdict)), pytest.raises(error):
        flare.receive()

    assert flare.is_running() is False
    with pytest.raises(error):
        flare.receive()
    with pytest.raises(error):
        flare.send(flare.FLModel(metrics={"a": 1}))


def test_an_abort_ends_a_send_that_waits(host: MadeHost) -> None:
    """No wait ignores it."""
    flare.init()
    host.settles = False
    host.offer("train", a_model())
    flare.receive()
    with host.when("send", lambda: host.end(Verdict.ABORTED)), pytest.raises(SessionAborted):
        flare.send(flare.FLModel(metrics={"a": 1}))


def test_a_payload_that_is_no_model_is_an_error_of_receive_alone(host: MadeHost) -> None:
    flare.init()
    host.offer("train", {"w": np.zeros(1)})

    assert flare.is_running()
    with pytest.raises(flare.NotAModel, match="unknown field 'w'"):
        flare.receive()


def test_clear_forgets_what_was_received(host: MadeHost) -> None:
    flare.init()
    host.offer("train", a_model())
    flare.receive()
    flare.clear()

    assert not flare.is_train()
    with pytest.raises(Misuse):
        flare.send(flare.FLModel(metrics={"a": 1}))
    assert flare.receive() is not None


def test_a_second_thread_in_the_same_call_is_told_so(host: MadeHost) -> None:
    """And the first is not disturbed."""
    flare.init()
    wait = host.expect("receive")

    def second() -> None:
        wait()
        with pytest.raises(Misuse, match="another thread"):
            flare.receive()
        host.offer("train", a_model())

    with other_thread(second):
        assert flare.receive() is not None
