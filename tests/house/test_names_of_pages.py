"""What a page names is there: files of the repository, names of `sluicegate`, keys of the configuration, counters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import sluicegate
from sluicegate_agent.config.schema import schema

ROOT = Path(__file__).parents[2]
PAGES = [page for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")] if page.name != "CHANGELOG.md"]
FILE = re.compile(r"`((?:native|agent|cloud|tests|deploy|bench)/[\w./-]+)`")
NAME = re.compile(r"\bsg\.([A-Za-z_][\w.]*\w)")
KEY = re.compile(r"`([a-z_]+\.[a-z_.]+)`")

#: Names that look like a key: a file of Spark's, an attribute of an operator's window, a module.
ELSEWHERE = {"metrics.properties", "window.pane.stage", "identity.tally"}


@cache
def keys() -> frozenset[str]:
    """All of the configuration, with the tables that they are in: `sync.budget.per`."""
    return frozenset(_below(schema(), ""))


def _below(table: dict[str, object], at: str) -> Iterator[str]:
    whole = schema()["$defs"]
    for name, kind in table["properties"].items():  # type: ignore[attr-defined]
        yield f"{at}{name}"
        for below in re.findall(r"'#/\$defs/(\w+)'", str(kind)):
            yield from _below(whole[below], f"{at}{name}.")


@cache
def sources() -> str:
    """All of the agent, the library and the cloud: counters are named there."""
    found = [*(ROOT / "agent").rglob("*.py"), *(ROOT / "native").rglob("*.py"), *(ROOT / "cloud").rglob("*.py")]
    return "\n".join(path.read_text("utf-8") for path in found)


def wrong(text: str) -> list[str]:
    """What a page's text names that is not there."""
    found = [name for name in FILE.findall(text) if not (ROOT / name).exists()]
    for name in NAME.findall(text):
        at: object = sluicegate
        for part in name.split("."):
            at = getattr(at, part, None)
        if at is None:
            found.append(f"sg.{name}")
    tables = {key.partition(".")[0] for key in keys()}
    for name in KEY.findall(text):
        first = name.partition(".")[0]
        if first in tables and name not in keys() and name not in sources() and name not in ELSEWHERE:
            found.append(name)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_is_there(page: Path) -> None:
    """Else a reader looks for it in vain."""
    assert wrong(page.read_text("utf-8")) == []


def test_the_test_sees_what_is_not_there() -> None:
    """A file, a name and a key of each kind; right ones are not told."""
    text = "`deploy/nothing.sh` `deploy/site/wrap.py` sg.Windoww sg.policies.time `sync.budget.purr` `sync.budget.per`"
    assert wrong(text) == ["deploy/nothing.sh", "sg.Windoww", "sync.budget.purr"]
