"""The contract of a store, run over each one; what a page and a manifest refuse."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from file_stores import couchbase_lite
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import number

import sluicegate as sg
from gateway import mock
from sluicegate import stores
from sluicegate.errors import ConfigurationError, CorruptPageError, NewerSnapshotError, StoreError
from sluicegate.stores import Key, Plan, manifest, page
from sluicegate.stores.contract import LARGEST_VALUE, MANIFEST, MAX_LEVEL, MAX_PAGE, runs

Opens = Callable[[], Any]


@pytest.fixture(scope="module")
def couchbase_server() -> Iterator[mock.CouchbaseMock]:
    """One CouchbaseMock for this module; skips with what is missing."""
    if why := mock.lacking():
        pytest.skip(why)
    with mock.CouchbaseMock() as server:
        yield server


@pytest.fixture(params=["memory", "sqlite", "couchbase", "couchbase-lite"])
def opens(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opens]:
    """Opens the store, and opens it again with what it holds."""
    if request.param == "couchbase":
        yield from _of_couchbase(request.getfixturevalue("couchbase_server"), request.node.name)
        return
    if request.param == "memory":
        first = stores.Memory()
        yield first.reopen
        return
    kind = stores.SQLite if request.param == "sqlite" else couchbase_lite()
    made: list[Any] = []

    def open_one() -> Any:
        for store in made:
            store.close()
        made.append(kind(tmp_path / "pages.db"))
        return made[-1]

    yield open_one
    for store in made:
        store.close()


def _of_couchbase(server: mock.CouchbaseMock, name: str) -> Iterator[Opens]:
    made: list[stores.Couchbase] = []

    def open_one() -> stores.Couchbase:
        made.append(opened_at(server, name))
        return made[-1]

    yield open_one
    for store in made:
        store.close()


def opened_at(server: mock.CouchbaseMock, name: str, **options: Any) -> stores.Couchbase:
    """A store of the mock's bucket; the mock knows no durability."""
    told = {"user": mock.BUCKET, "password": mock.PASSWORD, "durability": "none", "timeout": 60.0, **options}
    return stores.Couchbase(server.url, mock.BUCKET, name.replace("::", ":"), **told)


def test_rows_come_back_in_the_order_asked_for(opens: Opens) -> None:
    """A batch of rows is there at once; what was never put is None."""
    store = opens()
    rows = [(Key(level, number), bytes([level + 1, number]) * 100) for level in (-1, 0, 9, 63) for number in range(3)]
    store.put(rows)
    keys = [key for key, _ in rows]
    assert store.get(keys[::-1]) == [value for _, value in rows][::-1]
    assert store.get([Key(1, 0), keys[0], Key(0, 3)]) == [None, rows[0][1], None]
    assert store.get([]) == []


def test_a_second_put_replaces(opens: Opens) -> None:
    """The newest value of a row counts, of any length."""
    store = opens()
    for value in (b"a", b"", b"b" * 70_000, b"c"):
        store.put([(Key(0, 7), value)])
        assert store.get([Key(0, 7)]) == [value]


def test_delete_leaves_the_others_and_ignores_what_is_not_there(opens: Opens) -> None:
    """Of a run of pages those that were named go, of that level only."""
    store = opens()
    store.put([(Key(level, number), b"x") for level in (0, 9) for number in range(20)])
    store.delete([Key(0, number) for number in (3, 4, 5, 11, 19, 20, 21)])
    store.delete([Key(0, 3)])
    store.delete([])
    left = [number for number in range(20) if store.get([Key(0, number)]) != [None]]
    assert left == [0, 1, 2, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16, 17, 18]
    assert None not in store.get([Key(9, number) for number in range(20)])


def test_rows_outlive_the_store_object(opens: Opens) -> None:
    """After sync and close, and without either, another object of the same store finds them."""
    store = opens()
    store.put([(Key(0, 1), b"one")])
    store.sync()
    store.put([(Key(0, 2), b"two")])
    again = opens()
    assert again.get([Key(0, 1), Key(0, 2)]) == [b"one", b"two"]


def test_get_while_another_thread_puts(opens: Opens) -> None:
    """A reader beside the writer sees each row as before or as put, and never fails."""
    store, seen = opens(), set()
    store.put([(Key(0, 0), b"0" * 4096)])
    done = threading.Event()

    def write() -> None:
        for i in range(number(200, 60)):
            store.put([(Key(0, 0), b"%d" % (i % 10) * 4096), (Key(0, i), b"x" * 4096)])
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set() and writer.is_alive():
        (value,) = store.get([Key(0, 0)])
        seen.add(value)
    writer.join()
    assert done.is_set()
    assert all(len(value) == 4096 and len(set(value)) == 1 for value in seen)


