"""``python -m troth`` and the ``troth`` command."""

from __future__ import annotations

from troth.cli import main

if __name__ == "__main__":
    main()
