"""The same search in several processes.

States are shared out by a hash: each worker owns a part of every level, and the part of the table that can hold its states. In every
round a worker expands a few chunks of its own part, inserts those successors that it owns, and hands the others over through memory
that all of them see. At the end of a round all meet.

A packed state means the same to everybody, because local states are numbered together: while the team works numbering is frozen, a
worker that needs a new number says which global state led to it, and at the next meeting all of them expand those states, in the same
order, with numbering allowed. If a field becomes too narrow, the team is dissolved, everything is packed anew, and a new team starts.

What is found does not depend on the number of workers: levels are sets, and of several findings the least by digest is kept.
"""

from __future__ import annotations

import os
import sys
import warnings
from multiprocessing import get_context
from multiprocessing.context import ForkProcess
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from troth.models.errors import Exhausted
from troth.models.exploration import Ending
from troth.models.vector.filler import Wanted
from troth.models.vector.findings import Hits
from troth.models.vector.layout import CHUNK, Layout, Words, chunks, joined, taken
from troth.models.vector.memory import exhausted, shared
from troth.models.vector.mesh import Mesh, WorkerLost
from troth.models.vector.table import FACTOR, HALF
from troth.spec.errors import TrothError

if TYPE_CHECKING:
    from troth.models.vector.driver import VectorSearch

BLOCK = 2
"""Chunks that a worker expands between two meetings."""
HANDED = 1 << 20
"""States that fit the memory for handing over, for each pair of workers and each of two turns."""
NO_MEMORY = "the system gave no more memory"
WANTED_LIMIT = 256
"""States with new successors that a worker brings to one meeting."""


def can_fork() -> bool:
    """Whether this platform starts processes by copying: the tables and the user's functions need not be picklable then."""
    return sys.platform.startswith("linux") and hasattr(os, "fork")


def shares(states: Words, workers: int) -> list[NDArray[np.intp]]:
    """For each worker the places of the states that it owns."""
    mixed = states[0] * FACTOR[1]
    if len(states) == 2:
        mixed ^= states[1] * FACTOR[0]
        mixed *= FACTOR[1]
    if workers == 2:
        high = mixed.view(np.int64) < 0
        return [np.flatnonzero(~high), np.flatnonzero(high)]
    mixed >>= HALF
    mixed *= np.uint64(workers)
    mixed >>= HALF
    owner = mixed.astype(np.uint8)
    return [np.flatnonzero(owner == number) for number in range(workers)]


class Round(NamedTuple):
    """What a worker says at the end of a round."""

    handed: tuple[int, ...]
    """States handed over to each worker."""
    over: bool
    """Nothing is left of its part of the level."""
    wanted: tuple[bytes, ...]
    """States whose successors need new numbers, one array a word; empty if none."""
    states: int
    edges: int


class LevelEnd(NamedTuple):
    """What a worker says at the end of a level."""

    size: int
    """States of the next level that it owns."""
    states: int
    edges: int
    cut: int
    bytes: int
    full: bool
    hits: Hits
    failures: Hits


class Arena:
    """Memory for the levels of one worker, one after the other, that the first worker can read afterwards."""

    def __init__(self, states: int, words: int) -> None:
        self.words = words
        self.memory = tuple(shared(states) for _ in range(words))
        self.used = 0

    def add(self, states: Words) -> None:
        """Put states after those that are there."""
        size = len(states[0])
        for word, into in zip(states, self.memory, strict=True):
            into[self.used : self.used + size] = word
        self.used += size

    def since(self, place: int) -> Words:
        """What was added since ``used`` was ``place``."""
        return tuple(word[place : self.used] for word in self.memory)


