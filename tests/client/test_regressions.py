"""What the reference gets wrong at the API, and this client does not: each check holds, and fails when a patch brings the defect back.

The numbers are those of the conformance page. What concerns an abort during ``send`` (D15) is in ``test_aio``; the sweeps over every
instruction (D15, D23) are in ``test_interruptions``, a short one is repeated here.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.client import defects as d
from tests.client.defects import Check, Patch
from tests.client.doubles import MadeHost
from troth.runtime.errors import Misuse


def _names(row: tuple[str, Check, Patch]) -> tuple[str, str, str]:
    return row[0], row[1].__name__, row[2].__name__


ROWS: list[tuple[str, Check, Patch]] = [
    ("D15, D23", d.check_a_handler_ends_a_receive, d.wait_on_conditions),
    ("D23", d.check_a_handler_ends_an_init, d.lock_init_and_shutdown),
    ("D21", d.check_init_can_be_tried_again, d.keep_what_failed),
    ("D21", d.check_init_can_be_tried_again, d.keep_what_was_resolved),
    ("D21", d.check_init_after_shutdown_joins_anew, d.give_out_what_has_ended),
    ("D26", d.check_a_new_task_wins_after_a_failure, d.cache_the_model),
    ("D27", d.check_a_new_task_wins_over_what_is_kept, d.cache_the_model),
    ("D28", d.check_send_on_a_closed_session_raises, d.return_silently),
    ("D28", d.check_a_second_send_of_one_shot_raises, d.return_silently),
    ("D29", d.check_a_difference_leaves_the_model_alone, d.rewrite_the_model),
    ("D29", d.check_training_in_place_does_not_cancel_itself_out, d.remember_nothing),
    ("D30", d.check_send_does_not_wipe_the_next_task, d.wipe_whatever_is_held),
    ("D31", d.check_calls_are_bounded, d.take_any_number_of_calls),
    ("D31", d.check_numbers_that_are_none_are_refused, d.take_any_number),
    ("D31", d.check_an_interrupted_init_leaves_nothing, d.unwind_on_exceptions_only),
]
named = pytest.mark.parametrize(("check", "patch"), [row[1:] for row in ROWS], ids=["-".join(_names(row)) for row in ROWS])


@named
def test_the_defect_is_not_there(check: Check, patch: Patch, host: MadeHost, tmp_path: Path) -> None:
    check(host, tmp_path / "bootstrap.json")


@named
def test_the_defect_would_be_found(check: Check, patch: Patch, host: MadeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patch(monkeypatch)
    with pytest.raises((AssertionError, Misuse, pytest.fail.Exception)):
        check(host, tmp_path / "bootstrap.json")
