"""The downloads of one party's receivers: payloads that are fetched over the data link, straight into the arrays that they become.

Rule 1.  What has come is kept until the payload is whole or nobody wants it: a pull that is made again asks for the rest only.
Rule 2.  A payload is whole when all its bytes are here and have the digest that was announced. Until then nobody sees any of it.
Rule 3.  Bytes come in order. A chunk that nobody asked for, or that is not the next one, ends the connection; one of a pull that was
         cancelled is read and dropped.
Rule 4.  A payload that rode in its message, or that has no bytes beside its manifest, is made of what is here already.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from attrs import define, field, frozen

from troth.runtime.errors import FrameError, PayloadBroken
from troth.runtime.payloads.arrays import Landing, allocate
from troth.runtime.payloads.content import ContentHash
from troth.runtime.payloads.pace import Pace
from troth.runtime.payloads.tree import broken
from troth.runtime.wire.kinds import PayloadKind, Pull, PullEnd, PullRefused, PullStopped
from troth.spec.core import Event, Key, Message, TransferEnded, TransferOutcome, TransferProgressed

log = logging.getLogger("troth.runtime.payloads")

RECEIVED = "payload"
"""What a receiver's core calls its transfer."""


@frozen
class Carried:
    """What came with the message that names a payload."""

    manifest: bytes
    """What the payload consists of."""
    payload: bytes
    """The payload itself, if it rode along; else empty."""
    nbytes: int
    """Bytes of the payload."""
    digest: bytes
    """What it must turn out to be, and what tells its content apart."""


@define(eq=False)
class _Download:
    """One payload on its way in."""

    key: tuple[int, int]
    manifest: bytes
    digest: bytes
    landing: Landing
    arrived: Callable[[Any], None]
    content: ContentHash
    at: int = 0
    """How many bytes are here."""
    request: int | None = None
    """The pull that is under way."""
    pace: Pace = field(factory=Pace)

    @property
    def whole(self) -> bool:
        return self.at == self.landing.nbytes

    def took(self, nbytes: int) -> None:
        """The next bytes are in place."""
        while nbytes:
            view = self.landing.window(self.at, nbytes)
            self.content.update(view)
            self.at += len(view)
            nbytes -= len(view)


