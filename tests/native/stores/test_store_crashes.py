"""A process that ends at any call of a store, a log cut anywhere, a full disk: what opens is never a mixture."""

from __future__ import annotations

import itertools
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from fault_stores import DiedError

import sluicegate as sg
from sluicegate.errors import CorruptPageError, StoreError
from sluicegate.stores import Key, Memory, Plan, SQLite, stored_core
from sluicegate.stores.contract import Row

SUMS = {"sum": sg.sum(), "max": sg.max(), "first": sg.first()}
SIZE, COUNT, EVERY = 21, 60, 17  # of the window, readings, readings between two flushes


@pytest.fixture(params=list(stored_core.ENGINES))
def engine(request: pytest.FixtureRequest) -> str:
    """Each engine that has a stored form."""
    return str(request.param)


def readings() -> list[float]:
    """With digits that rounding shows in."""
    source = random.Random(5)
    return [source.gauss(0.0, 1.0) for _ in range(COUNT)]


def shape(window: sg.Window) -> list[Any]:
    """All leaves' results."""
    return [bucket.results for bucket in window.buckets()]


def states(engine: str, size: int = SIZE) -> list[tuple[Any, Any]]:
    """What the window in memory answers and holds after each number of readings."""
    window = sg.Window(SUMS, policy=sg.policies.count(size), engine=engine)
    found = [(window.query(), shape(window))]
    for value in readings():
        window.insert(value)
        found.append((window.query(), shape(window)))
    return found


def live(store: Any, engine: str, flushed: list[int]) -> None:
    """A window's life; `flushed` gets how many readings were in at each flush that returned."""
    window = sg.Window(SUMS, policy=sg.policies.count(SIZE), engine=engine, store=store)
    flushed.append(0)
    for i, value in enumerate(readings()):
        window.insert(value)
        if i % EVERY == EVERY - 1:
            window.flush()
            flushed.append(i + 1)
    window.close()
    flushed.append(COUNT)


def goes_on(store: Any, engine: str, least: int, expected: list[tuple[Any, Any]]) -> int:
    """Open, compare, take the readings that are missing, close; how many were in."""
    opened = sg.Window.open(store)
    accepted = opened.accepted
    assert least <= accepted <= COUNT
    assert (opened.query(), shape(opened)) == expected[accepted]
    opened.verify()
    for value in readings()[accepted:]:
        opened.insert(value)
    assert (opened.query(), shape(opened)) == expected[COUNT]
    opened.close()
    return accepted


def dying(kind: type[Any], *arguments: Any) -> Any:
    """A store of this kind whose process dies at one call: half of them just before, half just after it is done."""

    class Dying(kind):  # type: ignore[misc]  # Memory or SQLite
        calls, die_at = 0, 10**9

        def _call(self, done: Callable[[Any], Any], what: Any) -> Any:
            self.calls += 1
            if self.calls > self.die_at or (self.calls == self.die_at and self.calls % 2):
                raise DiedError
            found = done(what) if what is not None else done()  # type: ignore[call-arg]
            if self.calls == self.die_at:
                raise DiedError
            return found

        def put(self, rows: Sequence[Row]) -> None:
            self._call(super().put, rows)

        def get(self, keys: Sequence[Key]) -> list[bytes | None]:
            found: list[bytes | None] = self._call(super().get, keys)
            return found

        def delete(self, keys: Sequence[Key]) -> None:
            self._call(super().delete, keys)

        def sync(self) -> None:
            self._call(super().sync, None)

    return Dying(*arguments)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_the_process_ends_at_every_call(engine: str, kind: str, tmp_path: Path) -> None:
    """Whatever call of the store is the last: the window opens as it was, not before the last flush, and goes on.

    In memory every call; in SQLite, which takes longer and cannot know whose calls they are, every third.
    """
    expected = states(engine)
    for die_at in itertools.count(3, 1 if kind == "memory" else 3):  # the first two calls are a new store's
        folder = tmp_path / str(die_at)
        folder.mkdir()
        arguments = (Plan(1, 3),) if kind == "memory" else (folder / "w.db", Plan(1, 3))
        store, flushed = dying(Memory if kind == "memory" else SQLite, *arguments), list[int]()
        store.die_at = die_at
        try:
            live(store, engine, flushed)
            died = store.calls >= die_at  # in the thread, when nothing waited for it any more
        except StoreError as error:
            died = isinstance(error.__cause__, DiedError) or "closed" in str(error)
            if not died:
                raise
        if not died:
            assert die_at > 20, "the life has hardly any calls"
            return
        survivor = left_of(store, folder)
        if flushed or [row for row in survivor.get([Key(-1, 0), Key(-1, 1)]) if row is not None]:
            goes_on(survivor, engine, flushed[-1] if flushed else 0, expected)


