"""Write the reference pages of the machines: ``python docs/generate.py``. A test says whether they are current."""

from __future__ import annotations

from pathlib import Path

from troth.spec.pages import pages
from troth.statemachines import PARTIES

FOLDER = Path(__file__).resolve().parent / "reference" / "machines"


def main() -> None:
    """Replace the folder's pages by those of the declarations."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    current = pages(PARTIES)
    for stale in {path.name for path in FOLDER.glob("*.md")} - current.keys():
        (FOLDER / stale).unlink()
    for name, text in current.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
