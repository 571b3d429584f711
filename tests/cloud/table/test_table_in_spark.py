"""A table promises the rows of the batch merge, whatever came in which run, and survives whoever dies in between."""

from __future__ import annotations

import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from clusters import driver
from pyspark.errors import StreamingQueryException
from random_worlds import DAY, MINUTE, Cut, buckets_of, random_fleet
from table_worlds import differences, documents_of, windows
from thorough import WHOLE

from sluicegate.format.chunk import Chunk, encode
from sluicegate_cloud.errors import SparkError, TableError
from sluicegate_cloud.frames import place_in_frames
from sluicegate_cloud.sources import read_buckets
from sluicegate_cloud.table import job, run
from sluicegate_cloud.table import stream as streaming
from sluicegate_cloud.table.versions import Store
from sluicegate_cloud.windows import sliding_windows

CUT = Cut(60 * MINUTE, 3, 0, 10_000)
ASKED = ("sum", "mean", "std", "min", "max")
DEFINITION = job.definition_of(3 * CUT.slide, CUT.slide, ASKED, shards=2)


@pytest.fixture
def documents(tmp_path: Path) -> list[Path]:
    """Files of three boards, in a folder that a merge does not look into."""
    rng = random.Random(7)
    place = tmp_path / "all"
    place.mkdir()
    found = documents_of(random_fleet(rng, Cut(60 * MINUTE, 3, 0, 40), 3, 25, ordinary=True), "s", rng)
    for number, data in enumerate(found):
        (place / f"{number}.json").write_bytes(data)
    paths = sorted(place.iterdir())
    rng.shuffle(paths)
    return paths


def batch(spark: Any, folder: Path) -> dict[Any, Any]:
    """The rows of the batch merge, as `table_worlds.windows` has them."""
    frames = place_in_frames(read_buckets(spark, folder), CUT.slide)
    rows = sliding_windows(frames, CUT.width, ("count", *ASKED)).toArrow().to_pylist()
    out = {}
    for row in rows:
        row["rollup"] = None if row["device"] else ""
        out[row["device"], row["stream"], row["rollup"], None, row["window_start"], row["window_end"]] = row
    return out


