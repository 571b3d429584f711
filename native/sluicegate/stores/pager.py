"""Carries a window's pages to its store and back: one background thread writes, reads ahead and deletes.

What waits is bounded (back-pressure: `admit` slows the window down while the store is behind, then stops it). Pages and
manifests reach the store in the order in which they were given, a manifest after all pages before it; pages that left
the window are deleted once a manifest that does not need them is in. Every call is retried, at the next call of the
window or after a second; what fails is raised to the caller that had to wait for it.
"""

from __future__ import annotations

import os
import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence

from sluicegate.errors import CorruptPageError, StoreError
from sluicegate.stores import manifest as manifests
from sluicegate.stores import page as pages
from sluicegate.stores.contract import MANIFEST, Key, Row, Store
from sluicegate.stores.manifest import Life, Manifest
from sluicegate.window.snapshot import portable

WAITING = 256  # pages that may wait for the store: as long as forcing a log to a disk takes
WAITING_BYTES = 2**20  # or so many bytes of them, if that is less, but always 4 pages
PATIENCE = 0.002  # seconds that a page waits for room where the store is only slow; it then goes in all the same
LATE = 2  # until so many times as many pages, and bytes, wait: an insertion is not held up by one commit's forced log
AHEAD = 64  # pages that are read ahead at the head of a level
AHEAD_BYTES = 2**18  # or so many bytes of them, if that is less, but always one
TAKEN_AT_ONCE = 16  # of those, by a caller that needs the first of them now
WRITTEN_AT_ONCE = 32  # pages from which on writing them is worth a transaction
DELETED_AT_ONCE = 256
PAUSE = 1.0  # seconds between attempts that no call asked for
STACK = 512 * 1024  # bytes of the thread's stack

Sealed = tuple[int, int, bytes]
Job = Key | Manifest


