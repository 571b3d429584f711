"""A copied state: both agents go on, each reading counts once, and what cannot be known is in doubt."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import NOON, SECOND, configured, timed

from sluicegate.format import chunk as chunks
from sluicegate.format.chunk import Chunk
from sluicegate_agent.config import Config
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.state import State
from sluicegate_agent.state.home import differences, home
from sluicegate_agent.sync import Sync


def take(pipeline: Pipeline, minutes: range, *, close: bool) -> None:
    """A reading a minute, each in a commit of its own; the open bucket goes to the outbox where `close`."""
    for minute in minutes:
        pipeline.accept(timed(minute, 1, value=minute * 2654435761 % 1000003 / 997))
        pipeline.commit()
    if close:
        pipeline.flush()
        pipeline.commit()


def run(config: Config, minutes: range, *, send: bool = False) -> dict[str, Any]:
    """One agent from start to end: a reading a minute, and all that waits handed on where `send`."""
    with State(config) as state:
        pipeline, sync = Pipeline(config, state), Sync(config, state)
        take(pipeline, minutes, close=send)
        if send:
            now = 0.0
            while not sync.is_done():
                sync.step(now, flush=True)
                now += 1000.0
        answers = [str(answer) for answer in pipeline.answers("heat", "recent")]
        found = {"incarnation": state.incarnation, "key": state.key, "counters": state.counters.as_dict()}
        return {**found, "answers": answers, "rejected": state.outbox.rejected}


def pair(folder: Path) -> tuple[Config, Config]:
    """Two configurations of one device: the state's place differs, the target does not."""
    (folder / "chunks").mkdir(exist_ok=True)
    tables: dict[str, Any] = {"outbox": {"chunk_buckets": 8, "bytes": "1MiB"}}
    return configured(folder, **tables), configured(folder, state={"path": "copy"}, **tables)


def arrived(folder: Path) -> list[Chunk]:
    """All documents of the stream `heat` at the target."""
    return [chunks.decode(path.read_bytes()) for path in sorted((folder / "chunks/board-1/heat").iterdir())]


def kept(config: Config) -> list[Chunk]:
    """What the target refused: it waits in the state for a person."""
    with contextlib.closing(sqlite3.connect(config.state.path / "state.db")) as store:
        return [chunks.decode(data) for (data,) in store.execute("SELECT document FROM chunk")]


def counted(documents: list[Chunk]) -> tuple[Counter[int], Counter[int]]:
    """By minute: how often it surely counts, and how often in doubt; an ordinal of an incarnation counts once."""
    sure: dict[tuple[str, int], int] = {}
    doubt: Counter[int] = Counter()
    for chunk in documents:
        for bucket, singles in zip(chunk.buckets, chunk.readings, strict=True):
            even = range(bucket.t_first, bucket.t_last + 1, 60 * SECOND)
            assert singles is not None or len(even) == bucket.n
            for place, time in enumerate(singles[0] if singles else even):
                minute = (time - NOON) // (60 * SECOND)
                if bucket.doubt:
                    doubt[minute] += 1
                else:
                    assert sure.setdefault((chunk.incarnation, bucket.first + place), minute) == minute
    return Counter(sure.values()), doubt


def test_a_key_travels_with_each_document_and_stays(tmp_path: Path) -> None:
    """128 bits made up at the first start: the same after each restart, another one in another state."""
    one, _ = pair(tmp_path)
    first, again = run(one, range(10)), run(one, range(10, 20), send=True)
    assert (first["key"], first["incarnation"]) == (again["key"], again["incarnation"])
    assert {chunk.key for chunk in arrived(tmp_path)} == {first["key"]}
    assert len(first["key"]) == 32
    (tmp_path / "other").mkdir()
    assert run(pair(tmp_path / "other")[0], range(1))["key"] != first["key"]


