"""JOB.toml: what it may say, and the one clear error for everything else."""

from __future__ import annotations

import sys
from pathlib import Path

import attrs
import numpy as np
import pytest

from troth.jobs.errors import BadField, BadJob
from troth.jobs.job import Job
from troth.jobs.jobfile import FIELDS, LIMITS, TIMES, read
from troth.jobs.store import claim_directory, read_model, write_model
from troth.spec.limits import ORDER, Limits

NO_COMMAND = 'trainer.command: must be a list of words that starts with the program, like ["{python}", "train.py"], got '
COMMAND = '[trainer]\ncommand = ["{python}", "train.py"]\n'
WHOLE = """
[job]
name = "digits-2"
trainers = 3
rounds = 7
seed = 11
on_trainer_lost = "continue"
min_trainers = 2
model = "start.npz"
save = "end.npz"
evaluate_rounds = true

[trainer]
command = ["{python}", "train.py", "--site={name}", "{index}/{trainers}", "{seed}", "{rounds}", "{other}"]
directory = "site"
inherit_environment = false
transport = "tcp"
persistent = false
on_unresponsive = "fail"
credentials = "credentials.toml"
logs = "logs"
heartbeat_interval_s = 1
heartbeat_timeout_s = 12.5
launch_timeout_s = 60
task_wait_timeout_s = 30
result_wait_timeout_s = 120
shutdown_timeout_s = 3
stop_grace_period_s = 4

[trainer.environment]
PATH = "/bin"
GREETING = "hello"

[limits]
kill_wait_s = 2.5
task_attempts = 3

[tasks]
train = "fit"
evaluate = "test"
submit_model = "best"

[averaging]
weight = "steps"
score = "auc"
finite = false
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what WHOLE names, to work in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "site").mkdir()
    (tmp_path / "train.py").touch()
    np.savez(tmp_path / "start.npz", w=np.zeros(2))
    (tmp_path / "credentials.toml").write_text('token = "hush"\nsignature = "signed"\n')
    (tmp_path / "credentials.toml").chmod(0o600)
    return tmp_path


def refused(text: str, file: str = "job.toml", **overrides: int) -> str:
    """What a file's error says."""
    Path(file).write_text(text)
    with pytest.raises(BadJob) as caught:
        read(Path(file), **overrides)
    return str(caught.value)


