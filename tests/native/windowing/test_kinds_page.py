"""The tables of docs/kinds.md are what a run gives: every legal combination over one stream."""

from __future__ import annotations

from bench.kinds import PAGE, put


def test_the_page_is_what_a_run_gives() -> None:
    """Where it is not: python -m bench.kinds --docs."""
    page = PAGE.read_text("utf-8")
    assert put(page) == page


def test_the_page_has_every_combination() -> None:
    """Four rows of Table I, nine of Table II."""
    page = PAGE.read_text("utf-8")
    assert page.count("| tumbling | `") == 4
    assert page.count("| sliding | `") == 9
