"""A process that was given up before it was heard to start."""

from __future__ import annotations

from contextlib import suppress

import trio

from tests.runtime.sessions.stage import run, staged
from troth.runtime.errors import TaskUndelivered
from troth.runtime.sim.processes import SimProcess
from troth.spec.limits import Limits

SLOW_S = 60.0


def test_a_process_that_starts_after_it_was_given_up_is_ended() -> None:
    """Its session has left by then, and with it every row that would end it; a command that never joins would live on."""

    async def main() -> None:
        async with staged() as stage:

            async def wait(process: SimProcess) -> None:
                await trio.sleep_forever()

            stage.processes.program("trainer", wait)
            stage.processes.spawn_delay_s = SLOW_S
            limits = Limits(launch_timeout_s=5.0)
            async with stage.backend(persistent=False, limits=limits) as trainer:
                with suppress(TaskUndelivered):
                    await trainer.execute("train", {})
                await trio.sleep(SLOW_S + 1)
                assert not stage.processes.snapshot(), "it lives on, and nobody knows of it"

    run(main)