def test_a_table_has_the_rows_of_batch_and_does_not_drift(
    spark: Any, tmp_path: Path, documents: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documents in three runs, one of which dies before its version is made; then nothing is new, and all is proved."""
    inbox, table = tmp_path / "inbox", tmp_path / "table"
    inbox.mkdir()
    third = len(documents) // 3
    for at in range(3):
        for path in documents[at * third : (at + 1) * third if at < 2 else None]:
            (inbox / path.name).write_bytes(path.read_bytes())
        if at == 1:
            monkeypatch.setattr(Store, "commit", _dies)
            with pytest.raises(KeyboardInterrupt):
                job.merge(spark, [str(inbox)], table, DEFINITION)
            monkeypatch.undo()
            assert Store(table).load().number == 1
        version = job.merge(spark, [str(inbox)], table, DEFINITION)
        assert version.number == at + 1
    assert differences(windows(Store(table), version), batch(spark, inbox))[:3] == []
    assert job.merge(spark, [str(inbox)], table, DEFINITION).number == 3, "nothing is new"
    assert list(job.reconcile(spark, table)) == []


def arrive(path: Path, inbox: Path, rng: random.Random) -> None:
    """A document comes: late with an old time, or of a device whose name begins as hidden ones do."""
    place = inbox / rng.choice(["board", ".a", "_b"])
    place.mkdir(exist_ok=True)
    (place / path.name).write_bytes(path.read_bytes())
    if rng.random() < 0.5:
        os.utime(place / path.name, (old := time.time() - rng.uniform(8, 800) * 86_400, old))


def test_a_stream_has_the_rows_of_batch(
    spark: Any, tmp_path: Path, documents: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documents come in any order and as old as may be; a query dies before its batch is merged, and after it was,
    before Spark knew; the next one goes on.
    """
    inbox, table, rng = tmp_path / "inbox", tmp_path / "table", random.Random(3)
    inbox.mkdir()
    third, taken = len(documents) // 3, job.take
    deaths = (lambda *_: _fails(), lambda *of: (taken(*of), _fails()), None)
    for at, death in enumerate(deaths):
        for path in documents[at * third : (at + 1) * third if at < 2 else None]:
            arrive(path, inbox, rng)
        if death:
            monkeypatch.setattr(job, "take", death)
            with pytest.raises(SparkError, match="the stream stopped"):
                streaming.finish(lambda: streaming.stream(spark, str(inbox), table, DEFINITION, most=2))
            monkeypatch.undo()
    streaming.finish(lambda: streaming.stream(spark, str(inbox), table, DEFINITION, most=2))
    found = Store(table).load()
    rows = windows(Store(table), found)
    assert differences(rows, batch(spark, inbox))[:3] == []
    assert {row["revision"] for row in rows.values()} <= set(range(1, found.number + 1))
    assert max(row["revision"] for row in rows.values()) == found.number


@pytest.mark.faults
@pytest.mark.skipif(not WHOLE, reason="a session for each kill: of the nightly tests")
@pytest.mark.parametrize("after", [True, False])
def test_a_stream_that_is_killed_around_its_batch_goes_on(
    spark: Any,
    tmp_path: Path,
    documents: list[Path],
    after: bool,
) -> None:
    """Driver and Java by SIGKILL, after a micro-batch has its version and before Spark notes it, or before both."""
    inbox, table = tmp_path / "inbox", tmp_path / "table"
    inbox.mkdir()
    for path in documents:
        (inbox / path.name).write_bytes(path.read_bytes())
    told = {"source": str(inbox), "table": str(table), "definition": asdict(DEFINITION), "most": 4, "after": after}
    with driver("local[2]", tmp_path) as dying:
        dying.ask("dying_stream", **told)
        assert dying.process.wait(120) == -signal.SIGKILL
    died_at = Store(table).load()
    assert (died_at.number if died_at else 0) == int(after)
    streaming.finish(lambda: streaming.stream(spark, str(inbox), table, DEFINITION, most=4))
    store = Store(table)
    assert differences(windows(store, store.load()), batch(spark, inbox))[:3] == []


def test_two_streams_fill_one_table(spark: Any, tmp_path: Path, documents: list[Path]) -> None:
    """At once, of two folders: each waits for the other, and the rows are those of both."""
    for at, path in enumerate(documents):
        (tmp_path / f"inbox-{at % 2}").mkdir(exist_ok=True)
        (tmp_path / f"inbox-{at % 2}" / path.name).write_bytes(path.read_bytes())
    inboxes = [str(tmp_path / f"inbox-{at}") for at in range(2)]
    with ThreadPoolExecutor() as both:
        starts = [partial(streaming.stream, spark, inbox, tmp_path / "table", DEFINITION, most=4) for inbox in inboxes]
        assert len([*both.map(streaming.finish, starts)]) == 2
    found = Store(tmp_path / "table").load()
    version = job.merge(spark, inboxes, tmp_path / "once", DEFINITION)
    assert differences(windows(Store(tmp_path / "table"), found), windows(Store(tmp_path / "once"), version))[:3] == []


def test_a_stream_whose_source_had_no_time_to_start_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Spark says on a machine that is too busy; any other reason, or too often, ends it."""

    class Query:
        lastProgress: dict[str, Any] = {"batchId": 7}  # noqa: N815, RUF012 - Spark's name

        def __init__(self, reason: str | None) -> None:
            self.reason = reason

        def awaitTermination(self) -> None:  # noqa: N802 - Spark's name
            if self.reason:
                raise StreamingQueryException(self.reason)

    busy = "[STREAM_FAILED] Query terminated with exception: Python worker failed to connect back. SQLSTATE: XXKST"
    queries = [Query(busy), Query(busy), Query(None)]
    assert streaming.finish(lambda: queries.pop(0)) == {"batchId": 7}
    with pytest.raises(SparkError, match="no folder"):
        streaming.finish(lambda: Query("[STREAM_FAILED] SourceError: no folder"))
    monkeypatch.setattr(streaming, "_PATIENCE_S", -1.0)
    with pytest.raises(SparkError, match="failed to connect back"):
        streaming.finish(lambda: Query(busy))


def test_a_table_that_drifted_is_told(spark: Any, tmp_path: Path, documents: list[Path]) -> None:
    """A window's file that says something else: reconcile names the row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    version = job.merge(spark, [str(path) for path in documents[:4]], tmp_path / "table", DEFINITION)
    store = Store(tmp_path / "table")
    index = store.read_json(next(iter(version.shards.values())))
    file = store.root / next(iter(index["windows"].values()))[0]
    rows = pq.ParquetFile(file).read()
    at = rows.column_names.index("count")
    pq.write_table(rows.set_column(at, "count", pa.array([n + 1 for n in rows["count"].to_pylist()])), file)
    assert any("count" in line for line in job.reconcile(spark, tmp_path / "table"))


def test_boards_of_far_values_under_one_name_are_no_drift(spark: Any, tmp_path: Path) -> None:
    """The room for rounding follows from the centers of all documents, also of one that comes later."""
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    for number, (level, since) in enumerate(((1e6, 0), (-1e6, 40 * DAY))):
        readings = [(since + at * 25 * MINUTE, level + at % 3) for at in range(20)]
        chunk = Chunk("a", "s", f"{number:016x}", level, buckets_of(readings, 5), [None] * 4)
        (inbox / f"{number}.json").write_bytes(encode(chunk))
        job.merge(spark, [str(inbox)], tmp_path / "table", DEFINITION)
    assert Store(tmp_path / "table").load().number == 2
    assert list(job.reconcile(spark, tmp_path / "table")) == []


def test_two_merges_at_once_do_not_both_count(spark: Any, tmp_path: Path, documents: list[Path]) -> None:
    """While one has the table another fails with the reason; one that was overtaken does not count."""
    store = Store(tmp_path / "table")
    with store.writing(), pytest.raises(TableError, match="another merge is writing"):
        job.merge(spark, [str(documents[0])], tmp_path / "table", DEFINITION)
    version = job.merge(spark, [str(documents[0])], tmp_path / "table", DEFINITION)
    first = run.answered_anew(spark, store, version)
    store.commit(first)
    with pytest.raises(TableError, match="nothing of this one counts"):
        store.commit(first)


def test_a_table_keeps_what_it_answers(spark: Any, tmp_path: Path, documents: list[Path]) -> None:
    """Another window of the same table is refused, and says which it has."""
    job.merge(spark, [str(documents[0])], tmp_path / "table", DEFINITION)
    other = job.definition_of(DAY, DAY, ASKED)
    with pytest.raises(TableError, match=f"windows of {3 * CUT.slide} us"):
        job.merge(spark, [str(documents[0])], tmp_path / "table", other)


def _dies(*_: Any) -> None:
    raise KeyboardInterrupt("killed")


def _fails() -> None:
    raise RuntimeError("after the merge, before Spark knows")
