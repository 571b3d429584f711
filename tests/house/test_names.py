"""A name means one thing: in native no two classes share theirs, but for a compiled class and its readable twin."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

NATIVE = Path(__file__).resolve().parents[2] / "native" / "sluicegate"
CLASS = re.compile(r"^(?:cdef )?class (\w+)[(:]", re.MULTILINE)  # one that is only announced has neither


def test_no_two_classes_share_a_name() -> None:
    """`reference/` has the twins: at most one of a name there, and one elsewhere."""
    found: dict[tuple[str, bool], list[str]] = defaultdict(list)
    for path in sorted([*NATIVE.rglob("*.py"), *NATIVE.rglob("*.pyx")]):
        place = path.relative_to(NATIVE)
        for name in CLASS.findall(path.read_text()):
            found[name, place.parts[0] == "reference"].append(str(place))
    assert len(found) > 50
    assert {name: places for (name, _), places in found.items() if len(places) > 1} == {}
