"""Fixtures for tests of the reference, where it is installed."""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("nvflare"):
    from tests.reference.wire import processes_fixture, transfers_fixture, wire_fixture

    __all__ = ["processes_fixture", "transfers_fixture", "wire_fixture"]
