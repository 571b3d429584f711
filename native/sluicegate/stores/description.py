"""What a stored window is, as JSON of plain values: its aggregates, policy, engine and histograms by name and numbers.

Reading it back makes only what is listed here: dataclasses of `sluicegate.policies`, `Monoid` and the histograms,
from fields of plain values. Nothing is imported by a stored name, nothing is executed. A callable policy is noted by
its name and has to be given again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from sluicegate import policies
from sluicegate.errors import ConfigurationError, CorruptPageError
from sluicegate.histograms import Constrained, Hop, MaxLike, SumLike
from sluicegate.monoids import KINDS, Monoid

_POLICIES = (
    policies.Count, policies.Time, policies.Delta, policies.Total, policies.NewerThanMaximum,
    policies.NewerThanLongestRun,
)  # fmt: skip
POLICIES = {kind.__name__: kind for kind in _POLICIES}
"""Policies that are data. Never one that holds an address or a callable: what a store says must not be executed."""

MONOIDS = frozenset(KINDS) - {"compiled", "collect", "custom"}
"""Kinds of aggregates that are data, likewise."""

_HISTOGRAMS = {kind.__name__: kind for kind in (Constrained, Hop, MaxLike, SumLike)}
_PLAIN = (bool, int, float, str, type(None))


class Description(NamedTuple):
    """The arguments of a window. What held a callable or an address is None."""

    aggregates: dict[str, Monoid] | None
    policy: Any
    policy_name: str
    engine: str
    histograms: list[Any]
    center: tuple[float, ...] | None


def describe(
    names: Sequence[str], monoids: Sequence[Monoid], policy: Any, engine: str, histograms: Sequence[Any], center: Any
) -> bytes:
    """The description as bytes. Raises ConfigurationError for an aggregate that is not made of plain values."""
    told = {
        "aggregates": _aggregates(names, monoids),
        "policy": _policy(policy),
        "policy_name": policy.name,
        "engine": engine,
        "histograms": [[type(each).__name__, _plain(each)] for each in histograms],
        "center": center,
    }
    return json.dumps(told, allow_nan=False, separators=(",", ":")).encode()


def read(data: bytes) -> Description:
    """The window that was described. Raises CorruptPageError for what is no description of this version's."""
    try:
        told = json.loads(data)
        center = told["center"]
        return Description(
            _monoids(told["aggregates"]),
            _made(POLICIES, told["policy"]),
            str(told["policy_name"]),
            str(told["engine"]),
            [_made(_HISTOGRAMS, each) for each in told["histograms"]],
            None if center is None else tuple(float(x) for x in center),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptPageError(
            f"store: the window's description cannot be read ({error!r}); use a newer Sluicegate"
        ) from error


def _aggregates(names: Sequence[str], monoids: Sequence[Monoid]) -> list[list[Any]] | None:
    if any(monoid.kind not in MONOIDS for monoid in monoids):
        return None
    return [[name, _plain(monoid)] for name, monoid in zip(names, monoids, strict=True)]


def _monoids(told: Any) -> dict[str, Monoid] | None:
    if told is None:
        return None
    found = {str(name): Monoid(**_fields(Monoid, values)) for name, values in told}
    for name, monoid in found.items():
        if monoid.kind not in MONOIDS:
            raise ValueError(f"aggregate {name!r} of kind {monoid.kind!r} is not data")
    return found


def _policy(policy: Any) -> list[Any] | None:
    name = type(policy).__name__
    return [name, _plain(policy)] if POLICIES.get(name) is type(policy) else None


def _plain(thing: Any) -> dict[str, Any]:
    """A dataclass's fields, where all are plain values or tuples of such."""
    if not is_dataclass(thing):
        raise ConfigurationError(f"store: {thing!r} cannot be described in a store; expected one of Sluicegate's own")
    found = {field.name: getattr(thing, field.name) for field in fields(thing) if field.init}
    for name, value in found.items():
        if not _is_plain(value):
            raise ConfigurationError(
                f"store: {type(thing).__name__}.{name} is {value!r}, which cannot be described in a store; "
                "expected numbers, texts and tuples of them"
            )
    return found


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(each) for key, each in value.items())
    if isinstance(value, tuple | list):
        return all(_is_plain(each) for each in value)
    return isinstance(value, _PLAIN)


def _made(known: Mapping[str, Any], told: Any) -> Any:
    if told is None:
        return None
    name, values = told
    if name not in known:
        raise ValueError(f"{name!r} is not known here")
    return known[name](**_fields(known[name], values))


def _fields(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    known = {field.name for field in fields(kind) if field.init}
    if not known >= set(values):
        raise ValueError(f"{kind.__name__} has no field {sorted(set(values) - known)}")
    return {name: _tuples(value) for name, value in values.items()}


def _tuples(value: Any) -> Any:
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value
