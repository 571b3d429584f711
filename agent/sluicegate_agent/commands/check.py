"""`sluicegate check`: says what is wrong with a configuration, all of it at once, before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from sluicegate_agent.config import Config


@click.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--sample", is_flag=True, help="Print a commented configuration with every option and its default.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of configurations, for editors.")
@click.option("--explain", "in_words", is_flag=True, help="Say in plain words what each window asks.")
def check(file: Path | None, sample: bool, schema: bool, in_words: bool) -> None:
    """Check a configuration FILE, or print one to start from.

    Reads the file, the certificates it names and the state, and says what of the state a start would lose: then it ends
    with 1. Opens no connection and creates nothing.

    \b
      sluicegate check --sample > agent.toml
      sluicegate check agent.toml
      sluicegate check agent.toml --explain
    """
    if sample:
        click.echo(sample_text(), nl=False)
    elif schema:
        import json

        from sluicegate_agent.config.schema import schema as schema_of

        click.echo(json.dumps(schema_of(), indent=2))
    elif file is None:
        raise click.UsageError("give a configuration FILE, or --sample to print one")
    else:
        _report(file, in_words=in_words)


def sample_text() -> str:
    """The commented sample that is installed with the agent."""
    from importlib.resources import files

    return files("sluicegate_agent.config").joinpath("sample.toml").read_text(encoding="utf-8")


def _report(file: Path, *, in_words: bool) -> None:
    from sluicegate_agent.config import load
    from sluicegate_agent.config.explain import explain
    from sluicegate_agent.config.sharing import might_share
    from sluicegate_agent.errors import EnvironmentRefused
    from sluicegate_agent.passwords import exposed_files
    from sluicegate_agent.plan import refuse_over_budget

    config = load(file)
    windows = len(config.windows)
    broker = f"broker {config.mqtt.host}:{config.mqtt.actual_port}{' with TLS' if config.mqtt.uses_tls else ''}"
    found = [config.told, f"{windows} window{'s' * (windows != 1)}", broker if config.uses_broker else "no broker"]
    click.echo(f"{file}: fine. Device {config.device.id}: {', '.join(found)}.")
    for line in explain(config) if in_words else ():
        click.echo(f"  {line}.")
    try:
        refuse_over_budget(config)
    except EnvironmentRefused as error:
        click.echo(f"Warning: `sluicegate run` will refuse it: {error}")
    if config.uses_broker and not config.mqtt.uses_tls and not config.mqtt.is_loopback:
        click.echo(
            f"Note: mqtt.tls is turned off and {config.mqtt.host} is another machine: anyone between can read along."
        )
    for warning in exposed_files(config):
        click.echo(f"Warning: {warning}")
    for shorter, longer in might_share(config):
        click.echo(f'Note: window {shorter} could be answered from the buckets of {longer}: shares = "{longer}"')
    _report_folder(config)
    _report_devices(config)
    _report_losses(config)
    click.echo(f"Next: `sluicegate plan {file}` for what it costs, `sluicegate run {file}` to start.")


def _report_folder(config: Config) -> None:
    """Where documents would go that is not there: said now, while somebody looks."""
    from sluicegate_agent.sync.files import FSTAB, MARKER, unmounted

    folder = config.sync.path
    if config.sync.target != "directory" or folder is None or (folder / MARKER).exists():
        return
    if not folder.is_dir():
        click.echo(f"Warning: sync.path {folder}: there is no such folder; mount or make it before the start.")
    elif place := unmounted(str(folder)):
        click.echo(f"Warning: sync.path {folder}: {FSTAB} mounts a medium at {place}, and none is mounted there now.")


def _report_devices(config: Config) -> None:
    """Sources of other devices, whose documents a gateway's rule (deploy/couchbase/sync.js) takes of these alone."""
    if config.sync.target not in ("sync-gateway", "couchbase-lite"):
        return
    own = config.device.id
    for number, source in enumerate(config.sources, 1):
        if source.device not in (None, own):
            click.echo(
                f"Warning: source[{number}].device: a Sync Gateway takes documents of {own} alone from the user {own} "
                '(403 sg wrong user): sync.target = "directory", or an agent for each device.'
            )


def _report_losses(config: Config) -> None:
    from sluicegate_agent.changes import list_losses
    from sluicegate_agent.errors import EnvironmentRefused

    try:
        lost = list_losses(config)
    except EnvironmentRefused as error:
        click.echo(f"Note: the state was not compared: {error}")
        return
    if lost:
        click.echo(f"A start would lose some of what {config.state.path} holds:")
        for line in lost:
            click.echo(f"  - {line}")
        click.echo("`sluicegate run` refuses it: change the configuration back, or start once with --accept.")
        raise SystemExit(1)
