"""On clusters a merge has the rows of one process; whatever is killed, the last committed version stays whole.

Clusters are Spark's own processes on the loopback: `local-cluster`, and a standalone master with two workers. The
driver runs in a folder of its own and names its folders relative to it; workers run in others.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from clusters import Driver, driver, executors, python_workers, standalone
from random_worlds import MINUTE, Cut, random_fleet
from table_worlds import Rows, differences, documents_of, store_at, table_of, take_in, windows
from thorough import WHOLE, number

from sluicegate_cloud.sinks import read_windows
from sluicegate_cloud.table import job
from sluicegate_cloud.table.versions import Store

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.faults]

CUT = Cut(60 * MINUTE, 3, 0, 10_000)
ASKED = ("sum", "mean", "std", "min", "max")
DEFINITION = job.definition_of(3 * CUT.slide, CUT.slide, ASKED, shards=4)
TOLD = asdict(DEFINITION)
LOOSE = {f"{name}_{end}" for name in ("mean", "std") for end in ("low", "high")}
ROUNDS = number(20, 1)
#: Times that a job may be over before anything is killed: each time it is killed earlier.
TRIES = 8


def loose(rows: Rows) -> Rows:
    """Without how narrow the fleet's means and spreads are: that depends on which devices one task adds up first."""
    return {of: row if row["device"] else {name: value for name, value in row.items() if name not in LOOSE}
            for of, row in rows.items()}  # fmt: skip