class Pager:
    """Between one window's engine and its store.

    `first_unsealed(tier, tail)`: the first page of a tier that was not whole when `tail` leaves had entered: it tells
    which life wrote a page. Everything here may be called from the window's thread; only `_work` runs in the pager's.
    """

    def __init__(
        self,
        store: Store,
        shift: int,
        width: int,
        lives: Sequence[Life],
        first_unsealed: Callable[[int, int], int],
        row: int = 1,
    ) -> None:
        self._store, self.shift, self.width, self.lives = store, shift, width, tuple(lives)
        self._first_unsealed = first_unsealed
        self._state = threading.Condition()
        self._jobs: deque[Job] = deque()
        self._pages: dict[Key, bytes] = {}  # sealed and not yet in the store
        self._wanted: deque[list[Key]] = deque()
        self._asked: dict[int, int] = {}  # by level: the page after the last that was asked for ahead
        self._ahead: dict[Key, bytes | None] = {}
        self._kept: dict[int, int] = {}  # by level: the first page that may still be stored
        self._dead: dict[int, int] = {}  # by level: the first page that the newest stored manifest needs
        self._error: BaseException | None = None
        self._attempts = 0
        self._retry = self._closing = False
        self._row = row  # of the newest stored manifest; the next goes to the other
        self._to_force = -1
        self._manifests = 0  # among the jobs
        self._done = -1  # sequence of the newest stored manifest
        self._forced = -1  # the newest that also survives a power cut
        self._waiting = max(4, min(WAITING, WAITING_BYTES // (8 * width << shift)))
        self._most = max(self._waiting, min(LATE * WAITING, LATE * WAITING_BYTES // (8 * width << shift)))
        self._enough = min(self._waiting // 2, WRITTEN_AT_ONCE)
        self._reach = max(1, min(AHEAD, AHEAD_BYTES // (8 * width << shift)))
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    # what the engine calls

    def admit(self, count: int) -> None:
        """Return when `count` pages more may be given, at most PATIENCE later where only the store is slow.

        Raises StoreError while the store fails.
        """
        with self._state:
            if len(self._pages) + count > self._waiting:
                self._wait(lambda: len(self._pages) + count <= max(self._waiting, count), PATIENCE)
            if len(self._pages) + count > self._most:
                self._wait(lambda: len(self._pages) + count <= max(self._most, count))

    def seal(self, sealed: Sequence[Sealed]) -> None:
        """Take whole pages: level, number, partials in the machine's order. Giving one again replaces it."""
        with self._state:
            for level, number, partials in sealed:
                key = Key(level, number)
                if key not in self._pages:
                    self._jobs.append(key)
                self._pages[key] = partials
            if len(self._pages) >= self._enough:  # many in one call cost the store less
                self._wake()

    def want(self, level: int, number: int, end: int) -> None:
        """Read pages ahead, from `number` to before `end`; some at once, since one call for many costs less."""
        with self._state:
            if level in self._asked and number < self._asked[level] - self._reach // 2:
                return
            for key in [key for key in self._ahead if key.level == level and key.page < number]:
                del self._ahead[key]
            begin = max(number, self._asked.get(level, 0))
            self._asked[level] = min(end, number + self._reach)
            keys = [Key(level, page) for page in range(begin, self._asked[level])]
            keys = [key for key in keys if key not in self._pages]
            if keys:
                self._wanted.append(keys)
                self._wake()

    def fetch(self, level: int, number: int) -> bytes:
        """A page's partials in the machine's order. Raises StoreError, CorruptPageError."""
        key = Key(level, number)
        with self._state:
            partials = self._pages.get(key)
            if partials is not None:
                return partials
            value = self._ahead.pop(key, None)
            late = self._take_over(key) if value is None else []
        if late:
            self._read_ahead(late)
            with self._state:
                value = self._ahead.pop(key, None)
        if value is None:
            value = self._read(key)
        page = pages.decode(key, self.width, 1 << self.shift, value)
        self._check_life(key, page.life)
        return portable(page.partials)

    def _take_over(self, key: Key) -> list[Key]:
        """What the thread has not come to read ahead: a page that is needed now, and the next ones in the same call."""
        for keys in self._wanted:
            if key in keys:
                at = keys.index(key)
                taken, keys[:] = keys[at : at + TAKEN_AT_ONCE], keys[at + TAKEN_AT_ONCE :]
                return taken
        return []

    def _check_life(self, key: Key, life: int) -> None:
        """An earlier life's page beyond its last manifest is not this window's."""
        tier = key.level // self.shift
        after = bisect_right(self.lives, key.page, key=lambda each: self._first_unsealed(tier, each.tail))
        wrote = self.lives[after - 1].number
        if life != wrote if after else life >= self.lives[0].number:
            raise CorruptPageError(
                f"store: page {key.page} of level {key.level} was written in life {life}, expected "
                f"{wrote if after else 'an earlier one'}; the store has lost a write that it had confirmed"
            )

    # what the window calls

    def checkpoint(self, manifest: Manifest) -> None:
        """Store a manifest once the pages given before are stored."""
        with self._state:
            if self._jobs and isinstance(self._jobs[-1], Manifest):
                self._jobs.pop()  # no page came between: the newer one says it all
                self._manifests -= 1
            self._jobs.append(manifest)
            self._manifests += 1
            self._wake()

    def flush(self, sequence: int) -> None:
        """Return when this manifest is stored and would survive a power cut. Raises StoreError where it is not."""
        with self._state:
            self._to_force = sequence
            self._state.notify_all()
            self._wait(lambda: self._forced >= sequence)

    def close(self) -> None:
        """End the thread, then close the store. What still waits, if the store fails, is given up."""
        self.stop()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._store.close()

    def check_process(self) -> None:
        """Raise StoreError in a forked child: the thread is not there, and the store is the parent's."""
        if os.getpid() != self._process:
            raise StoreError(
                f"store: the window was opened by process {self._process} and is used in {os.getpid()}, forked from "
                "it; open windows after forking, or start processes by multiprocessing's 'spawn'"
            )

    def stop(self) -> None:
        """Let the thread end after the call it is in; nothing in a forked child."""
        if os.getpid() != self._process:
            return  # its lock may have been held at that moment, for ever
        with self._state:
            self._closing = True
            self._state.notify_all()

    @property
    def kept(self) -> dict[int, int]:
        """By level, the first page that may still be stored."""
        with self._state:
            return dict(self._kept)

    def keep_from(self, kept: dict[int, int], dead: dict[int, int]) -> None:
        """After opening: what an earlier life left to delete."""
        with self._state:
            self._kept, self._dead = dict(kept), dict(dead)

    def _wait(self, done: Callable[[], bool], patience: float | None = None) -> None:
        """Wait for the thread, at most so many seconds while it does not fail; if it failed, for one attempt more."""
        self._start()
        attempts, end = self._attempts, None if patience is None else time.monotonic() + patience
        while not done():
            left = None if end is None or self._error is not None else end - time.monotonic()
            if left is not None and left <= 0:
                return
            if self._closing:
                raise StoreError("store: the window is closed")
            if self._error is not None and self._attempts > attempts:
                raise self._error
            if self._error is not None and not self._retry:
                self._retry = True
                self._state.notify_all()
            self._state.wait(left)

    # the thread

    def _wake(self) -> None:
        self._start()
        self._state.notify_all()

    def _start(self) -> None:
        if self._thread is not None or self._closing:
            return
        before = threading.stack_size(STACK)
        try:
            thread = threading.Thread(target=self._work, name="sluicegate-pager", daemon=True)
            thread.start()
        except RuntimeError as error:
            raise StoreError(f"store: no thread for it could be started: {error}") from error
        finally:
            threading.stack_size(before)
        self._thread = thread

    def _work(self) -> None:
        deleting = False
        while True:
            with self._state:
                while not (self._closing or self._wanted or self._ready()):
                    self._state.wait(PAUSE if self._error is not None else None)
                    self._retry = self._retry or self._error is not None
                if self._closing:
                    return
                wanted = self._wanted.popleft() if self._wanted else None
            if wanted is not None:
                if wanted:  # else a caller could not wait
                    self._read_ahead(wanted)
                continue
            deleting = not deleting
            self._attempt(deleting)

    def _ready(self) -> bool:
        """Whether there is something to write that is worth trying."""
        if self._error is not None and not self._retry:
            return False
        return (
            self._manifests > 0
            or len(self._pages) >= self._enough
            or any(self._kept.get(level, 0) < end for level, end in self._dead.items())
            or self._forced < self._to_force <= self._done
        )

    def _doomed(self) -> list[Key]:
        for level, end in self._dead.items():
            begin = self._kept.get(level, 0)
            if begin < end:
                return [Key(level, page) for page in range(begin, min(end, begin + DELETED_AT_ONCE))]
        return []

    def _attempt(self, deleting: bool) -> None:
        """One call of the store, by turns of what was given and what has to go."""
        with self._state:
            jobs = self._batch()
            doomed = self._doomed() if deleting or not jobs else []
        try:
            if doomed:
                self._delete(doomed)
            elif not jobs:
                self._sync()
            elif isinstance(jobs[0], Manifest):
                self._write_manifest(jobs[0])
            else:
                self._write_pages([key for key in jobs if isinstance(key, Key)])
        except BaseException as error:
            self._failed(error)
        else:
            with self._state:
                self._error, self._retry = None, False
                self._state.notify_all()

    def _failed(self, error: BaseException) -> None:
        if not isinstance(error, StoreError):
            wrapped = StoreError(f"store: {error!r}; the next call tries again")
            wrapped.__cause__ = error
            error = wrapped
        with self._state:
            self._error, self._retry = error, False
            self._attempts += 1
            self._state.notify_all()

    def _batch(self) -> list[Job]:
        """The jobs to do next: one manifest, or the pages up to it."""
        if self._jobs and isinstance(self._jobs[0], Manifest):
            return [self._jobs[0]]
        found: list[Job] = []
        for job in self._jobs:
            if isinstance(job, Manifest) or len(found) == 2 * self._enough:
                break
            found.append(job)
        return found

    def _write_pages(self, keys: list[Key]) -> None:
        given = {key: self._pages[key] for key in keys}
        life = self.lives[-1].number
        rows: list[Row] = [
            (key, pages.encode(key, life, self.width, portable(partials))) for key, partials in given.items()
        ]
        self._store.put(rows)
        with self._state:
            for key in keys:
                self._jobs.popleft()
                if self._pages[key] is given[key]:
                    del self._pages[key]
                else:  # given again meanwhile
                    self._jobs.append(key)
                self._kept.setdefault(key.level, 0)

    def _write_manifest(self, manifest: Manifest) -> None:
        store, row = self._store, self._row ^ 1
        force = not store.ordered or self._forced < self._to_force <= manifest.sequence
        if not store.ordered:
            store.sync()  # never a manifest without its pages
        store.put([(Key(MANIFEST, row), manifests.encode(manifest))])
        if force:
            store.sync()
        with self._state:
            self._remove(manifest)
            self._row, self._done = row, manifest.sequence
            self._forced = manifest.sequence if force else self._forced
            for tier, head in enumerate(manifest.heads):
                self._dead[tier * self.shift] = head
                self._kept.setdefault(tier * self.shift, 0)

    def _remove(self, manifest: Manifest) -> None:
        """Take the manifest off the queue, unless a newer one has taken its place meanwhile."""
        if self._jobs and self._jobs[0] is manifest:
            self._jobs.popleft()
            self._manifests -= 1

    def _sync(self) -> None:
        done = self._done
        self._store.sync()
        with self._state:
            self._forced = done

    def _delete(self, doomed: list[Key]) -> None:
        self._store.delete(doomed)
        with self._state:
            self._kept[doomed[0].level] = doomed[-1].page + 1

    def _read_ahead(self, keys: list[Key]) -> None:
        try:
            values = self._store.get(keys)
        except Exception:  # whoever needs a page reads it again, and is told
            return
        with self._state:
            self._ahead.update(zip(keys, values, strict=True))

    def _read(self, key: Key) -> bytes | None:
        try:
            (value,) = self._store.get([key])
        except StoreError:
            raise
        except Exception as error:
            raise StoreError(f"store: {error!r}; the next call tries again") from error
        return value
