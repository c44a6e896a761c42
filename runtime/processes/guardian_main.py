"""The guardian's process: ``python -I -S guardian_main.py DESCRIPTOR table|groups``, with its end of a socket pair with the host, and
what it knows launches by.

It starts in some tens of milliseconds because it loads the standard library and a few small modules beside this one, and nothing else
of this package.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType


def stand_alone() -> None:
    """Give this folder its place in a package that is otherwise empty, so that no ``__init__`` of the real one is run."""
    for name in ("troth", "troth.runtime", "troth.runtime.processes"):
        bare = ModuleType(name)
        bare.__path__ = [os.path.dirname(os.path.abspath(__file__))]
        sys.modules[name] = bare


def main() -> int:
    """Run as a script."""
    from troth.runtime.processes.guarding import guard  # noqa: PLC0415 -- only then is there a package to import it from

    return guard(int(sys.argv[1]), sys.argv[2])


if __name__ == "__main__":
    stand_alone()
    sys.exit(main())
