"""`sluicegate plan`: the worst case of a configuration in bytes, before anything runs."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
def plan(file: Path, as_json: bool) -> None:
    """Show the worst case of a configuration FILE: bytes of memory and disk, per stream and in all.

    Whatever arrives and however long the network is away, the agent stays within it. `run` refuses a configuration
    that exceeds its budgets ([state] memory and disk). Exit code 1 says that this one does.
    """
    from sluicegate_agent.config import load
    from sluicegate_agent.plan import plan as worst_case
    from sluicegate_agent.plan import show

    worst = worst_case(load(file))
    if as_json:
        import json

        click.echo(json.dumps(worst.as_dict(), indent=2))
    else:
        click.echo(show(worst))
    raise SystemExit(0 if worst.fits else 1)
