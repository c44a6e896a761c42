"""What is relied upon of trio's inside, looked at once, so that another trio is one clear error and no riddle in the middle of a walk.

``stepping`` resumes trio's loop by hand, of which nothing is public. The runtime itself needs none of this, and takes any trio that the
package takes.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import attrs
import trio

SUPPORTED = "0.28 to 0.35"
"""The versions of trio that the tests of the live runtime were run with, by hand."""
MODULE = "trio._core._run"
CALLED = {
    "setup_runner": ("clock", "instruments", "restrict_keyboard_interrupt_to_checkpoints", "strict_exception_groups"),
    "unrolled_run": ("runner", "async_fn", "args", "host_uses_signal_set_wakeup_fd"),
}
"""Functions, with their parameters."""
ASKED = ("_r", "_ALLOW_DETERMINISTIC_SCHEDULING")
"""What decides on the order of tasks."""
HELD = {
    "Runner": ("deadlines", "io_manager", "main_task", "main_task_outcome", "runq", "system_nursery", "tasks"),
    "Task": ("_cancel_status", "_parent_nursery", "coro", "name"),
    "CancelStatus": ("_parent", "_scope"),
}
"""Classes, with their fields."""
METHODS = {"Deadlines": "next_deadline"}


class AnotherTrio(ImportError):
    """This trio is made otherwise inside."""


def missing(module: Any) -> Iterator[str]:
    """What is not there, or is there in another shape."""
    for name, parameters in CALLED.items():
        function = getattr(module, name, None)
        if not callable(function):
            yield f"no {name}()"
        elif tuple(inspect.signature(function).parameters) != parameters:
            yield f"{name}{inspect.signature(function)} where {name}({', '.join(parameters)}) is expected"
    yield from (f"no {name}" for name in ASKED if not hasattr(module, name))
    for name, fields in HELD.items():
        owner = getattr(module, name, None)
        known = {field.name for field in attrs.fields(owner)} if owner is not None and attrs.has(owner) else set()
        yield from (f"no {name}.{field}" for field in fields if field not in known)
    yield from (
        f"no {owner}.{name}()" for owner, name in METHODS.items() if not callable(getattr(getattr(module, owner, None), name, None))
    )


def trio_inside(name: str = MODULE) -> Any:
    """The module of trio's loop. Raises ``AnotherTrio`` unless everything that is relied upon is there."""
    found: Any = None
    try:
        found = import_module(name)
        absent = list(missing(found))
    except ModuleNotFoundError:
        absent = [f"no {name}"]
    if absent:
        raise AnotherTrio(
            f"troth.testing.live runs trio's loop by hand, and trio {trio.__version__} has {'; '.join(absent)}: "
            f"it works with trio {SUPPORTED}; the runtime itself, and troth fuzz --target core, work with this one too"
        )
    return found