def left_of(store: Any, folder: Path) -> Any:
    """The store that another process would find: the rows, or the file and its log as they are on disk now."""
    if isinstance(store, Memory):
        survivor = Memory(store.plan)
        survivor.rows = dict(store.rows)
        return survivor
    copy(folder / "w.db", folder / "copy.db")
    return SQLite(folder / "copy.db", store.plan)


def copy(source: Path, target: Path) -> None:
    """A database and its write-ahead log, as `kill -9` leaves them; the shared memory beside them is made anew."""
    for ending in ("", "-wal"):
        if source.with_name(source.name + ending).exists():
            shutil.copyfile(source.with_name(source.name + ending), target.with_name(target.name + ending))


def test_a_log_cut_anywhere(engine: str, tmp_path: Path) -> None:
    """A power cut leaves a prefix of SQLite's log, torn anywhere: an older state of the window, whole, or none yet."""
    expected, store = states(engine), SQLite(tmp_path / "w.db", Plan(1, 3))
    window = sg.Window(SUMS, policy=sg.policies.count(SIZE), engine=engine, store=store)
    for value in readings():
        window.insert(value)
    window.flush()
    copy(tmp_path / "w.db", tmp_path / "whole.db")
    window.close()
    log = (tmp_path / "whole.db-wal").read_bytes()
    assert len(log) > 20 * 4096, "the log has been carried over into the file"
    source, seen = random.Random(1), set()
    for cut in [len(log), *sorted(source.sample(range(len(log)), 20), reverse=True)]:
        copy(tmp_path / "whole.db", tmp_path / "cut.db")
        (tmp_path / "cut.db-wal").write_bytes(log[:cut] + (b"\xa5" * source.randrange(2) * 1000))
        survivor = SQLite(tmp_path / "cut.db", Plan(1, 3))
        if survivor.get([Key(-1, 0)]) == survivor.get([Key(-1, 1)]) == [None]:
            survivor.close()
            continue
        seen.add(goes_on(survivor, engine, 0, expected))
    assert COUNT in seen
    assert len(seen) > 3


def test_a_full_disk_and_room_again(engine: str, tmp_path: Path) -> None:
    """SQLite says that the disk is full: readings are refused, with nothing changed, until there is room."""
    store, size = SQLite(tmp_path / "w.db", Plan(3, 4)), 900
    policy, plain = sg.policies.count(size), sg.Window(SUMS, policy=sg.policies.count(size))
    window = sg.Window(SUMS, policy=policy, engine=engine, store=store)
    values = [float(i * 7919 % 101) for i in range(6_000)]
    pages = store._writer.execute("PRAGMA page_count").fetchone()[0]
    store._writer.execute(f"PRAGMA max_page_count = {pages + 3:d}")
    with pytest.raises(StoreError, match=r"w\.db: could not write: database or disk is full; the next call tries"):
        window.insert_many(values, results=False)
    assert 0 < window.accepted < 3_000, "at most 256 pages of 8 wait for the store"
    before = window.accepted, len(window), window.query()
    for call in (window.flush, lambda: window.insert(values[window.accepted])):
        with pytest.raises(StoreError, match="disk is full"):
            call()
    assert (window.accepted, len(window), window.query()) == before
    plain.insert_many(values[: window.accepted], results=False)
    assert window.query() == plain.query()
    store._writer.execute("PRAGMA max_page_count = 1000000")
    window.insert_many(values[window.accepted :], results=False)
    plain.insert_many(values[plain.accepted :], results=False)
    assert shape(window) == shape(plain)
    window.verify()
    window.close()
    assert sg.Window.open(SQLite(tmp_path / "w.db")).query() == plain.query()


