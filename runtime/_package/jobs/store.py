"""A model as a file: numpy's ``.npz``, an array a parameter, read without pickle."""

from __future__ import annotations

import contextlib
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from troth.jobs.errors import BadField, JobError
from troth.jobs.job import Params


def read_model(path: Path) -> Params:
    """The arrays of a ``.npz`` file by name. Raises ``BadField`` for what is no such file."""
    try:
        with np.load(path, allow_pickle=False) as found:
            model = {name: found[name] for name in found.files}
    except (OSError, EOFError, ValueError, AttributeError, TypeError, zipfile.BadZipFile) as error:
        # A file of one array (.npy) is read too, and is then no context manager.
        raise BadField("model", f"{path} cannot be read as a .npz file of plain arrays: {error}") from error
    if not model:
        raise BadField("model", f"{path} has no arrays in it")
    return model


def write_model(path: Path, params: Params) -> None:
    """Write ``params``, whole or not at all. Parameters inside others are named with a slash between: ``encoder/weight``.

    Raises ``JobError`` if the file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with contextlib.ExitStack() as undo:
            undo.callback(temporary.unlink, missing_ok=True)
            with temporary.open("xb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                for name, leaf in _named(params):
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                        np.lib.format.write_array(entry, np.asarray(leaf), allow_pickle=False)
            temporary.replace(path)
    except OSError as error:
        raise JobError(f"{path}: cannot be written: {error.strerror}") from error
    except ValueError as error:
        raise JobError(f"{path}: the model has a part that is no array: {error}") from error


def make_directory(field: str, path: Path) -> None:
    """Make a directory if it is not there. Raises ``BadField``."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadField(field, f"{path} cannot be used as a directory: {error.strerror}") from error


def claim_directory(path: Path) -> None:
    """Make a directory to write traces in. Raises ``BadField`` for one that is there and not empty."""
    make_directory("trace", path)
    if any(path.iterdir()):
        raise BadField("trace", f"{path} is not empty; traces are written to a directory of their own")


def _named(tree: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(tree, Mapping | list | tuple):
        for name, part in tree.items() if isinstance(tree, Mapping) else enumerate(tree):
            yield from _named(part, f"{prefix}/{name}" if prefix else str(name))
    else:
        yield prefix, tree
