"""The parties of one driver: one order of steps, one clock, and what they say to each other comes before everything else."""

from __future__ import annotations

from collections import deque
from typing import Any

from attrs import define, field

from troth.spec import core as c
from troth.spec import messages as m
from troth.spec.trace import Header, Record, link_of
from troth.statemachines import HOST, RECEIVER, SUPERVISOR, TRAINER
from troth.statemachines.receiver import PARTY
from troth.statemachines.shared.words import CONTROL, DATA, RECEIVERS
from troth.statemachines.supervisor.launches import HOSTS
from troth.testing.traces.actors import FETCHES, LOCAL, SUPERVISING, TERMS, Actor, Mail, addressed
from troth.testing.traces.launches import Launch
from troth.testing.traces.replica import Taken
from troth.testing.traces.timing import SLACK_NS, seconds, spelled
from troth.testing.traces.verdicts import Wrong

OWN_RECEIVER = 0
"""The number of a party's own receiver."""


@define(eq=False)
class File:
    """The steps of one file: of one party, or of all receivers of a party."""

    name: str
    header: Header
    config: Any
    launch: Launch | None
    cut: bool = False
    """Nothing is known of what its parties did after its last step."""

    @property
    def core(self) -> str:
        """The declared party whose core it is."""
        return self.header.core


