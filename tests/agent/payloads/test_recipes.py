"""The page of recipes, run: each source takes its messages, and its streams have the values that the page says."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from desk import NEWEST, Desk

PAGE = Path(__file__).parents[3] / "docs/how-to/recipes.md"
_BLOCKS = re.compile(
    r"^## ([^\n]+)\n(?:(?!^## ).)*?```toml\n(.*?)```.*?```text\n(.*?)```.*?```json\n(.*?)```", re.S | re.M
)
RECIPES = {title: rest for title, *rest in _BLOCKS.findall(PAGE.read_text(encoding="utf-8"))}


def test_every_recipe_is_run() -> None:
    """None is left out because its blocks stand otherwise."""
    assert len(RECIPES) == PAGE.read_text(encoding="utf-8").count("\n## ") == 4


@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_gives_what_it_says(title: str, tmp_path: Path) -> None:
    """The configuration is right, and the newest value of each stream is the page's."""
    toml, messages, expected = RECIPES[title]
    tables = tomllib.loads(toml)
    desk = Desk(tmp_path, tables.pop("source"), window=[NEWEST | {"buckets": 0}], **tables)
    for line in messages.splitlines():
        topic, _, payload = line.partition(" ")
        desk.take((topic, payload.encode()))
    found = {
        stream: answer.value for stream in desk.state.streams for answer in desk.pipeline.answers(stream, "newest")
    }
    desk.state.close()
    assert found == json.loads(expected)
