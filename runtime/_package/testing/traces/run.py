"""A run, checked step by step while it goes on, or afterwards from its files::

    run = RunCheck()
    party = run.open("site-1.host-1", header)     # every party, with its header
    party.add(record)                             # one step of any party, in the order in which they were taken; raises Rejected
    party.close()                                 # it was closed in order
    run.finish()                                  # Checked(steps=..., partial=())

Nothing is replayed twice: a step costs the core's own step and a digest, whatever came before it.
"""

from __future__ import annotations

from attrs import define, field

from troth.spec.trace import End, Header, Record
from troth.statemachines import HOST, RECEIVER, SUPERVISOR, TRAINER
from troth.testing.traces.actors import SUPERVISING
from troth.testing.traces.drivers import DriverCheck, File
from troth.testing.traces.launches import Launch, end_of
from troth.testing.traces.replica import config_in
from troth.testing.traces.verdicts import Checked, NoTrace, Rejected, Wrong
from troth.testing.traces.wires import Network

FIRST_LINE = 2
"""The line of a file's first step; the header's is 1."""
NOT_CLOSED = "was not closed in order"
ONE_RUN = "are these the files of one run?"


@define(eq=False)
class PartyCheck:
    """One file of a run: a party, or all receivers of a party."""

    run: RunCheck
    file: File
    driver: DriverCheck
    steps: int = 0
    ended: bool = False
    """It was closed in order."""

    @property
    def name(self) -> str:
        """The file's name."""
        return self.file.name

    def add(self, record: Record) -> None:
        """Check the next step. Raises ``Rejected``; after that the run is not checked any further."""
        try:
            self._check_place(record)
            self.driver.take(self.file, record)
        except Wrong as wrong:
            raise self.rejected(wrong, record) from wrong
        self.steps += 1
        self.run.steps += 1

    def _check_place(self, record: Record) -> None:
        if self.ended:
            raise Wrong("a step after the end of the file")
        if record.n != self.steps:
            raise self.misplaced(record)

    def misplaced(self, record: Record) -> Wrong:
        """What is wrong with a step that has another number."""
        expected = self.driver.expected(self.file)
        return Wrong(f"n must be {self.steps}, got {record.n}: a line is missing or out of place", expected)

    def rejected(self, wrong: Wrong, record: Record | None = None) -> Rejected:
        """What is wrong, with the line that it is at and what could have stood there."""
        actor = self.driver.actors.get(self.file.header.party if record is None else record.party)
        nearest = () if actor is None else actor.replica.nearest(record, wrong.expected)
        return Rejected(self.name, self.steps + FIRST_LINE, wrong.reason, nearest, self.run.steps)

    def may(self, record: Record) -> bool:
        """Whether what another process has to have said for this step was said already."""
        return self.file.launch is None or self.file.launch.explains(self.file.header, record.event)

    def close(self, end: End | None = None) -> None:
        """The file ends here, and was closed in order. Raises ``Rejected`` if its end says another number of steps."""
        if end is not None and end.steps != self.steps:
            raise self.rejected(Wrong(f"the end says that there are {end.steps} steps, and there are {self.steps}"))
        if self.ended:
            raise self.rejected(Wrong("the file ends twice"))
        self.ended = True

    def cut(self) -> None:
        """The file ends here, and more may have happened that nobody recorded: others are believed from here on."""
        self.file.cut = True
        self.driver.whole = False
        if self.file.launch is not None:
            self.file.launch.ends.cut.add(end_of(self.file.header))