LIMITED = """
import resource, signal, sys
import sluicegate as sg
from sluicegate.stores import Plan, SQLite
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
values = [float(i * 7919 % 101) for i in range(60_000)]
store = SQLite(sys.argv[1], Plan(6, 8))
window = sg.Window(sg.sum(), policy=sg.policies.count(50_000), engine=sys.argv[2], store=store)
most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, most))
try:
    window.insert_many(values, results=False)
except sg.errors.StoreError as error:
    print("refused", window.query()["sum"] == sum(values[: window.accepted][-50_000:]), "could not write" in str(error))
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
window.insert_many(values[window.accepted :], results=False)
window.verify()
window.close()
window = sg.Window.open(SQLite(sys.argv[1]))
print("whole", window.query()["sum"] == sum(values[-50_000:]), window.accepted == 60_000)
"""


@pytest.mark.parametrize("kept", list(stored_core.ENGINES))
def test_a_file_that_may_not_grow(kept: str, tmp_path: Path) -> None:
    """A real limit on the size of files (RLIMIT_FSIZE), lifted later."""
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "w.db"), kept]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert ran.stdout.splitlines() == ["refused True True", "whole True True"], ran.stderr


def read_whole(path: Path) -> tuple[Any, Any]:
    """What a window in a file answers and holds, once it has been verified; nothing of it stays open."""
    with ExitStack() as opened:
        store = opened.enter_context(closing(SQLite(path)))
        window = opened.enter_context(closing(sg.Window.open(store)))
        answer = window.query(), shape(window)
        window.verify()
        return answer


def test_a_damaged_file_is_an_error_and_no_answer(engine: str, tmp_path: Path) -> None:
    """Bytes of the file overwritten anywhere: opening, answering and reading all of it is right, or says StoreError."""
    window = sg.Window(SUMS, policy=sg.policies.count(SIZE), engine=engine, store=SQLite(tmp_path / "w.db", Plan(1, 3)))
    for value in readings():
        window.insert(value)
    window.close()
    with closing(sqlite3.connect(tmp_path / "w.db")) as connection:
        connection.execute("VACUUM")  # where a page stood depended on the writer's pace
    whole, expected, source = (tmp_path / "w.db").read_bytes(), states(engine)[COUNT], random.Random(2)
    told: list[str] = []
    for attempt in range(100):
        at = source.randrange(100, len(whole) - 64)
        (tmp_path / "damaged.db").write_bytes(whole[:at] + source.randbytes(64) + whole[at + 64 :])
        try:
            assert read_whole(tmp_path / "damaged.db") == expected, f"attempt {attempt}: 64 bytes at {at}"
        except (StoreError, sg.errors.ConfigurationError) as error:
            told.append(str(error))
    assert 5 < len(told) < 60, f"of 100 damages in {len(whole)} bytes"
    assert not [text for text in told if "in use" in text], "a file was not given back"


def test_what_is_no_page_in_the_table(engine: str, tmp_path: Path) -> None:
    """A row that holds a number or a text instead of a page is damage like any other."""
    window = sg.Window(SUMS, policy=sg.policies.count(SIZE), engine=engine, store=SQLite(tmp_path / "w.db", Plan(1, 3)))
    for value in readings():
        window.insert(value)
    window.close()
    for value in (7, "page", 2.5, b""):
        shutil.copyfile(tmp_path / "w.db", tmp_path / "strange.db")
        connection = sqlite3.connect(tmp_path / "strange.db")
        connection.execute("UPDATE page SET value = ? WHERE id >= ?", (value, Key(0, 0).number))
        connection.commit()
        connection.close()
        store = SQLite(tmp_path / "strange.db")
        with pytest.raises(CorruptPageError):
            sg.Window.open(store).verify()
        store.close()
