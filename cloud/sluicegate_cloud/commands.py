"""The commands `sluicegate cloud merge` and `sluicegate cloud report`. Imports only click at the top."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sluicegate_cloud.options import folder, length, names, of_options
from sluicegate_cloud.table.commands import (
    REGISTRY,
    SHARDS,
    alerts,
    compact,
    definition_of,
    devices,
    into_table,
    loaded,
    publish,
    quality,
    reconcile,
    retain,
    stream,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluicegate.windowing.definition import WindowDefinition
    from sluicegate_cloud.feed.provision import Credentials


@click.group()
def cloud() -> None:
    """Merge the buckets of all devices into windows, and report on them."""


@cloud.command()
@click.argument("source", nargs=-1, required=True)
@click.option("--out", type=click.Path(path_type=Path), callback=folder,
              help="Folder for the windows and their summary.")  # fmt: skip
@click.option("--table", metavar="PLACE", help="Instead of --out: a table, into which a run takes what is new alone; a "
              "folder or s3://BUCKET/PREFIX.")  # fmt: skip
@click.option("--by", metavar="WORDS", multiple=True,
              help="With --table: windows of all devices with the same of these tags too: site,line. / : of all keys "
              "together; /1: of those with the same first level; device: of each device.")  # fmt: skip
@REGISTRY
@SHARDS
@click.option("--window", default="24h", callback=length, show_default=True, help="Length of a window.")
@click.option(
    "--slide", default="1h", callback=length, show_default=True, help="From one window's start to the next's."
)
@click.option(
    "--aggregates", default="count,sum,mean,min,max", callback=names, show_default=True, metavar="NAMES",
    help="By comma, of those and variance, std, range, geometric_mean, min_count, max_count, or all of these; first, "
    "last, argmin, argmax. "
    "Where buckets carry it: slope(1h), intercept, time_weighted_mean, quantiles(64), distinct_count(10), top_k(5), "
    "count_min(256,4), bloom_filter(1024,4); of readings of two values covariance, correlation. The count always comes "
    "along.",
)  # fmt: skip
@click.option(
    "--windows",
    "definitions",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Instead of the three: [[window]] tables, such as an agent's; each is written to OUT/its name.",
)
@click.option("--explain", "in_words", is_flag=True, help="Say in plain words what each window asks, and end.")
@click.option("--master", default="local[*]", show_default=True, help="Spark master; all cores of this machine.")
@click.option("--memory", default="2g", show_default=True, help="What Spark's Java may take of this machine.")
@click.option("--keep", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Keep here what a gateway gave, and read only what is new the next time.")  # fmt: skip
@click.option("--strict", is_flag=True, help="End with exit code 1 when any document is unreadable or in conflict.")
def merge(
    source: tuple[str, ...],
    out: Path | None,
    table: str | None,
    by: tuple[str, ...],
    registry: Path | None,
    shards: int | None,
    window: int,
    slide: int,
    aggregates: tuple[str, ...],
    definitions: Path | None,
    in_words: bool,
    master: str,
    memory: str,
    keep: Path | None,
    strict: bool,
) -> None:
    """Merge chunk documents into windows, per device and for all.

    SOURCE: folders of chunk documents (searched to any depth), files, globs, s3://BUCKET/PREFIX, another URI that Spark
    lists, couchbases://HOST/BUCKET, or the URL of a Sync Gateway's database
    (https://HOST:4984/DATABASE; the reader's credentials come from the environment). Running it again, with documents
    sent twice or late, replaces OUT by corrected rows.

    \b
    Writes:
      OUT/windows/stream=NAME/*.parquet   a row a window: value, low, high, exact
      OUT/summary.json                    documents, completeness, exact shares
    """
    asked = of_options(window, slide, aggregates) if definitions is None else _of_file(definitions)
    if in_words:
        for each in asked:
            click.echo(f"{each.explain()}.")
        return
    if (out is None) == (table is None):
        raise click.UsageError("give --out, a folder to be written anew, or --table, one that grows")
    if out is None:
        definition = definition_of(asked, [names_of.split(",") for names_of in by], shards, str(table))
        into_table(source, str(table), definition, registry, master, memory)
        return
    if by or registry is not None:
        raise click.UsageError("--by and --registry are of --table: --out has no roll-ups")
    from sluicegate_cloud import job
    from sluicegate_cloud.definitions import lengths

    for each in asked:
        folder, of = out if definitions is None else out / each.name, lengths(each.spec)
        summary = job.merge(
            source, folder, of.window_us, of.slide_us, each.aggregates, master=master, memory=memory, strict=strict,
            keep=keep, origin_us=of.origin_us, streams=each.streams,
        )  # fmt: skip
        for line in job.table(summary):
            click.echo(line)
        click.echo(f"\nWindows in {folder / 'windows'}, summary in {folder / 'summary.json'}")
        click.echo(f"Next: sluicegate cloud report {folder} --out report.html")


def _of_file(file: Path) -> list[WindowDefinition]:
    """Those of the windows of a file that the merge answers; the others are named, with the reason."""
    from sluicegate.errors import ConfigurationError
    from sluicegate.windowing.definition import read
    from sluicegate_cloud.definitions import unsupported

    try:
        found = read(file)
    except ConfigurationError as error:
        raise click.BadParameter(str(error), param_hint="--windows") from error
    answered = []
    for each in found:
        reasons = [f"{place}: {reason}" for place, reason in unsupported(each)]
        if reasons:
            click.echo(f"Not merged: {each.name}: {'; '.join(reasons)}", err=True)
        else:
            answered.append(each)
    if not answered:
        raise click.BadParameter(f"{file}: none of its windows is one that the merge answers", param_hint="--windows")
    return answered


@cloud.command()
@click.argument("merged", type=click.Path(path_type=Path), required=False)
@click.option("--table", metavar="PLACE", help="Instead of MERGED: the newest version of a table.")
@click.option("--out", default="report.html", show_default=True, type=click.Path(path_type=Path), help="The page.")
@click.option("--summary", type=click.Path(path_type=Path), help="A demo's summary.json: adds bytes sent and saved.")
@click.option(
    "--device", "devices", multiple=True, help="Draw this one's windows, where there are too many to draw all."
)
def report(
    merged: Path | None, table: str | None, out: Path, summary: Path | None, devices: tuple[str, ...]
) -> None:  # fmt: skip
    """Draw what `cloud merge` wrote as one self-contained HTML page.

    MERGED: the folder given to `cloud merge --out`. Needs neither Spark nor a network, nor does the page.
    """
    from sluicegate_cloud.report import write_report
    from sluicegate_cloud.table.told import of_table

    if (merged is None) == (table is None):
        raise click.UsageError("give MERGED, the folder of `cloud merge --out`, or --table")
    told = merged if merged is not None else of_table(*loaded(str(table)))
    size = write_report(told, out, summary, devices)
    click.echo(f"{out} ({size / 1024:.0f} KiB): open it in any browser")


@cloud.command()
def prepare() -> None:
    """Let Spark start in half the time.

    Keeps Spark's classes in this user's cache (some 170 MB), as Java has them once they are loaded: merges start with
    them from then on. Takes a minute. To be run again after an update of Spark or Java.
    """
    from sluicegate_cloud.startup import keep

    path = keep()
    click.echo(f"{path}: {path.stat().st_size / 1e6:.0f} MB, which merges start with from now on")


@cloud.command()
@click.argument("admin_url")
@click.argument("name", required=False)
@click.option("--url", "public_url", required=True, help="The database as devices reach it: https://HOST:4984/DATABASE")
@click.option("--reader", is_flag=True, help="A reader of all chunks (Spark), not a device.")
@click.option(
    "--ca-file", type=click.Path(path_type=Path), help="The admin interface's authority; the system's if none."
)
@click.option("--renew", is_flag=True, help="The user exists: give it a new password; the old one ends.")
@click.option("--plain-http", is_flag=True, help="Send passwords unencrypted to an http URL of another machine.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Write the credentials there, for their owner alone; with --many: a folder.",
)
@click.option(
    "--many", metavar="CSV", type=click.Path(path_type=Path), help="Instead of NAME: every name in its column `device`."
)
def provision(
    admin_url: str, name: str | None, public_url: str, reader: bool, ca_file: Path | None, renew: bool,
    plain_http: bool, out: Path | None, many: Path | None,
) -> None:  # fmt: skip
    """Make a device's user at a Sync Gateway.

    Prints its credentials file.

    ADMIN_URL: the database at the admin interface, such as http://127.0.0.1:4985/telemetry; the administrator's name
    and password are read from SLUICEGATE_GATEWAY_ADMIN_USER and SLUICEGATE_GATEWAY_ADMIN_PASSWORD. NAME: the device's
    id, as in its agent's configuration.

    With --many, OUT/NAME.json is written for each device of a CSV file. One whose file is there is passed over, so
    that a run that was interrupted goes on where it was; one that fails is named, and the exit code is 1.
    """
    from sluicegate_cloud.feed import provision as provisioning

    def made(device: str) -> provisioning.Credentials:
        return provisioning.provision(
            admin_url, device, public_url, reader=reader, renew=renew, ca_file=ca_file, plain_http=plain_http
        )

    if (name is None) == (many is None):
        raise click.UsageError("expected a NAME, or --many with a CSV file")
    if many is not None:
        _provision_many(provisioning.devices_of(many), out, made)
    elif name is not None and out is None:
        click.echo(made(name).as_json(), nl=False)
    elif name is not None and out is not None:
        with provisioning.reserved(out) as write:
            write(made(name))
        click.echo(f"{out}: the credentials of {name}")


def _provision_many(devices: list[str], folder: Path | None, made: Callable[[str], Credentials]) -> None:
    from sluicegate_cloud.errors import ProvisionError
    from sluicegate_cloud.feed import provision as provisioning

    if folder is None:
        raise click.UsageError("--many needs --out with a folder for the credentials' files")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    there = [device for device in devices if (folder / f"{device}.json").exists()]
    failed = 0
    for device in devices:
        if device not in there:
            try:
                with provisioning.reserved(folder / f"{device}.json") as write:
                    write(made(device))
            except ProvisionError as error:
                failed += 1
                click.echo(f"{device}: {error}", err=True)
    click.echo(f"{folder}: {len(devices) - len(there) - failed} made, {len(there)} there before, {failed} failed")
    if failed:
        raise SystemExit(1)


for command in (alerts, compact, devices, publish, quality, reconcile, retain, stream):
    cloud.add_command(command)
