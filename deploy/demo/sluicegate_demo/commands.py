"""`sluicegate demo`: the whole path on this machine, with faults on the way and a proof at the end."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), metavar="FILE", help="Your own readings.")
@click.option("--time", metavar="COLUMN", help="The column with the time: ISO 8601, or a number since 1970.")
@click.option("--value", "values", metavar="COLUMN", multiple=True, help="A column with readings; again for more.")
@click.option(
    "--device", metavar="COLUMN", help="A column that tells devices apart; without it the file is one device."
)
@click.option("--out", type=click.Path(path_type=Path), default=Path("build/demo"), show_default=True, help="Results.")
@click.option("--broker", type=click.Choice(["auto", "mosquitto", "builtin"]), default="auto", show_default=True,
              help="auto: Mosquitto where it is on PATH.")  # fmt: skip
@click.option("--target", type=click.Choice(["directory", "sync-gateway", "couchbase-lite"]), default="directory",
              show_default=True, help="What the agents sync to; a real gateway is started on loopback.")  # fmt: skip
@click.option("--rows", type=click.IntRange(min=1), metavar="N", help="Only the first N rows of each device.")
@click.option("--edge-only", is_flag=True, help="Stop after the agents; needs no Spark.")
@click.option("--cloud-only", is_flag=True, help="Go on from an --edge-only run in the same folder.")
def demo(
    csv_file: Path | None,
    time: str | None,
    values: tuple[str, ...],
    device: str | None,
    out: Path,
    broker: str,
    target: str,
    rows: int | None,
    edge_only: bool,
    cloud_only: bool,
) -> None:
    """Run the whole path on this machine and prove its result.

    Readings go over MQTT to one agent a station, under the memory limit that its plan states, a tenth of them late and
    out of order. While they run, the place they sync to goes away for a third of the time, one agent is killed twice,
    and one publisher sends a tenth of its messages again. Spark then merges what arrived into 24-hour windows sliding
    by 1 hour, and every window is compared with a recomputation from the raw rows.

    \b
      sluicegate demo
      sluicegate demo --csv my.csv --time timestamp --value temperature
    """
    if edge_only and cloud_only:
        raise click.UsageError("--edge-only and --cloud-only exclude each other; leave out both for the whole path")
    from sluicegate_demo.job import Job, Source

    source = Source.of(csv_file, time, values, device, rows)
    job = Job(out, broker, target)
    if not cloud_only:
        job.edge(source)
    if not edge_only:
        job.cloud(source if csv_file or not cloud_only else None)
