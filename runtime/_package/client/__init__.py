"""The API for training scripts: receive a model, train it, send it back.

A host starts the script and tells it by ``TROTH_BOOTSTRAP`` how to find its way back::

    import troth.client as flare

    flare.init()
    while flare.is_running():
        model = flare.receive()
        params, metrics = train(model.params)
        flare.send(flare.FLModel(params=params, metrics=metrics))

All functions block. ``troth.client.aio`` has the same for trio programs.
"""

from __future__ import annotations

from troth.client.api import (
    clear,
    get_config,
    get_job_id,
    get_site_name,
    get_task_name,
    init,
    is_evaluate,
    is_running,
    is_submit_model,
    is_train,
    log,
    receive,
    send,
    shutdown,
    system_info,
)
from troth.client.context import Context
from troth.client.decorators import evaluate, train
from troth.client.model import FLModel, NotAModel, ParamsType
from troth.client.records import AnalyticsDataType

__all__ = [
    "AnalyticsDataType",
    "Context",
    "FLModel",
    "NotAModel",
    "ParamsType",
    "clear",
    "evaluate",
    "get_config",
    "get_job_id",
    "get_site_name",
    "get_task_name",
    "init",
    "is_evaluate",
    "is_running",
    "is_submit_model",
    "is_train",
    "log",
    "receive",
    "send",
    "shutdown",
    "system_info",
    "train",
]
