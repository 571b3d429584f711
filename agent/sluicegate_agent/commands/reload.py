"""`sluicegate reload`: another configuration for the agent that runs, without losing a reading."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--accept", is_flag=True, help="Although this configuration loses some of what the state holds.")
@click.option("--wait", type=click.FloatRange(min=1), default=60.0, show_default=True, help="Seconds for its answer.")
def reload(file: Path, accept: bool, wait: float) -> None:
    """Have the running agent read its configuration FILE again.

    As SIGHUP does; says what came of it.

    The agent commits, acknowledges, and goes on with the new configuration in the same process; the broker keeps its
    session. What is wrong or would lose some of the state is refused, and the configuration before goes on.
    """
    from sluicegate_agent.config import load
    from sluicegate_agent.reloading import ask

    config = load(file)
    ask(config, accept=accept, seconds=wait)
    click.echo(f"{file}: the agent runs with it.")
