"""Those who use a launched pair: the thread in receive(), which gets its turn when a path says so; and a stage that is not judged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import trio
from attrs import define, field

from tests.testing.live.paths.conducting import CannotPerform
from tests.testing.live.paths.holding import Held
from tests.testing.live.paths.leading import USES, hands_over
from troth.models.trace import TraceStep
from troth.testing.live.calling import UNSET, Call
from troth.testing.live.lines import Line
from troth.testing.live.parties import Wrong
from troth.testing.live.seats import Seat
from troth.testing.live.stage import Stage


@define(eq=False)
class Patient(Call):
    """A call whose thread gets no turn, once it was called back, until the conductor says so."""

    task: Any = None
    held: Held | None = None

    def late(self, now: float) -> bool:
        """Not while it is held."""
        return Call.late(self, now) and not (self.held is not None and self.task in self.held.waiting)

    def silent(self, *_seen: Any, **_more: Any) -> bool:
        """It is held on purpose."""
        return False


class Unjudged(Stage):
    """A stage whose cores have other tables than the model that the judge goes by."""

    def judged(self) -> None:
        """Keep up with the connections, and with what died."""
        judge, found = self.judge, self.network.connections
        if self._crashed:
            raise Wrong("fault", repr(self._crashed[0]))
        judge.lines += map(Line, found[self._known :])
        self._known = len(found)
        for line in judge.lines:
            line.look()
        for side in judge.sides():
            side.records.clear()


@define(eq=False)
class Receiving:
    """A thread of the trainer's user."""

    stage: Stage
    held: Held
    call: Patient | None = field(default=None, init=False)

    def receive(self, seat: Seat) -> None:
        """It calls receive(), or goes on in it."""
        if self.call is not None and self.call.task in self.held.waiting:
            self.take()  # the task that was handed over was cancelled meanwhile: nothing is taken, and it waits on
            return

        async def receive() -> Any:
            call.task = trio.lowlevel.current_task()
            self.held.tasks.add(call.task)
            return await seat.session.receive()

        call = self.call = Patient("receive", receive, ["receive"], held=self.held)
        seat.side.calls.append(call)
        if seat.nursery is None:
            raise CannotPerform("the trainer's process is gone")
        self.stage.stepper.start(call.run, nursery=seat.nursery)

    def take(self, *, taken: bool = False) -> None:
        """It takes what it was handed; ``taken`` if it has done so in the moment of receive()."""
        if self.call is None:
            raise CannotPerform("nobody has received")
        if self.call.done:
            if not taken:
                raise CannotPerform("its receive() has returned")
            return  # it was there already, and taken at once
        if self.call.task not in self.held.waiting:
            raise CannotPerform("its receive() was handed nothing")
        self.held.let_go(self.call.task, self.stage.stepper)
        self.stage.settle()
        if not self.call.done:
            self.held.tasks.add(self.call.task)

    def resolved(self) -> bool:
        """Let it return if it was called back without a task: nobody has to say anything then."""
        call = self.call
        if call is None or call.task not in self.held.waiting or call.given_up or call.pending or call.outcome is UNSET:
            return False
        self.held.let_go(call.task, self.stage.stepper)
        return True

    def give_up_ahead(self, step: TraceStep, ahead: Sequence[TraceStep]) -> None:
        """A caller that gives up in the very moment in which a task is handed to it has given up before: else it would have the task.

        So where the path has that, it gives up now, and does not get its turn to say so before the path says so.
        """
        call = self.call
        if call is None or call.done or call.given_up or step.action.name.startswith("trainer."):
            return
        uses = (later.action.name for later in ahead if later.action.name in USES)
        if next(uses, "") == "trainer.give up receive" and hands_over(step):
            call.give_up()

    def give_up(self) -> None:
        """It does not want to wait any more."""
        call = self.call
        if call is None or call.done:
            raise CannotPerform("nobody waits in receive()")
        if not call.given_up:
            call.give_up()
        self.held.let_go(call.task, self.stage.stepper)

    # -- bytes ---------------------------------------------------------------------------------------------------------