class World:
    """Documents in folders of a third each, and the rows that they come to."""

    def __init__(self, folder: Path) -> None:
        self.folder, rng = folder, random.Random(11)
        found = documents_of(random_fleet(rng, Cut(60 * MINUTE, 3, 0, 40), 5, 25, ordinary=True), "s", rng)
        rng.shuffle(found)
        self.names: list[list[str]] = [[], [], []]
        for at, data in enumerate(found):
            path = folder / f"in-{at % 3}" / f"{at}.json"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
            self.names[at % 3].append(path.name)
        store, version = store_at(folder / "oracle", DEFINITION)
        self.versions = [version := take_in(store, version, table_of(found[at::3], at)) for at in range(3)]
        self.rows = [windows(store, of) for of in self.versions]

    def differ(self, table: str, thirds: int) -> list[str]:
        """In what a table is not what so many thirds of the documents come to."""
        store = Store(self.folder / table)
        return differences(loose(windows(store, store.load())), loose(self.rows[thirds - 1]))[:3]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """One for all clusters, whose tables have names of their own."""
    return World(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[int]]]:
    """A standalone master and two workers."""
    with standalone(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture(scope="module")
def ready(cluster: tuple[str, list[int]], world: World) -> Iterator[Driver]:
    """A driver on them."""
    with driver(cluster[0], world.folder) as found:
        yield found


def whole(at: Driver, world: World, name: str) -> None:
    """The DataFrame way, a table in two runs and one of a stream: all have the rows of one process."""
    told = at.done("batch", source=f"{world.folder}/in-[0-2]/*", window={"slide": CUT.slide, "width": CUT.width},
                   aggregates=["count", *ASKED], out=f"{name}-out")  # fmt: skip
    assert told == {"executors": 2}
    assert differences(loose(batch_rows(world.folder / f"{name}-out")), loose(world.rows[2]))[:3] == []
    assert at.done("merge", sources=["in-0"], table=name, definition=TOLD) == {"version": 1}
    assert at.done("merge", sources=["in-0", "in-1", "in-2"], table=name, definition=TOLD) == {"version": 2}
    assert world.differ(name, 3) == []
    most = len(world.names[0]) // 2 + 1
    assert at.done("stream", source="in-0", table=f"{name}-s", definition=TOLD, most=most) == {"version": 2}
    assert world.differ(f"{name}-s", 1) == []


def merged_rows(out: Path) -> Rows:
    """Rows of `out`."""
    return keyed(read_windows(out).to_pylist())


def batch_rows(out: Path) -> Rows:
    """Rows of `batch`."""
    return keyed(pq.read_table(out).to_pylist())


def keyed(rows: list[dict[str, Any]]) -> Rows:
    """As `table_worlds.windows` has them."""
    for row in rows:
        row["rollup"] = None if row["device"] else ""
    return {(row["device"], row["stream"], row["rollup"], None, row["window_start"], row["window_end"]): row
            for row in rows}  # fmt: skip


@pytest.mark.skipif(not WHOLE, reason="a standalone cluster has the same asked of it: of the nightly tests")
def test_a_local_cluster_has_the_rows_of_one_process(world: World) -> None:
    """Two executors of `local-cluster[2,1,1024]`."""
    with driver("local-cluster[2,1,1024]", world.folder) as at:
        whole(at, world, "local")


def test_a_standalone_cluster_has_the_rows_of_one_process(ready: Driver, world: World) -> None:
    """Two workers that run in folders of their own."""
    whole(ready, world, "standalone")


@pytest.mark.parametrize("victims", [python_workers, executors])
def test_a_killed_worker_is_worked_for_by_another(
    ready: Driver, cluster: tuple[str, list[int]], world: World, victims: Callable[[list[int]], list[int]]
) -> None:
    """A Python worker, an executor, at a random point of a merge: the merge ends, and its rows are right."""
    rng = random.Random(3)
    for at in range(ROUNDS):
        for again in range(TRIES):
            name = f"{victims.__name__}-{at}-{again}"
            assert ready.done("merge", sources=["in-0"], table=name, definition=TOLD) == {"version": 1}
            ready.ask("merge", sources=["in-1", "in-2"], table=name, definition=TOLD)
            if struck(ready, lambda: victims(cluster[1]), rng, rng.random() / 2**again):
                break
            assert ready.answer() == {"version": 2}
        else:
            pytest.fail("nothing was under way any more: give it more documents")
        assert ready.answer() == {"version": 2}
        assert world.differ(name, 3) == []


def struck(ready: Driver, victims: Callable[[], list[int]], rng: random.Random, seconds: float) -> bool:
    """Kill one of them in the middle of a job, after some seconds; not where the job was quicker."""
    time.sleep(seconds)
    while ready.busy:
        if found := victims():
            with suppress(ProcessLookupError):
                os.kill(rng.choice(found), signal.SIGKILL)
            return True
        time.sleep(0.02)
    return False


def test_a_task_that_is_tried_again_writes_no_row_twice(
    ready: Driver, cluster: tuple[str, list[int]], world: World
) -> None:
    """Of `cloud merge --out`, whose workers write: undisturbed, then with a Python worker killed at a random point."""
    rng, told = random.Random(5), {"sources": ["in-0", "in-1", "in-2"], "aggregates": [*ASKED], "folder": "out"}
    asked = told | {"window": {"slide": CUT.slide, "width": CUT.width}}
    wanted = loose(world.rows[2])
    assert ready.done("out", **asked) == {"rows": len(wanted)}
    assert differences(loose(merged_rows(world.folder / "out")), wanted)[:3] == []
    for _ in range(ROUNDS):
        for again in range(TRIES):
            ready.ask("out", **asked)
            if struck(ready, lambda: python_workers(cluster[1]), rng, rng.uniform(0.5, 1.5) / 2**again):
                break
            assert ready.answer() == {"rows": len(wanted)}
        else:
            pytest.fail("nothing was under way any more: give it more documents")
        assert ready.answer() == {"rows": len(wanted)}
        assert differences(loose(merged_rows(world.folder / "out")), wanted)[:3] == []


def test_a_killed_driver_leaves_the_last_version(ready: Driver, cluster: tuple[str, list[int]], world: World) -> None:
    """At a random point; what the next merge makes of it is what an undisturbed one would have made."""
    rng = random.Random(4)
    for at in range(ROUNDS):
        name = f"driver-{at}"
        assert ready.done("merge", sources=["in-0"], table=name, definition=TOLD) == {"version": 1}
        with driver(cluster[0], world.folder) as dying:
            dying.ask("merge", sources=["in-1"], table=name, definition=TOLD)
            time.sleep(rng.uniform(0.2, 6.0))
            os.kill(dying.process.pid, signal.SIGKILL)
        left = Store(world.folder / name).numbers()[-1]
        assert world.differ(name, left) == []
        assert ready.done("merge", sources=["in-1"], table=name, definition=TOLD) == {"version": 2}
        assert world.differ(name, 2) == []


@pytest.mark.parametrize("far", [False, True])
def test_of_two_merges_at_once_one_says_why_it_does_not_count(ready: Driver, world: World, far: bool) -> None:
    """On one machine, whose lock both see, and on two: a run of both afterwards has all rows."""
    name = f"both-{far}"
    assert ready.done("merge", sources=["in-0"], table=name, definition=TOLD) == {"version": 1}
    told = ready.done("both", sources=[["in-1"], ["in-2"]], table=name, definition=TOLD, far=far)
    errors = [of for of in told if "error" in of]
    assert [of["error"] for of in errors] == ["BusyError"], told
    assert ("run it again" if far else "wait for it to end") in errors[0]["text"]
    assert {"version": 2} in told
    assert ready.done("merge", sources=["in-1", "in-2"], table=name, definition=TOLD) == {"version": 3}
    assert world.differ(name, 3) == []
