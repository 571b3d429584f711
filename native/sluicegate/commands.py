"""The command line's root: finds every part's commands by entry point, and imports one when it is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "sluicegate.commands"

SECTIONS = {
    "On the board": ("init", "run", "reload", "check", "plan", "status", "top", "replay", "poll", "export", "support"),
    "In the cloud": ("cloud",),
    "On this machine": ("demo", "doctor", "self-test"),
}

HELP = """Sliding windows from the edge to the cloud.

Every reading counts exactly once, and every window says how exact it is.

\b
A first look:
  sluicegate demo                   the whole path on this machine, with proof
  sluicegate check agent.toml       is this configuration right?
  sluicegate plan agent.toml        how many bytes will it need at worst?
  sluicegate run agent.toml         take readings, answer windows, sync buckets
  sluicegate cloud merge DIR --out MERGED
  sluicegate cloud report MERGED --out report.html

\b
Exit codes: 0 done, 1 a check failed, 2 wrong usage or configuration,
3 an extra to install, 4 the environment refused (broker, permission, lock,
budget). Set SLUICEGATE_DEBUG=1 to see tracebacks.
"""


class LazyGroup(click.Group):
    """A click group whose commands are entry points, imported when they are called or listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command's name, in the order in which a newcomer meets them."""
        known = [name for names in SECTIONS.values() for name in names]
        found = _entry_points()
        return [name for name in known if name in found] + sorted(set(found) - set(known))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command behind `cmd_name`, imported now; None where there is none of that name."""
        entry = _entry_points().get(cmd_name)
        if entry is None:
            return None
        command = entry.load()
        if not isinstance(command, click.Command):
            raise click.ClickException(f"entry point {cmd_name} = {entry.value} of {GROUP} is not a click command")
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """As of every group: a name that is none is compared with those in `commands`."""
        self.commands = {name: click.Command(name) for name in self.list_commands(ctx)}
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands under the section that says where they run."""
        listed = self.list_commands(ctx)
        rest = [name for name in listed if not any(name in names for names in SECTIONS.values())]
        for title, names in [*SECTIONS.items(), ("Further", tuple(rest))]:
            commands = {name: self.get_command(ctx, name) for name in names if name in listed}
            if rows := [(name, each.get_short_help_str(limit=90)) for name, each in commands.items() if each]:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _entry_points() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=GROUP)}


@click.group(cls=LazyGroup, help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="sluicegate", prog_name="sluicegate")
def root() -> None:
    """The root group; its help text is HELP."""


def called(words: Sequence[str]) -> Any:
    """Call the command that these words name; what it returns, or its exit code.

    Raises KeyboardInterrupt where a question is not answered, and what commands raise.
    """
    try:
        return root.main(args=[*words], prog_name="sluicegate", standalone_mode=False)
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort as error:
        raise KeyboardInterrupt from error
