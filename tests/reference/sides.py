# mypy: disable-error-code="import-not-found"
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""The two sides of a session of NVFlare 2.9.0: the reference's own, through its public classes, and each written by hand.

The classes under test are ``CellClientAPI`` for a trainer, ``AttachBackend`` and ``ExternalProcessBackend`` for a host.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.reference.wire import (
    PATIENCE_S,
    CellReturnCode,
    Line,
    MsgKey,
    Topic,
    Wire,
    api_module,
    attach_backend_module,
    external_backend_module,
    make_reply,
    message,
    wait_until,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from nvflare.apis.fl_constant import ReturnCode
    from nvflare.apis.shareable import Shareable
    from nvflare.apis.signal import Signal
    from nvflare.app_common.abstract.fl_model import FLModel
    from nvflare.app_common.executors.client_api.backend_spec import ClientAPIBackendContext
    from nvflare.app_common.utils.fl_model_utils import FLModelUtils
    from nvflare.client.cell.attach_session import TrainerSessionError
    from nvflare.client.cell.bootstrap import write_bootstrap_config
    from nvflare.client.cell.defs import CHANNEL, TaskState
    from nvflare.client.config import TransferType
    from nvflare.fuel.utils.fobs.decomposers.via_downloader import LazyDownloadRef

__all__ = [
    "CHANNEL",
    "HOST",
    "TRAINER",
    "FLModel",
    "Host",
    "Job",
    "LazyDownloadRef",
    "ReturnCode",
    "Running",
    "Shareable",
    "Signal",
    "TaskState",
    "TrainerSessionError",
    "TransferType",
    "attach_host",
    "attach_trainer",
    "attached",
    "executing",
    "external_host",
    "launched_trainer",
    "model",
    "opening",
    "returned",
]

SITE, JOB, ATTACH_ID = "site-1", "job-1", "a1"
HOST = f"{SITE}.{JOB}"
TRAINER = f"{SITE}.-client_api_{ATTACH_ID}"


# -- a trainer ---------------------------------------------------------------------------------------------------------


def attach_trainer(folder: Path) -> Any:
    """A trainer that waits to be opened; ``init()`` it in another thread."""
    profile = {"schema_version": 1, "execution_mode": "attach", "attach_id": ATTACH_ID, "site_name": SITE}
    path = folder / "profile.json"
    write_bootstrap_config(str(path), {**profile, "connect_url": "tcp://localhost:1", "connection_security": "clear"})
    return api_module.CellClientAPI(str(path))


def launched_trainer(folder: Path) -> Any:
    """A trainer that says HELLO to the host."""
    profile = {"schema_version": 1, "execution_mode": "external_process", "site_name": SITE, "job_id": JOB, "cj_fqcn": HOST}
    path = folder / "profile.json"
    trainer = {"trainer_fqcn": f"{HOST}.client_api_trainer_1", "connect_url": "tcp://localhost:1", "launch_token": "secret"}
    write_bootstrap_config(str(path), {**profile, **trainer})
    return api_module.CellClientAPI(str(path))


def model(value: float = 1.0) -> Any:
    """A model of one weight."""
    return FLModel(params={"w": value})


class Running:
    """A call in a thread of its own: ``finished``, ``value`` or ``error``."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.value: Any = None
        self.error: BaseException | None = None
        self._call = call
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.value = self._call()
        except BaseException as error:  # it is the test that judges it
            self.error = error

    @property
    def finished(self) -> bool:
        return not self._thread.is_alive()

    def result(self) -> Any:
        """Wait for it."""
        self._thread.join(PATIENCE_S)
        assert self.finished, "the call never returned"
        if self.error is not None:
            raise self.error
        return self.value

    def hangs(self, seconds: float) -> bool:
        """Whether it is still under way after so long."""
        self._thread.join(seconds)
        return not self.finished


class Host:
    """A host written by hand, for tests of the trainer alone: says what it is told to, answers with what it is given."""

    def __init__(self, wire: Wire) -> None:
        self.line = Line(wire, HOST)
        self.answer(Topic.HEARTBEAT, Topic.HEARTBEAT)
        self.answer(Topic.RESULT_SOURCE_SETTLED, Topic.RESULT_SOURCE_SETTLED)
        self.line.register_request_cb(CHANNEL, Topic.RESULT_READY, self.accept)

    def answer(self, topic: str, reply: str, **fields: Any) -> None:
        """Answer a topic with a reply of that topic, which repeats the request's session and task."""

        def handler(request: Any) -> Any:
            said = {key: request.payload[key] for key in (MsgKey.SESSION_ID, MsgKey.TASK_ID) if key in request.payload}
            return make_reply(CellReturnCode.OK, body={MsgKey.REPLY_TOPIC: reply, **said, **fields})

        self.line.register_request_cb(CHANNEL, topic, handler)

    def accept(self, request: Any) -> Any:
        """RESULT_ACCEPTED for whatever attempt comes."""
        about = {
            MsgKey.RESULT_ID: request.payload.get(MsgKey.RESULT_ID),
            MsgKey.ACCEPTED_ATTEMPT_ID: request.payload.get(MsgKey.ATTEMPT_ID),
        }
        return make_reply(CellReturnCode.OK, body={MsgKey.REPLY_TOPIC: Topic.RESULT_ACCEPTED, **about})

    def say(self, topic: str, target: str = TRAINER, **fields: Any) -> Any:
        """A request to the trainer; its reply's body, which names its topic."""
        payload = {MsgKey.SESSION_ID: "s1", **fields}
        reply = self.line.send_request(CHANNEL, topic, target, message(payload), timeout=1.0)
        return reply.payload if reply.payload is not None else {}

    def open(self, trainer: Any, **settings: Any) -> None:
        """Let the trainer's ``init()`` return."""
        joining = Running(trainer.init)
        wait_until(lambda: TRAINER in self.line.wire.lines and self.line.wire.lines[TRAINER].started.is_set(), "the trainer listens")
        reply = self.say(Topic.SESSION_OPEN, **opening(**settings))
        assert reply[MsgKey.REPLY_TOPIC] == Topic.SESSION_ACCEPTED, reply
        joining.result()

    def task(self, seq: int, payload: Any = None, target: str = TRAINER) -> str:
        """Offer task ``seq``; the topic of the answer."""
        content = FLModelUtils.to_shareable(model(float(seq))) if payload is None else payload
        named = {MsgKey.TASK_ID: f"t{seq}", MsgKey.TASK_SEQ: seq, MsgKey.ATTEMPT_ID: f"o{seq}"}
        said: str = self.say(Topic.TASK_READY, target, **named, **{MsgKey.TASK_NAME: "train", MsgKey.MODEL: content})[MsgKey.REPLY_TOPIC]
        return said


def opening(**settings: Any) -> dict[str, Any]:
    """SESSION_OPEN as a host of the reference sends it. No heartbeats, unless they are asked for."""
    fixed = {MsgKey.ATTACH_ID: ATTACH_ID, MsgKey.JOB_ID: JOB, MsgKey.SITE_NAME: SITE, MsgKey.TRAINER_FQCN: TRAINER}
    terms = {MsgKey.PROTOCOL_VERSION: 1, MsgKey.RANK: "0", MsgKey.HEARTBEAT_INTERVAL: 5.0, MsgKey.HEARTBEAT_TIMEOUT: 0.0}
    return {**fixed, **terms, MsgKey.TASK_EXCHANGE: {}, **settings}


# -- a host ------------------------------------------------------------------------------------------------------------


class Job:
    """The client job around a backend: context, engine and executor, of our own; remembers what it was told."""

    def __init__(self, wire: Wire, folder: Path) -> None:
        self.line = Line(wire, HOST)
        self.run_abort = Signal()
        self.errors: list[str] = []
        self.panics: list[str] = []
        folder_of = SimpleNamespace(
            get_run_dir=lambda job: str(folder), get_app_dir=lambda job: str(folder), get_app_custom_dir=lambda job: ""
        )
        self.props = {"__current_job_id__": JOB, "__workspace_object__": folder_of}

    # the context of a run
    def get_engine(self) -> Any:
        return self

    def get_prop(self, key: str, default: Any = None) -> Any:
        return self.props.get(key, default)

    def get_identity_name(self) -> str:
        return SITE

    def get_job_id(self) -> str:
        return JOB

    def get_run_abort_signal(self) -> Any:
        return self.run_abort

    # its engine
    def get_cell(self) -> Line:
        return self.line

    @contextmanager
    def new_context(self) -> Iterator[Job]:
        yield self

    # its executor
    def set_analytics_fire_fed_event(self, wanted: bool) -> None:
        pass

    def log_info(self, fl_ctx: Any, message: str) -> None:
        pass

    def log_error(self, fl_ctx: Any, message: str) -> None:
        self.errors.append(message)

    def system_panic(self, reason: str, fl_ctx: Any) -> None:
        self.panics.append(reason)


def attach_host(job: Job, **settings: Any) -> Any:
    """The reference's host for a trainer that somebody else starts."""
    backend = attach_backend_module.AttachBackend()
    terms = {"attach_id": ATTACH_ID, "heartbeat_interval": 5.0, "heartbeat_timeout": 30.0}
    backend.initialize(ClientAPIBackendContext(executor=job, **{**terms, **settings}), job)
    return backend


def external_host(job: Job, command: list[str], **settings: Any) -> Any:
    """The reference's host for a trainer that it starts itself."""
    backend = external_backend_module.ExternalProcessBackend()
    terms = {"command": command, "shutdown_timeout": 0.2, "stop_grace_period": 0.2}
    backend.initialize(ClientAPIBackendContext(executor=job, **{**terms, **settings}), job)
    return backend


@contextmanager
def attached(wire: Wire, folder: Path, **settings: Any) -> Iterator[tuple[Any, Any, Job]]:
    """Trainer and host of the reference, joined: ``(trainer, host, job)``."""
    trainer = attach_trainer(folder)
    joining = Running(trainer.init)
    wait_until(lambda: TRAINER in wire.lines and wire.lines[TRAINER].started.is_set(), "the trainer listens")
    job = Job(wire, folder)
    host = attach_host(job, **settings)
    joining.result()
    wait_until(host._session.ready.is_set, "the host knows that the session is open")
    try:
        yield trainer, host, job
    finally:
        wire.heal()
        wire.lines[TRAINER].connected = False
        host._session.result_source_live.clear()
        host.finalize(job)
        trainer.shutdown()


def executing(host: Any, job: Job, value: float = 1.0, abort: Any = None) -> Running:
    """``execute()`` of one task, in a thread of its own."""
    task = FLModelUtils.to_shareable(model(value))
    return Running(lambda: host.execute("train", task, job, abort or Signal()))


def returned(call: Running) -> str:
    """The return code of an ``execute()``."""
    code: str = call.result().get_return_code()
    return code
