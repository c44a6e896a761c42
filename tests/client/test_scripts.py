"""Real scripts in real processes, under the real backend."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import troth.client as flare
from tests.client.doubles import make_bootstrap
from tests.client.real import Staged, script, within_limit
from troth.client.process import Process
from troth.runtime.errors import JoinFailed, SessionError, SessionLost
from troth.spec.limits import Limits


def code_of(staged: Staged) -> int | None:
    """How the script ended; not by a signal."""
    status = staged.trainer.status()
    assert status.exit is not None
    assert status.exit.signal is None, status.exit
    return status.exit.code


def test_a_script_uses_every_call(tmp_path: Path) -> None:
    text = """
    context = flare.init()
    assert flare.init() is context
    assert flare.receive(timeout=0) is None
    say("ready")
    seen = []
    while flare.is_running():
        model = flare.receive()
        assert flare.receive() is model
        seen.append([flare.get_task_name(), flare.is_train(), flare.is_evaluate(), flare.is_submit_model()])
        flare.log("loss", np.float32(0.5), flare.AnalyticsDataType.SCALAR, global_step=model.current_round)
        if model.params is not None:
            model.params["w"] += 1
        flare.send(flare.FLModel(params=model.params, metrics={"rank": float(flare.get_config()["rank"]), "n": np.int64(len(seen))}))
        assert model.params is None
    assert flare.receive() is None
    assert seen == [["train", True, False, False], ["validate", False, True, False], ["submit_model", False, False, True]]
    assert flare.system_info() == {"job_id": "job", "site_name": "site"} == {
        "job_id": flare.get_job_id(), "site_name": flare.get_site_name()
    }
    assert flare.shutdown() and flare.shutdown()
    sys.exit(7)
    """

    async def main() -> None:
        async with script(tmp_path, text) as staged:
            await staged.hear("ready")
            for each, name in enumerate(["train", "validate", "submit_model"]):
                size = 10 ** (1 + 2 * each)
                model = await staged.do(name, params={"w": np.zeros(size, "<f4"), "b": np.array(each)}, current_round=each)
                np.testing.assert_array_equal(model.params["w"], np.ones(size, "<f4"))
                assert model.params["b"].shape == ()
                assert model.metrics == {"rank": 0.0, "n": each + 1}
        assert code_of(staged) == 7

    within_limit(main)


def test_a_handler_ends_a_receive_in_order(tmp_path: Path) -> None:
    text = """
    signal.signal(signal.SIGTERM, lambda *_: sys.stderr.write(f"ended: {flare.shutdown()}"))
    flare.init()
    say("waiting")
    while flare.receive() is not None:  # the task that comes meanwhile, until the handler has run
        pass
    assert not flare.is_running()
    sys.exit(3)
    """

    async def main() -> None:
        async with script(tmp_path, text) as staged:
            await staged.hear("waiting")
            staged.kill(signal.SIGTERM)
            with pytest.raises(SessionError):
                await staged.do()
        assert code_of(staged) == 3

    within_limit(main)


def test_a_handler_that_comes_during_send_lets_the_result_through(tmp_path: Path) -> None:
    text = """
    from troth.runtime.trainer import TrainerSession
    from troth.spec.core import Offer
    perform, ended = TrainerSession.perform, []

    def interrupting(session, effect):
        if isinstance(effect, Offer):  # the result is on its way, and the main thread waits in send()
            os.kill(os.getpid(), signal.SIGTERM)
        return perform(session, effect)

    TrainerSession.perform = interrupting
    signal.signal(signal.SIGTERM, lambda *_: ended.append(flare.shutdown()))
    flare.init()
    flare.send(flare.receive())
    assert flare.receive() is None
    assert ended[0] is False and flare.shutdown() is True
    sys.exit(4)
    """

    async def main() -> None:
        async with script(tmp_path, text) as staged:
            weights = np.arange(4_000_000.0)
            model = await staged.do(params={"w": weights})
            np.testing.assert_array_equal(model.params["w"], weights)
        assert code_of(staged) == 4

    within_limit(main)


def test_another_thread_ends_the_session(tmp_path: Path) -> None:
    text = """
    flare.init()
    said = threading.Event()
    def end():
        said.wait()
        assert flare.shutdown()
    threading.Thread(target=end).start()
    said.set()
    while flare.receive() is not None:  # the task that comes meanwhile
        pass
    sys.exit(5)
    """

    async def main() -> None:
        async with script(tmp_path, text) as staged:
            with pytest.raises(SessionError):
                await staged.do()
        assert code_of(staged) == 5

    within_limit(main)


def test_a_keyboard_interrupt_loses_no_task(tmp_path: Path) -> None:
    text = """
    flare.init()
    try:
        say("waiting")
        flare.receive()
    except KeyboardInterrupt:
        say("interrupted")
    while flare.is_running():
        flare.send(flare.FLModel(metrics=flare.receive().metrics))
    """

    async def main() -> None:
        async with script(tmp_path, text) as staged:
            await staged.hear("waiting")
            staged.kill(signal.SIGINT)
            await staged.hear("interrupted")
            for each in range(3):
                assert (await staged.do(metrics={"n": each})).metrics == {"n": each}
        assert code_of(staged) == 0

    within_limit(main)


@pytest.mark.parametrize(("ending", "code"), [("pass", 0), ("raise ValueError", 1), ("sys.exit(9)", 9)])
def test_a_script_that_just_ends_closes_its_session(tmp_path: Path, ending: str, code: int) -> None:
    """The host hears of it as of any orderly end: the trainer is not lost."""
    text = f"""
    flare.init()
    flare.send(flare.receive())
    {ending}
    """

    async def main() -> None:
        async with script(tmp_path, text) as staged:
            await staged.do()
            with pytest.raises(SessionError) as raised:
                await staged.do()
            assert not isinstance(raised.value, SessionLost), raised.value
        assert code_of(staged) == code

    within_limit(main)


def test_a_script_that_ends_while_it_sends_ends_after_it(tmp_path: Path) -> None:
    text = """
    from troth.runtime.trainer import TrainerSession
    from troth.spec.core import Offer
    perform, begun = TrainerSession.perform, threading.Event()

    def noting(session, effect):
        if isinstance(effect, Offer):
            begun.set()
        return perform(session, effect)

    TrainerSession.perform = noting
    flare.init()
    threading.Thread(target=flare.send, args=[flare.receive()], daemon=True).start()
    begun.wait()
    """

    async def main() -> None:
        weights = np.arange(4_000_000.0)
        async with script(tmp_path, text) as staged:
            model = await staged.do(params={"w": weights})
            np.testing.assert_array_equal(model.params["w"], weights)
        assert code_of(staged) == 0

    within_limit(main)


def test_a_forked_child_is_refused_and_does_not_disturb_its_parent(tmp_path: Path) -> None:
    text = """
    import multiprocessing, warnings
    warnings.simplefilter("ignore")
    from troth.runtime.errors import Misuse

    def child():
        for call in (flare.init, flare.receive, flare.is_running, flare.get_job_id, flare.shutdown):
            try:
                call()
            except Misuse as error:
                assert "forked" in str(error)
            else:
                sys.exit(1)

    flare.init()
    codes = []
    while flare.is_running():
        model = flare.receive()
        pid = os.fork()
        if pid == 0:
            child()
            sys.exit(11)  # runs the exit hooks that it has inherited
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        worker = multiprocessing.get_context("fork").Process(target=child)
        worker.start()
        worker.join()
        codes.append(worker.exitcode)
        flare.send(flare.FLModel(metrics={"codes": codes}))
    """

    async def main() -> None:
        async with script(tmp_path, text) as staged:
            assert (await staged.do()).metrics == {"codes": [11, 0]}
            assert (await staged.do()).metrics == {"codes": [11, 0] * 2}
        assert code_of(staged) == 0

    within_limit(main)


def test_ranks_share_the_work_and_only_the_first_speaks_to_the_host(tmp_path: Path) -> None:
    """As a launcher of distributed training does it: the same script once a rank, with collectives between them."""
    text = """
    import multiprocessing, subprocess
    from multiprocessing.connection import Connection

    if "RANK" not in os.environ:  # the launcher
        ends = [multiprocessing.Pipe() for _ in range(2)]
        for one in ends:
            for end in one:
                os.set_inheritable(end.fileno(), True)
        ranks = []
        for rank in range(3):
            mine = [one[0].fileno() for one in ends] if rank == 0 else [ends[rank - 1][1].fileno()]
            command = [sys.executable, __file__, *map(str, mine)]
            ranks.append(subprocess.Popen(command, env={**os.environ, "RANK": str(rank)}, pass_fds=mine))
        for one in ends:
            for end in one:
                end.close()
        sys.exit(sum(rank.wait() for rank in ranks))

    rank, pipes = int(os.environ["RANK"]), [Connection(int(fd)) for fd in sys.argv[1:]]
    flare.init()
    assert flare.get_job_id() == "job"
    while True:
        if rank == 0:
            running = flare.is_running()
            model = flare.receive() if running else None
            weights = model.params["w"] if running else None
            for pipe in pipes:
                pipe.send(weights)
        else:
            assert not flare.is_running()
            assert flare.receive() is None
            weights = pipes[0].recv()
        if weights is None:
            break
        share = float(weights[rank::3].sum())
        if rank == 0:
            share += sum(pipe.recv() for pipe in pipes)
        else:
            pipes[0].send(share)
        flare.send(flare.FLModel(metrics={"sum": share}))
    """

    async def main() -> None:
        async with script(tmp_path, text) as staged:
            for size in (10, 100_000):
                weights = np.arange(float(size))
                assert (await staged.do(params={"w": weights})).metrics == {"sum": weights.sum()}
        assert code_of(staged) == 0

    within_limit(main)


def test_decorated_functions_are_a_script_too(tmp_path: Path) -> None:
    text = """
    @flare.evaluate
    def score(model, factor=1):
        return {"mean": float(model.params["w"].mean()) * factor}

    @flare.train
    def learn(model=None, step=1.0):
        return flare.FLModel(params={"w": model.params["w"] + step}, metrics={"step": step})

    flare.init()
    while flare.is_running():
        score(factor=2)
        learn(step=0.5)
    """

    async def main() -> None:
        async with script(tmp_path, text) as staged:
            for _ in range(2):
                model = await staged.do(params={"w": np.full(4, 3.0)})
                assert model.params["w"].tolist() == [3.5] * 4
                assert model.metrics == {"mean": 6.0, "step": 0.5}

    within_limit(main)


def test_an_abort_ends_whatever_waits(tmp_path: Path) -> None:
    text = """
    from troth.runtime.errors import SessionAborted
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # which comes after an abort
    flare.init()
    say("waiting")
    try:
        flare.receive()
    except SessionAborted:
        sys.exit(0 if not flare.is_running() else 1)
    sys.exit(2)
    """

    async def main() -> None:
        async with script(tmp_path, text) as staged:
            await staged.hear("waiting")
            await staged.trainer.abort()
        assert code_of(staged) == 0

    within_limit(main)


def test_init_fails_in_time_when_nobody_answers_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, process: Process) -> None:
    """The second try is as long as the first: nothing is left of that."""
    path = tmp_path / "bootstrap.json"
    make_bootstrap(path, endpoint=f"unix:{tmp_path}/nobody", limits=Limits(join_timeout_s=0.2, hello_retry_s=0.05))
    before = path.read_bytes()
    for _ in range(2):
        began = time.monotonic()
        with pytest.raises(JoinFailed):
            flare.init(config_file=path)
        assert time.monotonic() - began >= 0.2
    assert path.read_bytes() == before


def test_importing_the_client_is_light() -> None:
    """A script pays for what it uses."""
    code = "import sys, troth.client; print(sorted({'sklearn', 'rich', 'hypothesis', 'scipy', 'click'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_differences_are_taken_to_what_was_received_even_if_it_was_trained_in_place(tmp_path: Path) -> None:
    text = """
    flare.init()
    while flare.is_running():
        model = flare.receive()
        model.params["w"] += 2
        made = flare.FLModel(params=model.params)
        flare.send(made, clear_cache=False)
        assert made.params_type == "FULL" and made.params["w"][0] == model.params["w"][0]
    """

    async def main() -> None:
        async with script(tmp_path, text, transfer_type="DIFF") as staged:
            for start in (1.0, 5.0):
                model = await staged.do(params={"w": np.full(3, start)})
                assert model.params_type == "DIFF"
                assert model.params["w"].tolist() == [2.0] * 3
        assert code_of(staged) == 0

    within_limit(main)
