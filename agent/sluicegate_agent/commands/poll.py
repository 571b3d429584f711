"""`sluicegate poll`: asks Modbus and OPC UA devices, in a process beside the agent."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--once", is_flag=True, help="Ask each device once, print its values and end.")
@click.option("--sources", is_flag=True, help="Print the [[source]] tables that the agent needs, and end.")
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True
)
def poll(file: Path, once: bool, sources: bool, log_level: str) -> None:
    """Ask the Modbus and OPC UA devices of FILE, for the agent.

    Once a period ([[modbus]], [[opcua]]); hands their values to the agent by POST.

    Needs the extra `modbus` or `opcua`, and an agent with [http] and a source for each device. Runs until SIGTERM.

    \b
      sluicegate poll plant.toml --once
      sluicegate poll plant.toml --sources >> agent.toml
    """
    import asyncio
    import logging

    from sluicegate_agent.logs.setting import set_up
    from sluicegate_agent.polling.config import load
    from sluicegate_agent.polling.reading import Readings
    from sluicegate_agent.polling.running import look, run
    from sluicegate_agent.polling.sources import sources as tables

    config = load(file)
    if sources:
        click.echo(tables(config), nl=False)
        return
    set_up(log_level)
    for library in ("asyncua", "pymodbus"):  # they tell of each connection; what matters of it is ours to say
        logging.getLogger(library).setLevel(log_level.upper() if log_level == "debug" else "CRITICAL")
    if not once:
        for topic, counters in asyncio.run(run(config)).items():
            counts = ", ".join(f"{name} {count}" for name, count in vars(counters).items())
            click.echo(f"{topic}: {counts}", err=True)
        return
    found = asyncio.run(look(config))
    for topic, readings in found.items():
        if not isinstance(readings, Readings):
            click.echo(f"{topic}: {readings}")
            continue
        for name, value in readings.values.items():
            click.echo(f"{topic} {name} = {'-' if value is None else value}")
        for problem in readings.problems:
            click.echo(f"{topic}: {problem}")
    if any(not isinstance(readings, Readings) or readings.problems for readings in found.values()):
        raise click.exceptions.Exit(1)
