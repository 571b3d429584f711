"""`sluicegate status`: what the agent's state holds, read beside a running agent or without one."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of text.")
def status(file: Path, as_json: bool) -> None:
    """Show streams, windows, outbox, links and counters of the agent of a configuration FILE.

    Reads the state directory as of the last commit and changes nothing, whether the agent runs or not.
    """
    from sluicegate_agent.config import load
    from sluicegate_agent.status import gather, show

    found = gather(load(file))
    if as_json:
        import json

        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        click.echo(show(found))