def test_a_file_can_say_everything(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths are relative to the file, from wherever it is read."""
    (home / "job.toml").write_text(WHOLE)
    monkeypatch.chdir("/")
    job = read(home / "job.toml")

    assert (job.name, job.trainers, job.rounds, job.seed) == ("digits-2", 3, 7, 11)
    assert (job.on_trainer_lost, job.min_trainers, job.evaluate_rounds) == ("continue", 2, True)
    assert (job.model, job.save, job.directory, job.logs) == (home / "start.npz", home / "end.npz", home / "site", home / "logs")
    assert (job.transport, job.persistent, job.on_unresponsive, job.finite) == ("tcp", False, "fail", False)
    assert (job.train_task, job.evaluate_task, job.submit_task, job.weight, job.score) == ("fit", "test", "best", "steps", "auc")
    assert job.credentials is not None
    assert job.credentials.token == "hush"
    assert "hush" not in repr(job)
    limits = job.limits
    assert (limits.heartbeat_interval_s, limits.lease_timeout_s, limits.launch_timeout_s, limits.delivery_budget_s) == (1, 12.5, 60, 30)
    assert (limits.result_wait_s, limits.natural_exit_s, limits.term_grace_s, limits.kill_wait_s) == (120, 3, 4, 2.5)
    assert limits.task_attempts == 3


def test_a_trainer_is_told_who_it_is(home: Path) -> None:
    """By words of its command and by variables; braces that mean nothing stay."""
    (home / "job.toml").write_text(WHOLE)
    job = read(home / "job.toml")

    assert job.command_of(1) == [sys.executable, "train.py", "--site=trainer-2", "1/3", "11", "7", "{other}"]
    numbers = {"INDEX": "1", "NAME": "trainer-2", "TRAINERS": "3", "ROUNDS": "7", "SEED": "11"}
    assert job.environment_of(1) == {**{f"TROTH_JOB_{name}": value for name, value in numbers.items()}, "PATH": "/bin", "GREETING": "hello"}


def test_a_command_is_enough(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All else has a default; the environment is inherited, and the job's variables win."""
    monkeypatch.setenv("TROTH_JOB_INDEX", "outer")
    monkeypatch.setenv("OUTER", "yes")
    (home / "job.toml").write_text(COMMAND)
    job = read(Path("job.toml"))

    assert job == attrs.evolve(Job(command=("{python}", "train.py")), directory=home)
    assert (job.trainers, job.rounds, job.seed, job.on_trainer_lost, job.limits) == (4, 5, 0, "fail", Limits())
    assert job.environment_of(2)["TROTH_JOB_INDEX"] == "2"
    assert job.environment_of(2)["OUTER"] == "yes"


def test_the_command_line_goes_before_the_file(home: Path) -> None:
    """Overridden before it is checked."""
    (home / "job.toml").write_text(WHOLE)

    assert read(Path("job.toml"), rounds=2, seed=5).rounds == 2
    assert refused(WHOLE, trainers=1) == "job.toml: job.min_trainers: must not be more than trainers (1), got 2"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "trainer.command: is missing: the program that each trainer runs, and its arguments"),
        # keys
        ("[jobs]\nrounds = 3", "jobs.rounds: there is no such key; did you mean job.rounds?"),
        (COMMAND + "rounds = 3", "trainer.rounds: there is no such key; did you mean job.rounds?"),
        ("trainers = 3", "trainers: there is no such key; did you mean job.trainers?"),
        (COMMAND + "heartbeat_timout_s = 3", "trainer.heartbeat_timout_s: there is no such key; did you mean trainer.heartbeat_timeout_s?"),
        (COMMAND + "[limits]\nlease_timeout = 3", "limits.lease_timeout: there is no such key; did you mean limits.lease_timeout_s?"),
        ("[colours]\nred = 1", "colours.red: there is no such key; the tables are averaging, job, limits, tasks, trainer"),
        ("[averaging]\nzzz = 1", "averaging.zzz: there is no such key; there are weight, score, finite"),
        ("job = 3", "job: must be a table: write [job]"),
        ("[[job]]\nrounds = 3", "job: must be a table: write [job]"),
        ("[job.rounds]\nfew = 3\n" + COMMAND, "job.rounds: must be an int from 1 to 1000000, got {'few': 3}"),
        # types and bounds
        ("[job]\nrounds = true\n" + COMMAND, "job.rounds: must be an int from 1 to 1000000, got True"),
        ("[job]\nrounds = 0\n" + COMMAND, "job.rounds: must be an int from 1 to 1000000, got 0"),
        ("[job]\nrounds = 1000001\n" + COMMAND, "job.rounds: must be an int from 1 to 1000000, got 1000001"),
        ("[job]\nrounds = 3.0\n" + COMMAND, "job.rounds: must be an int from 1 to 1000000, got 3.0"),
        ("[job]\nrounds = '3'\n" + COMMAND, "job.rounds: must be an int from 1 to 1000000, got '3'"),
        ("[job]\nrounds = nan\n" + COMMAND, "job.rounds: must be an int from 1 to 1000000, got nan"),
        ("[job]\ntrainers = 257\n" + COMMAND, "job.trainers: must be an int from 1 to 256, got 257"),
        ("[job]\nseed = -1\n" + COMMAND, "job.seed: must be an int from 0 to 9223372036854775807, got -1"),
        ("[job]\nseed = true\n" + COMMAND, "job.seed: must be an int from 0 to 9223372036854775807, got True"),
        ("[job]\nmin_trainers = 5\n" + COMMAND, "job.min_trainers: must not be more than trainers (4), got 5"),
        ("[job]\non_trainer_lost = 'ignore'\n" + COMMAND, "job.on_trainer_lost: must be 'fail' or 'continue', got 'ignore'"),
        ("[job]\non_trainer_lost = []\n" + COMMAND, "job.on_trainer_lost: must be 'fail' or 'continue', got []"),
        ("[job]\nname = 'my job'\n" + COMMAND, "job.name: must be 1 to 64 of letters, digits, _ and -, got 'my job'"),
        ("[job]\nevaluate_rounds = 1\n" + COMMAND, "job.evaluate_rounds: must be true or false, got 1"),
        (COMMAND + "persistent = 'yes'", "trainer.persistent: must be true or false, got 'yes'"),
        (COMMAND + "transport = 'udp'", "trainer.transport: must be 'unix' or 'tcp', got 'udp'"),
        (COMMAND + "on_unresponsive = true", "trainer.on_unresponsive: must be 'wait' or 'fail', got True"),
        (COMMAND + "environment = 3", "trainer.environment: must be a table of texts, got 3"),
        (COMMAND + "[trainer.environment]\nDEBUG = 1", "trainer.environment: DEBUG: must be a text, and is int"),
        (COMMAND + "[trainer.environment]\n'A=B' = ''", "trainer.environment: 'A=B' cannot be the name of a variable"),
        (
            COMMAND + "[trainer.environment]\nTROTH_BOOTSTRAP = ''",
            "trainer.environment: TROTH_BOOTSTRAP is how a trainer finds its host, and is not the job's to set",
        ),
        (COMMAND + "[tasks]\ntrain = ''", "tasks.train: must be 1 to 256 printable characters, got ''"),
        (COMMAND + "[tasks]\nevaluate = 'train'", "tasks.evaluate: must be another name than the other tasks have, got 'train'"),
        (
            COMMAND + "[tasks]\nsubmit_model = 'validate'",
            "tasks.submit_model: must be another name than the other tasks have, got 'validate'",
        ),
        (COMMAND + "[averaging]\nweight = 3", "averaging.weight: must be 1 to 256 printable characters, got 3"),
        # the command
        ("[trainer]\ncommand = []", NO_COMMAND + "[]"),
        (
            "[trainer]\ncommand = 'python train.py'",
            NO_COMMAND + "'python train.py'",
        ),
        ("[trainer]\ncommand = ['']", NO_COMMAND + "['']"),
        (
            "[trainer]\ncommand = ['x', 3]",
            NO_COMMAND + "['x', 3]",
        ),
        ("[trainer]\ncommand = ['no-such-program']", "trainer.command: 'no-such-program' is not on the PATH"),
        # numbers of seconds
        (COMMAND + "heartbeat_interval_s = nan", "trainer.heartbeat_interval_s: must be a finite number of seconds above 0, got nan"),
        (COMMAND + "heartbeat_interval_s = inf", "trainer.heartbeat_interval_s: must be a finite number of seconds above 0, got inf"),
        (COMMAND + "heartbeat_interval_s = -inf", "trainer.heartbeat_interval_s: must be a finite number of seconds above 0, got -inf"),
        (COMMAND + "heartbeat_interval_s = -1", "trainer.heartbeat_interval_s: must be a finite number of seconds above 0, got -1"),
        (COMMAND + "heartbeat_interval_s = 0", "trainer.heartbeat_interval_s: must be a finite number of seconds above 0, got 0"),
        (COMMAND + "heartbeat_interval_s = true", "trainer.heartbeat_interval_s: must be a finite number of seconds above 0, got True"),
        (COMMAND + "result_wait_timeout_s = false", "trainer.result_wait_timeout_s: must be a finite number of seconds above 0, got False"),
        (COMMAND + "launch_timeout_s = '5'", "trainer.launch_timeout_s: must be a finite number of seconds above 0, got '5'"),
        (COMMAND + f"launch_timeout_s = 1{'0' * 400}", f"trainer.launch_timeout_s: must be at most 1e+09 seconds, got 1{'0' * 19}"),
        (COMMAND + "[limits]\ntask_attempts = true", "limits.task_attempts: must be an int from 1 to 32767, got True"),
        (COMMAND + "[limits]\nretained_limit = 0", "limits.retained_limit: must be an int from 1 to 32767, got 0"),
        (COMMAND + "[limits]\nledger_limit = 1.5", "limits.ledger_limit: must be an int from 1 to 2147483647, got 1.5"),
        # and against each other
        (COMMAND + "heartbeat_timeout_s = 3", "trainer.heartbeat_timeout_s: must be greater than heartbeat_interval_s (5.0), got 3"),
        (COMMAND + "heartbeat_interval_s = 30", "trainer.heartbeat_interval_s: must be less than lease_timeout_s (30.0), got 30"),
        (
            COMMAND + "heartbeat_interval_s = 9\nheartbeat_timeout_s = 8",
            "trainer.heartbeat_timeout_s: must be greater than heartbeat_interval_s (9), got 8",
        ),
        (
            COMMAND + "heartbeat_timeout_s = 20\n[limits]\nlease_timeout_s = 20",
            "limits.lease_timeout_s: is trainer.heartbeat_timeout_s by another name; say one of them",
        ),
        (
            COMMAND + "[limits]\nkill_wait_s = 20",
            "limits.kill_wait_s: 2 times this + term_grace_s (10.0) must be less than force_budget_s (30.0), got 20",
        ),
        (
            COMMAND + "[limits]\nfinalize_budget_s = 70",
            "limits.finalize_budget_s: must be greater than drain_limit_s (60.0) + natural_exit_s (10.0) + term_grace_s (10.0)"
            " + kill_wait_s (5.0), got 70",
        ),
    ],
)
@pytest.mark.usefixtures("home")
def test_a_wrong_file_is_one_error_that_names_the_key(text: str, says: str) -> None:
    """And the file, first of all."""
    assert refused(text) == f"job.toml: {says}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[job]\nmodel = 'no.npz'\n" + COMMAND, "job.model: there is no file {home}/no.npz"),
        ("[job]\nmodel = 3\n" + COMMAND, "job.model: must be a path in quotes, got 3"),
        ("[job]\nsave = 'no/end.npz'\n" + COMMAND, "job.save: there is no directory {home}/no"),
        ("[job]\nsave = 'site'\n" + COMMAND, "job.save: {home}/site is a directory"),
        (COMMAND + "directory = 'no'", "trainer.directory: there is no directory {home}/no"),
        (COMMAND + "directory = 'train.py'", "trainer.directory: there is no directory {home}/train.py"),
        (COMMAND + "directory = ''", "trainer.directory: must be a path in quotes, got ''"),
        (COMMAND + "directory = ['site']", "trainer.directory: must be a path in quotes, got ['site']"),
        (COMMAND + "credentials = 'no.toml'", "trainer.credentials: {home}/no.toml cannot be read: No such file or directory"),
        ("[trainer]\ncommand = ['./train.py']", "trainer.command: '{home}/train.py' cannot be run"),
    ],
)
def test_what_is_not_there_is_named_in_full(home: Path, text: str, says: str) -> None:
    """Where it was looked for is half of the answer."""
    assert refused(text) == f"job.toml: {says.replace('{home}', str(home))}"


