"""Documents and tables in a bucket promise what those in folders do: the rows of one process, whoever dies."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from random_worlds import MINUTE, Cut, random_fleet
from s3_server import BUCKET, client
from table_worlds import differences, documents_of, store_at, table_of, take_in, windows

from sluicegate_cloud import register
from sluicegate_cloud.errors import SourceError, TableError
from sluicegate_cloud.sources import read_documents
from sluicegate_cloud.table import devices, job, read
from sluicegate_cloud.table.versions import Store

pytestmark = pytest.mark.spark

CUT = Cut(60 * MINUTE, 3, 0, 10_000)
ASKED = ("sum", "mean", "std", "min", "max")
DEFINITION = job.definition_of(3 * CUT.slide, CUT.slide, ASKED, shards=2)
TABLE = f"s3a://{BUCKET}/tables/fleet"


def documents() -> list[bytes]:
    """Of three boards, in any order."""
    rng = random.Random(7)
    found = documents_of(random_fleet(rng, Cut(60 * MINUTE, 3, 0, 40), 3, 25, ordinary=True), "s", rng)
    rng.shuffle(found)
    return found


def test_a_table_in_a_bucket_has_the_rows_of_a_folder(
    spark_at_s3: Any, s3: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documents in a bucket, in two runs; one run dies before its version is made, another was overtaken."""
    found, at = documents(), client(s3)
    store, version = store_at(tmp_path / "oracle", DEFINITION)
    for run in range(2):
        some = found[run::2]
        for number, data in enumerate(some):
            at.put_object(Bucket=BUCKET, Key=f"chunks/{run}/{number}.json", Body=data)
        at.put_object(Bucket=BUCKET, Key=f"chunks/{run}/.hidden.json", Body=b"no document")
        at.put_object(Bucket=BUCKET, Key=f"chunks/{run}/begun.json.partial", Body=b"no document")
        version = take_in(store, version, table_of(some, run))
        if run == 1:
            monkeypatch.setattr(Store, "commit", _dies)
            with pytest.raises(KeyboardInterrupt):
                job.merge(spark_at_s3, [f"s3://{BUCKET}/chunks"], TABLE, DEFINITION)
            monkeypatch.undo()
        merged = job.merge(spark_at_s3, [f"s3://{BUCKET}/chunks"], TABLE, DEFINITION)
        assert merged.number == run + 1
    there = Store(TABLE)
    assert differences(windows(there, merged), windows(store, version))[:3] == []
    assert job.merge(spark_at_s3, [f"s3://{BUCKET}/chunks"], TABLE, DEFINITION).number == 2, "nothing is new"
    with pytest.raises(TableError, match="nothing of this one counts"):
        there.commit(merged)
    known = [row["device"] for row in devices.devices(there, merged)]
    assert known == [row["device"] for row in devices.devices(store, version)]
    register(spark_at_s3)
    assert spark_at_s3.read.format("sluicegate").load(TABLE).count() == read.rows_of(there, merged).num_rows
    assert read.streams(spark_at_s3, there, merged).count() == len(known)
    assert list(job.reconcile(spark_at_s3, TABLE)) == []


def test_a_bucket_is_read_as_a_folder_is(spark_at_s3: Any, s3: dict[str, str], tmp_path: Path) -> None:
    """Documents that cannot be read are told with their URLs; an empty prefix is no source."""
    for number, data in enumerate([b"{", *documents()]):
        (tmp_path / f"{number}.json").write_bytes(data)
        client(s3).put_object(Bucket=BUCKET, Key=f"some/{number}.json", Body=data)
    rows, local = (
        {
            row["path"].rpartition("/")[2]: row.asDict() | {"path": None}
            for row in read_documents(spark_at_s3, of).collect()
        }
        for of in (f"s3://{BUCKET}/some", str(tmp_path))
    )
    assert rows == local
    assert [name for name, row in rows.items() if row["reason"]] == ["0.json"]
    with pytest.raises(SourceError, match="there are no files in"):
        read_documents(spark_at_s3, f"s3://{BUCKET}/nothing")


def _dies(*_: Any) -> None:
    raise KeyboardInterrupt("killed")
