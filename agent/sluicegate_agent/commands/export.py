"""`sluicegate export`: what a state holds and the cloud does not have yet, as CSV or JSON lines."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--csv", "form", flag_value="csv", default="csv", help="A header line, then a bucket a line (default).")
@click.option("--jsonl", "form", flag_value="jsonl", help="A JSON object a line.")
@click.option("--parquet", type=click.Path(path_type=Path), metavar="OUT", help="A Parquet file (extra `cloud`).")
@click.option("--stream", help="Only this stream.")
@click.option("--readings", is_flag=True, help="The single readings that buckets still have, instead of buckets.")
def export(file: Path, form: str, parquet: Path | None, stream: str | None, readings: bool) -> None:
    """Write the buckets that wait for the cloud, whether the agent runs or not.

    Each with its stream, first ordinal, count, times in µs since 1970, sum, mean, least and greatest value.

    \b
      sluicegate export agent.toml --csv > buckets.csv
    """
    from sluicegate_agent.config import load
    from sluicegate_agent.diagnosis.export import rows_of, write, write_parquet

    config = load(file)
    rows = rows_of(config, stream, readings=readings)
    if parquet is not None:
        click.echo(f"{write_parquet(rows, parquet)} rows in {parquet}", err=True)
    else:
        write(rows, form, sys.stdout)
