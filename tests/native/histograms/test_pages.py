"""What the pages about histograms and policies show is what happens: examples run, links and pictures exist."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
PAGES = [
    "explanation/how-exact.md",
    "how-to/choosing.md",
    "how-to/own-aggregate.md",
    "reference/aggregates.md",
    "reference/policies.md",
]
MOST_BYTES = 80_000


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_give_what_is_printed(page: str) -> None:
    """Each >>> line, and each refusal's message."""
    failed, tried = doctest.testfile(str(DOCS / page), module_relative=False, encoding="utf-8")
    assert tried >= 4
    assert failed == 0


def test_the_worked_example_is_the_arithmetic_of_the_page() -> None:
    """All that a cut bucket of 4 readings, sum 88, first 20, last 23, none above 24, leaves possible."""
    means = {(23 + third + 200) / 10 for second in range(20, 25) for third in range(20, 25) if second + third == 45}
    assert (min(means), max(means)) == (24.4, 24.7)


@pytest.mark.parametrize("page", PAGES)
def test_links_and_pictures_exist(page: str) -> None:
    """Pictures are small, and hold no date that changes with every run."""
    targets = re.findall(r"\]\(([^)#:]+)\)", (DOCS / page).read_text(encoding="utf-8"))
    assert targets
    for target in targets:
        path = (DOCS / page).parent / target
        assert path.is_file(), target
        if path.suffix == ".svg":
            assert path.stat().st_size <= MOST_BYTES, target
            assert "<dc:date>" not in path.read_text(encoding="utf-8")
