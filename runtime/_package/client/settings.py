"""Who this process is: its rank, and the bootstrap file that its host wrote for it.

Rule 1.  What is named explicitly is used or is an error; it is never passed over.
Rule 2.  The settings are read anew for every ``init()``, and nothing that was found out while joining is written into them: what one
         attempt tried does not steer the next.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from attrs import frozen

from troth.client.difference import TransferType
from troth.runtime.processes import bootstrap
from troth.runtime.processes.bootstrap import Bootstrap, bootstrap_path

RANK_VARIABLE = "RANK"
"""The rank, where ``init()`` does not say it; torchrun and its like set it."""
CONTROL_RANK = "0"
"""The one rank that speaks to the host."""


@frozen
class Settings:
    """Of one session; nothing in it is secret but what the bootstrap hides itself."""

    rank: str
    bootstrap: Bootstrap

    @property
    def passive(self) -> bool:
        """Whether this rank leaves the host to another one."""
        return self.rank != CONTROL_RANK

    @property
    def transfer_type(self) -> TransferType:
        """Whether results travel as they are, or as differences."""
        return TransferType(self.bootstrap.transfer_type)

    def info(self) -> dict[str, Any]:
        """What a script may know: never an address, never a token."""
        return {"job_id": self.bootstrap.job_id, "site_name": self.bootstrap.site_name}

    def config(self) -> dict[str, Any]:
        """``info`` and what was agreed on for tasks."""
        given = self.bootstrap
        exchange = {
            "train_task_name": given.tasks.train,
            "eval_task_name": given.tasks.evaluate,
            "submit_model_task_name": given.tasks.submit,
            "transfer_type": self.transfer_type.value,
            "launch_once": not given.one_shot,
        }
        return {**self.info(), "rank": self.rank, "TASK_EXCHANGE": exchange}


def find_rank(rank: int | str | None) -> str:
    """The rank of this process as text: as given, or from the environment, or 0.

    >>> find_rank(3), find_rank("0")
    ('3', '0')
    """
    source = "rank" if rank is not None else RANK_VARIABLE
    given: Any = rank if rank is not None else os.environ.get(RANK_VARIABLE, CONTROL_RANK)
    text = str(given).strip()
    if isinstance(given, bool) or not isinstance(given, int | str) or not (text.isascii() and text.isdigit()):
        raise ValueError(f"{source}: must be a whole number of at least 0, got {given!r}")
    return str(int(text))


def find_file(config_file: str | os.PathLike[str] | None) -> Path:
    """The bootstrap file: as given, or from the environment. Raises ``BootstrapError`` if there is neither."""
    return (bootstrap_path() if config_file is None else Path(config_file)).absolute()


def read(rank: str, path: Path) -> Settings:
    """The settings in a bootstrap file. Raises ``BootstrapError``."""
    return Settings(rank, bootstrap.read(path))
