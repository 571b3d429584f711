"""Finds what a name in the configuration stands for, of this package or of another's entry points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TypeVar

Kind = TypeVar("Kind")


class UnknownName(Exception):  # noqa: N818  the configuration's check turns it into a finding
    """Raised for a name that nothing here has, or that cannot be imported; `str()` is the remedy."""


def found(name: str, kind: type[Kind], group: str, ours: Mapping[str, str], others: Sequence[str] = ()) -> Kind:
    """What is imported only now: of `ours`, "module:attribute" by name, else of the entry points of a group.

    `others`: names that are right too, and stand for nothing that is imported. Raises UnknownName.
    """
    if name in ours:
        module, _, attribute = ours[name].partition(":")
        thing = getattr(import_module(module), attribute)
    else:
        thing = _added(name, group, [*others, *ours])
    if not isinstance(thing, kind):
        raise UnknownName(f"the entry point {name} of {group} is no {kind.__name__}")
    return thing


def _added(name: str, group: str, ours: Sequence[str]) -> object:
    from importlib.metadata import entry_points

    points = {point.name: point for point in entry_points(group=group)}
    if name not in points:
        known = [f'"{each}"' for each in [*ours, *sorted(points)]]
        raise UnknownName(f"expected {', '.join(known[:-1])} or {known[-1]}")
    try:
        return points[name].load()
    except Exception as error:  # whatever the code of others does
        raise UnknownName(f"{points[name].value} cannot be imported: {type(error).__name__}: {error}") from error
