"""`s3a://` by Hadoop's own connector promises the rows of one process: read, written and streamed at a real S3 server.

The jars are not part of Spark, and the SDK's has 601 MB: `deploy/spark/s3a.sha256` names them, and says where the tests
look for them (build/cache, or SLUICEGATE_S3A_JARS).
"""

from __future__ import annotations

import hashlib
import io
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from clusters import driver
from s3_server import BUCKET, client
from table_worlds import differences, store_at, table_of, take_in, windows
from test_at_s3 import ASKED, CUT, DEFINITION, documents
from test_cluster import keyed

from sluicegate_cloud.table.versions import Store

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def jars() -> list[Path]:
    """Those that are pinned."""
    folder = Path(os.environ.get("SLUICEGATE_S3A_JARS") or ROOT / "build/cache/s3a-3.5.0")
    found = []
    for line in (ROOT / "deploy/spark/s3a.sha256").read_text().splitlines():
        digest, name = line.split()
        if not (folder / name).is_file():
            pytest.skip(f"missing: {name} in {folder} (SLUICEGATE_S3A_JARS)")
        with (folder / name).open("rb") as file:
            assert hashlib.file_digest(file, "sha256").hexdigest() == digest, name
        found.append(folder / name)
    return found


@pytest.fixture
def configured(jars: list[Path], s3: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's own configuration: the connector, and which server it asks."""
    told = {"endpoint": s3["AWS_ENDPOINT_URL"], "endpoint.region": s3["AWS_REGION"], "path.style.access": "true"}
    told |= {"connection.ssl.enabled": "false"}
    told |= {"access.key": s3["AWS_ACCESS_KEY_ID"], "secret.key": s3["AWS_SECRET_ACCESS_KEY"]}
    lines = [f"spark.hadoop.fs.s3a.{name} {value}" for name, value in told.items()]
    lines.append(f"spark.jars {','.join(map(str, jars))}")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/spark-defaults.conf").write_text("\n".join(lines))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))


@pytest.mark.spark
@pytest.mark.slow
def test_documents_at_s3a_are_read_written_and_streamed(configured: None, s3: dict[str, str], tmp_path: Path) -> None:
    """Windows written there, and a table in a folder filled by a stream from there."""
    at, found = client(s3), documents()
    for number, data in enumerate(found):
        at.put_object(Bucket=BUCKET, Key=f"s3a/chunks/{number}.json", Body=data)
    store, version = store_at(tmp_path / "oracle", DEFINITION)
    wanted = windows(store, take_in(store, version, table_of(found)))
    source = f"s3a://{BUCKET}/s3a/chunks"
    with driver("local[2]", tmp_path) as spark:
        window = {"slide": CUT.slide, "width": CUT.width}
        spark.done("batch", source=source, window=window, aggregates=["count", *ASKED], out=f"s3a://{BUCKET}/s3a/out")
        assert spark.done("stream", source=source, table="fleet", definition=asdict(DEFINITION), most=99)["version"] > 0
    streamed = Store(tmp_path / "fleet")
    assert differences(windows(streamed, loaded(streamed)), wanted)[:3] == []
    assert differences(keyed(rows(at, "s3a/out/")), wanted)[:3] == []


def loaded(store: Store) -> Any:
    """The newest version."""
    version = store.load()
    assert version is not None
    return version


def rows(at: Any, prefix: str) -> list[dict[str, Any]]:
    """Of the Parquet objects below a prefix."""
    names = [one["Key"] for one in at.list_objects_v2(Bucket=BUCKET, Prefix=prefix)["Contents"]]
    bodies = [at.get_object(Bucket=BUCKET, Key=name)["Body"].read() for name in names if name.endswith(".parquet")]
    return pa.concat_tables([pq.read_table(io.BytesIO(body)) for body in bodies]).to_pylist()
