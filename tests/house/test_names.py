"""A name means one thing: no two classes in native share theirs, but a compiled one and its twin; no two tests do."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "native" / "sluicegate"
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


def test_no_two_modules_of_tests_share_a_name() -> None:
    """Pytest takes two of one name for one, and collects neither in a run of both."""
    found = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(found) > 100
    assert [name for name, times in found.items() if times > 1] == []
