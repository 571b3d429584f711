"""The gateway's feed gives Spark what a folder of the same documents gives: each once, wherever a read ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("pyspark", reason="reading the feed into Spark needs the extra `cloud`")
pytest.importorskip("msgspec", reason="pushing to the gateway needs the extra `agent`")
import pyarrow as pa
import pyarrow.parquet as pq
from chunked import document, target
from gateway.proxy import Proxy
from gateway.stand_in import StandIn
from small_spark import SMALL

from gateway import Gateway, databases
from sluicegate_agent.sync.contract import Document
from sluicegate_cloud import sources
from sluicegate_cloud.documents import as_now, bucket_rows
from sluicegate_cloud.errors import GatewayError, SinkError, SourceError
from sluicegate_cloud.feed import changes, client, keep, rows
from sluicegate_cloud.feed import gateway as places
from sluicegate_cloud.feed.gateway import Gateway as Place
from sluicegate_cloud.lines import dedupe
from sluicegate_cloud.table import job
from sluicegate_cloud.table import stream as streaming
from sluicegate_cloud.table.read import rows_of
from sluicegate_cloud.table.versions import Store

Row = dict[str, Any]


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A local session on two cores; the one of the cloud's tests where that runs.

    Spark finds a format by itself where the package is installed, but not where its sources are, as here.
    """
    from sluicegate_cloud.session import QUICK, spark_session
    from sluicegate_cloud.sql import register

    session = spark_session("local[2]", {**QUICK, **SMALL})
    register(session)
    yield session
    session.stop()


@pytest.fixture
def one_gateway(request: pytest.FixtureRequest) -> Iterator[Gateway]:
    """The real gateway where there is one: for what costs seconds of Spark, and does not hang on the gateway."""
    if databases.program() is None:
        with StandIn() as standing_in:
            yield standing_in
    else:
        real = request.getfixturevalue("real_gateway")
        real.purge()
        yield real


@pytest.fixture(autouse=True)
def reader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The reader's credentials in a file, named in the environment of the driver alone."""
    path = tmp_path / "reader.json"
    path.write_text(json.dumps({"user": databases.READER, "password": databases.PASSWORD}))
    monkeypatch.setenv(places.CREDENTIALS, str(path))
    return path


def url(gateway: Gateway | Proxy, database: str = databases.TELEMETRY) -> str:
    """The database's URL."""
    return f"{gateway.url if isinstance(gateway, Proxy) else gateway.public_url}/{database}"


def read(spark: Any, **options: str) -> Any:
    """The format, as this test's reader."""
    return spark.read.format("sluicegate").options(credentials=os.environ[places.CREDENTIALS], **options)


def push(gateway: Gateway, *documents: Document, database: str = databases.TELEMETRY, user: str = "board-1") -> None:
    """As a device would."""
    outcome = target(gateway.public_url, database, user, basic=True).put(documents)
    assert len(outcome.accepted) == len(documents), outcome


def some(count: int, first: int = 0, device: str = "board-1") -> list[Document]:
    """So many documents of four buckets of eight readings, one after the other."""
    return [document(4, 32 * number, device=device) for number in range(first, first + count)]


def folder_of(documents: list[Document], folder: Path) -> Path:
    """The same as files."""
    folder.mkdir()
    for number, one in enumerate(documents):
        (folder / f"{number}.json").write_bytes(one.data)
    return folder


def told(frame: Any) -> list[Row]:
    """Rows of DOCUMENTS by id, but for where they came from."""
    rows = [row.asDict() for row in frame.collect()]
    return sorted(({**row, "path": ""} for row in rows), key=lambda row: str(row["id"]))


def ids(frame: Any) -> Counter[str]:
    """How often each document is there."""
    return Counter(row["id"] for row in frame.select("id").collect())


def fates(frame: Any) -> Counter[str]:
    """How many documents met which fate."""
    return Counter(row["fate"] for row in dedupe.catalogue(frame).select("fate").collect())


