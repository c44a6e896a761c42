"""A script whose host gives its task up."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import trio

from tests.client.real import script, within_limit


def test_a_script_whose_task_is_given_up_gets_the_next_if_it_catches_that(tmp_path: Path) -> None:
    async def main() -> None:
        text = """
            import time
            from troth.runtime.errors import CallCancelled

            flare.init()
            while flare.is_running():
                model = flare.receive()
                say("begun")
                time.sleep(model.params["s"])
                try:
                    flare.send(model)
                except CallCancelled:
                    say("given up")
        """
        async with script(tmp_path, text) as staged:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial(staged.do, params={"s": 0.5}))
                await staged.hear("begun")
                nursery.cancel_scope.cancel()
            assert (await staged.do(params={"s": 0.0})).params == {"s": 0.0}
            await staged.hear("given up")

    within_limit(main)
