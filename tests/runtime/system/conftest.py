"""Where the tests of sockets listen."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from troth.runtime.system.files import SystemFiles


@pytest.fixture
def folder() -> Iterator[Path]:
    made = SystemFiles().private_directory()
    yield made
    shutil.rmtree(made)


@pytest.fixture(params=["unix", "tcp", "tcp6"])
def endpoint(request: pytest.FixtureRequest, folder: Path) -> str:
    if request.param == "tcp6":
        try:
            with socket.socket(socket.AF_INET6) as sock:
                sock.bind(("::1", 0))
        except OSError:
            pytest.skip("this machine has no IPv6 loopback")
    return {"unix": f"unix:{folder}/s", "tcp": "tcp:127.0.0.1:0", "tcp6": "tcp:[::1]:0"}[request.param]