@pytest.mark.spark
def test_the_feed_gives_what_a_folder_gives(spark: Any, gateway: Gateway, tmp_path: Path) -> None:
    """Every field of every document to the byte, its digest too; both together count each document once."""
    documents = some(30) + some(10, device="board-2")
    push(gateway, *documents[:30])
    push(gateway, *documents[30:], user="board-2")
    folder = folder_of(documents, tmp_path / "files")
    assert told(sources.read_documents(spark, url(gateway))) == told(sources.read_documents(spark, folder))
    both = sources.read_documents(spark, [url(gateway), str(folder)])
    assert fates(both) == {dedupe.USED: 40, dedupe.COPY: 40}


@pytest.mark.spark
def test_a_session_of_ones_own_knows_the_format(spark: Any, one_gateway: Gateway) -> None:
    """`spark.read.format("sluicegate")` gives buckets, a partition a shard."""
    push(one_gateway, *some(20))
    frame = read(spark).load(url(one_gateway))
    assert frame.rdd.getNumPartitions() == len(databases.SHARDS)
    rows = frame.orderBy("first").collect()
    assert [row["first"] for row in rows] == [*range(0, 640, 8)]
    assert {row["n"] for row in rows} == {8}
    one = read(spark, channels="shard-03, shard-04").load(url(one_gateway))
    assert one.rdd.getNumPartitions() == 2
    assert 0 < one.count() < 80


@pytest.mark.spark
def test_options_that_will_not_do_are_refused(spark: Any, one_gateway: Gateway) -> None:
    """Above all a password, which Spark would show: the message names the environment instead."""
    for options, said in [({"password": "x"}, places.PASSWORD), ({"rows": "all"}, "expected buckets or documents")]:
        with pytest.raises(Exception, match=said):
            read(spark, **options).load(url(one_gateway))


@pytest.mark.spark
def test_what_is_no_chunk_is_told_and_left_out(spark: Any, gateway: Gateway) -> None:
    """A foreign document, a deleted one, one under another id: rows with a reason, no buckets; the good are there."""
    good = some(3)
    damaged = Document("board-1::level::x::7", some(1, 9)[0].data.replace(b'"crc32":', b'"crc32":1'))
    push(gateway, *good, Document("board-1::x::y::z", b'{"type":"shopping list"}'), damaged, database=databases.PLAIN)
    delete(gateway, good[1].id)
    at = url(gateway, databases.PLAIN)
    documents = read(spark, channels="all", rows="documents").load(at)
    reasons = {row["path"]: row["reason"] for row in documents.collect()}
    assert len(reasons) == 5
    assert "no chunk of Sluicegate" in reasons[f"{at}/board-1::x::y::z"]
    assert "deleted at the gateway" in reasons[f"{at}/{good[1].id}"]
    assert "stored as" in reasons[f"{at}/{damaged.id}"]
    assert read(spark, channels="all").load(at).count() == 8


def delete(gateway: Gateway, name: str) -> None:
    """As an administrator may."""
    if gateway.real:
        revision = gateway.admin("GET", f"/plain/{name}")[1]["_rev"]  # type: ignore[union-attr]
        assert gateway.admin("DELETE", f"/plain/{name}?rev={revision}")[0] == 200  # type: ignore[union-attr]
    else:
        gateway.databases[databases.PLAIN].delete(name)  # type: ignore[union-attr]


# kept between runs


def refreshed(gateway: Gateway | Proxy, folder: Path) -> keep.Kept:
    """A run without Spark: what its tasks do, one after the other."""
    return keep.refresh(Place.at(url(gateway)), folder / "keep")


def held(folder: Path, kept: keep.Kept) -> Counter[str]:
    """How often each document is in the files on record."""
    paths = [folder / "keep" / keep.FOLDER / name for names in kept.files.values() for name in names]
    return Counter(name for path in paths for name in pq.read_table(path)["id"].to_pylist())


def once(*documents: Document) -> dict[str, int]:
    """Each of them once."""
    return dict.fromkeys((one.id for one in documents), 1)


