"""`sluicegate run`: the agent itself, until it is told to stop."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sluicegate_agent.commands.starting import FORMS, LEVELS, start

if TYPE_CHECKING:
    from sluicegate_agent.logs.setting import Form


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--log", "level", type=click.Choice(LEVELS), default="info", show_default=True, help="What to tell on stderr."
)
@click.option(
    "--log-format", "form", type=click.Choice(FORMS), default="auto", show_default=True,
    help="How: auto is json where the journal listens, else text.",
)  # fmt: skip
@click.option("--drain", is_flag=True, help="Before ending, close open buckets and hand everything on (at most 30 s).")
@click.option("--accept", is_flag=True, help="Start although this configuration loses some of what the state holds.")
@click.option("--idle", type=click.FloatRange(min=0), metavar="SECONDS", help="End after so long without a message.")
def run(file: Path, level: str, form: Form, drain: bool, accept: bool, idle: float | None) -> None:
    """Run the agent of a configuration FILE until SIGTERM or Ctrl-C.

    Takes readings from the broker, answers the windows, keeps buckets and hands them on. A broker or a target that is
    away is waited for. A configuration whose worst case exceeds its budgets (see `plan`) is refused, and so is one that
    would throw away some of what the state holds (see `check`), unless --accept is given. SIGHUP has it
    read FILE again, as `sluicegate reload` does.
    """
    start(file, level, form, drain, accept, idle)
