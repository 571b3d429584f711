"""The merge as one job: documents → buckets → frames → windows → Parquet and a summary, each step shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from sluicegate_cloud import alarms, metrics, quality, shares, sinks
from sluicegate_cloud.errors import SourceError, SparkError
from sluicegate_cloud.extras.asked import Asked, sorted_out
from sluicegate_cloud.extras.long import MOST_WINDOWS, NONE, long_buckets
from sluicegate_cloud.extras.windows import carried_windows, columns_of
from sluicegate_cloud.feed.access import require_access, why_empty
from sluicegate_cloud.feed.gateway import Gateway
from sluicegate_cloud.fleet import sparse
from sluicegate_cloud.fleet.wire import MOST
from sluicegate_cloud.grid import Grid
from sluicegate_cloud.lines.dedupe import PROBLEMS, catalogue
from sluicegate_cloud.names import AGGREGATES
from sluicegate_cloud.progress import step
from sluicegate_cloud.schema import USED
from sluicegate_cloud.session import QUICK, spark_session
from sluicegate_cloud.sources import check_keep, list_sources, read_documents, require_no_problems
from sluicegate_cloud.windows import windows_of_documents

#: Documents up to which a merge is a job of seconds.
_FEW = 2_000


def merge(
    sources: Sequence[str],
    out: Path,
    window_us: int,
    slide_us: int,
    aggregates: Sequence[str] = AGGREGATES,
    *,
    master: str = "local[*]",
    memory: str = "2g",
    strict: bool = False,
    keep: Path | None = None,
    origin_us: int = 0,
    streams: Sequence[str] = ("*",),
) -> dict[str, Any]:
    """Merge `sources` into OUT and return the summary (docs/reference/cloud.md, "summary.json").

    `window_us` is a multiple of `slide_us`; the count is among the `aggregates` even where it is not named; `memory` is
    what Spark's Java may take; `keep` is where a gateway's documents are kept between runs. Windows begin at multiples
    of the slide after `origin_us`; `streams`: of which there are rows, "*" of all. Raises SourceError, GatewayError,
    SinkError, JavaError, SparkError and, when `strict`, StrictError.
    """
    plain, carried = sorted_out(("count", *aggregates))
    listed = list_sources(sources)
    check_keep(listed.gateways, keep)
    for at in listed.gateways:
        require_access(at)
    sinks.prepare(out)
    with step("starting Spark"):
        quick = QUICK if len(listed.files) < _FEW and not listed.uris else {}
        spark = spark_session(master, {**quick, "spark.driver.memory": memory})
    documents = None
    try:
        documents = _documents(spark, sources, keep).persist()
        _require_documents(documents, listed.gateways)
        with metrics.timed(spark):
            told = _merged(spark, documents, out, (window_us, slide_us, origin_us), plain, carried, streams, strict)
        _tell(spark, told)
        return told
    except (PySparkException, Py4JError) as error:
        raise _explained(error) from error
    finally:
        if documents is not None:
            with suppress(Py4JError):  # where the JVM is gone, so is what it held
                documents.unpersist()


def _tell(spark: SparkSession, summary: dict[str, Any]) -> None:
    counts = summary["documents"]
    unused = sum(counts[fate] for fate in PROBLEMS)
    metrics.tell(
        spark, documents=counts["files"], copies=counts["copy"], refused=unused, windows=summary["windows"]["rows"]
    )  # fmt: skip


def _require_documents(documents: DataFrame, gateways: Sequence[Gateway]) -> None:
    """Raises SourceError, which says why, where a gateway has not one document."""
    if gateways and documents.isEmpty():
        raise SourceError(why_empty(gateways[0]))


def _documents(spark: SparkSession, sources: Sequence[str], keep: Path | None) -> DataFrame:
    if keep is None:
        return catalogue(read_documents(spark, sources))
    with step("reading what is new at the gateway", spark):
        return catalogue(read_documents(spark, sources, keep=keep))


def _merged(
    spark: SparkSession,
    documents: DataFrame,
    out: Path,
    lengths: tuple[int, int, int],
    aggregates: Sequence[str],
    carried: Sequence[Asked],
    streams: Sequence[str],
    strict: bool,
) -> dict[str, Any]:
    window_us, slide_us, origin_us = lengths
    with step("reading documents", spark):
        tallied = quality.tally(documents)
        grid = Grid(slide_us, window_us // slide_us, origin_us)
        aside = sparse.set_aside(documents, tallied, grid) | _without_folder(tallied)
        if aside:
            documents = sparse.without(documents, aside)
            tallied = quality.tally(documents)
    counts = quality.document_counts(tallied)
    named = quality.problems(documents) if _troubled(counts) else []
    if strict:
        require_no_problems(documents)
    if counts["used"] == 0:
        what = "can be merged" if aside else "is a chunk document"
        raise SourceError(f"none of the {counts['files']} files {what}; {named[0]['path']}: {named[0]['reason']}")
    known = [*quality.completeness(tallied)]
    held, is_long = {each["stream"] for each in known}, any(each["buckets"] > MOST for each in known)
    if "*" not in streams and not held & {*streams}:
        raise SourceError(f"no document is of {', '.join(streams)}; there are: {', '.join(sorted(held))}")
    with step("merging windows", spark):
        asked = documents if "*" in streams else documents.where(sf.col("stream").isin(*streams))
        long = long_buckets(asked, grid) if carried else NONE
        if carried:
            told = carried_windows(documents, grid, carried, streams, long)
            sinks.write_windows(
                _beside(windows_of_documents(asked, grid, aggregates, long=is_long), told, carried), out
            )
        else:
            sink = sinks.Sink(str(new := sinks.new_windows(out)))
            names = windows_of_documents(asked, grid, aggregates, sink=sink, long=is_long).collect()
            sinks.replace_windows((row["name"] for row in names), new)
    times = {"window_us": window_us, "slide_us": slide_us, "origin_us": origin_us}
    summary = {"format": 1, **times, **_summary(tallied, counts, out, aggregates, carried, aside), "problems": named}
    if carried:
        summary["extras"] = {"passed_over": _passed_over(documents), "too_long": long.buckets}
    sinks.write_summary(summary, out)
    return summary


def _without_folder(tallied: Sequence[dict[str, Any]]) -> sparse.Aside:
    """Streams of which no file can be made."""
    why = "no folder can have the name of its stream: it is too long; a table (--table) takes it"
    names = {(row["device"], row["stream"]) for row in tallied if row["fate"] == USED}
    return {of: sparse.Rest(sparse.ALL_TIME, why) for of in names if not sinks.has_folder(of[1])}


def _beside(windows: DataFrame, told: DataFrame, carried: Sequence[Asked]) -> DataFrame:
    """The rows of `windows`, each with the columns of what its buckets carry; null where they say nothing."""
    same = windows["device"].eqNullSafe(told["device"])
    for key in ("stream", "window_start", "window_end"):
        same &= windows[key] == told[key]
    columns = [windows[name] for name in windows.columns] + [told[name] for name in columns_of(carried)]
    return windows.join(told, same, "left").select(*columns)


def _passed_over(documents: DataFrame) -> list[str]:
    """Names of what buckets carry that this Sluicegate does not know."""
    rows = documents.where(sf.col("skipped").isNotNull()).select("skipped").distinct().limit(100).collect()
    return sorted({name for row in rows for name in row["skipped"].split(", ")})


def _summary(
    tallied: list[dict[str, Any]],
    counts: dict[str, int],
    out: Path,
    aggregates: Sequence[str],
    carried: Sequence[Asked],
    aside: sparse.Aside,
) -> dict[str, Any]:
    streams = list(quality.completeness(tallied))
    aggregates = (*aggregates, *(name for each in carried for name in each.names))
    needed = ["count_high", "windows", *(f"{name}_exact" for name in aggregates)]
    exact = shares.exact_shares(sinks.windows_at(out).to_batches(columns=needed), aggregates)
    raised = [*alarms.alarms(tallied), *alarms.set_aside(tallied, {of: rest.why for of, rest in aside.items()})]
    known = {"devices": quality.by_device(streams), "streams": streams, "alarms": raised[: alarms.NAMED]}
    return {"documents": counts, "windows": exact, **known, "alarms_in_all": len(raised)}


def _explained(error: Exception) -> SparkError:
    """What Spark said, without its stack: a worker's own message where one failed, else the first line."""
    said = str(error)
    if isinstance(error, Py4JError) and "Exception:" not in said:
        return SparkError(
            "Spark's Java has ended, most often for want of memory: give more (--memory 4g) or choose a longer --slide"
        )
    worker = re.findall(r"^\s*(?:\w+\.)*\w*Error: (.+)$", said, flags=re.MULTILINE)
    return SparkError(f"the merge stopped: {(worker or said.splitlines() or ['no reason given'])[0]}")


