"""Starts the agent of a configuration; plain words of `sluicegate run` are read here, without click.

Every import waits for its turn: what is not called stays out of a process that lives long on a small board.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluicegate_agent.logs.setting import Form

LEVELS = ("debug", "info", "warning", "error")
FORMS = ("auto", "json", "text")


class Asked(NamedTuple):
    """What `sluicegate run` was asked for, as its help says."""

    file: Path
    level: str
    form: Form
    drain: bool
    accept: bool
    idle: float | None


def asked(words: Sequence[str]) -> Asked | None:
    """The words after `run`, where nothing is wrong with them; None where the command line has to look closer."""
    given: dict[str, str] = {}
    files, left = list[str](), [*words]
    while left:
        word = left.pop(0)
        name, equals, value = word.partition("=")
        if name in ("--drain", "--accept") and not equals:
            given[name] = ""
        elif name in ("--log", "--log-format", "--idle") and (equals or left):
            given[name] = value if equals else left.pop(0)
        elif word.startswith("-"):
            return None
        else:
            files.append(word)
    level, form, idle = given.get("--log", "info"), given.get("--log-format", "auto"), _seconds(given.get("--idle"))
    if len(files) != 1 or level not in LEVELS or form not in FORMS or (idle is not None and not idle >= 0):
        return None
    return Asked(Path(files[0]), level, cast("Form", form), "--drain" in given, "--accept" in given, idle)


def _seconds(value: str | None) -> float | None:
    """Less than none where it is no number."""
    try:
        return None if value is None else float(value)
    except ValueError:
        return -1.0


def start(file: Path, level: str, form: Form, drain: bool, accept: bool, idle: float | None) -> None:
    """Run it until it is told to stop; what `sluicegate run` raises."""
    from sluicegate_agent.lean import import_dataclasses, import_hashes, import_msgspec
    from sluicegate_agent.logs.setting import set_up

    import_dataclasses()
    import_hashes()  # before anything that imports hashlib
    import_msgspec()
    set_up(level, form)
    from sluicegate_agent.changes import refuse_losses
    from sluicegate_agent.config import load
    from sluicegate_agent.plan import refuse_over_budget

    config = load(file)
    worst = refuse_over_budget(config)
    refuse_losses(config, accept=accept)

    from sluicegate_agent.service.lives import run as run_agent

    run_agent(config, drain=drain, idle=idle, planned=worst.memory, file=file)
