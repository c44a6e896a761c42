# mypy: disable-error-code="import-not-found"
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""What NVFlare 2.9.0 is given in place of a network: cells on a wire that loses what it is told to, and a download service.

Nothing waits for a timeout: a request whose answer is lost is answered with one at once. This module and ``sides`` are the only ones
that import nvflare; a test asks ``pytest.importorskip("nvflare")`` before it imports either.
"""

from __future__ import annotations

import subprocess
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import define, field

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import nvflare.app_common.executors.client_api.attach_backend as attach_backend_module
    import nvflare.app_common.executors.client_api.external_process_backend as external_backend_module
    import nvflare.client.cell.api as api_module
    import nvflare.client.cell.attach_session as attach_session_module
    from nvflare.client.cell.defs import MsgKey, Topic
    from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey
    from nvflare.fuel.f3.cellnet.defs import ReturnCode as CellReturnCode
    from nvflare.fuel.f3.cellnet.utils import make_reply, new_cell_message
    from nvflare.fuel.f3.message import Message
    from nvflare.fuel.utils.fobs.decomposers.via_downloader import RESULT_UPLOAD_TX_CREATED_CB_CTX_KEY

__all__ = [
    "PATIENCE_S",
    "CellReturnCode",
    "Fate",
    "Line",
    "MsgKey",
    "Sent",
    "Topic",
    "Transfers",
    "Waiter",
    "Wire",
    "api_module",
    "attach_backend_module",
    "external_backend_module",
    "make_reply",
    "message",
    "processes_fixture",
    "transfers_fixture",
    "wait_until",
    "wire_fixture",
]

PATIENCE_S = 10.0
"""How long a test waits for what should happen at once, on a machine that is busy."""


def wait_until(holds: Callable[[], Any], what: str) -> None:
    """Look until ``holds``; what is waited for has happened already, or is about to."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.005)


class Fate(Enum):
    """What the wire does with a request."""

    DELIVER = "deliver"
    LOSE = "lose"
    LOSE_REPLY = "lose the reply"


@define
class Sent:
    """One request that was put on the wire, with what came back."""

    topic: str
    origin: str
    payload: dict[str, Any]
    timeout: float | None
    abort_signal: Any
    reply: Any = None

    @property
    def said(self) -> str:
        """The topic of the reply; empty where there was none."""
        return str(self.reply.payload.get(MsgKey.REPLY_TOPIC, "")) if self.reply is not None and self.reply.payload else ""


@define
class Wire:
    """All cells of a test. ``fate`` decides about each request, before it is delivered."""

    fate: Callable[[Sent], Fate] = field(default=lambda sent: Fate.DELIVER)
    lines: dict[str, Line] = field(factory=dict)
    sent: list[Sent] = field(factory=list)
    lazy: bool = False
    """Whether a result that is sent makes a download transaction."""
    made: list[str] = field(factory=list)
    """The transactions."""

    def of(self, topic: str) -> list[Sent]:
        """What was sent on a topic."""
        return [one for one in self.sent if one.topic == topic]

    def lose(self, *topics: str, fate: Fate = Fate.LOSE_REPLY) -> None:
        """From now on, lose these, and nothing else."""
        self.fate = lambda sent: fate if sent.topic in topics else Fate.DELIVER

    def heal(self) -> None:
        """Lose nothing from now on."""
        self.lose()