@define(eq=False)
class RunCheck:
    """All parties of a run, or some of them.

    ``whole``: every party of every driver is opened before its first step, so no number is missing in its order. ``late``: steps of
    different processes come in some order that is possible, not in the one in which they were taken. ``punctual``: time stands still
    while anything can happen, as under a ``MockClock``, so a timer that is late has been forgotten. ``properties``: watch the numbered
    properties, too, which costs as much again.
    """

    network: Network = Network.SOUND
    whole: bool = True
    late: bool = False
    punctual: bool = False
    properties: bool = True
    parties: list[PartyCheck] = field(factory=list, init=False)
    drivers: dict[str, DriverCheck] = field(factory=dict, init=False)
    launches: dict[str, Launch] = field(factory=dict, init=False)
    steps: int = field(default=0, init=False)

    def open(self, name: str, header: Header) -> PartyCheck:
        """A party, or the receivers of a party, whose steps follow. ``name`` is what errors call its file. Raises ``NoTrace``."""
        config = config_in(header, name)
        driver = self._driver(name, header)
        launch = None
        if header.launch is not None:
            launch = self.launches.setdefault(header.launch, Launch(header.launch, self.network, self.late))
            launch.ends.here.add(end_of(header))
            launch.granted = header.limits if header.core == HOST.name else launch.granted
        file = File(name, header, config, launch)
        driver.has(file)
        found = PartyCheck(self, file, driver)
        self.parties.append(found)
        return found

    def _driver(self, name: str, header: Header) -> DriverCheck:
        """Its driver: a new one for a script that joins again, where nobody has counted for it."""
        key = number = header.driver
        lives = 1
        while key in self.drivers and header.core == TRAINER.name and self._has(key, header):
            lives += 1
            key = f"{number}/{lives}"
        while header.core == RECEIVER.name and f"{number}/{lives + 1}" in self.drivers and self._has(key, header):
            lives += 1
            key = f"{number}/{lives}"
        if key in self.drivers and self._has(key, header):
            raise NoTrace(name, f"is of {header.party!r} of driver {header.driver}, of which there is another file: give each file once")
        return self.drivers.setdefault(key, DriverCheck(key, self.whole, self.properties, self.punctual))

    def _has(self, driver: str, header: Header) -> bool:
        return (header.core == RECEIVER.name, header.party) in self.drivers[driver].files

    def finish(self) -> Checked:
        """The verdict, once every step was added. Raises ``Rejected`` for what is still without an explanation."""
        for party in self.parties:
            launch = party.file.launch
            if party.file.core in (HOST.name, TRAINER.name) and launch is not None:
                message = launch.unexplained(host=party.file.core == HOST.name)
                if message is not None:
                    raise party.rejected(Wrong(f"{message} came on link control, and was never sent"))
        return Checked(self.steps, tuple(self._missing()))

    def _missing(self) -> list[str]:
        found = [f"{party.name}: {NOT_CLOSED}{_on_trust(party)}" for party in self.parties if not party.ended and not self._killed(party)]
        hosted = {launch.id for launch in self.launches.values() if (True, False) in launch.ends.here}
        for driver in self.drivers.values():
            supervised = (False, SUPERVISING) in driver.files
            hosts = [file for (_, who), file in driver.files.items() if file.core == HOST.name]
            if hosts and not supervised:
                found.append(f"{driver.name}: the supervisor's file is not here{self._but_of_another()}")
            absent = [f"host-{n + 1}" for n in range(driver.started) if (False, f"host-{n + 1}") not in driver.files]
            found += [f"{driver.name}: the file of {host} is not here" for host in absent]
            for (receivers, who), file in list(driver.files.items()):
                if not receivers and file.core != SUPERVISOR.name and (True, who) not in driver.files:
                    found.append(f"{file.name}: the file of its receivers is not here")
                if receivers and (False, who) not in driver.files:
                    found.append(f"{file.name}: the file of {who} is not here")
        for launch in self.launches.values():
            host, trainer = ((end, False) in launch.ends.here for end in (True, False))
            if not host or (not trainer and launch.control.one.lines):  # else nobody has ever come
                here = next(party.name for party in self.parties if party.file.launch is launch)
                if hosted and not host:
                    found.append(f"{here}: is of a launch whose host's file is not here, unlike those of others: {ONE_RUN}")
                else:
                    found.append(f"{here}: the file of its {'trainer' if host else 'host'} is not here")
        return found

    def _but_of_another(self) -> str:
        """What to ask where a supervisor's file is missing: whether there is one of another driver."""
        others = any((False, SUPERVISING) in driver.files for driver in self.drivers.values())
        return f", and that of another is: {ONE_RUN}" if others else ""

    def _killed(self, party: PartyCheck) -> bool:
        """Whether its process was reported gone, and not by an exit in order: then nothing follows what is in the file."""
        launch = party.file.launch
        return launch is not None and launch.killed and party.file.header.core in (TRAINER.name, RECEIVER.name)


def _on_trust(party: PartyCheck) -> str:
    """What nobody could look up in a file that ends too early."""
    launch = party.file.launch
    count = 0 if launch is None else launch.trusted[end_of(party.file.header)]
    told = "1 message that came from it later was" if count == 1 else f"{count} messages that came from it later were"
    return f"; {told} taken on trust" if count else ""
