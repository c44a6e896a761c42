"""What a job is: which command the trainers run, how many rounds, what is allowed to go wrong. Checked whole before anything starts."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs
from attrs import Factory, field, frozen

from troth.jobs.errors import BadField
from troth.runtime.processes.bootstrap import BOOTSTRAP_VARIABLE
from troth.runtime.wire.besides import Credentials
from troth.runtime.wire.bounds import MAX_TEXT
from troth.spec.limits import Limits

MAX_TRAINERS = 256
"""Each is a process with an interpreter of its own."""
MAX_ROUNDS = 1_000_000
MAX_SEED = 2**63 - 1
MAX_NAME = 64

Params: TypeAlias = dict[str, Any]
Check: TypeAlias = Callable[[Any], str | None]
"""What a value must be, if it is not: ``"must be ..."``."""

PLACEHOLDER = re.compile(r"\{(python|name|index|trainers|rounds|seed)\}")
"""What is replaced in the words of a command; other braces are left alone."""


def whole(low: int, high: int) -> Check:
    """An int in bounds; ``True`` is none."""

    def check(value: Any) -> str | None:
        fine = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        return None if fine else f"must be an int from {low} to {high}"

    return check


def one_of(*words: str) -> Check:
    """One of some words."""
    return lambda value: None if isinstance(value, str) and value in words else f"must be {' or '.join(map(repr, words))}"


def switch(value: Any) -> str | None:
    """True or false."""
    return None if isinstance(value, bool) else "must be true or false"


def name(value: Any) -> str | None:
    """What can stand in file names, logs and messages."""
    fine = isinstance(value, str) and re.fullmatch(rf"[A-Za-z0-9_-]{{1,{MAX_NAME}}}", value)
    return None if fine else f"must be 1 to {MAX_NAME} of letters, digits, _ and -"


def word(value: Any) -> str | None:
    """What a task or a metric is called."""
    fine = isinstance(value, str) and 1 <= len(value) <= MAX_TEXT and value.isprintable()
    return None if fine else f"must be 1 to {MAX_TEXT} printable characters"


def words(value: Any) -> str | None:
    """A command: the program and its arguments, each a word of its own; no shell takes it apart."""
    if isinstance(value, list | tuple) and value and value[0] and all(isinstance(one, str) and "\0" not in one for one in value):
        return None
    return 'must be a list of words that starts with the program, like ["{python}", "train.py"]'


def variables(value: Any) -> str | None:
    """Environment variables by name."""
    if not isinstance(value, Mapping):
        return "must be a table of texts"
    for key, text in value.items():
        if not isinstance(key, str) or not key or "=" in key or "\0" in key:
            return f"{key!r} cannot be the name of a variable"
        if key == BOOTSTRAP_VARIABLE:
            return f"{key} is how a trainer finds its host, and is not the job's to set"
        if not isinstance(text, str) or "\0" in text:
            return f"{key}: must be a text, and is {type(text).__name__}"  # its value is nobody's to read
    return None


def folder(value: Any) -> str | None:
    """A directory that is there."""
    if not isinstance(value, Path):
        return "must be a path"
    return None if value.is_dir() else f"there is no directory {value}"


def file(value: Any) -> str | None:
    """A file that is there, or none."""
    if value is None or isinstance(value, Mapping):
        return None
    if not isinstance(value, Path):
        return "must be a path"
    return None if value.is_file() else f"there is no file {value}"


def new_file(value: Any) -> str | None:
    """A file that can be written, or none."""
    if value is None:
        return None
    if not isinstance(value, Path):
        return "must be a path"
    if value.is_dir():
        return f"{value} is a directory"
    return None if value.parent.is_dir() else f"there is no directory {value.parent}"


def new_folder(value: Any) -> str | None:
    """A directory that is there or can be made, or none."""
    if value is None:
        return None
    if not isinstance(value, Path):
        return "must be a path"
    return f"{value} is no directory" if value.exists() and not value.is_dir() else None


def _checked(check: Check, default: Any = attrs.NOTHING, **more: Any) -> Any:
    def validate(_job: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        wrong = check(value)
        if wrong is not None:
            said = list(value) if isinstance(value, tuple) else value
            raise BadField(attribute.name, f"{wrong}, got {said!r}"[:400] if wrong.startswith("must") else wrong)

    return field(default=default, validator=validate, **more)


@frozen(kw_only=True)
class Job:
    """Rounds of federated averaging over trainers that all run one command.

    Every field is checked when a job is made; ``BadField`` says which is wrong.
    """

    command: tuple[str, ...] = _checked(words, converter=lambda value: tuple(value) if isinstance(value, list) else value)
    """The program and its arguments. In each word ``{python}`` stands for this interpreter, ``{index}`` for the trainer's number from 0,
    ``{name}`` for its name, ``{trainers}``, ``{rounds}`` and ``{seed}`` for the job's."""
    name: str = _checked(name, "job")
    trainers: int = _checked(whole(1, MAX_TRAINERS), 4)
    rounds: int = _checked(whole(1, MAX_ROUNDS), 5)
    seed: int = _checked(whole(0, MAX_SEED), 0)
    on_trainer_lost: Literal["fail", "continue"] = _checked(one_of("fail", "continue"), "fail")
    """What the loss of a trainer does: end the job, or leave the trainer out from then on."""
    min_trainers: int = _checked(whole(1, MAX_TRAINERS), 1)
    """With fewer a job does not continue."""
    model: Path | Params | None = _checked(file, None)
    """The model of the first round: a ``.npz`` file, the parameters themselves, or ``None``: the first trainer is asked for one."""
    save: Path | None = _checked(new_file, None)
    """Where the last model goes, as a ``.npz`` file."""

    directory: Path = _checked(folder, Factory(Path.cwd))
    """Where the trainers run."""
    environment: Mapping[str, str] = _checked(variables, Factory(dict), repr=False)
    """Variables of the trainers."""
    inherit_environment: bool = _checked(switch, True)
    """Whether the trainers have this process's variables, too."""
    transport: Literal["unix", "tcp"] = _checked(one_of("unix", "tcp"), "unix")
    persistent: bool = _checked(switch, True)
    """One process for all tasks of a trainer, or one a task."""
    on_unresponsive: Literal["wait", "fail"] = _checked(one_of("wait", "fail"), "wait")
    """What to do about a trainer that is silent although its process lives."""
    credentials: Credentials | None = field(default=None, repr=False)
    """What the trainers must prove to have before they get a task; ``None``: nothing."""
    logs: Path | None = _checked(new_folder, None)
    """A directory for what the trainers print, a file each; made if it is not there."""
    limits: Limits = field(factory=Limits, validator=attrs.validators.instance_of(Limits))

    train_task: str = _checked(word, "train")
    evaluate_task: str = _checked(word, "validate")
    submit_task: str = _checked(word, "submit_model")
    evaluate_rounds: bool = _checked(switch, False)
    """Whether the trainers are asked to evaluate the model of every round."""
    evaluate: Callable[[Params], float] | None = None
    """What gives a round's accuracy on this side; then the trainers' figures are not used for it."""
    weight: str = _checked(word, "num_examples")
    """The metric (or entry of ``meta``) by which a trainer's result counts."""
    score: str = _checked(word, "accuracy")
    """The metric that is a round's accuracy, averaged with the same weights."""
    finite: bool = _checked(switch, True)
    """Whether a NaN or an infinity in a result ends the job."""

    def __attrs_post_init__(self) -> None:
        if self.min_trainers > self.trainers:
            raise BadField("min_trainers", f"must not be more than trainers ({self.trainers}), got {self.min_trainers}")
        for field_name in ("evaluate_task", "submit_task"):
            if getattr(self, field_name) in (self.train_task, self.evaluate_task)[: 1 + (field_name == "submit_task")]:
                raise BadField(field_name, f"must be another name than the other tasks have, got {getattr(self, field_name)!r}")
        program = self.command_of(0)[0]
        if os.sep in program:
            program = str(self.directory / program)
        if shutil.which(program, path=self.environment_of(0).get("PATH", os.defpath)) is None:
            where = "cannot be run" if os.sep in program else "is not on the PATH"
            raise BadField("command", f"{program!r} {where}")

    def name_of(self, index: int) -> str:
        """The name of a trainer, by its number from 0."""
        return f"trainer-{index + 1}"

    def command_of(self, index: int) -> list[str]:
        """What a trainer runs."""
        stand_for = {**self._numbers(index), "python": sys.executable}
        return [PLACEHOLDER.sub(lambda found: stand_for[found[1]], one) for one in self.command]

    def environment_of(self, index: int) -> dict[str, str]:
        """All the variables of a trainer: its own numbers as ``TROTH_JOB_INDEX`` and so on, and what the job says."""
        inherited = os.environ if self.inherit_environment else {}
        own = {f"TROTH_JOB_{key.upper()}": value for key, value in self._numbers(index).items()}
        return {**inherited, **own, **self.environment}

    def _numbers(self, index: int) -> dict[str, str]:
        job = {"trainers": str(self.trainers), "rounds": str(self.rounds), "seed": str(self.seed)}
        return {"index": str(index), "name": self.name_of(index), **job}