def test_a_closed_store_refuses(opens: Opens) -> None:
    """After close every call raises StoreError; closing twice is once."""
    store = opens()
    store.close()
    store.close()
    for call in (lambda: store.get([Key(0, 0)]), lambda: store.put([(Key(0, 0), b"")]), store.sync):
        with pytest.raises(StoreError):
            call()


def test_closed_while_another_thread_puts_and_deletes(opens: Opens) -> None:
    """Under a window that still writes: the call under way ends whole, the next raises StoreError, nothing crashes."""
    for attempt in range(number(8, 4)):
        store, began = opens(), threading.Event()
        ended: list[StoreError] = []

        def write(store: Any, began: threading.Event, ended: list[StoreError]) -> None:
            try:
                for i in range(1_000_000):
                    store.put([(Key(0, i % 50), b"%d" % i * 50), (Key(1, i % 50), b"%d" % i * 50)])
                    store.delete([Key(level, (i + 7) % 50) for level in (0, 1)])
                    began.set()
            except StoreError as error:
                ended.append(error)
                began.set()

        writer = threading.Thread(target=write, args=(store, began, ended))
        writer.start()
        assert began.wait(120)
        time.sleep(0.0007 * attempt)
        store.close()
        writer.join(120)
        assert len(ended) == 1
        pages = [Key(0, page) for page in range(50)]
        again = opens()
        left, right = again.get(pages), again.get([Key(1, key.page) for key in pages])
        if isinstance(again, stores.Couchbase):  # no transactions: of the last call some rows may be there
            assert sum(one != other for one, other in zip(left, right, strict=True)) <= attempt + 1
        else:
            assert left == right


@pytest.mark.parametrize("key", [Key(-2, 0), Key(64, 0), Key(0, -1), Key(0, 2**56)])
def test_keys_that_no_window_makes(opens: Opens, key: Key) -> None:
    """A key out of range is refused before anything is written."""
    store = opens()
    for call in (lambda: store.get([key]), lambda: store.delete([key]), lambda: store.put([(key, b"")])):
        with pytest.raises(ValueError, match="expected a level"):
            call()


Keys = st.builds(Key, st.integers(MANIFEST, MAX_LEVEL), st.integers(0, MAX_PAGE) | st.integers(0, 5))


@given(st.lists(Keys, max_size=30))
def test_numbers_and_names_sort_as_keys_do(keys: list[Key]) -> None:
    """As an integer, as a document's id and as runs, a key stays itself and in its order."""
    ordered = sorted(set(keys))
    assert [key.number for key in ordered] == sorted({key.number for key in keys})
    assert [key.name for key in ordered] == sorted({key.name for key in keys})
    assert all(0 <= key.number < 2**63 and len(key.name) == 20 for key in keys)
    covered = [number for first, last in runs(keys) for number in range(first, last + 1)]
    assert covered == [key.number for key in ordered]


@pytest.mark.parametrize("plan", [Plan(0, 1), Plan(13, 1), Plan(9, 0)])
def test_plans_that_cannot_be(plan: Plan) -> None:
    """Pages of one partial or of more than 4096, and no manifests at all, are refused."""
    with pytest.raises(ConfigurationError, match="shift"):
        stores.Memory(plan)


# SQLite


def test_one_object_a_file(tmp_path: Path) -> None:
    """A second object, in this process or another, is refused while the first is open."""
    path = tmp_path / "pages.db"
    code = f"from sluicegate.stores import SQLite; SQLite({str(path)!r})"
    with pytest.raises(StoreError, match="in use"):
        _first, _second = stores.SQLite(path), stores.SQLite(path)
    store = stores.SQLite(path)
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert other.returncode != 0
    assert "in use" in other.stderr
    store.close()
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_files_of_something_else(tmp_path: Path) -> None:
    """Another program's database, a text file, a folder and a newer format are refused with what they are."""
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE people (name)")
    connection.close()
    with pytest.raises(ConfigurationError, match="something else"):
        stores.SQLite(foreign)
    text = tmp_path / "text.db"
    text.write_text("not a database, but long enough to be looked at by whoever reads its first hundred bytes " * 9)
    with pytest.raises(StoreError, match="could not open"):
        stores.SQLite(text)
    with pytest.raises(StoreError, match="could not open"):
        stores.SQLite(tmp_path)
    with pytest.raises(StoreError, match="folder that may be written"):
        stores.SQLite(tmp_path / "missing" / "pages.db")
    newer = tmp_path / "newer.db"
    stores.SQLite(newer).close()
    with sqlite3.connect(newer) as connection:
        connection.execute("PRAGMA user_version = 2")
    connection.close()
    with pytest.raises(ConfigurationError, match="format 2"):
        stores.SQLite(newer)


