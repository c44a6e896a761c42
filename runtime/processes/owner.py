"""The trainer's end of its owner pipe: how it learns, without asking anyone, that its owner's side is gone.

Rule 1.  Only the guardian holds the other end, and holds it as long as the host lives. So the end of file is certain, and needs no pid.
Rule 2.  A descendant inherits the variables, and not always the descriptor. The pipe is known by its device and inode, so another file
         that happens to have the number is not taken for it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from troth.runtime.processes.child import OWNER_FD_VARIABLE, OWNER_PIPE_VARIABLE


def owner_descriptor(environment: Mapping[str, str] = os.environ) -> int | None:
    """The descriptor that becomes readable, with an end of file, when the owner is gone; ``None`` if this process has none.

    It is not passed on to programs that this process starts from now on.
    """
    try:
        descriptor = int(environment[OWNER_FD_VARIABLE])
        found = os.fstat(descriptor)
    except (KeyError, ValueError, OverflowError, OSError):
        return None
    if not stat.S_ISFIFO(found.st_mode) or environment.get(OWNER_PIPE_VARIABLE) != f"{found.st_dev}:{found.st_ino}":
        return None
    os.set_inheritable(descriptor, False)
    return descriptor
