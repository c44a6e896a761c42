"""Write what the commands on a page print: ``python docs/shown.py``. A test says whether it is current.

A ``python`` block whose first line is ``# NAME.py`` is added to that file, in a folder of the page's own. A ``console`` block holds a
command after ``$``, and below it what the command prints there. Times are shown as they were when the page was written.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from troth import cli

DOCS = Path(__file__).resolve().parent
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^# (\w+\.py)\n")
TIME = re.compile(r"\d+(\.\d+)? s\b")


def pages() -> list[Path]:
    """The pages with commands on them."""
    return sorted(path for path in DOCS.rglob("*.md") if "```console\n$ troth" in path.read_text(encoding="utf-8"))


def shown(page: str) -> str:
    """``page`` with what its commands print now."""
    with tempfile.TemporaryDirectory() as folder, _inside(Path(folder)):
        return BLOCK.sub(lambda found: _block(found[1], found[2], Path(folder)), page)


def timeless(page: str) -> str:
    """``page`` without what differs from run to run."""
    return TIME.sub("… s", page)


def _block(language: str, body: str, folder: Path) -> str:
    if language == "console":
        return f"```console\n{_run(body.partition(chr(10))[0])}```"
    name = FILE.match(body)
    if name is not None:
        with (folder / name[1]).open("a", encoding="utf-8") as file:
            file.write(body)
    return f"```python\n{body}```"


def _run(line: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = cli.run(line.removeprefix("$ troth ").split())
    said = "".join(f"{text.rstrip()}\n" for text in printed.getvalue().splitlines())
    return f"{line}\n{said}" + (f"$ echo $?\n{code}\n" if "exit " not in said else "")


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Work in ``folder``, and leave neither modules nor places to import from behind."""
    before, path, modules = Path.cwd(), list(sys.path), set(sys.modules)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            if name.startswith("troth_world_"):
                del sys.modules[name]


def main() -> None:
    """Bring every page up to date."""
    for path in pages():
        text = path.read_text(encoding="utf-8")
        current = shown(text)
        if timeless(current) != timeless(text):
            path.write_text(current, encoding="utf-8")


if __name__ == "__main__":
    main()