def test_a_value_beyond_the_limit(tmp_path: Path) -> None:
    """More than 8 MiB is refused, and the rest of the batch with it."""
    store = stores.SQLite(tmp_path / "pages.db")
    with pytest.raises(StoreError, match="8 MiB"):
        store.put([(Key(0, 0), b"x"), (Key(0, 1), bytes(LARGEST_VALUE + 1))])
    assert store.get([Key(0, 0)]) == [None]
    store.close()


def test_a_full_disk_is_a_store_error_and_passes(tmp_path: Path) -> None:
    """A batch that does not fit is undone as a whole; with room again, it goes in."""
    store = stores.SQLite(tmp_path / "pages.db")
    store.put([(Key(0, 0), b"a" * 4096)])
    store._writer.execute("PRAGMA max_page_count = 8")
    with pytest.raises(StoreError, match="could not write"):
        store.put([(Key(0, number), b"b" * 4096) for number in range(50)])
    assert store.get([Key(0, 0), Key(0, 1)]) == [b"a" * 4096, None]
    store._writer.execute("PRAGMA max_page_count = 100000")
    store.put([(Key(0, number), b"b" * 4096) for number in range(50)])
    assert store.get([Key(0, 49)]) == [b"b" * 4096]
    store.close()


# pages and manifests


@given(
    Keys.filter(lambda key: key.level >= 0), st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 64), st.data()
)
def test_any_damaged_page_is_refused(key: Key, life: int, width: int, count: int, data: st.DataObject) -> None:
    """A page reads back as written; with any byte changed, cut off or added it is a CorruptPageError."""
    partials = data.draw(st.binary(min_size=8 * width * count, max_size=8 * width * count))
    value = page.encode(key, life, width, partials)
    assert page.decode(key, width, count, value) == (life, partials)
    at, other = data.draw(st.integers(0, len(value) - 1)), data.draw(st.integers(1, 255))
    for wrong in (value[:at], value + b"\0", value[:at] + bytes([value[at] ^ other]) + value[at + 1 :], None):
        with pytest.raises(CorruptPageError):
            page.decode(key, width, count, wrong)
    with pytest.raises(CorruptPageError, match="mixed up"):
        page.decode(Key(key.level, key.page ^ 1), width, count, value)
    with pytest.raises(CorruptPageError, match="mixed up"):
        page.decode(key, width, count + 1, value)


Manifests = st.builds(
    lambda width, counts, lives, **rest: manifest.Manifest(
        width=width, lives=tuple(map(manifest.Life._make, lives)),
        levels=tuple(manifest.Level(k, b, bytes(8 * width * n)) for k, b, n in counts), **rest,
    ),
    sequence=st.integers(0, 2**40), head=st.integers(0, 2**50), tail=st.integers(0, 2**50), shift=st.integers(1, 12),
    width=st.integers(1, 5),
    counts=st.lists(st.tuples(st.integers(0, 99), st.integers(0, 999), st.integers(0, 8)), max_size=4),
    lives=st.lists(st.tuples(st.integers(0, 99), st.integers(0, 2**50)), min_size=1, max_size=5),
    description=st.binary(max_size=30), state=st.binary(max_size=30),
)  # fmt: skip


class Whole:
    """A store whose rows are written whole or not at all."""

    atomic = True

    def __init__(self, store: stores.Memory) -> None:
        self.get = store.get


