"""A Kafka topic promises each window's newest revision under its key, whoever dies while it is written."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from clusters import Driver, driver
from jars_of_make import ROOT, listed_jars, pinned_jars
from kafka_broker import Broker, broker_jars
from random_worlds import Cut, random_fleet
from table_worlds import Rows, anew, definition_of, documents_of, store_at, table_of, take_in, windows

from gateway import certificates
from sluicegate_cloud.errors import SinkError
from sluicegate_cloud.session import with_setting
from sluicegate_cloud.table import kafka, read
from sluicegate_cloud.table.brokers import CONFIG, topic_at
from sluicegate_cloud.table.versions import Store, Version

CUT = Cut(60_000_000, 3, 0, 30)


@pytest.fixture(scope="module")
def jars() -> Path:
    """Those that `make dev` gets, and a broker's beside them."""
    broker_jars()
    return listed_jars("kafka")


@pytest.fixture
def broker(jars: Path, tmp_path: Path) -> Broker:
    """One that is not started, with a certificate of `authority.pem`'s."""
    here = certificates.make(tmp_path).here
    return Broker(tmp_path / "broker", here.with_suffix(".key").read_bytes() + here.read_bytes())


def test_the_checksums_are_those_of_the_script(tmp_path: Path) -> None:
    """What the script gets is what a session takes; without it the script is named."""
    pinned = (line.split() for line in (ROOT / "deploy/spark/kafka.sha256").read_text().splitlines())
    assert {name: digest for digest, name in pinned} == kafka.JARS == pinned_jars("kafka")
    with pytest.raises(SinkError, match=r"deploy/spark/jars\.sh kafka"):
        kafka.settings(tmp_path)


@pytest.mark.parametrize(
    ("url", "file", "protocol"),
    [
        ("kafka://localhost:9092/w", "", "PLAINTEXT"),
        ("kafka://127.0.0.1:9092,[::1]:9093/w", "sasl.mechanism=PLAIN", "SASL_PLAINTEXT"),
        ("kafka://b.example:9092/w", "", "SSL"),
        ("kafka://127.0.0.1:9092,b.example:9092/w", "", "SSL"),
        ("kafka://127.0.0.1.example:9092/w", "sasl.mechanism = SCRAM-SHA-512", "SASL_SSL"),
        ("kafka://b.example:9092/w", "security.protocol=PLAINTEXT", "PLAINTEXT"),
    ],
)
def test_it_is_encrypted_unless_the_broker_is_here(url: str, file: str, protocol: str, tmp_path: Path) -> None:
    """The certificate is checked, name and all: Kafka's default, which nothing here takes back."""
    (tmp_path / "client").write_text(f"# of ours\n{file}\nsasl.jaas.config=a \\\n  password=b=c;\nacks=0\n")
    options = topic_at(url, {CONFIG: str(tmp_path / "client")}).options
    assert options["kafka.security.protocol"] == protocol
    assert options["kafka.sasl.jaas.config"] == "a password=b=c;"
    assert options["kafka.acks"] == "all", "a message that only one of the brokers has is no message"
    assert "kafka.ssl.endpoint.identification.algorithm" not in options


@pytest.mark.parametrize(
    ("url", "file", "told"),
    [
        ("kafka://b.example:9092/w", "security.protocol=SASL_PLAINTEXT", "in the clear"),
        ("kafka://b.example:9092/w", "a secret", "setting 1 of .* has no ="),
        *((url, "", "expected kafka://HOST:PORT") for url in (
            "kafka://b.example/w", "kafka://b:1", "kafka://b:1/a/b", "kafka://me:pass@b:1/w", "kafka://b:1/..",
            f"kafka://b:1/{'w' * 240}", "b:1/w")),
    ],
)  # fmt: skip
def test_what_is_no_place_is_refused(url: str, file: str, told: str, tmp_path: Path) -> None:
    """By what was expected, and nothing secret is repeated."""
    (tmp_path / "client").write_text(file)
    with pytest.raises(SinkError, match=told) as error:
        topic_at(url, {CONFIG: str(tmp_path / "client")})
    assert "pass" not in str(error.value).replace("password", "")
    assert "secret" not in str(error.value)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.faults