class Line:
    """A Cell of our own: what the reference asks of one, on a ``Wire``."""

    def __init__(self, wire: Wire, fqcn: str) -> None:
        self.wire, self.fqcn = wire, fqcn
        self.handlers: dict[str, Callable[[Any], Any]] = {}
        self.decode_pass_through_topics: set[Any] = set()
        self.started = threading.Event()
        self.on_start: Callable[[], None] = lambda: None
        self.on_stop: Callable[[], None] = lambda: None
        self.core_cell = SimpleNamespace(
            comm_configurator=SimpleNamespace(get_config=lambda: None),
            communicator=None,
            send_request=self.send_request,
            set_message_interceptor=lambda guard: None,
        )
        self.connected = True
        wire.lines[fqcn] = self

    def get_fqcn(self) -> str:
        return self.fqcn

    def is_cell_connected(self, fqcn: str) -> bool:
        return self.wire.lines[fqcn].connected if fqcn in self.wire.lines else self.connected

    def update_fobs_context(self, context: dict[str, Any]) -> None:
        pass

    def make_internal_listener(self, **options: Any) -> None:
        pass

    def get_internal_listener_url(self) -> str:
        return "tcp://localhost:1"

    def get_internal_listener_params(self) -> dict[str, str]:
        return {"scheme": "tcp", "host": "127.0.0.1", "connection_security": "clear"}

    def start(self) -> None:
        self.on_start()
        self.started.set()

    def stop(self) -> None:
        self.on_stop()

    def register_request_cb(self, channel: str, topic: str, cb: Callable[[Any], Any]) -> None:
        self.handlers[topic] = cb

    def send_request(  # noqa: PLR0917 - as the reference calls it
        self, channel: str, topic: str, target: str, request: Any, timeout: Any = None, abort_signal: Any = None, **options: Any
    ) -> Any:
        """One request and its reply. A lost one is a timeout at once; without a timeout it waits until its signal says stop."""
        sent = Sent(topic, self.fqcn, request.payload, timeout, abort_signal)
        self.wire.sent.append(sent)
        created = (options.get("fobs_ctx_props") or {}).get(RESULT_UPLOAD_TX_CREATED_CB_CTX_KEY)
        if topic == Topic.RESULT_READY and self.wire.lazy and created is not None:
            self.wire.made.append(f"tx-{len(self.wire.made) + 1}")
            created(SimpleNamespace(tx_id=self.wire.made[-1]))
        fate = self.wire.fate(sent)
        handler = self.wire.lines[target].handlers.get(topic) if target in self.wire.lines else None
        if handler is not None and fate is not Fate.LOSE:
            sent.reply = handler(Message({**request.headers, MessageHeaderKey.ORIGIN: self.fqcn}, request.payload))
        if handler is not None and fate is Fate.DELIVER:
            return sent.reply
        if timeout is None:
            wait_until(lambda: abort_signal.triggered, "an endless request is cancelled")
        return make_reply(CellReturnCode.TIMEOUT)

    def fire_and_forget(self, channel: str, topic: str, targets: list[str], message: Any, **options: Any) -> dict[str, str]:
        for target in targets:
            self.send_request(channel, topic, target, message, timeout=1.0)
        return {}


class Waiter:
    """The end of a transfer, as its source sees it."""

    def __init__(self, transaction_id: str) -> None:
        self.transaction_id = transaction_id
        self.outcome: Any = None
        self.ended = threading.Event()

    def done(self) -> bool:
        return self.ended.is_set()

    def wait(self, timeout: float | None = None) -> Any:
        self.ended.wait(timeout)
        return self.outcome


@define
class Transfers:
    """The reference's download service, of our own: every transfer ends as ``outcome`` says, at once, or waits where it says nothing."""

    outcome: str | None = "completed"
    waiters: dict[str, Waiter] = field(factory=dict)
    deleted: list[str] = field(factory=list)
    failed_sources: list[tuple[str, ...]] = field(factory=list)

    def initialize(self, cell: Any) -> None:
        pass

    def get_transfer_waiter(self, tx_id: str) -> Waiter:
        waiter = self.waiters.setdefault(tx_id, Waiter(tx_id))
        if self.outcome is not None:
            waiter.outcome = SimpleNamespace(status=self.outcome, reason="the receiver's last message was lost")
            waiter.ended.set()
        return waiter

    def delete_transaction(self, tx_id: str) -> None:
        self.deleted.append(tx_id)

    def notify_source_failure(self, targets: tuple[str, ...], **about: Any) -> dict[str, str]:
        self.failed_sources.append(tuple(targets))
        return {}


@pytest.fixture(name="wire")
def wire_fixture(monkeypatch: pytest.MonkeyPatch) -> Wire:
    """An empty wire; a trainer's Cell is a line on it."""
    wire = Wire()
    monkeypatch.setattr(api_module, "Cell", lambda fqcn, **options: wire.lines.get(fqcn) or Line(wire, fqcn))
    return wire


@pytest.fixture(name="transfers")
def transfers_fixture(monkeypatch: pytest.MonkeyPatch) -> Transfers:
    """The download service of every module of the reference."""
    transfers = Transfers()
    for module in (api_module, attach_session_module, attach_backend_module, external_backend_module):
        monkeypatch.setattr(module, "DownloadService", transfers)
    return transfers


def message(payload: dict[str, Any]) -> Any:
    """A message of the reference."""
    return new_cell_message({}, payload)


@pytest.fixture(name="processes")
def processes_fixture(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[Any]]]:
    """The processes that a host launches. None is left, nor a pipe of one, which the reference leaves open."""
    started: list[subprocess.Popen[Any]] = []

    def start(*args: Any, **options: Any) -> subprocess.Popen[Any]:
        started.append(subprocess.Popen(*args, **options))
        return started[-1]

    names = {name: getattr(subprocess, name) for name in ("PIPE", "STDOUT", "TimeoutExpired")}
    monkeypatch.setattr(external_backend_module, "subprocess", SimpleNamespace(Popen=start, **names))
    yield started
    for process in started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
