"""Prints, pinned, what an extra brings along: pins.py EXTRA, from what is installed and deploy/make/constraints.txt."""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement

PINS = Path(__file__).parents[1] / "make/constraints.txt"


def plain(name: str) -> str:
    """A project's name as the index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(name: str, extras: set[str], found: set[str]) -> set[str]:
    """The names of all that `name` with these extras needs on this platform."""
    try:
        needed = requires(name) or []
    except PackageNotFoundError:
        return found
    for text in needed:
        each = Requirement(text)
        wanted = any(each.marker is None or each.marker.evaluate({"extra": extra}) for extra in extras | {""})
        if wanted and plain(each.name) not in found:
            if plain(each.name) != "sluicegate":
                found.add(plain(each.name))
            closure(each.name, each.extras, found)
    return found


def main(extra: str) -> None:
    """A requirement a line."""
    pins = {plain(line.split("==")[0]): line for line in PINS.read_text("utf-8").split("\n") if "==" in line}
    for name in sorted(closure("sluicegate", {extra}, set())):
        print(pins[name])


if __name__ == "__main__":
    main(sys.argv[1])
