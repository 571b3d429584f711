"""`sluicegate support`: one archive for who helps, without secrets."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("sluicegate-support.tar.gz"), show_default=True,
    help="The archive to write.",
)  # fmt: skip
def support(file: Path, out: Path) -> None:
    """Pack what a helper needs to know of an agent, without secrets.

    The configuration FILE itself, plan, status, the doctor's findings.

    Passwords, tokens and what looks like one are taken out, payloads of readings are not in it. Look through it before
    you send it: names of streams, topics and hosts are.
    """
    from sluicegate_agent.diagnosis.bundle import pack

    for name in pack(file, out):
        click.echo(f"  {name}")
    click.echo(f"{out}: look through it before you send it")
