"""SQL promises the rows of the merge: the how-to's statements run, and what cannot be asked says why."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
from random_worlds import MINUTE, Cut, random_fleet
from table_worlds import Rows, differences, documents_of, store_at, table_of, take_in, windows
from thorough import some

import sluicegate_cloud
from sluicegate_cloud.table import devices as known
from sluicegate_cloud.table import job
from sluicegate_cloud.table.summaries import quality
from sluicegate_cloud.table.summaries.late import late as of_late
from sluicegate_cloud.table.versions import Store, Version

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[3] / "docs/how-to/sql.md"
DEFINITION = job.definition_of(24 * 60 * MINUTE, 60 * MINUTE, ("sum", "mean", "min", "max"), shards=1,
                               by=(("device", "/"),))  # fmt: skip
#: Of one device's stream, each with the same readings.
KEYS = ("press-1", "press-2")
FROM, VIEW = "SELECT * FROM sluicegate_windows", "CREATE TEMPORARY VIEW "


@pytest.fixture(scope="module")
def sql(spark: Any) -> Any:
    """The session, with what is registered."""
    sluicegate_cloud.register(spark)
    return spark


@pytest.fixture(scope="module")
def srv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents of three boards in `chunks`, one with keys, and a table of them, made in two runs."""
    folder, rng = tmp_path_factory.mktemp("srv"), random.Random(2)
    fleet = random_fleet(rng, Cut(60 * MINUTE, 3, 0, 40), 3, 25, ordinary=True)
    documents = documents_of(fleet, "temp", rng)
    documents += [one for key in KEYS for one in documents_of(fleet[:1], f"load/{key}", rng, lost=0)]
    (folder / "chunks").mkdir()
    for at, data in enumerate(documents):
        (folder / "chunks" / f"{at}.json").write_bytes(data)
    (folder / "chunks" / "bad.json").write_text("{}")
    store, version = store_at(folder / "fleet", DEFINITION)
    version = take_in(store, version, table_of(documents[::2]))
    take_in(store, version, table_of(documents[1::2], since=1_000))
    return folder


def keyed(rows: list[Any]) -> Rows:
    """As `table_worlds.windows` has them, but for roll-ups."""
    told = [row.asDict() for row in rows if not row.asDict()["rollup"]]
    return {(row["device"], row["stream"], row["rollup"], None, row["window_start"], row["window_end"]): row
            for row in told}  # fmt: skip


def of_table(srv: Path, number: int | None = None) -> tuple[Rows, Version]:
    """The rows that a table's files have."""
    store = Store(srv / "fleet")
    version = store.load(number)
    assert version is not None
    return {of: row for of, row in windows(store, version).items() if not row["rollup"]}, version


def blocks() -> list[str]:
    """Each statement of the how-to."""
    return re.findall(r"^```sql\n(.*?)^```$", PAGE.read_text("utf-8"), re.S | re.M)


def test_the_statements_of_the_how_to_run(sql: Any, srv: Path) -> None:
    """Each block of SQL, on these folders: there are rows where a question has any."""
    found = [sql.sql(block.replace("/srv", str(srv))).collect() for block in blocks()]
    assert [at for at, rows in enumerate(found) if rows] == [0, 5, 6, 7, 8, 10], [len(rows) for rows in found]
    assert sql.table("streams").count() == 3 + len(KEYS)
    assert {row["device"] for row in sql.table("devices").collect()} == {f"board-{at}" for at in range(3)}
    told = {"import sluicegate_cloud", "sluicegate_cloud.register(spark)"}
    assert told <= {line.partition("  #")[0] for line in PAGE.read_text("utf-8").splitlines()}


def test_keys_of_a_name_are_added_up(sql: Any, srv: Path) -> None:
    """The how-to's statement: two keys with equal readings have twice the count of each, and the mean."""
    (block,) = (
        of for of in re.findall(r"^```sql\n(.*?)^```$", PAGE.read_text("utf-8"), re.S | re.M) if "device,/" in of
    )
    sql.read.format("sluicegate").load(f"{srv}/fleet").createOrReplaceTempView("fleet")
    rows = [row.asDict() for row in sql.sql(block).collect() if row["name"] == "load"]
    one = {
        of[4]: row
        for of, row in of_table(srv)[0].items()
        if of[:2] == ("board-0", "load/press-1") and row["windows"] == 1
    }
    assert {round(row["since"].timestamp() * 1e6) for row in rows} == {*one}
    assert len(rows) == len(one) > 10
    for row in rows:
        start = round(row["since"].timestamp() * 1e6)
        assert row["device"] == "board-0"
        assert abs(row["count"] - 2 * one[start]["count"]) <= 2, "but for what an edge cuts"
        if row["mean"] is not None:
            assert row["mean_low"] <= row["mean"] <= row["mean_high"]
            assert row["mean_low"] <= one[start]["mean_high"]
            assert row["mean_high"] >= one[start]["mean_low"]