@define(eq=False)
class DriverCheck:
    """One driver."""

    name: str
    whole: bool
    """Every file of it is here, so that its steps are numbered without a gap."""
    watching: bool
    punctual: bool
    """Its clock stands still while anything can happen, so that no timer is ever late."""
    files: dict[tuple[bool, str], File] = field(factory=dict)
    """By whether it is a file of receivers, and by whose it is."""
    actors: dict[str, Actor] = field(factory=dict)
    turn: int = -1
    t_ns: int = 0
    started: int = 0
    """Sessions that its supervisor has started."""
    hosts: dict[int, str] = field(factory=dict)
    """The hosts of its supervisor's launches."""
    latest: Taken | None = None
    """The last step, replayed."""
    latest_actor: Actor | None = None
    _mail: deque[Mail] = field(factory=deque)

    def has(self, file: File) -> None:
        """A file of it was opened."""
        self.files[file.core == RECEIVER.name, file.header.party] = file
        if file.core != RECEIVER.name:
            self.actors[file.header.party] = self._actor(file, file.header.party)

    def _actor(self, file: File, name: str) -> Actor:
        owner = file.header.party if file.core == RECEIVER.name else None
        return Actor(name, file.core, file.config, owner, self.watching)

    # -- one step ------------------------------------------------------------------------------------------------------

    def take(self, file: File, record: Record) -> None:
        """Check one step. Raises ``Wrong``."""
        self._in_order(record)
        mail = self._due()
        self._brought(file, record, mail)
        actor = self._whose(file, record)
        if mail is not None:
            self._mail.popleft()
        actor.before(record)
        if file.launch is not None:
            file.launch.before(file.header, record.event)
        self._terms(file, actor, record.event)
        taken = self.latest = actor.step(record)
        self.latest_actor = actor
        self.turn, self.t_ns = record.turn, record.t_ns
        for effect in taken.step.effects:
            self._perform(file, actor, effect)
        if actor.owner is not None and actor.gone:
            del self.actors[actor.name]

    def _in_order(self, record: Record) -> None:
        if record.turn <= self.turn:
            raise Wrong(f"turn {record.turn} of driver {self.name} comes after its turn {self.turn}")
        if self.whole and record.turn != self.turn + 1:
            raise Wrong(
                f"turn {record.turn} of driver {self.name} comes where turn {self.turn + 1} must; a step is missing or out of place"
            )
        if record.t_ns < self.t_ns:
            raise Wrong(f"t_ns goes back from {self.t_ns} to {record.t_ns}")
        if record.link != link_of(record.event):
            raise Wrong(f"is said to be about link {record.link}, but its event is about {link_of(record.event)}")
        if self.punctual:
            self._check_punctual(record)

    def _check_punctual(self, record: Record) -> None:
        for actor in self.actors.values():
            found = None if actor.gone else actor.timers.first_due()
            if found is not None and found[0] + SLACK_NS < record.t_ns:
                late = seconds(record.t_ns - found[0])
                raise Wrong(f"timer {spelled(found[1])} of {actor.name} was due {late} ago and has not fired", actor.timers.expected())

    def _due(self) -> Mail | None:
        """What must be taken now; what is said to parties that have left, or that nobody recorded, is nobody's."""
        while self._mail:
            mail = self._mail[0]
            if self._takes(mail):
                return mail
            self._mail.popleft()
        return None

    def _takes(self, mail: Mail) -> bool:
        owner, _, rest = mail.to.partition("/")
        file = self.files.get((bool(rest), owner))
        if file is None or file.cut:
            return False
        if rest:
            owning = self.actors.get(owner)
            if owning is not None and owning.gone:
                return False
            return mail.creates or mail.to in self.actors
        return not self.actors[mail.to].gone

    def _whose(self, file: File, record: Record) -> Actor:
        """Whose step it is. A receiver is made by what it is told first."""
        name, receiving = record.party, file.core == RECEIVER.name
        owner = file.header.party
        if name.rpartition("/")[0] != f"{owner}/{self._fetches(file)}" if receiving else name != owner:
            raise Wrong(f"is a step of {name!r} in a file of {'the receivers of ' if receiving else ''}{owner!r}")
        made = receiving and isinstance(record.event, c.Received) and isinstance(record.event.message, m.FetchPayload)
        if made or (receiving and name not in self.actors and not self.whole):
            self.actors[name] = self._actor(file, name)
        actor = self.actors.get(name)
        if actor is None:
            raise Wrong(f"there is no receiver {name}: it is over, or its party has not asked for that payload")
        if actor.gone:
            raise Wrong(f"{name} takes a step after its session has ended")
        return actor

    def _fetches(self, file: File) -> str:
        return FETCHES[TRAINER.name if file.header.party == TRAINER.name else HOST.name]

    def _brought(self, file: File, record: Record, mail: Mail | None) -> None:
        """Rule 6 of the core interface: what is said on a local link is taken before anything else."""
        event = record.event
        if mail is not None:
            if record.party == mail.to and event == mail.event:
                return
            here = record.party == mail.to
            what = f"{mail.to} has to take {mail.event.message} first, which {mail.said_by} has said on a local link"
            raise Wrong(what, ((mail.event, f"said by {mail.said_by}"),) if here else ())
        if isinstance(event, c.Received) and event.link in LOCAL:
            sender = self._sender(file, event.link)
            if sender is not None:
                actor = self.actors.get(record.party)
                expected = () if actor is None else actor.timers.expected()
                raise Wrong(f"{event.message} came on the local link {event.link}, but {sender} has not said it", expected)

    def _sender(self, file: File, link: str) -> str | None:
        """Who would have said something on a local link, if it would be in a file that is here."""
        party = file.header.party
        where = (True, party) if link == RECEIVERS else (False, party if link == PARTY else SUPERVISING)
        if link == HOSTS:
            missing = any((False, f"host-{n + 1}") not in self.files for n in range(self.started))
            return None if missing or any(found.cut for found in self.files.values()) else "no host"
        found = self.files.get(where)
        if found is None or found.cut:
            return None
        return f"no receiver of {party}" if link == RECEIVERS else found.header.party

    def _terms(self, file: File, actor: Actor, event: c.Event) -> None:
        """The durations that a host grants are its own."""
        if file.core == TRAINER.name and isinstance(event, c.Received) and isinstance(event.message, m.HelloAccepted):
            granted = file.launch.granted if file.launch is not None else None
            if granted is None:
                actor.timers.unknown = TERMS
            else:
                actor.timers.limits = {**actor.timers.limits, **{name: granted[name] for name in TERMS}}

    # -- what follows from it ------------------------------------------------------------------------------------------

    def _perform(self, file: File, actor: Actor, effect: c.Effect) -> None:
        if not isinstance(effect, c.Send):
            return
        message = effect.message
        if effect.link in (CONTROL, DATA):
            if file.launch is not None:
                file.launch.said(file.header, effect.link, message)
            return
        if file.core == SUPERVISOR.name and isinstance(message, m.StartSession):
            self.started += 1
            self.hosts[message.launch] = f"host-{self.started}"
        if isinstance(message, m.FetchPayload):
            actor.causes.fetches(FETCHES[actor.core], (message.seq, OWN_RECEIVER))
        mail = addressed(actor, effect, self.hosts)
        if mail is not None:
            self._mail.append(mail)
        if isinstance(message, m.SessionEnded):
            self._leave(actor)

    def _leave(self, actor: Actor) -> None:
        """A session has ended: its host and its receivers leave."""
        for name in [name for name in self.actors if name.startswith(f"{actor.name}/")]:
            del self.actors[name]
        actor.gone = True

    def expected(self, file: File) -> tuple[tuple[c.Event, str], ...]:
        """What the party of a file could take next: what it was told, what is on its way to it, and its timers."""
        party = file.header.party
        actor, mail = self.actors.get(party), self._due()
        if mail is not None:
            return ((mail.event, f"said by {mail.said_by}"),) if mail.to == party else ()
        coming = () if file.launch is None or file.core == RECEIVER.name else file.launch.coming(file.header)
        return (*coming, *(() if actor is None else actor.timers.expected()))