class Team:
    """The processes of one parallel phase. Worker 0 is the process that made the team."""

    def __init__(self, search: VectorSearch, workers: int) -> None:
        self.search = search
        self.workers = workers
        words = search.expander.layout.words
        most = search.max_bytes // (8 * words)
        self.handing = [[[tuple(shared(HANDED) for _ in range(words)) for _ in range(workers)] for _ in range(workers)] for _ in range(2)]
        self.arenas = [Arena(most, words) for _ in range(workers)]
        self.mesh = Mesh(workers)
        self.sizes: list[list[int]] = []

    def run(self, front: Words) -> tuple[Words, Ending | None]:
        """Search from the level ``front`` on. Returns an ending, or (``None``) the level to go on with after a change of layout."""
        context = get_context("fork")
        children: list[ForkProcess] = []
        try:
            with warnings.catch_warnings():
                # Python 3.12 warns of forking while threads exist; numpy's idle ones hold no lock that a worker needs.
                warnings.simplefilter("ignore", DeprecationWarning)
                for number in range(1, self.workers):
                    child = context.Process(target=self._child, args=(number, front), daemon=True)
                    child.start()
                    children.append(child)
            self.mesh.join(0)
            try:
                worker = Worker(self, 0, front)
                ending = worker.run()
            except (MemoryError, OSError, Exhausted) as error:
                if not isinstance(error, Exhausted) and not exhausted(error):
                    raise
                self.mesh.fail(Exhausted(NO_MEMORY))
                self._gather()
                raise MemoryError(NO_MEMORY) from error
            return self._dissolved(worker, ending)
        except WorkerLost as lost:
            for child in children:
                child.join(1)
            codes = ", ".join(str(child.exitcode) for child in children)
            raise TrothError(f"{lost} (exit codes: {codes}); try fewer workers or smaller bounds") from lost
        except TrothError as error:
            self.mesh.fail(error)
            raise
        finally:
            self.mesh.close()
            for child in children:
                child.join(5)
                if child.is_alive():
                    child.kill()
                    child.join()
            self.search.system.freeze(frozen=False)

    def _child(self, number: int, front: Words) -> None:
        self.mesh.join(number)
        self.search.ticker.report = None
        try:
            Worker(self, number, front).run()
        except (WorkerLost, KeyboardInterrupt):
            return
        except TrothError as error:
            self.mesh.fail(error)
        except Exception as error:
            said = Exhausted(NO_MEMORY) if exhausted(error) else TrothError(f"a worker failed with {type(error).__name__}: {error}")
            self.mesh.fail(said)

    def _gather(self) -> None:
        """The levels of all workers, for whoever walks back from a finding."""
        levels = self.search.levels.levels
        used = [0] * self.workers
        for sizes in self.sizes:
            level = []
            for number, size in enumerate(sizes):
                level.append(tuple(word[used[number] : used[number] + size] for word in self.arenas[number].memory))
                used[number] += size
            levels.append(level)

    def _dissolved(self, worker: Worker, ending: Ending | None) -> tuple[Words, Ending | None]:
        """Back to one process: the levels of all workers, and, unless the search is over, one table again."""
        search = self.search
        self._gather()
        if ending is not None:
            return worker.front, ending
        old = search.expander.relayout()
        layout: Layout = search.expander.layout
        search.levels.repack(old, layout)
        del search.table
        search.table = search.new_table(1, sum(len(part[0]) for level in search.levels.levels for part in level))
        for level in search.levels.levels:
            for part in level:
                for piece in chunks(part):
                    search.table.insert(piece)
        search.table.flush()
        front = joined(search.levels.levels.pop(), layout.words)
        return front, None