def test_a_run_reads_what_is_new_and_only_that(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three runs, pages of few rows: all, the second half, nothing; each kept once, files and sequences on record."""
    monkeypatch.setattr(changes, "FIRST_ROWS", 1)
    push(gateway, *some(20))
    assert held(tmp_path, refreshed(gateway, tmp_path)) == once(*some(20))
    push(gateway, *some(20, 20))
    second = refreshed(gateway, tmp_path)
    assert held(tmp_path, second) == once(*some(40))
    third = refreshed(gateway, tmp_path)
    assert third.files == second.files
    assert third.positions.keys() == set(databases.SHARDS)
    if isinstance(gateway, StandIn):
        asked = [request for request in gateway.requests if "_changes" in request][-len(databases.SHARDS) :]
        assert all(f"since={quote(at)}&" in one for one, at in zip(asked, second.positions.values(), strict=True))


@pytest.mark.parametrize("where", ["_written", "_store"])
def test_a_crash_between_read_and_commit_counts_nothing_twice(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Files written and their sequences not: the next run removes them and reads again, and each document is once."""
    push(gateway, *some(10))
    before = refreshed(gateway, tmp_path)
    push(gateway, *some(10, 10))
    with monkeypatch.context() as crash:
        crash.setattr(keep, where, crashing(getattr(keep, where)))
        with pytest.raises(RuntimeError, match="power cut"):
            refreshed(gateway, tmp_path)
    assert keep.load(tmp_path / "keep", url(gateway)) == before
    named = {name for names in before.files.values() for name in names}
    assert {path.name for path in (tmp_path / "keep" / keep.FOLDER).iterdir()} > named
    assert held(tmp_path, refreshed(gateway, tmp_path)) == once(*some(20))


def crashing(done: Callable[..., Any]) -> Callable[..., Any]:
    """End after a channel's file is written; end before the sequences are on record."""

    def crash(*given: Any) -> Any:
        if done.__name__ == "_written" and not done(*given):
            return False
        raise RuntimeError("power cut")

    return crash


@pytest.mark.spark
def test_what_is_read_again_counts_once(spark: Any, one_gateway: Gateway, tmp_path: Path) -> None:
    """Sequences restored from an old backup beside newer files: the job knows the copies as copies."""
    push(one_gateway, *some(10))
    at = Place.at(url(one_gateway))
    keep.fetch(spark, at, tmp_path / "keep")
    path = tmp_path / "keep" / keep.POSITIONS
    path.write_text(json.dumps(json.loads(path.read_text()) | {"positions": {}}))
    frame = keep.fetch(spark, at, tmp_path / "keep")
    assert fates(frame) == {dedupe.USED: 10, dedupe.COPY: 10}
    assert sources.buckets_of(dedupe.catalogue(frame)).count() == 40


def test_many_runs_leave_few_files(gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a channel has many files a run makes one of them, and removes them once that is on record."""
    monkeypatch.setattr(keep, "MOST_FILES", 2)
    for number in range(5):
        push(gateway, *some(16, 16 * number))
        kept = refreshed(gateway, tmp_path)
    assert held(tmp_path, kept) == once(*some(80))
    assert max(len(names) for names in kept.files.values()) <= 2
    files = [path.name for path in (tmp_path / "keep" / keep.FOLDER).iterdir()]
    assert sorted(files) == sorted(name for names in kept.files.values() for name in names)


def test_a_folder_is_of_one_gateway_one_reader_and_one_run(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another database or user, a second run at once, damaged sequences, a database made anew: each refused."""
    push(gateway, *some(3))
    refreshed(gateway, tmp_path)
    folder = tmp_path / "keep"
    with pytest.raises(SourceError, match="keeps what was read from"):
        keep.refresh(Place.at(url(gateway, databases.PLAIN)), folder)
    with monkeypatch.context() as other:
        other.delenv(places.CREDENTIALS)
        other.setenv(places.USER, "board-1")
        other.setenv(places.PASSWORD, databases.PASSWORD)
        with pytest.raises(SourceError, match="what 'spark' read is kept there"):
            refreshed(gateway, tmp_path)
    with keep._locked(folder), pytest.raises(SinkError, match="another run"):
        refreshed(gateway, tmp_path)
    path = folder / keep.POSITIONS
    good = json.loads(path.read_text())
    path.write_text(json.dumps(good | {"positions": {"shard-00": "999999999"}}))
    with pytest.raises(GatewayError, match="made anew"):
        refreshed(gateway, tmp_path)
    path.write_text("{")
    with pytest.raises(SourceError, match="is damaged"):
        refreshed(gateway, tmp_path)


def test_a_bad_network_changes_nothing(
    gateway: Gateway, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections cut after a few KiB, anywhere in a page: what is kept is the same; away for good, all is left."""
    monkeypatch.setattr(client, "FIRST_DELAY", 0.01)
    monkeypatch.setattr(client, "LONGEST_DELAY", 0.02)
    documents = some(60)
    push(gateway, *documents)
    budgets = iter([None, *([700, 1_500, 3_000, 6_000, None] * 20)])
    proxy.budget = lambda: next(budgets, None)
    assert held(tmp_path, refreshed(proxy, tmp_path)) == once(*documents)
    assert proxy.cuts > 10
    proxy.away = True
    before = (tmp_path / "keep" / keep.POSITIONS).read_bytes()
    with pytest.raises(GatewayError, match="did not answer in 2 tries"):
        refreshed(proxy, tmp_path)
    assert (tmp_path / "keep" / keep.POSITIONS).read_bytes() == before


# streams


@pytest.mark.spark
def test_a_stream_goes_on_where_it_ended(spark: Any, one_gateway: Gateway, tmp_path: Path) -> None:
    """Two runs over one checkpoint, in micro-batches of a few documents: each document once in the sink."""
    for number in range(2):
        push(one_gateway, *some(40, 40 * number))
        stream(spark, one_gateway, tmp_path)
        written = spark.read.parquet(str(tmp_path / "sink"))
        assert ids(written) == dict.fromkeys((one.id for one in some(40 * (number + 1))), 1)


def stream(spark: Any, gateway: Gateway, folder: Path) -> None:
    """Run until what is there now is in the sink."""
    options = {"rows": "documents", "maxDocuments": "32", "credentials": os.environ[places.CREDENTIALS]}
    source = spark.readStream.format("sluicegate").options(**options).load(url(gateway))
    sink = source.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    query = sink.trigger(availableNow=True).start(str(folder / "sink"))
    assert query.awaitTermination(300)
    assert len([step for step in query.recentProgress if step["numInputRows"]]) > 1


@pytest.mark.spark
def test_a_gateway_streams_into_a_table(spark: Any, one_gateway: Gateway, tmp_path: Path) -> None:
    """Two runs over what comes, some of it twice: the rows are those of one merge of the same documents in a folder."""
    definition = job.definition_of(3_600_000_000, 600_000_000, ["count", "sum", "max"], shards=2)
    for number in range(2):
        push(one_gateway, *some(40, 40 * number))
        streaming.finish(lambda: streaming.stream(spark, url(one_gateway), tmp_path / "streamed", definition, most=64))
    push(one_gateway, *some(80))
    streaming.finish(lambda: streaming.stream(spark, url(one_gateway), tmp_path / "streamed", definition))
    once = folder_of(some(80), tmp_path / "documents")
    job.merge(spark, [str(once)], tmp_path / "merged", definition)
    found, wanted = (windows_of(tmp_path / name) for name in ("streamed", "merged"))
    assert sum(row["count"] for row in wanted) > 0
    assert found == wanted
    assert list(job.reconcile(spark, tmp_path / "streamed")) == []


def windows_of(table: Path) -> list[Row]:
    """A table's rows, but for the version in which each was answered."""
    store = Store(table)
    version = store.load()
    assert version is not None
    rows = [{**row, "revision": 0} for row in rows_of(store, version).to_pylist()]
    return sorted(rows, key=lambda row: (row["device"] or "", row["stream"], row["window_start"]))


# the command


def merge(*arguments: str, **environment: str) -> tuple[int, str]:
    """Exit code and stderr of `sluicegate cloud merge`."""
    command = [sys.executable, "-m", "sluicegate", "cloud", "merge", *arguments]
    run = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=900, env=os.environ | environment
    )
    return run.returncode, run.stderr


def test_a_wrong_password_ends_before_spark_starts(gateway: Gateway, tmp_path: Path, reader: Path) -> None:
    """One line that says what to check, exit code 4, and no secret."""
    reader.write_text(json.dumps({"user": databases.READER, "password": "not-this-one"}))
    code, said = merge(url(gateway), "--out", str(tmp_path / "out"))
    assert code == 4
    assert "knows no such reader" in said
    assert "not-this-one" not in said
    assert "Traceback" not in said
    assert "starting Spark" not in said


@pytest.mark.spark
def test_a_reader_without_the_role_is_told_so(spark: Any, one_gateway: Gateway, tmp_path: Path, reader: Path) -> None:
    """An empty feed looks like a quiet fleet: the message names both."""
    from sluicegate_cloud import job

    push(one_gateway, *some(3))
    reader.write_text(json.dumps({"user": "board-2", "password": databases.PASSWORD}))
    with pytest.raises(SourceError, match="lacks the role `reader`"):
        job.merge([url(one_gateway)], tmp_path / "out", 3_600_000_000, 3_600_000_000)


HOSTILE = {"5000-digits": "9" * 5_000, "990-deep": "[" * 985 + "]" * 985}


def test_documents_that_no_json_reader_reads_do_not_stop_the_feed(real_gateway: Gateway) -> None:
    """A gateway whose database takes anything: the others come, these are rows with their id, device and reason."""
    real_gateway.purge()  # type: ignore[attr-defined]
    good = some(150)
    push(real_gateway, *good[:75], database=databases.PLAIN)
    for name, value in HOSTILE.items():
        one = target(real_gateway.public_url, databases.PLAIN, "board-2", basic=True)
        told = json.dumps({"type": "sluicegate.chunk", "health": {"a": "@"}}).replace('"@"', value).encode()
        headers = one.login.headers(one.connection) | {"Content-Type": "application/json"}
        assert one.connection.ask("PUT", f"/board-2::s::0::{name}", [told], headers).status == 201
    push(real_gateway, *good[75:], database=databases.PLAIN)
    with client.Client(Place.at(url(real_gateway, databases.PLAIN))) as one_client:
        pages = changes.pages(one_client, "all")
        found = [row for batch in rows.batches(one_client, pages) for row in batch.to_pylist()]
    assert {row["id"] for row in found if row["reason"] is None} == {one.id for one in good}
    refused = {row["id"]: row for row in found if row["reason"] is not None}
    deep, digits = (f"board-2::s::0::{name}" for name in ("990-deep", "5000-digits"))
    assert {deep} <= refused.keys() <= {deep, digits}  # over rosmar a gateway's own feed drops the second
    assert {row["device"] for row in refused.values()} == {"board-2"}
    assert "nested too deeply" in refused[deep]["reason"]
    assert digits not in refused or "5000 digits" in refused[digits]["reason"]


def test_what_an_older_version_kept_is_merged_with_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files without the columns that came since, buckets without doubt: gathered into one file, and read."""
    monkeypatch.setattr(keep, "MOST_FILES", 1)
    with StandIn() as gateway:
        push(gateway, *some(20))
        first = refreshed(gateway, tmp_path)
        place = tmp_path / "keep" / keep.FOLDER
        for name in (name for names in first.files.values() for name in names):
            table = pq.read_table(place / name)
            packed = [data[: len(data) // 32 * 31] for data in table["packed"].to_pylist()]
            without = table.drop(["key", "doubt", "content", "packed"])
            pq.write_table(without.append_column("packed", pa.array(packed, pa.binary())), place / name)
        push(gateway, *some(20, 20))
        kept = refreshed(gateway, tmp_path)
    assert held(tmp_path, kept) == once(*some(40))
    tables = [pq.read_table(place / name) for names in kept.files.values() for name in names]
    batches = [as_now(batch) for table in tables for batch in table.to_batches()]
    buckets = [row for batch in batches for row in bucket_rows(batch).to_pylist()]
    assert sorted(row["first"] for row in buckets) == [*range(0, 1_280, 8)]
    assert {row["doubt"] for row in buckets} == {0}
