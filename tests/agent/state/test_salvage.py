"""A damaged store is salvaged row by row: what no damage touched is kept, and no number is wrong in silence."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import NOON, SECOND, configured, sequenced, timed
from target_suite.memory import MemoryTarget

from sluicegate.format import chunk as chunks
from sluicegate_agent.config import Config
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.state import State, StoreDamaged
from sluicegate_agent.state.pages import Pages
from sluicegate_agent.sync import Sync

#: For each kind of damage; more with SLUICEGATE_SEEDS.
SEEDS = int(os.environ.get("SLUICEGATE_SEEDS", "8"))
PAGE = 4096
MINUTE = 60 * SECOND


def value(minute: int) -> float:
    """What is read in a minute: a number that says which minute it was."""
    return minute * 2654435761 % 1000003 / 997


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state in an outage: 900 readings of three streams wait, some of them sealed, with deleted rows between."""
    folder = tmp_path_factory.mktemp("original")
    config, target = setting(folder), MemoryTarget()
    with State(config) as state:
        pipeline, sync = Pipeline(config, state), Sync(config, state, target)
        for minute in range(900):
            pipeline.accept(timed(minute, 1, value=value(minute)))
            if minute % 3 == 0:
                pipeline.accept(sequenced(minute // 3, 2))
            if minute % 10 == 9:
                pipeline.commit()
            if minute == 300:
                sync.step(0.0, flush=True)
                target.away = True
                sync.step(1e6, flush=True)
        state.store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder


def setting(folder: Path) -> Config:
    """The configuration of all these."""
    return configured(folder, outbox={"rows": 2000, "bytes": "2MiB", "chunk_buckets": 8}, mqtt={"receive_maximum": 400})


def copied(original: Path, folder: Path) -> Path:
    """A copy of the state that thinks it is at home; its database."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(original / "state", folder / "state")
    path = folder / "state/state.db"
    with contextlib.closing(sqlite3.connect(path)) as store:
        store.execute("DELETE FROM meta WHERE key = 'home'")
        store.commit()
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def rows_of(path: Path) -> dict[tuple[str, int], tuple[bytes, bytes | None]]:
    """Every outbox row of a whole store by stream's name and first ordinal."""
    query = "SELECT name, first, bucket, readings FROM outbox JOIN stream ON stream.id = outbox.stream"
    with contextlib.closing(sqlite3.connect(path)) as store:
        return {row[:2]: row[2:] for row in store.execute(query)}


def documents_of(path: Path) -> set[bytes]:
    """Every sealed document."""
    with contextlib.closing(sqlite3.connect(path)) as store:
        return {data for (data,) in store.execute("SELECT document FROM chunk")}


def test_every_row_of_a_whole_file_is_read_page_by_page(original: Path, tmp_path: Path) -> None:
    """The reader of pages finds what SQLite finds, table by table: also rows on several pages, and those in the log."""
    path = copied(original, tmp_path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as store:
        store.execute("INSERT INTO counter VALUES ('only.in.the.log', 7, NULL)")
        pages = Pages(path)
        found = [values for _, values in pages.rows()]
        pages.close()
        for table in ("outbox", "counter", "sequence", "identity", "window_leaf"):
            for row in store.execute(f"SELECT * FROM {table}"):  # noqa: S608
                assert list(row) in found, table
        for (document,) in store.execute("SELECT document FROM chunk"):
            assert any(document in values for values in found)
        for name, row in store.execute("SELECT name, row FROM stream"):
            assert any(values[1:3] == [name, row] for values in found)


def zeros(data: bytearray, pick: random.Random) -> set[int]:
    """A few pages are gone."""
    pages = {pick.randrange(len(data) // PAGE) for _ in range(pick.randint(1, 4))}
    for page in pages:
        data[page * PAGE : (page + 1) * PAGE] = bytes(PAGE)
    return pages


def flipped(data: bytearray, pick: random.Random) -> set[int]:
    """Single bits, anywhere."""
    places = [pick.randrange(len(data)) for _ in range(pick.randint(1, 12))]
    for place in places:
        data[place] ^= 1 << pick.randrange(8)
    return {place // PAGE for place in places}


def noise(data: bytearray, pick: random.Random) -> set[int]:
    """Part of a page says something else."""
    page = pick.randrange(len(data) // PAGE)
    begin = pick.randrange(PAGE - 64)
    data[page * PAGE + begin : page * PAGE + begin + 64] = pick.randbytes(64)
    return {page}


def _noting(read: Callable[[int], bytes], used: set[int]) -> Callable[[int], bytes]:
    def page(number: int) -> bytes:
        used.add(number)
        return read(number)

    return page


def untouched(original: Path, damaged: set[int]) -> tuple[dict[Any, Any], set[bytes]]:
    """The rows and documents of which not a byte stands on a damaged page."""
    pages = Pages(original)
    on: list[list[Any]] = []
    for number in range(1, pages.count + 1):
        if number not in pages.free and number - 1 not in damaged:
            used: set[int] = set()
            read = pages.page
            pages.page = _noting(read, used)  # type: ignore[method-assign]
            for _, values in pages._of_page(number):
                on.append([*values, {n - 1 for n in used}])
            pages.page = read  # type: ignore[method-assign]
    pages.close()
    rows = {
        key: row
        for key, row in rows_of(original).items()
        if any(v[2:4] == [*row] and v[1] == key[1] and not v[-1] & damaged for v in on if len(v) == 6)
    }
    documents = {d for d in documents_of(original) if any(d in v[:-1] and not v[-1] & damaged for v in on)}
    return rows, documents


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("damage", [zeros, flipped, noise])
def test_what_no_damage_touched_is_kept(
    original: Path, tmp_path: Path, damage: Callable[[bytearray, random.Random], set[int]], seed: int
) -> None:
    """Every whole row and document is there after the next start, and goes to the target as it was taken."""
    path = copied(original, tmp_path)
    whole = tmp_path / "whole.db"
    shutil.copy(path, whole)
    data = bytearray(path.read_bytes())
    pages = damage(data, random.Random(seed))
    rows, documents = untouched(whole, pages)
    path.write_bytes(bytes(data))
    config, target = setting(tmp_path), MemoryTarget()
    for _ in range(3):
        try:
            hand_on(config, target)
            break
        except StoreDamaged:
            continue
    else:
        pytest.fail("it never went on")
    arrived = {}
    for text in target.documents.values():
        chunk = chunks.decode(text)
        for bucket, singles in zip(chunk.buckets, chunk.readings, strict=True):
            arrived[chunk.stream, chunk.incarnation, bucket.first] = bucket
            right(chunk.stream, singles)
    firsts = {(stream, first) for stream, _, first in arrived}
    lost = [key for key in rows if key not in firsts]
    assert not lost, (pages, len(rows))
    assert documents <= set(target.documents.values())


def right(stream: str, singles: Any) -> None:
    """Each single reading is one that was taken."""
    if stream == "heat" and singles is not None:
        for time, found in zip(*singles, strict=True):
            assert found == value((time - NOON) // MINUTE)


def hand_on(config: Config, target: MemoryTarget) -> None:
    """One start, some readings, and all that waits."""
    with State(config) as state:
        pipeline, sync = Pipeline(config, state), Sync(config, state, target)
        for minute in range(5000, 5020):
            pipeline.accept(timed(minute, 1, value=value(minute)))
        pipeline.flush()
        pipeline.commit()
        now = 0.0
        while not sync.is_done():
            sync.step(now, flush=True)
            now += 1000.0
            assert now < 1e6, sync.link.error


def test_a_kill_while_salvaging_loses_nothing(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ended at any rename: the next start makes the new store again, or takes the one that is complete."""
    config = setting(tmp_path)
    for most in range(1, 6):
        path = copied(original, tmp_path)
        rows = rows_of(path)
        data = bytearray(path.read_bytes())
        data[100:PAGE] = bytes(PAGE - 100)
        path.write_bytes(bytes(data))
        rename = Path.rename
        renamed: list[Path] = []

        def once(self: Path, to: Path, rename: Any = rename, renamed: Any = renamed, most: int = most) -> Path:
            renamed.append(self)
            if len(renamed) >= most:
                raise KeyboardInterrupt
            return rename(self, to)  # type: ignore[no-any-return]

        with monkeypatch.context() as dying, contextlib.suppress(KeyboardInterrupt):
            dying.setattr(Path, "rename", once)
            State(config).close()
        with State(config) as state:
            assert state.store.set_aside >= 1
        assert rows_of(path).items() >= rows.items()
