"""`sluicegate self-test`: does this machine, with this disk, keep the promise?"""

from __future__ import annotations

from pathlib import Path

import click


@click.command("self-test")
@click.option("--seconds", type=click.FloatRange(0, 3600), default=20.0, show_default=True, help="For the windows.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the random readings.")
@click.option(
    "--at", "place", type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder on the disk to try; a new folder in it is used, and removed. Default: the system's for such files.",
)  # fmt: skip
def self_test(seconds: float, seed: int, place: Path | None) -> None:
    """Try Sluicegate on this machine, in about a minute.

    Nothing else is needed and nothing is left.

    Windows of every engine, and of buckets, are compared with what their readings give by definition. Then a replay is
    killed several times on this disk, and every reading has to be in its chunks once.

    \b
      sluicegate self-test --at /var/lib/sluicegate
    """
    import tempfile

    from sluicegate.errors import SluicegateError
    from sluicegate_agent.selftest import kills, windows

    try:
        compared = windows.exact(seconds / 2, seed)
        click.echo(f"exact windows: {compared:,} answers of every engine are what their readings give")
        compared = windows.bounded(seconds / 2, seed)
        click.echo(f"windows of buckets: {compared:,} answers lie inside their intervals")
        with tempfile.TemporaryDirectory(prefix="sluicegate-self-test-", dir=place) as folder:
            found = kills.killed(Path(folder))
        told = f"{found.readings:,} readings are in {found.chunks} chunks, each once"
        click.echo(f"killed {found.kills} times on this disk: {told}")
    except (windows.DifferenceError, SluicegateError) as error:
        click.echo(f"self-test: {error}", err=True)
        click.echo("Please report this with the output of `sluicegate doctor`.", err=True)
        raise SystemExit(1) from None