@pytest.mark.parametrize("backlog", [3, 10, 100, 103])
@pytest.mark.parametrize("copy_first", [True, False])
def test_two_agents_on_copies_lose_nothing_and_count_nothing_twice(
    tmp_path: Path, backlog: int, copy_first: bool
) -> None:
    """What waited at the copy comes once, what each took alone comes from each; open buckets twice, once in doubt."""
    one, other = pair(tmp_path)
    before = run(one, range(backlog))
    shutil.copytree(one.state.path, other.state.path)
    turns = [(other, 2000, "other"), (one, 1000, "one")] if copy_first else [(one, 1000, "one"), (other, 2000, "other")]
    found = {name: run(config, range(begin, begin + 21), send=True) for config, begin, name in turns}
    assert found["one"]["key"] == before["key"]
    assert found["other"]["incarnation"] > before["incarnation"] == found["one"]["incarnation"]
    assert found["other"]["counters"]["copies_noticed"] == 1
    assert found["other"]["rejected"] == 0
    assert found["one"]["rejected"] <= int(copy_first), "one document a stream at most, and it is kept for a person"
    documents = arrived(tmp_path) + kept(one)
    assert {(c.incarnation, c.key) for c in documents} == {
        (found[name]["incarnation"], found[name]["key"]) for name in found
    }
    sure, doubt = counted(documents)
    assert sure == Counter([*range(backlog), *range(1000, 1021), *range(2000, 2021)])
    assert doubt == Counter(range(backlog - backlog % 4, backlog))


def test_a_backup_put_back_counts_nothing_twice(tmp_path: Path) -> None:
    """What was sent since the backup was made is sent again in another cut, and is known as there."""
    one, _ = pair(tmp_path)
    run(one, range(103))
    shutil.copytree(one.state.path, tmp_path / "backup")
    run(one, range(103, 130), send=True)
    shutil.rmtree(one.state.path)
    shutil.copytree(tmp_path / "backup", one.state.path)
    after = run(one, range(200, 221), send=True)
    assert (after["counters"]["copies_noticed"], after["rejected"]) == (1, 0)
    sure, doubt = counted(arrived(tmp_path))
    assert sure == Counter([*range(130), *range(200, 221)])
    assert doubt == Counter(range(100, 103))


def test_windows_go_on_to_the_bit(tmp_path: Path) -> None:
    """A window's history is the copy's as much as the original's; gaps and identities go on too.

    What the original took since is in none of them, so none is exact until that would have left it.
    """
    one, other = pair(tmp_path)
    answers = run(one, range(50))["answers"]
    shutil.copytree(one.state.path, other.state.path)
    went_on = run(other, range(45, 50))
    values = [text.partition("value=")[2].partition(",")[0] for text in answers]
    assert [text.partition("value=")[2].partition(",")[0] for text in went_on["answers"]] == values
    assert all("exact=False" in text for text in went_on["answers"])
    assert went_on["counters"]["duplicates"] == 5
    assert run(other, range(0))["counters"]["copies_noticed"] == 1, "the next start is no copy"


HERE = {"inode": 5, "machine": "m", "serial": "s", "addresses": ["a", "b"], "cards": ["c"]}


@pytest.mark.parametrize(
    ("changed", "is_copy"),
    [
        ({}, False),
        ({"inode": 6}, True),
        ({"inode": None}, False),
        ({"machine": "n"}, True),
        ({"serial": "t"}, True),
        ({"addresses": ["x"]}, False),
        ({"serial": "", "addresses": ["x"]}, True),
        ({"serial": "", "addresses": ["b", "x"]}, False),
        ({"serial": "", "addresses": []}, False),
        ({"serial": "", "cards": ["d"]}, True),
    ],
)
def test_what_makes_a_copy(changed: dict[str, Any], is_copy: bool) -> None:
    """Another board's serial number, or none of its addresses; never what a system does not tell."""
    assert bool(differences(HERE, HERE | changed)) == is_copy


def test_what_a_board_tells_of_itself(tmp_path: Path) -> None:
    """Read from the system's files, as digests; without made-up addresses and inodes of unsteady file systems."""
    store = tmp_path / "state.db"
    store.write_bytes(b"")
    files = {
        "etc/machine-id": "0123\n",
        "proc/device-tree/serial-number": "1000abcd\0",
        "proc/self/mounts": f"/dev/x {tmp_path} ext4 rw 0 0\n",
        "sys/class/net/eth0/address": "b8:27:eb:00:00:01\n",
        "sys/class/net/eth0/addr_assign_type": "0\n",
        "sys/class/net/wlan0/address": "02:00:00:00:00:01\n",
        "sys/class/net/wlan0/addr_assign_type": "1\n",
        "sys/block/mmcblk0/device/cid": "0353445",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for name in ("eth0", "wlan0"):
        (tmp_path / "sys/class/net" / name / "device").mkdir()
    found = home(store, tmp_path)
    assert str(found["inode"]).partition(":")[0] == str(store.stat().st_ino)
    assert [len(found[key]) for key in ("machine", "serial", "addresses", "cards")] == [16, 16, 1, 1]
    (tmp_path / "proc/self/mounts").write_text(f"/dev/x {tmp_path} vfat rw 0 0\n")
    assert home(store, tmp_path)["inode"] is None
