"""The page that plays kinds of windows has every legal combination over one stream, when the site is built."""

from __future__ import annotations

from pathlib import Path

from bench.kinds import PARTS, put

PAGE = Path(__file__).parents[3] / "docs/reference/kinds-played.md"


def test_the_page_has_every_combination() -> None:
    """Table I; Table II, whole and partial; all in words; kinds by event time, lateness, early results; keys."""
    page = put(PAGE.read_text("utf-8"))
    assert {name: page.count(f"<!-- {name} -->") for name in PARTS} == dict.fromkeys(PARTS, 1)
    parts = {name: page.partition(f"<!-- {name} -->\n")[2].partition("<!-- end -->")[0] for name in PARTS}
    rows = {name: [len(table.splitlines()) - 2 for table in part.split("\n\n")] for name, part in parts.items()}
    assert rows["by arrival"] == [4, 9, 3, 13]  # the third: where partial=False differs
    assert rows["by event time"] == [3 * 2 * 3]
    assert rows["by key"] == [2 * 6]
    assert "**flush ac**" in parts["by key"]  # the window of the reading's key, not of none
