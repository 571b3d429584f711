"""`sluicegate run`: the agent itself, until it is told to stop."""

from __future__ import annotations

from pathlib import Path

import click

LEVELS = ("debug", "info", "warning", "error")


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--log", "level", type=click.Choice(LEVELS), default="info", show_default=True, help="What to tell on stderr."
)
@click.option("--drain", is_flag=True, help="Before ending, close open buckets and hand everything on (at most 30 s).")
@click.option("--idle", type=click.FloatRange(min=0), metavar="SECONDS", help="End after so long without a message.")
def run(file: Path, level: str, drain: bool, idle: float | None) -> None:
    """Run the agent of a configuration FILE until SIGTERM or Ctrl-C.

    Takes readings from the broker, answers the windows, keeps buckets and hands them on. A broker or a target that is
    away is waited for. A configuration whose worst case exceeds its budgets (see `plan`) is refused.
    """
    _log_to_stderr(level)
    from sluicegate_agent.config import load
    from sluicegate_agent.plan import refuse_over_budget

    config = load(file)
    refuse_over_budget(config)

    from sluicegate_agent.agent import run as run_agent

    run_agent(config, drain=drain, idle=idle)


def _log_to_stderr(level: str) -> None:
    import logging

    logging.basicConfig(level=level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