def test_what_is_no_toml_is_said_with_the_place(home: Path) -> None:
    """However deep, and in whatever encoding."""
    assert refused("[job]\nrounds 3").startswith("job.toml: is not TOML: Expected '=' after a key in a key/value pair (at line 2")
    assert refused("a = " + "[" * 100_000).startswith("job.toml: is not TOML: ")
    (home / "job.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadJob, match=r"^job.toml: is not TOML: 'utf-8' codec"):
        read(Path("job.toml"))
    with pytest.raises(BadJob, match=r"^no.toml: cannot be read: No such file or directory$"):
        read(Path("no.toml"))


@pytest.mark.parametrize(
    ("content", "mode", "says"),
    [
        ('token = "hush"\nsignature = "s"', 0o644, "can be read by others: chmod 600 "),
        ('token = "hush"', 0o600, "must have the keys token and signature, and no other"),
        ('token = "hush" "hush"', 0o600, "is not TOML"),
        ('token = 3\nsignature = "hush"', 0o600, "Credentials.token: must be 1 to 4096 printable characters"),
    ],
)
def test_credentials_are_private_and_never_repeated(home: Path, content: str, mode: int, says: str) -> None:
    """An error about them does not quote them."""
    path = home / "secret.toml"
    path.write_text(content)
    path.chmod(mode)
    found = refused(COMMAND + "credentials = 'secret.toml'")

    assert found.startswith(f"job.toml: trainer.credentials: {path}")
    assert says in found
    assert "hush" not in found


def test_every_limit_can_be_set_and_every_order_is_told_by_key(home: Path) -> None:
    """No limit without a key, and no pair that only the core's own error would name."""
    assert {LIMITS[key] for key in LIMITS} == {attribute.name for attribute in attrs.fields(Limits)}
    assert set(TIMES.values()) <= {attribute.name for attribute in attrs.fields(Limits)}
    for inner, outer, _ in ORDER:
        for name in inner:
            found = refused(f"{COMMAND}[limits]\n{name} = {getattr(Limits(), outer)}")
            assert found.startswith("job.toml: limits.")
        assert refused(f"{COMMAND}[limits]\n{outer} = 0.001").startswith("job.toml: limits.")


def test_every_field_of_a_job_has_a_key(home: Path) -> None:
    """But the one that only code can say."""
    assert {attribute.name for attribute in attrs.fields(Job)} == {*FIELDS.values(), "limits", "evaluate"}


def test_a_model_survives_its_file(home: Path) -> None:
    """Every type and shape; those inside others by their path, and none by a name that numpy keeps for itself."""
    model = {"file": np.arange(3), "a/b": np.float32(2), "deep": {"er": [np.zeros((2, 0)), 1.5]}}
    write_model(home / "model.npz", model)
    found = read_model(home / "model.npz")

    assert list(found) == ["file", "a/b", "deep/er/0", "deep/er/1"]
    assert found["file"].tolist() == [0, 1, 2]
    assert (found["a/b"].dtype, found["a/b"].shape, found["deep/er/0"].shape, found["deep/er/1"].item()) == (np.float32, (), (2, 0), 1.5)
    assert sorted(path.name for path in home.iterdir() if path.suffix != ".py") == ["credentials.toml", "model.npz", "site", "start.npz"]


def test_a_file_that_is_no_model_is_refused(home: Path) -> None:
    """Pickles above all."""
    np.savez(home / "pickled.npz", w=np.array([{}]))
    np.save(home / "one.npy", np.zeros(2))
    np.savez(home / "empty.npz")
    (home / "text.npz").write_text("no zip")
    for name in ("pickled.npz", "one.npy", "text.npz", "missing.npz"):
        with pytest.raises(BadField, match=f"^model: .*{name} cannot be read as a .npz file of plain arrays"):
            read_model(home / name)
    with pytest.raises(BadField, match=r"^model: .*empty.npz has no arrays in it$"):
        read_model(home / "empty.npz")


def test_traces_get_a_directory_of_their_own(home: Path) -> None:
    """A new one, or an empty one."""
    claim_directory(home / "new" / "traces")
    claim_directory(home / "new" / "traces")
    with pytest.raises(BadField, match=r"^trace: .* is not empty"):
        claim_directory(home)
    with pytest.raises(BadField, match=r"^trace: .* cannot be used as a directory"):
        claim_directory(home / "train.py")


def test_the_page_has_every_key_with_its_default() -> None:
    """One row each, under the heading of its table."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "job-toml.md").read_text(encoding="utf-8")
    tables = {part.partition("]")[0]: part for part in page.split("\n## `[")[1:]}
    for key in (*FIELDS, *LIMITS):
        table, _, name = key.partition(".")
        assert f"\n| `{name}` | " in tables[table], key
    defaults = Limits()
    for key, limit in LIMITS.items():
        table, _, name = key.partition(".")
        value = getattr(defaults, limit)
        assert f"\n| `{name}` | {'no limit' if value is None else f'{value:g}'} | " in tables[table], key
