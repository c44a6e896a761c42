"""Where TLC cannot run its tests are skipped with the reason; where it is required they fail."""

from __future__ import annotations

import pytest

from tests.models import tlc


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without Java."""
    monkeypatch.setattr("shutil.which", lambda name: None)


def test_without_java_a_test_is_skipped_and_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """A skip is the only thing that a user without Java sees."""
    monkeypatch.delenv("TROTH_REQUIRE_TLC", raising=False)
    with pytest.raises(pytest.skip.Exception, match="TLC needs Java; install a Java runtime"):
        tlc.require_tlc()


def test_where_tlc_is_required_a_missing_java_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """What CI sets, so that agreement is never claimed without having been looked for."""
    monkeypatch.setenv("TROTH_REQUIRE_TLC", "1")
    with pytest.raises(pytest.fail.Exception, match="TROTH_REQUIRE_TLC=1, but TLC needs Java"):
        tlc.require_tlc()
