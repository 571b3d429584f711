"""docs/reference/cblite.md does what it says: its examples run on the real library."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("cffi", reason="missing: cffi (pip install 'sluicegate[cblite]')")

from sluicegate import cblite

GUIDE = Path(__file__).resolve().parents[2] / "docs/reference/cblite.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)


@pytest.mark.parametrize("example", range(len(EXAMPLES)))
def test_examples_run(real: cblite.Library, example: int) -> None:
    """Each block by itself, its assertions included; nothing stays open."""
    exec(compile(EXAMPLES[example], f"{GUIDE.name}[{example}]", "exec"), {})  # noqa: S102  our own page


def test_the_table_of_errors_is_whole() -> None:
    """Every exception of the table is told of in the guide, and every ruling has words for people."""
    told = GUIDE.read_text()
    for found in cblite.errors.TABLE.values():
        assert found.advice
        assert f"`{found.kind.__name__}`" in told
