"""`sluicegate top`: a live view of a running agent in the terminal."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--every", type=click.FloatRange(min=0.2), default=1.0, show_default=True, help="Seconds between looks.")
def top(file: Path, every: float) -> None:
    """Watch the agent of a configuration FILE live in the terminal.

    Windows with sparklines and bands, streams, memory, links, warnings.

    Reads the listener of the agent ([metrics] listen) and changes nothing. Needs the extra `top`.
    """
    from sluicegate_agent.config import load
    from sluicegate_agent.live.source import source_of
    from sluicegate_agent.live.top import Top

    Top(source_of(load(file)), every).run()
