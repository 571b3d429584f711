"""A driver of its own process: reads a line of JSON a job, does it in Spark, writes a line of JSON.

Arguments: a master, a folder with the jars of a sink if one is needed, and the word `kafka` if it is not Delta Lake.

Jobs name folders as a user does, which may be relative to the driver's own folder.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from small_spark import JAVA, SMALL

from sluicegate_cloud import job as everything
from sluicegate_cloud.errors import CloudError
from sluicegate_cloud.frames import place_in_frames
from sluicegate_cloud.session import QUICK, is_remote, spark_session
from sluicegate_cloud.sources import read_buckets
from sluicegate_cloud.table import delta, job, kafka
from sluicegate_cloud.table import stream as streaming
from sluicegate_cloud.table.versions import Definition, Store
from sluicegate_cloud.windows import sliding_windows

_SMALL = SMALL | {
    "spark.driver.memory": "512m", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
    "spark.cores.max": "2", "spark.executor.memory": "512m", "spark.executor.cores": "1",
    "spark.network.timeout": "60s", "spark.executor.extraJavaOptions": JAVA,
}  # fmt: skip
#: Delta's plans are large and its rows few: they are done with before Java code for them is compiled, a quarter of all.
_PLAIN = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def main(master: str, jars: str = "", kind: str = "delta") -> None:
    """Jobs, until the input ends."""
    sinks = {"delta": lambda: delta.settings(Path(jars)) | _PLAIN, "kafka": lambda: kafka.settings(Path(jars))}
    spark = spark_session(master, {**QUICK, **_SMALL, **(sinks[kind]() if jars else {})})
    _say({"ready": master})
    for line in sys.stdin:
        told = json.loads(line)
        try:
            _say(JOBS[told.pop("do")](spark, **told))
        except CloudError as error:
            _say({"error": type(error).__name__, "text": str(error)})
    spark.stop()


def _say(told: Any) -> None:
    print(json.dumps(told), flush=True)


def sql(spark: Any, statements: list[str]) -> Any:
    """What somebody else does in this session."""
    return {"rows": sum(len(spark.sql(one).collect()) for one in statements)}


def batch(spark: Any, source: str, window: dict[str, int], aggregates: list[str], out: str) -> Any:
    """The DataFrame way, into Parquet."""
    frames = place_in_frames(read_buckets(spark, source), window["slide"])
    sliding_windows(frames, window["width"], tuple(aggregates)).write.mode("overwrite").parquet(out)
    if is_remote(spark):
        return {"executors": 0}
    return {"executors": spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1}


def out(spark: Any, sources: list[str], window: dict[str, int], aggregates: list[str], folder: str) -> Any:
    """Everything, as `cloud merge --out` does it."""
    lengths = window["slide"] * window["width"], window["slide"]
    told = everything.merge(sources, Path(folder), *lengths, aggregates, master=sys.argv[1])
    return {"rows": told["windows"]["rows"]}


def merge(spark: Any, sources: list[str], table: str, definition: dict[str, Any]) -> Any:
    """What is new, into a table."""
    return {"version": job.merge(spark, sources, table, Definition.from_json(definition)).number}


def stream(spark: Any, source: str, table: str, definition: dict[str, Any], most: int) -> Any:
    """What is in a folder, in micro-batches of so many documents."""
    streaming.finish(lambda: streaming.stream(spark, source, table, Definition.from_json(definition), most=most))
    found = Store(table).load()
    return {"version": found.number if found else 0}


def dying_stream(spark: Any, source: str, table: str, definition: dict[str, Any], most: int, after: bool) -> Any:
    """The same, killed with its Java at the first batch: `after` its version is made, before Spark knows of it."""
    taken, java = job.take, spark._jvm.java.lang.ProcessHandle.current().pid()

    def killed(*given: Any) -> None:
        if after:
            taken(*given)
        os.kill(java, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    job.take = killed  # type: ignore[assignment]
    return stream(spark, source, table, definition, most)


def both(spark: Any, sources: list[list[str]], table: str, definition: dict[str, Any], far: bool) -> Any:
    """Two merges of one table at once; `far`: as on two machines, whose locks do not see each other."""
    answers: list[Any] = [None, None]
    begin = threading.Barrier(2)

    def run(at: int) -> None:
        begin.wait()
        try:
            answers[at] = merge(spark, sources[at], table, definition)
        except CloudError as error:
            answers[at] = {"error": type(error).__name__, "text": str(error)}

    with _unlocked() if far else nullcontext():
        threads = [threading.Thread(target=run, args=(at,)) for at in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return answers


@contextmanager
def _unlocked() -> Any:
    locked, Store.writing = Store.writing, lambda self: nullcontext()  # type: ignore[method-assign]
    try:
        yield
    finally:
        Store.writing = locked  # type: ignore[method-assign]


def reconcile(spark: Any, table: str) -> Any:
    """In what a table differs from its documents."""
    return list(job.reconcile(spark, table))


def publish(spark: Any, table: str, place: str) -> Any:
    """A table's newest version, to a Delta table."""
    store = Store(table)
    return {"rows": delta.publish(spark, store, job.opened(store, None), place)}


def publish_kafka(spark: Any, table: str, place: str) -> Any:
    """The same, to a topic."""
    store = Store(table)
    return {"rows": kafka.publish(spark, store, job.opened(store, None), place)}


def message(spark: Any, brokers: str, topic: str, key: str, value: str) -> Any:
    """One of somebody else's, into a topic."""
    known = {"kafka.bootstrap.servers": brokers, "topic": topic}
    spark.createDataFrame([(key, value)], "key string, value string").write.format("kafka").options(**known).save()
    return {}


def messages(spark: Any, brokers: str, topic: str) -> Any:
    """What a topic holds: partition, headers, key and value, each partition's in its order."""
    known = {"kafka.bootstrap.servers": brokers, "subscribe": topic, "includeHeaders": "true"}
    told = spark.read.format("kafka").options(**known).load().sort("partition", "offset").collect()
    out = []
    for row in told:
        headers = {of["key"]: of["value"].decode() for of in row["headers"] or ()}
        out.append((row["partition"], headers, row["key"].decode(), row["value"] and row["value"].decode()))
    return out


JOBS = {
    of.__name__: of
    for of in (batch, out, merge, stream, dying_stream, both, reconcile, publish, publish_kafka, message, messages, sql)
}

if __name__ == "__main__":
    main(*sys.argv[1:])