class Worker:
    """One process of a team."""

    def __init__(self, team: Team, me: int, front: Words) -> None:
        self.team = team
        self.me = me
        self.search = team.search
        self.mesh = team.mesh
        self.words = self.search.expander.layout.words
        self.turn = 0
        self.size = CHUNK
        self.peers = [n for n in range(team.workers) if n != me]
        self.base = (self.search.found.edges, self.search.found.truncated)
        self.edges = self.cut = 0
        self._take_part(front)

    def _take_part(self, front: Words) -> None:
        """Keep what this worker owns of the table and of the level."""
        whole = self.search.table
        mine = self.search.table = self.search.new_table(self.team.workers, whole.count // self.team.workers)
        for piece in chunks(whole.all(), 1 << 18):
            mine.insert(self._owned(piece))
        mine.flush()
        del whole
        self.arena = self.team.arenas[self.me]
        self.arena.add(self._owned(front))
        self.front = self.arena.since(0)
        self.search.system.freeze(frozen=True)

    def _owned(self, states: Words) -> Words:
        return taken(states, shares(states, self.team.workers)[self.me])

    def run(self) -> Ending | None:
        """Level by level, all workers in step. ``None``: a field is too narrow, the present level is to be done again."""
        search = self.search
        sizes: list[int] = self.mesh.meet(len(self.front[0]))
        while any(sizes):
            if self.me == 0:
                self.team.sizes.append(sizes)
            search.found.depth = search.depth
            total: int = sum(sizes)
            following = self._level(total)
            if following is None:
                return None  # what was counted since the last level's end is counted again
            self.front = following
            sizes, ending = self._settle()
            if ending is not None:
                return ending
            search.depth += 1
        search.depth -= 1
        return Ending.COMPLETE

    def _settle(self) -> tuple[list[int], Ending | None]:
        """The end of a level: the same sums and the same decision in every worker."""
        search, table, watch = self.search, self.search.table, self.search.watch
        used = table.bytes + self.arena.used * 8 * self.words + search.expander.bytes
        own = LevelEnd(len(self.front[0]), table.count, self.edges, self.cut, used, table.full, watch.hits, watch.failures)
        ends: list[LevelEnd] = self.mesh.meet(own)
        for number in self.peers:
            watch.merge(ends[number].hits, ends[number].failures)
        found = search.found
        before = found.edges, found.truncated
        found.edges = self.base[0] + sum(end.edges for end in ends)
        found.truncated = self.base[1] + sum(end.cut for end in ends)
        states = sum(end.states for end in ends)
        search.settle_counts(states, before)
        sizes = [end.size for end in ends]
        ending = watch.settle(found, search.depth, stop=search.limits.stop_at_violation)
        if ending is None and states > search.limits.most_states:
            ending = Ending.STATES
        elif ending is None and any(end.full for end in ends):
            ending = Ending.MEMORY  # even if nothing is left to expand: a table may have dropped states
        elif ending is None and any(sizes) and sum(end.bytes for end in ends) + search.level_bytes > search.max_bytes:
            ending = Ending.MEMORY
        return sizes, ending

    def _level(self, size: int) -> Words | None:
        """One level, in rounds. ``None`` if the layout has become too small."""
        search, arena, insert = self.search, self.arena, self.search.table.insert
        place, at, over = arena.used, 0, False
        while not over:
            own, handed, at, wanted = self._round(at)
            said = Round(handed, at >= len(self.front[0]), wanted, search.table.count, self.edges)
            rounds: list[Round] = self.mesh.meet(said)
            for part in own:
                arena.add(insert(part))
            for number in self.peers:
                given = self.team.handing[self.turn][number][self.me]
                arrived = tuple(word[: rounds[number].handed[self.me]] for word in given)
                for part in chunks(arrived, 1 << 18):
                    arena.add(insert(part))
            self.turn ^= 1
            over = all(r.over for r in rounds)
            if sum(r.states for r in rounds) > search.limits.most_states:
                search.look_on(self.front, at)
                break
            if any(r.wanted for r in rounds) and not self._agree(rounds):
                return None
            search.ticker.tick("exploring", sum(r.states for r in rounds), self.base[0] + sum(r.edges for r in rounds), size, search.depth)
        arena.add(search.table.flush())
        return arena.since(place)

    def _round(self, at: int) -> tuple[list[Words], tuple[int, ...], int, tuple[bytes, ...]]:
        """Expand a few chunks from ``at`` on: own successors, counts handed over, where to go on, and states that need new numbers."""
        own: list[Words] = []
        handed = [0] * self.team.workers
        for _ in range(BLOCK):
            chunk = tuple(word[at : at + self.size] for word in self.front)
            if not len(chunk[0]):
                break
            try:
                batch, counts = self.search.chunk(chunk)
            except Wanted as wanted:
                some = taken(chunk, wanted.rows[:WANTED_LIMIT])
                return own, tuple(handed), at, tuple(word.tobytes() for word in some)
            if not self._hand_over(batch, own, handed):
                break
            at += len(chunk[0])
            self.edges += counts.edges
            self.cut += counts.cut
        return own, tuple(handed), at, ()

    def _hand_over(self, batch: Words, own: list[Words], handed: list[int]) -> bool:
        """Share out a batch; false if there is no room for it now (then the chunk is done again in the next round)."""
        places = shares(batch, self.team.workers)
        if any(handed[n] + len(places[n]) > HANDED for n in self.peers):
            if not any(handed):
                self.size = max(1, self.size // 2)
            return False
        own.append(taken(batch, places[self.me]))
        for number in self.peers:
            low, high = handed[number], handed[number] + len(places[number])
            for word, into in zip(batch, self.team.handing[self.turn][self.me][number], strict=True):
                into[low:high] = np.take(word, places[number])
            handed[number] = high
        return True

    def _agree(self, rounds: list[Round]) -> bool:
        """Number new local states, all workers alike; false if they do not fit the layout."""
        search = self.search
        layout, system = search.expander.layout, search.system
        states = {
            layout.unpack_one(words, place)
            for r in rounds
            if r.wanted
            for words in [tuple(np.frombuffer(raw, np.uint64) for raw in r.wanted)]
            for place in range(len(words[0]))
        }
        system.freeze(frozen=False)
        for state in sorted(states):
            system.successors(state)
        system.freeze(frozen=True)
        if not layout.fits(search.expander.counts()):
            return False
        if search.expander.outgrown():
            search.expander.relayout()
        return True
