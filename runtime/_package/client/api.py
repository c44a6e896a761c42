"""The functions of ``troth.client``. Each takes the context that ``init`` returned; without it, the last one is meant."""

from __future__ import annotations

import os
from enum import Enum
from typing import Any

from troth.client.context import Context
from troth.client.model import FLModel
from troth.client.process import process


def init(rank: int | str | None = None, config_file: str | os.PathLike[str] | None = None) -> Context:
    """Join the session of the host that started this script, and wait until it is there.

    ``rank`` is this process' rank, by default that in the environment variable ``RANK``, else 0; every rank but 0 is passive and opens
    nothing. ``config_file`` is the bootstrap file, by default the one that ``TROTH_BOOTSTRAP`` names. A second call with the same two
    returns the same session while it lasts.

    Raises ``BootstrapError`` if there is no such file or it cannot be used, ``JoinFailed`` if no host answered or it refused; after
    either, ``init`` may be called again. Raises ``SessionAborted``, ``SessionClosed``, ``SessionLost`` if the session ended before it
    began.
    """
    return process().init(rank, config_file)


def receive(timeout: float | None = None, ctx: Context | None = None) -> FLModel | None:
    """Wait for the next task and return its model; at most ``timeout`` seconds, exactly.

    The model of the same task is returned again until its result was sent, unless there is a newer task. ``None``: nothing came in time,
    or the session has ended in order, or this rank is passive. Raises ``SessionAborted``, ``SessionLost``; ``NotAModel`` if the host's
    payload is none. A task that came as a KeyboardInterrupt did is not lost: the next call returns it.
    """
    return process().the(ctx).receive(timeout)


def send(model: FLModel, clear_cache: bool = True, ctx: Context | None = None) -> None:
    """Send the result of the task that was received last. Returns when the host has accepted it and all its receivers have it.

    With ``clear_cache`` the parameters of this model and of the received one are dropped afterwards, so that their memory is free while
    the next task is waited for. Raises ``TypeError`` or ``ValueError`` for a model that cannot be one, ``PayloadRefused`` for a value
    that cannot be carried, ``Misuse`` before ``receive``; ``ResultRejected``, ``ResultConflict`` (another result was sent for this
    task), ``ResultUndelivered``, ``CallCancelled`` (the host gave the task up); ``SessionClosed``, ``SessionAborted``, ``SessionLost``.
    After an exception the models are as they were. A passive rank sends nothing.
    """
    process().the(ctx).send(model, clear_cache)


def is_running(ctx: Context | None = None) -> bool:
    """Wait for the next task and keep it for ``receive``. False once the session has ended, however it did, and for a passive rank."""
    return process().the(ctx).is_running()


def is_train(ctx: Context | None = None) -> bool:
    """Whether the task that came last is to train. Raises ``Misuse`` for a passive rank."""
    return process().the(ctx).session.is_train()


def is_evaluate(ctx: Context | None = None) -> bool:
    """Whether the task that came last is to evaluate. Raises ``Misuse`` for a passive rank."""
    return process().the(ctx).session.is_evaluate()


def is_submit_model(ctx: Context | None = None) -> bool:
    """Whether the task that came last is to hand in the model. Raises ``Misuse`` for a passive rank."""
    return process().the(ctx).session.is_submit_model()


def get_task_name(ctx: Context | None = None) -> str:
    """The name of the task that came last. Raises ``Misuse`` if there is none, and for a passive rank."""
    return process().the(ctx).session.get_task_name()


def log(key: str, value: Any, data_type: str | Enum, ctx: Context | None = None, **kwargs: Any) -> None:
    """Send a named value to the host's log; ``data_type`` is one of ``AnalyticsDataType``, ``global_step`` and ``path`` may be added.

    Best effort: it waits a second at most and never raises because of the link. Raises ``TypeError`` or ``ValueError`` for a record
    that is none, ``Misuse`` for a passive rank.
    """
    process().the(ctx).log(key, value, data_type, **kwargs)


def system_info(ctx: Context | None = None) -> dict[str, Any]:
    """``job_id`` and ``site_name``, for every rank."""
    return process().the(ctx).session.system_info()


def get_job_id(ctx: Context | None = None) -> str:
    """The id of the job, for every rank."""
    return process().the(ctx).session.get_job_id()


def get_site_name(ctx: Context | None = None) -> str:
    """The name of the site, for every rank."""
    return process().the(ctx).session.get_site_name()


def get_config(ctx: Context | None = None) -> dict[str, Any]:
    """The ids, and what was agreed on for tasks, for every rank. Holds no address and no secret."""
    return process().the(ctx).session.get_config()


def clear(ctx: Context | None = None) -> None:
    """Forget the task that was received last. It is not needed: a new task always wins."""
    process().the(ctx).session.clear()


def shutdown(ctx: Context | None = None) -> bool:
    """End the session in order. True once it is over; False if the ``send`` that is under way will close it.

    May be called at any time and again: before, during and after ``init``, from another thread, an exit hook, or a signal handler that
    has interrupted any of these functions. A call that waits returns: ``receive`` with ``None``, ``is_running`` with False, ``init``
    with ``SessionClosed``; ``send`` is waited for.
    """
    return process().shutdown(ctx)
