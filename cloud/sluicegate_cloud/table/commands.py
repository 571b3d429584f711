"""The commands on a table: `cloud merge --table` and `cloud reconcile`. Imports only click at the top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sluicegate_cloud.options import length, length_or_none, names, of_options

if TYPE_CHECKING:
    from sluicegate.windowing.definition import WindowDefinition


SHARDS = click.option(
    "--shards", type=click.IntRange(1, 4096), help="Of a new table, into how many parts its streams are spread: tasks "
    "that work at once, 16 if not given. It stays so.",
)  # fmt: skip


def session(master: str, memory: str, more: Mapping[str, str] | None = None) -> Any:
    """A Spark session, with more settings than those of a merge if there are any."""
    from sluicegate_cloud.progress import step
    from sluicegate_cloud.session import QUICK, spark_session

    with step("starting Spark"):
        return spark_session(master, {**QUICK, "spark.driver.memory": memory, **(more or {})})


def definition_of(
    asked: Sequence[WindowDefinition], by: Sequence[Sequence[str]], shards: int | None, table: str
) -> Any:  # fmt: skip
    """What the table answers. Raises UsageError for what a table does not."""
    from sluicegate_cloud.definitions import lengths
    from sluicegate_cloud.extras.asked import sorted_out, tabled
    from sluicegate_cloud.table import job
    from sluicegate_cloud.table.versions import Store

    if len(asked) != 1:
        raise click.UsageError("a table answers one window: give each of them a --table of its own")
    of = lengths(asked[0].spec)
    plain, carried = sorted_out(asked[0].aggregates)
    more = tabled(carried, asked[0].aggregates)
    if tuple(asked[0].streams) != ("*",):
        raise click.UsageError("a table has all streams: use --out for some")
    there = Store(table).load()
    if there and shards not in (None, there.definition.shards):
        raise click.UsageError(f"{table} has {there.definition.shards} shards, and {shards} are asked: leave it out")
    spread = {"shards": shards} if shards else {}
    return job.definition_of(of.window_us, of.slide_us, plain, origin_us=of.origin_us, by=by, carried=more, **spread)


REGISTRY = click.option(
    "--registry", type=click.Path(path_type=Path), metavar="FILE", help="With --table: a CSV file with a column "
    "`device`; its other columns are tags for --by, kept for the runs that follow.",
)  # fmt: skip


def into_table(
    sources: Sequence[str], table: str, definition: Any, registry: Path | None, master: str, memory: str
) -> None:  # fmt: skip
    """Merge what is new and say what came of it."""
    from sluicegate_cloud.table import job
    from sluicegate_cloud.table.grouping import registry as registries
    from sluicegate_cloud.table.versions import Store

    before, told = Store(table).load(), registries.read(registry) if registry else None
    spark = session(master, memory)
    if told is not None:
        job.register(spark, table, told, definition)
    version = job.merge(spark, sources, table, definition)
    if before is not None and version.number == before.number:
        click.echo(f"Nothing is new: {table} stays at version {version.number}")
        return
    told = version.told
    click.echo(f"{told['documents']:,} documents, {told['copies']:,} of them known; {told['rows']:,} windows written")
    click.echo(f"{table} is at version {version.number}")


@click.command()
@click.argument("table")
@click.option("--master", default="local[*]", show_default=True, help="Spark master; all cores of this machine.")
@click.option("--memory", default="1g", show_default=True, help="What Spark's Java may take of this machine.")
def reconcile(table: str, master: str, memory: str) -> None:
    """Prove that a table has not drifted.

    Answers all its windows anew from its documents, and compares.

    Exit code 1 where any row differs beyond rounding. The table stays as it is.
    """
    from sluicegate_cloud.table import job

    found = list(job.reconcile(session(master, memory), table))
    for line in found:
        click.echo(line)
    if found:
        raise click.exceptions.Exit(1)
    click.echo(f"{table}: every window is what its documents say")


@click.command()
@click.argument("source", nargs=-1, required=True)
@click.option("--to", required=True, metavar="PLACE", help="Where they come to lie: a folder or s3://BUCKET/PREFIX.")
@click.option("--remove", is_flag=True, help="Remove the chunk files whose documents are there for good.")
@click.option("--master", default="local[*]", show_default=True, help="Spark master; all cores of this machine.")
@click.option("--memory", default="1g", show_default=True, help="What Spark's Java may take of this machine.")
def compact(source: tuple[str, ...], to: str, remove: bool, master: str, memory: str) -> None:
    """Make few Parquet files of many small chunk documents.

    They are a source for the other commands in the place of those.

    SOURCE: folders, files, globs, s3://BUCKET/PREFIX. A new run takes what is new; one that was killed goes on. A file
    that cannot be read stays as it is.
    """
    from sluicegate_cloud.table import compacting

    done = compacting.compact(session(master, memory), source, to, remove=remove)
    click.echo(f"{to}: {done.documents:,} documents are new; {done.removed:,} chunk files removed")
    if done.refused:
        click.echo(f"{done.refused:,} files cannot be read and stay: cloud merge says why")


@click.command()
@click.argument("source")
@click.option("--table", required=True, metavar="PLACE", help="The table, made where there is none.")
@click.option("--window", default="24h", callback=length, show_default=True, help="Length of a window.")
@click.option(
    "--slide", default="1h", callback=length, show_default=True, help="From one window's start to the next's."
)
@click.option("--aggregates", default="count,sum,mean,min,max", callback=names, show_default=True, metavar="NAMES",
              help="As those of cloud merge.")  # fmt: skip
@click.option("--by", metavar="WORDS", multiple=True, help="As that of cloud merge.")
@REGISTRY
@SHARDS
@click.option("--every", metavar="TIME", help='Go on for ever, looking each "10 seconds"; without: what is there now.')
@click.option("--checkpoint", metavar="PLACE",
              help="Where Spark keeps what was read, below the table if not given: a folder or a URI.")  # fmt: skip
@click.option("--master", default="local[*]", show_default=True, help="Spark master; all cores of this machine.")
@click.option("--memory", default="1g", show_default=True, help="What Spark's Java may take of this machine.")
def stream(
    source: str, table: str, window: int, slide: int, aggregates: tuple[str, ...], by: tuple[str, ...],
    registry: Path | None, shards: int | None, every: str | None, checkpoint: str | None, master: str, memory: str,
) -> None:  # fmt: skip
    """Take chunk documents into a table as they come.

    They come into a folder or to a Sync Gateway.

    SOURCE: the folder, a URI that Spark lists, or the https:// URL of a gateway's database. Late documents correct
    their windows; a new run of this command goes on where the last one ended, however it ended.
    """
    from sluicegate_cloud.table import job
    from sluicegate_cloud.table import stream as streaming
    from sluicegate_cloud.table.grouping import registry as registries
    from sluicegate_cloud.table.versions import Store

    asked = of_options(window, slide, aggregates)
    definition = definition_of(asked, [names_of.split(",") for names_of in by], shards, table)
    told = registries.read(registry) if registry else None
    spark = session(master, memory)
    if told is not None:
        job.register(spark, table, told, definition)
    streaming.finish(lambda: streaming.stream(spark, source, table, definition, every=every, checkpoint=checkpoint))
    version = Store(table).load()
    click.echo(f"{table} is at version {version.number if version else 0}")


@click.command()
@click.argument("table")
@click.option("--json", "as_json", is_flag=True, help="A line of JSON a device, with all that is known.")
def devices(table: str, as_json: bool) -> None:
    """Say how the devices of a table are.

    Last reading, what is missing, agent, memory. Needs no Spark.
    """
    import json
    import time

    from sluicegate_cloud.table import devices as known

    rows = known.devices(*loaded(table))
    if as_json:
        for row in rows:
            click.echo(json.dumps(row, ensure_ascii=False))
        return
    now = time.time()
    click.echo(f"{'device':<24}{'last reading':>14}{'readings':>14}{'missing':>10}{'agent':>10}{'MiB':>7}  tags")
    for row in rows:
        ago = f"{max(now - row['last_us'] / 1e6, 0):,.0f} s ago" if row["last_us"] is not None else "–"
        memory = f"{row['rss_bytes'] / 2**20:.0f}" if isinstance(row["rss_bytes"], int) else "–"
        tags = " ".join(f"{name}={value}" for name, value in row["tags"].items())
        agent = str(row["agent_version"] or "–")
        counts = f"{row['readings']:>14,}{row['missing']:>10,}{agent[:9]:>10}{memory:>7}"
        click.echo(f"{row['device'][:23]:<24}{ago:>14}{counts}  {tags}")


@click.command()
@click.argument("table")
@click.option("--silent", callback=length_or_none, metavar="TIME", help="Also devices without a reading for so long.")
def alerts(table: str, silent: int | None) -> None:
    """Say what somebody must look into.

    Two boards under one name, documents that are not used, silent devices.

    A line of JSON each; exit code 1 where there is any. Needs no Spark.
    """
    import json
    import time

    from sluicegate_cloud.table import devices as known

    found = list(known.alerts(*loaded(table), time.time_ns() // 1000, silent))
    for row in found:
        click.echo(json.dumps(row, ensure_ascii=False))
    if found:
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("table")
@click.option("--json", "as_json", is_flag=True, help="A line of JSON a stream, with all that is known.")
@click.option("--late", "of_late", is_flag=True, help="Instead: how many readings came late, a stream and day.")
def quality(table: str, as_json: bool, of_late: bool) -> None:
    """Say how complete and how exact the windows of a table are.

    Of all devices, then of the least complete ones.

    Needs no Spark.
    """
    import json

    from sluicegate_cloud.table.summaries import late, shown
    from sluicegate_cloud.table.summaries import quality as known

    store, version = loaded(table)
    if of_late:
        rows = [row for some in late.late(store, version) for row in some.to_pylist()]
        for row in rows:
            click.echo(json.dumps(row, ensure_ascii=False) if as_json else shown.late_line(row))
        if not rows and not as_json:
            click.echo("No reading came late")
        return
    found = known.quality(store, version)
    if not as_json:
        for line in shown.lines(found, known.names_of(version.definition)):
            click.echo(line)
        return
    for row in (row for some in found for row in some.to_pylist()):
        click.echo(json.dumps(row | {"tags": dict(row["tags"] or [])}, ensure_ascii=False))


@click.command()
@click.argument("table")
@click.option("--name", default="windows", show_default=True, help="The database's table, made where there is none.")
@click.option(
    "--delta", metavar="PLACE", help="Instead: a Delta table at this folder or URI, made where there is none."
)
@click.option("--couchbase", metavar="URL", help="Instead: documents in a Sync Gateway's database "
              "(https://HOST:4984/DATABASE), or a server's (couchbases://HOST/BUCKET).")  # fmt: skip
@click.option("--kafka", metavar="URL", help="Instead: a topic, kafka://HOST:PORT/TOPIC.")
@click.option("--jars", type=click.Path(path_type=Path), metavar="FOLDER",
              help="With --delta, --kafka: where deploy/spark/jars.sh put what Spark lacks.")  # fmt: skip
@click.option("--master", default="local[*]", show_default=True, help="With --delta, --kafka: Spark master.")
@click.option("--memory", default="1g", show_default=True, help="With these two: what Spark's Java may take.")
def publish(
    table: str, name: str, delta: str | None, couchbase: str | None, kafka: str | None, jars: Path | None,
    master: str, memory: str,
) -> None:  # fmt: skip
    """Bring a table's windows to a database, a lake or a topic.

    Writes what changed since the last time.

    To PostgreSQL: SLUICEGATE_POSTGRES says where, postgresql://USER@HOST/DATABASE, and ~/.pgpass the password. A server
    elsewhere has to show a valid certificate. Needs the extra `postgres`, no Spark. With --delta to a Delta table, with
    --couchbase to documents, with --kafka to a topic. The first two are one transaction.
    """
    if len([where for where in (delta, couchbase, kafka) if where]) > 1:
        raise click.UsageError("--delta, --couchbase and --kafka are places of their own: one after the other")
    store, version = loaded(table)
    if couchbase:
        from sluicegate_cloud.table.couchbase.publishing import publish_at

        rows = publish_at(couchbase, store, version, name)
    elif delta or kafka:
        rows = _by_spark(store, version, delta, kafka, jars, master, memory)
    else:
        from sluicegate_cloud.table import postgres

        rows = postgres.publish(store, version, name)
    click.echo(
        f"{delta or couchbase or kafka or name} is at version {version.number}: {rows:,} rows written or removed"
    )


def _by_spark(
    store: Any, version: Any, delta: str | None, kafka: str | None, jars: Path | None, master: str, memory: str
) -> int:
    from sluicegate_cloud.progress import step
    from sluicegate_cloud.table import delta as table_sink
    from sluicegate_cloud.table import kafka as topic_sink
    from sluicegate_cloud.table.brokers import topic_at

    if kafka:
        topic_at(kafka)  # refused before Spark starts
    sink, place = (topic_sink, kafka) if kafka else (table_sink, delta)
    spark = session(master, memory, sink.settings(jars) if jars else {})
    with step("publishing", spark):
        return int(sink.publish(spark, store, version, place))


def _levels(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[int, int | None]:
    """Of "1h=365d" and "1d": the µs of a window, and how long it is kept."""
    out: dict[int, int | None] = {}
    for value in values:
        of, _, kept = value.partition("=")
        out[length(context, option, of)] = length(context, option, kept) if kept else None
    return out


@click.command()
@click.argument("table")
@click.option(
    "--keep", required=True, callback=length, metavar="TIME", help="How long windows and documents stay: 30d."
)
@click.option("--rollup", "levels", callback=_levels, multiple=True, metavar="LENGTH[=TIME]",
              help="Windows of this length of what goes, tumbling: 1h=365d for so long, 1d for ever.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--master", default="local[*]", show_default=True, help="Spark master; all cores of this machine.")
@click.option("--memory", default="1g", show_default=True, help="What Spark's Java may take of this machine.")
def retain(table: str, keep: int, levels: dict[int, int | None], dry_run: bool, master: str, memory: str) -> None:
    """Take what is old out of a table.

    Keeps it as windows of an hour, a day: in one version, or not at all.
    """
    import time
    from datetime import UTC, datetime

    from sluicegate_cloud.table import job, retention

    loaded(table)
    known = retention.levels_of([*levels.items()])
    starts = None if dry_run else session(master, memory)
    version, told = job.retain(starts, table, keep, known, time.time_ns() // 1000)
    since = datetime.fromtimestamp((version.horizon_us or 0) / 1e6, UTC).isoformat(timespec="seconds")
    if not told:
        click.echo(f"Nothing is older: {table} stays at version {version.number}")
        return
    went = f"{told['documents']:,} documents ({told['buckets']:,} buckets), {told['rows']:,} windows of devices"
    click.echo(f"{'Would go' if dry_run else 'Gone'}: {went}; what begins from {since} on stays")
    if not dry_run:
        click.echo(f"{table} is at version {version.number}; the last 8 versions still have their files")


def loaded(table: str) -> tuple[Any, Any]:
    """The table and its newest version. Raises SourceError where there is none."""
    from sluicegate_cloud.table import job
    from sluicegate_cloud.table.versions import Store

    store = Store(table)
    return store, job.opened(store, None)
