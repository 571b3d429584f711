"""What a window reads of a reading: its key, and the attributes that policies go by."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from operator import attrgetter, itemgetter
from typing import Any

from sluicegate.errors import InputError


def key_reader(key: Any) -> Callable[[Any], Hashable]:
    """How a reading's key is read."""
    if key is None:
        return lambda reading: None
    if callable(key):
        return key  # type: ignore[no-any-return]
    names = (key,) if isinstance(key, str) else key

    def read(reading: Any) -> Hashable:
        values = tuple(attribute(reading, name) for name in names)
        return values[0] if isinstance(key, str) else values

    return read


def value_reader(by: Any) -> Callable[[Any], Any]:
    """How what an operator goes by is read; None is the reading itself."""
    return (lambda reading: reading) if by is None else key_reader(by)


def check_key(key: Hashable) -> None:
    """Raise InputError for what cannot be a key."""
    try:
        hash(key)
    except TypeError:
        raise InputError(f"key: {key!r} cannot be a key, expected numbers, texts or tuples of them") from None


def attribute(reading: Any, name: str | None) -> Any:
    """A reading's attribute, of a mapping by key and of another object by name; None is the reading itself."""
    if name is None:
        return reading
    get = itemgetter(name) if hasattr(reading, "keys") else attrgetter(name)
    try:
        return get(reading)
    except (KeyError, AttributeError):
        raise InputError(f"reading: {name!r} missing in {reading!r}") from None