def table(summary: dict[str, Any]) -> Iterator[str]:
    """The summary in a few lines for a terminal."""
    yield f"{'device':<24}{'readings':>12}{'missing':>10}{'complete':>11}"
    for device in summary["devices"][:40]:
        name, complete = _short(device["device"]), _percent(device["completeness"])
        yield f"{name:<24}{device['readings']:>12,}{device['missing']:>10,}{complete:>11}"
    if (more := len(summary["devices"]) - 40) > 0:
        yield f"… and {more} more devices"
    windows, documents = summary["windows"], summary["documents"]
    shares = ", ".join(f"{name} {_percent(share)}" for name, share in windows["exact"].items())
    yield f"\nWindows: {windows['rows']:,} rows ({windows['with_readings']:,} with readings); exact: {shares}"
    if windows["in_spans"]:
        yield f"  {windows['in_spans']:,} of them may hold a reading that a long bucket does not place: a row for many"
    yield (
        f"Documents: {documents['files']:,} files, {documents['used']:,} used, {documents['copy']:,} copies, "
        f"{documents['refused']:,} unreadable, {documents['conflict']:,} in conflict, "
        f"{documents['overlap']:,} overlapping, {documents['partly']:,} used in part"
    )
    for problem in summary["problems"][:5]:
        yield f"  {problem['fate']}: {problem['path']}: {problem['reason']}"
    if (more := _troubled(documents) - 5) > 0:
        yield f"  … and {more:,} more, see summary.json"
    if too_long := summary.get("extras", {}).get("too_long"):
        yield f"  {too_long:,} buckets touch over {MOST_WINDOWS:,} windows each: what these carry has no answer there"
    yield from _alarms(summary)


def _troubled(documents: dict[str, int]) -> int:
    """How many were not used as they came."""
    return sum(documents[fate] for fate in (*PROBLEMS, quality.PARTLY))


def _alarms(summary: dict[str, Any]) -> Iterator[str]:
    for alarm in summary["alarms"][:5]:
        keys = f", keys {', '.join(key[:8] + '…' for key in alarm['keys'])}" if alarm["keys"] else ""
        place = f"{alarm['device']}, {alarm['stream']}{keys}"
        yield f"ALARM {place}: {alarm['text']} ({alarm['readings']:,} readings, as {alarm['ids'][0]})"
    if (more := summary["alarms_in_all"] - 5) > 0:
        yield f"  … and {more:,} more alarms, see summary.json"


def _short(name: str) -> str:
    return name if len(name) <= 22 else name[:21] + "…"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.2f} %"