def test_the_function_has_the_rows_of_the_merge(sql: Any, srv: Path) -> None:
    """Of documents, of a table, and of the format: the same windows."""
    wanted, _ = of_table(srv)
    asked = f"{FROM}('{srv}/chunks', slide => '1h', window => '24h', aggregates => 'sum,mean,min,max')"
    assert differences(keyed(sql.sql(asked).collect()), wanted)[:3] == []
    assert keyed(sql.sql(f"{FROM}('{srv}/fleet')").collect()) == wanted
    assert keyed(sql.read.format("sluicegate").load(f"file://{srv}/fleet").collect()) == wanted
    assert len(wanted) > 100


def test_an_older_version_is_asked_by_its_number(sql: Any, srv: Path) -> None:
    """Its rows, not those of the newest."""
    one = sql.read.format("sluicegate").option("version", 1).load(f"{srv}/fleet")
    assert keyed(one.collect()) == of_table(srv, 1)[0] != of_table(srv)[0]


def test_devices_quality_and_alerts_are_those_of_the_commands(sql: Any, srv: Path) -> None:
    """The same rows; a health of odd types is null there."""
    store, version = Store(srv / "fleet"), of_table(srv)[1]
    found = sql.read.format("sluicegate").option("rows", "devices").load(f"{srv}/fleet").collect()
    wanted = {row["device"]: row for row in known.devices(store, version)}
    assert {row["device"] for row in found} == {*wanted}
    assert all(row[name] == wanted[row["device"]][name] for row in found for name in ("readings", "last_us", "tags"))
    told = sql.read.format("sluicegate").option("rows", "quality").load(f"{srv}/fleet").collect()
    rows = [row for some in quality.quality(store, version) for row in some.to_pylist()]
    assert [row.asDict() for row in told] == [row | {"tags": row["tags"] and dict(row["tags"])} for row in rows]
    late = sql.read.format("sluicegate").option("rows", "late").load(f"{srv}/fleet").collect()
    assert [row.asDict() for row in late] == [row for some in of_late(store, version) for row in some.to_pylist()]
    alerts = sql.read.format("sluicegate").option("rows", "alerts").load(f"{srv}/fleet").collect()
    assert [row.asDict() for row in alerts] == [*known.alerts(store, version, 0)]


def test_documents_and_buckets_as_they_are(sql: Any, srv: Path) -> None:
    """A row each, the one that is no document with its reason."""
    documents = sql.read.format("sluicegate").option("rows", "documents").load(f"{srv}/chunks")
    assert documents.count() == len([*(srv / "chunks").iterdir()])
    refused = documents.where("reason is not null").collect()
    assert [Path(row["path"]).name for row in refused] == ["bad.json"]
    buckets = sql.read.format("sluicegate").load(f"{srv}/chunks")
    told = documents.where("reason is null").groupBy().sum("readings", "buckets").collect()[0]
    assert (buckets.groupBy().sum("n").collect()[0][0], buckets.count()) == tuple(told)


@pytest.mark.parametrize(
    ("statement", "said"),
    some([
        (FROM + "('{srv}/fleet', window => '1h')", "is a table, which answers what it was made for"),
        (FROM + "('{srv}/chunks', window => '90min')", "is no whole number of slide"),
        (FROM + "('{srv}/chunks', aggregates => 'mode')", "choose from count, sum, mean"),
        (FROM + "('{srv}/chunks', aggregates => 'count_min(8,2)')", "keeps no sketches"),
        (FROM + "('{srv}/none')", "is not there"),
        (FROM + "('gs://bucket/x')", "a table cannot lie at gs://bucket/x"),
        (VIEW + "v1 USING sluicegate OPTIONS (path '{srv}/fleet', rows 'buckets')", "windows, streams"),
        (VIEW + "v2 USING sluicegate OPTIONS (path '{srv}/chunks', version '3')", "is no table"),
        (VIEW + "v3 USING sluicegate OPTIONS (path '{srv}/fleet', version '9')", "no version 9"),
        (VIEW + "v4 USING sluicegate OPTIONS (path '{srv}/fleet', row 'x')", "no option 'row'"),
    ], 3),
)  # fmt: skip
def test_what_cannot_be_asked_says_why(sql: Any, srv: Path, statement: str, said: str) -> None:
    """With the reason in Spark's message."""
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match=re.escape(said)):
        sql.sql(statement.format(srv=srv)).collect()


def test_more_than_a_task_takes_is_refused(srv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By size, before anything is read."""
    from sluicegate_cloud.errors import SourceError
    from sluicegate_cloud.sql import function

    monkeypatch.setattr(function, "MOST_BYTES", 1_000)
    with pytest.raises(SourceError, match="make a table of them"):
        [*function.Windows().eval(f"{srv}/chunks")]