@settings(max_examples=number(100, 40))
@given(Manifests, st.data())
def test_any_damaged_manifest_is_refused(of: manifest.Manifest, data: st.DataObject) -> None:
    """A manifest reads back as written; damaged it is refused, and the older whole one beside it is taken."""
    value = manifest.encode(of)
    assert manifest.decode(value) == of
    at, other = data.draw(st.integers(0, len(value) - 1)), data.draw(st.integers(1, 255))
    wrong = value[:at] + bytes([value[at] ^ other]) + value[at + 1 :]
    for bad in (wrong, value[:at], value + b"\0"):
        with pytest.raises((CorruptPageError, NewerSnapshotError)):
            manifest.decode(bad)
    store = stores.Memory()
    assert manifest.newest(store) is None
    store.put([(Key(MANIFEST, 1), value[:-1])])
    with pytest.raises(CorruptPageError, match="no manifest is sure to be whole"):
        manifest.newest(store)
    store.put([(Key(MANIFEST, 0), value)])
    assert manifest.newest(store) == (of, 0)
    with pytest.raises(CorruptPageError, match="no manifest is sure to be whole"):
        manifest.newest(Whole(store))  # there no crash tears one, so the older one would be an old answer
    store.put([(Key(MANIFEST, 1), manifest.encode(of._replace(sequence=of.sequence + 1)))])
    assert manifest.newest(store) == (of._replace(sequence=of.sequence + 1), 1)


def test_a_newer_manifest_is_no_damage() -> None:
    """A later Sluicegate's manifest is never passed over for an older one."""
    of = manifest.Manifest(1, 0, 0, 9, 1, (manifest.Life(1, 0),), (), b"", b"")
    value = bytearray(manifest.encode(of))
    value[4] = 2
    head = bytes(value[: manifest._HEAD.size])
    value[manifest._HEAD.size : manifest._HEAD.size + 4] = zlib.crc32(
        value[manifest._HEAD.size + 4 :], zlib.crc32(head)
    ).to_bytes(4, "little")
    store = stores.Memory()
    store.put([(Key(MANIFEST, 0), manifest.encode(of)), (Key(MANIFEST, 1), bytes(value))])
    with pytest.raises(NewerSnapshotError, match="version 2"):
        manifest.newest(store)


# Couchbase Server


@pytest.mark.parametrize("engine", ["amta", "log_mta"])
def test_a_window_lives_in_a_couchbase_server(couchbase_server: mock.CouchbaseMock, engine: str) -> None:
    """Key-value AMTA and Log MTA: closed and opened again, the answers and buckets of the same window in memory."""
    arguments: dict[str, Any] = {"policy": sg.policies.count(5000), "engine": engine}
    aggregates = {"sum": sg.sum(), "peak": sg.max()}
    plan = Plan(shift=6, every=8)
    stored = sg.Window(aggregates, store=opened_at(couchbase_server, f"window-{engine}", plan=plan), **arguments)
    memory = sg.Window(aggregates, **arguments)
    values = [float(i * 7919 % 1000) for i in range(12_000)]
    for window in (stored, memory):
        window.insert_many(values[:9000])
    assert stored.query() == memory.query()
    stored.close()
    again = sg.Window.open(opened_at(couchbase_server, f"window-{engine}", plan=plan))
    assert again.accepted == 9000
    for window in (again, memory):
        window.insert_many(values[9000:])
    assert again.query() == memory.query()
    assert [each.count for each in again.buckets()] == [each.count for each in memory.buckets()]
    again.close()


def test_the_newest_opening_owns_a_couchbase_store(couchbase_server: mock.CouchbaseMock) -> None:
    """A window that was pushed aside writes no manifest over the other's."""
    first = opened_at(couchbase_server, "owned")
    first.put([(Key(MANIFEST, 0), b"first")])
    second = opened_at(couchbase_server, "owned")
    with pytest.raises(StoreError, match="another window"):
        first.put([(Key(MANIFEST, 0), b"late")])
    assert second.get([Key(MANIFEST, 0)]) == [b"first"]
    first.close()
    second.close()


def test_a_couchbase_server_that_is_away_is_a_store_error(couchbase_server: mock.CouchbaseMock) -> None:
    """Nobody listens: StoreError with the place, when it is opened."""
    away = mock.CouchbaseMock()
    away.url = "couchbase://127.0.0.1:9"
    with pytest.raises(StoreError, match="could not open"):
        opened_at(away, "away", timeout=0.3)


def test_a_couchbase_store_without_its_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not installed: it says what to install."""
    monkeypatch.setitem(sys.modules, "couchbase", None)
    monkeypatch.delitem(sys.modules, "couchbase.exceptions", raising=False)
    with pytest.raises(ConfigurationError, match=r"sluicegate\[couchbase\]"):
        stores.Couchbase("couchbase://127.0.0.1", "b", "n", user="u", password="p")  # noqa: S106
    with pytest.raises(ConfigurationError, match="printable"):
        stores.Couchbase("couchbase://127.0.0.1", "b", "a::b", user="u", password="p")  # noqa: S106
