"""The commands on a table: `cloud merge --table` and `cloud reconcile`. Imports only click at the top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from sluicegate_cloud.options import length, names, of_options

if TYPE_CHECKING:
    from sluicegate.windowing.definition import WindowDefinition


def session(master: str, memory: str) -> Any:
    """A Spark session."""
    from sluicegate_cloud.progress import step
    from sluicegate_cloud.session import QUICK, spark_session

    with step("starting Spark"):
        return spark_session(master, {**QUICK, "spark.driver.memory": memory})


def definition_of(asked: Sequence[WindowDefinition], by: Sequence[Sequence[str]]) -> Any:
    """What a table answers. Raises UsageError for what a table does not."""
    from sluicegate_cloud.definitions import lengths
    from sluicegate_cloud.extras.asked import sorted_out
    from sluicegate_cloud.table import job

    if len(asked) != 1:
        raise click.UsageError("a table answers one window: give each of them a --table of its own")
    of = lengths(asked[0].spec)
    plain, carried = sorted_out(asked[0].aggregates)
    if carried or tuple(asked[0].streams) != ("*",):
        raise click.UsageError("a table has no quantiles and the like, and all streams: use --out for these")
    return job.definition_of(of.window_us, of.slide_us, plain, origin_us=of.origin_us, by=by)


def into_table(
    sources: Sequence[str],
    table: str,
    asked: Sequence[WindowDefinition],
    by: Sequence[Sequence[str]],
    master: str,
    memory: str,
) -> None:
    """Merge what is new and say what came of it."""
    from sluicegate_cloud.table import job
    from sluicegate_cloud.table.versions import Store

    definition = definition_of(asked, by)
    before = Store(table).load()
    version = job.merge(session(master, memory), sources, table, definition)
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
    """Prove that a table has not drifted: answer all its windows anew from its documents, and compare.

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
@click.argument("source")
@click.option("--table", required=True, metavar="FOLDER", help="The table, made where there is none.")
@click.option("--window", default="24h", callback=length, show_default=True, help="Length of a window.")
@click.option(
    "--slide", default="1h", callback=length, show_default=True, help="From one window's start to the next's."
)
@click.option("--aggregates", default="count,sum,mean,min,max", callback=names, show_default=True, metavar="NAMES",
              help="As those of cloud merge.")  # fmt: skip
@click.option("--by", metavar="TAGS", multiple=True, help="As that of cloud merge.")
@click.option("--every", metavar="TIME", help='Go on for ever, looking each "10 seconds"; without: what is there now.')
@click.option("--master", default="local[*]", show_default=True, help="Spark master; all cores of this machine.")
@click.option("--memory", default="1g", show_default=True, help="What Spark's Java may take of this machine.")
def stream(
    source: str, table: str, window: int, slide: int, aggregates: tuple[str, ...], by: tuple[str, ...],
    every: str | None, master: str, memory: str,
) -> None:  # fmt: skip
    """Take chunk documents into a table as they come into a folder.

    SOURCE: the folder, or a URI that Spark lists. Late documents correct their windows; a new run of this command goes
    on where the last one ended, however it ended.
    """
    from sluicegate_cloud.table import stream as streaming
    from sluicegate_cloud.table.versions import Store

    asked = of_options(window, slide, aggregates)
    definition = definition_of(asked, [names_of.split(",") for names_of in by])
    query = streaming.stream(session(master, memory), source, table, definition, every=every)
    try:
        streaming.finish(query)
    except KeyboardInterrupt:
        query.stop()
    version = Store(table).load()
    click.echo(f"{table} is at version {version.number if version else 0}")
