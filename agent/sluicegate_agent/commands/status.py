"""`sluicegate status`: what the agent's state holds, read beside a running agent or without one."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of text.")
@click.option(
    "--take-refused", type=click.Path(path_type=Path), metavar="FOLDER",
    help="Move the documents that the target refuses for good out of the state into FOLDER; the agent must not run.",
)  # fmt: skip
@click.option(
    "--accept-target", is_flag=True,
    help="Send to the folder that is at sync.path now, though another one was used before; the agent must not run.",
)  # fmt: skip
def status(file: Path, as_json: bool, take_refused: Path | None, accept_target: bool) -> None:
    """Show streams, windows, outbox, links and counters of the agent of a configuration FILE.

    Reads the state directory as of the last commit and changes nothing, whether the agent runs or not.
    """
    if take_refused is not None:
        _take(file, take_refused)
        return
    if accept_target:
        _accept(file)
        return
    from sluicegate_agent.config import load
    from sluicegate_agent.status import gather, show

    found = gather(load(file))
    if as_json:
        import json

        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        click.echo(show(found))


def _take(file: Path, folder: Path) -> None:
    from sluicegate_agent import refused
    from sluicegate_agent.config import load

    taken = refused.take(load(file), folder)
    for path, reason in taken:
        click.echo(f"{path}: {reason}")
    click.echo(f"{len(taken)} refused documents taken out")


def _accept(file: Path) -> None:
    from sluicegate_agent.config import load
    from sluicegate_agent.state import State

    config = load(file)
    with State(config) as state:
        before = state.known_target()
        with state.transaction() as connection:
            state.keep_target(connection, "")
    said = f"the target {before} is forgotten" if before else "no target was used before"
    click.echo(f"{config.sync.path}: {said}; the next start takes the folder that is there. Nothing is sent twice.")