class Pulls:
    """What a party fetches.

    ``kind`` is what its transfers are called, ``give`` takes what happens to them for the party, ``tell`` for a receiver, ``say`` sends a
    frame and says whether there was a connection to send it over. A payload of more than ``limit`` bytes is not taken.
    """

    def __init__(
        self,
        kind: str,
        give: Callable[[Event], object],
        tell: Callable[[Key, Event], object],
        say: Callable[[Message], bool],
        *,
        name: str,
        limit: int,
    ) -> None:
        self._kind = kind
        self._give = give
        self._tell = tell
        self._say = say
        self._name = name
        self._limit = limit
        self._downloads: dict[Key, _Download] = {}
        self._requests: dict[int, _Download] = {}
        self.fetched = 0
        """Bytes that came in."""
        self._last = 0
        """Requests are numbered over all connections, so that none is taken for an earlier one."""

    # -- what a receiver wants -----------------------------------------------------------------------------------------

    def pull(self, key: tuple[int, int], epoch: int | None, carried: Carried, arrived: Callable[[Any], None]) -> bool:
        """Fetch a payload, or what is missing of it, over a connection of that epoch. False if one is needed and it is ``None``."""
        download = self._downloads.get(key)
        if download is not None and (download.manifest, download.digest) != (carried.manifest, carried.digest):
            self.forget(key)
            download = None
        inline = len(carried.payload) == carried.nbytes
        if epoch is None and not inline:
            return False
        if download is None:
            download = self._begin(key, carried, arrived)
        if download is None:
            self._tell(key, TransferEnded(RECEIVED, key, TransferOutcome.FAILED))
            return True
        if inline and not download.whole:
            download.landing.put(download.at, carried.payload[download.at :])
            download.took(download.landing.nbytes - download.at)
        if download.whole:
            self._finish(download)
            return True
        return epoch is not None and self._ask(download, epoch, arrived)

    def _begin(self, key: tuple[int, int], carried: Carried, arrived: Callable[[Any], None]) -> _Download | None:
        try:
            landing = allocate(carried.manifest, nbytes=carried.nbytes, limit=self._limit)
        except PayloadBroken as error:
            log.warning("%s: the %s of task %d cannot be taken: %s", self._name, self._kind, key[0], error)
            return None
        except MemoryError:
            log.warning("%s: no memory for the %s of task %d, %d bytes", self._name, self._kind, key[0], carried.nbytes)
            return None
        download = _Download(key, carried.manifest, carried.digest, landing, arrived, ContentHash(carried.manifest))
        self._downloads[key] = download
        return download

    def _ask(self, download: _Download, epoch: int, arrived: Callable[[Any], None]) -> bool:
        self._drop(download)
        download.arrived = arrived
        self._last += 1
        seq, receiver = download.key
        kind = PayloadKind(self._kind)
        if not self._say(Pull(epoch=epoch, request=self._last, kind=kind, seq=seq, receiver=receiver, offset=download.at)):
            return False
        download.request = self._last
        self._requests[self._last] = download
        return True

    def cancel(self, key: tuple[int, int], epoch: int | None) -> None:
        """Fetch no more, and report nothing more. What is here stays, for another pull."""
        download = self._downloads.get(key)
        request = None if download is None else self._drop(download)
        if request is not None and epoch is not None:
            self._say(PullStopped(epoch=epoch, request=request))

    def forget(self, key: tuple[int, int], epoch: int | None = None) -> None:
        """Nobody wants it any more: let go of what is here."""
        self.cancel(key, epoch)
        self._downloads.pop(key, None)

    def _drop(self, download: _Download) -> int | None:
        """Forget the pull that is under way; which one it was."""
        request, download.request = download.request, None
        if request is not None:
            del self._requests[request]
        return request

    # -- what the source sends -----------------------------------------------------------------------------------------

    def place(self, request: int, offset: int, nbytes: int) -> memoryview | None:
        """Where the bytes of a chunk go, or the first of them; ``None`` if they are not wanted any more. Raises ``FrameError``."""
        download = self._of(request)
        if download is None:
            return None
        if offset != download.at or offset + nbytes > download.landing.nbytes:
            raise FrameError(
                f"bytes {offset} to {offset + nbytes} of the {self._kind} of task {download.key[0]}, "
                f"of whose {download.landing.nbytes} bytes {download.at} are here"
            )
        return download.landing.window(offset, nbytes)

    def landed(self, request: int, _offset: int, nbytes: int) -> None:
        """Bytes are where ``place`` wanted them."""
        download = self._requests.get(request)
        if download is None:
            return
        self.fetched += nbytes
        download.took(nbytes)
        if download.whole:
            download.pace.unsaid = True
            self._finish(download)
        elif download.pace.moved():
            self._progress(download.key)

    def ended(self, frame: PullEnd) -> None:
        """The source says that this was all. Here the last byte said so already, so this is about what did not come."""
        download = self._of(frame.request)
        if download is not None:
            here = f"{download.at} of {download.landing.nbytes} bytes are here"
            log.info("%s: the %s of task %d is not sent to its end: %s", self._name, self._kind, download.key[0], here)
            self._fail(download)

    def refused(self, frame: PullRefused) -> None:
        """The source does not send."""
        download = self._of(frame.request)
        if download is not None:
            log.info("%s: the %s of task %d is not sent: %s", self._name, self._kind, download.key[0], frame.reason.value)
            self._fail(download)

    def broke(self, *, report: bool = True) -> None:
        """The connection is gone. What is here stays."""
        for download in list(self._requests.values()):
            if download.request is not None and report:
                self._fail(download)
            else:
                self._drop(download)

    def _of(self, request: int) -> _Download | None:
        if request > self._last:
            raise FrameError(f"an answer to pull {request}, which was never made")
        return self._requests.get(request)

    def _finish(self, download: _Download) -> None:
        self._drop(download)
        del self._downloads[download.key]
        try:
            if download.content.digest() != download.digest:
                broken("the bytes that came are not those that were announced: another digest")
            tree = download.landing.finish()
        except PayloadBroken as error:
            log.warning("%s: the %s of task %d is dropped: %s", self._name, self._kind, download.key[0], error)
            self._end(download, TransferOutcome.FAILED)
            return
        download.arrived(tree)
        self._end(download, TransferOutcome.COMPLETE)

    def _fail(self, download: _Download) -> None:
        self._drop(download)
        self._end(download, TransferOutcome.FAILED)

    def _end(self, download: _Download, outcome: TransferOutcome) -> None:
        unsaid, download.pace = download.pace.unsaid, Pace()
        if unsaid:
            self._progress(download.key)
        self._tell(download.key, TransferEnded(RECEIVED, download.key, outcome))

    def _progress(self, key: tuple[int, int]) -> None:
        self._tell(key, TransferProgressed(RECEIVED, key))
        self._give(TransferProgressed(self._kind, key))