def test_a_topic_follows_the_table_through_kills(
    jars: Path, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last message of each key is the table's row, or none has it; and no key's revision ever goes back.

    One publisher is killed between the first window and the note that all are there, then the broker itself.
    """
    monkeypatch.setenv(CONFIG, _file(tmp_path))
    rng = random.Random(8)
    documents = documents_of(random_fleet(rng, CUT, 4, 40, ordinary=True), "s", rng)
    rng.shuffle(documents)
    store, version = store_at(tmp_path / "table", definition_of(CUT, ("count", "mean", "max"), by=(("site",),)))
    parts = [table_of(documents[at::3], 1000 * at) for at in range(3)]
    url = f"kafka://127.0.0.1:{broker.port}/windows"
    with broker.running() as process:
        version = take_in(store, version, parts[0])
        with driver("local[1]", tmp_path, str(jars), "kafka") as dying:
            dying.done("message", brokers=f"127.0.0.1:{broker.port}", topic="windows", key="other's", value="[]")
            assert dying.done("publish_kafka", table="table", place=url) == {"rows": len(windows(store, version))}
            version, before = take_in(store, version, parts[1]), broker.size("windows")
            dying.ask("publish_kafka", table="table", place=url)
            while broker.size("windows") == before:
                assert dying.busy
                time.sleep(0.01)
            os.kill(dying.process.pid, signal.SIGKILL)
        with driver("local[1]", tmp_path, str(jars), "kafka") as at:
            assert at.done("publish_kafka", table="table", place=url)["rows"] > 0
            assert at.done("publish_kafka", table="table", place=url) == {"rows": 0}
            assert _held(at, broker) == _rows(store, version)
            version = take_in(store, version, parts[2])
            process.kill()
            process.wait()
            _file(tmp_path, "default.api.timeout.ms=2000", "request.timeout.ms=2000", "max.block.ms=2000")
            assert "cannot publish to" in at.done("publish_kafka", table="table", place=url)["text"]
            _file(tmp_path)
            with broker.running():
                assert at.done("publish_kafka", table="table", place=url)["rows"] > 0
                assert _held(at, broker) == _rows(store, version)
                version = store.commit(anew(store, version))
                store.vacuum(kept=1, abandoned_s=-1)
                # no version that is there is kept: the topic is asked, and all revisions are newer
                assert at.done("publish_kafka", table="table", place=url) == {"rows": len(windows(store, version))}
                held = _held(at, broker)
                assert held == _rows(store, version)
                assert {row["revision"] for row in held.values()} == {version.number}
                secured = url.replace(str(broker.port), str(broker.secured))
                assert "has the windows of" in at.done("publish_kafka", table=str(_other(tmp_path)), place=url)["text"]
                _file(tmp_path, "security.protocol=SSL")
                refused = at.done("publish_kafka", table="table", place=secured)["text"]
                assert "SSL" in refused, "a certificate of nobody's was believed"
                _file(tmp_path, "security.protocol=SSL", "ssl.truststore.type=PEM",
                      f"ssl.truststore.location={tmp_path}/authority.pem")  # fmt: skip
                assert at.done("publish_kafka", table="table", place=secured) == {"rows": 0}


def _file(folder: Path, *more: str) -> str:
    (folder / "client.properties").write_text("\n".join(more))
    return str(folder / "client.properties")


def _held(at: Driver, broker: Broker) -> Rows:
    """What a compacted topic would hold, as `table_worlds.windows` tells it; what JSON leaves out is None."""
    last: dict[str, Any] = {}
    revisions: dict[str, int] = {}
    places: dict[str, int] = {}
    for place, headers, key, text in at.done("messages", brokers=f"127.0.0.1:{broker.port}", topic="windows"):
        if key == "other's":
            assert text == "[]", "what is no window of ours was removed"
            continue
        revision, value = int(headers["revision"]), json.loads(text) if text else None
        assert places.setdefault(key, place) == place
        assert revisions.get(key, 0) <= revision
        revisions[key], last[key] = revision, value
        assert value is None or value["revision"] == revision
    return {_key(of): row for of, row in last.items() if row is not None}


def _key(told: str) -> tuple[Any, ...]:
    names = ("device", "stream", "rollup", "tag_site", "window_start", "window_end")
    return tuple(map(json.loads(told).get, names))


def _rows(store: Store, version: Version) -> Rows:
    """The table's, without what JSON has no word for."""
    return {
        key: {of: value for of, value in row.items()
              if value is not None and not (isinstance(value, float) and not math.isfinite(value))}
        for key, row in windows(store, version).items()
    }  # fmt: skip


def _other(folder: Path) -> Path:
    store, version = store_at(folder / "another", definition_of(CUT, ("count",)))
    rng = random.Random(1)
    take_in(store, version, table_of(documents_of(random_fleet(rng, CUT, 1, 9, ordinary=True), "s", rng)))
    return store.root


@pytest.mark.spark
def test_a_session_without_kafka_is_told_what_it_lacks(spark: Any, tmp_path: Path) -> None:
    """Before a broker is asked."""
    store, version = store_at(tmp_path / "table", definition_of(CUT, ("count",)))
    with pytest.raises(SinkError, match="this Spark has no Kafka: give --jars"):
        kafka.publish(spark, store, version, "kafka://127.0.0.1:9/windows")


@pytest.mark.spark
def test_a_window_has_one_key_whatever_a_session_is_set_to(spark: Any, tmp_path: Path) -> None:
    """One that writes nulls in JSON would make another key, and the window be there twice."""
    rng, cut = random.Random(2), Cut(60_000_000, 3, 0, 30)
    store, version = store_at(tmp_path / "table", definition_of(cut, ("count",), by=(("site",),)))
    documents = documents_of(random_fleet(rng, cut, 1, 9, ordinary=True), "s", rng, lost=0.0)
    version = take_in(store, version, table_of(documents))
    told = []
    for value in ("true", "false"):
        with with_setting(spark, "spark.sql.jsonGenerator.ignoreNullFields", value):
            rows = kafka._messages(spark, store, version, [*read.window_files(store, version)])
            told.append(sorted((row["key"], row["value"]) for row in rows.collect()))
    assert told[0] == told[1] != []
    assert not any("null" in text for row in told[0] for text in row)
