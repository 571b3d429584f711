"""Plain words of `sluicegate run` mean what the command line says that they mean; all others are left to it."""

from __future__ import annotations

import itertools
from pathlib import Path

import click
import pytest

from sluicegate_agent.commands.run import run
from sluicegate_agent.commands.starting import asked

WORDS = (
    *("agent.toml", "--drain", "--accept", "--log", "--log=debug", "--log-format", "--idle", "--idle=0.5", "info"),
    *("json", "3", "nan", "-1", "--idle=-1", "--help", "--", "-x", "--drain=1", "--log=loud", "--log-form=json"),
)


def by_click(words: list[str]) -> tuple[object, ...] | None:
    """What the command line takes from them; None where it refuses them, or shows its help."""
    try:
        found = run.make_context("run", words[:]).params
    except (click.ClickException, click.exceptions.Exit):
        return None
    return tuple(found[name] for name in ("file", "level", "form", "drain", "accept", "idle"))


@pytest.mark.parametrize("count", range(4))
def test_words_that_are_plain(count: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Of all short lines: the same where both take one, and nothing is taken that the command line refuses."""
    taken = 0
    for words in itertools.product(WORDS, repeat=count):
        found = asked(words)
        if found is not None and "nan" not in words:
            assert tuple(found) == by_click([*words]), words
            taken += 1
    assert taken >= (0, 1, 4, 9)[count]
    capsys.readouterr()


def test_an_ordinary_line() -> None:
    """As a unit file has it."""
    found = asked(["/etc/sluicegate/agent.toml", "--log", "warning", "--log-format=json"])
    assert found == (Path("/etc/sluicegate/agent.toml"), "warning", "json", False, False, None)
