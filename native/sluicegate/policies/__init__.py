"""Eviction policies: the newest n readings, the last stretch of time, or any callable `policy(total, old)`.

Each states whether it is *monotone* (where a prefix leaves, every shorter prefix leaves too: bulk eviction needs it)
and whether it depends only on what *remains* (a certain interval over buckets needs both; error-algebra: a local
window).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from sluicegate.errors import ConfigurationError
from sluicegate.spans import micros as _micros

MAX_COUNT = 2**53
MAX_SPAN = 2**62


@dataclass(frozen=True, slots=True)
class Count:
    """Keep the newest `limit` readings; with `hop`, move on by so many at once: the newest limit … limit + hop − 1.

    `up_to` "max" or "min": what a later reading makes irrelevant for that extreme leaves too.
    """

    limit: int
    hop: int = 1
    up_to: str | None = None
    monotone: ClassVar[bool] = True
    remaining: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """What a stored window is checked against."""
        return f"count:{self.limit}" + _suffix(self.hop, self.up_to)


@dataclass(frozen=True, slots=True)
class Time:
    """Keep the readings with time > newest − `span` (µs), as a FIFO; newest is the greatest time seen.

    With `hop` (µs), newest counts as the last multiple of it: the window moves on by a hop at once. `up_to` as for a
    count.
    """

    span: int
    hop: int = 1
    up_to: str | None = None
    monotone: ClassVar[bool] = True
    remaining: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """What a stored window is checked against."""
        return f"time:{self.span}" + _suffix(self.hop, self.up_to)


@dataclass(frozen=True, slots=True)
class Custom:
    """Evict the oldest subsequence `old` while `rule(total, old)` holds; both are of class `Subsequence`."""

    rule: Callable[[Any, Any], Any]
    monotone: bool = False
    remaining: bool = False
    label: str = ""

    @property
    def name(self) -> str:
        """What a stored window is checked against: the label, or the callable's qualified name."""
        return "custom:" + (self.label or getattr(self.rule, "__qualname__", type(self.rule).__qualname__))


Policy = Count | Time | Custom


def _suffix(hop: int, up_to: str | None) -> str:
    return (f":hop:{hop}" if hop > 1 else "") + (f":up-to:{up_to}" if up_to else "")


def count(limit: int, *, hop: int = 1, up_to: str | None = None) -> Count:
    """Keep the newest `limit` readings.

    `hop`: evict only when so many can leave at once (a hopping window holds limit … limit + hop − 1 readings). `up_to`:
    "max" or "min", for a window whose only aggregates are maxima (minima): evict up to the current one; the answer is
    the whole window's. Raises ConfigurationError unless 1 ≤ limit ≤ 2^53 and 1 ≤ hop ≤ 2^53.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_COUNT:
        raise ConfigurationError(f"policies.count: {limit!r}, expected a whole number of readings from 1 to 2^53")
    if isinstance(hop, bool) or not isinstance(hop, int) or not 1 <= hop <= MAX_COUNT:
        raise ConfigurationError(f"policies.count(hop={hop!r}): expected a whole number of readings from 1 to 2^53")
    return Count(limit, hop, _extreme("count", up_to))


def time(span: int | str, *, hop: int | str = 1, up_to: str | None = None) -> Time:
    """Keep the last `span` of time: µs as an int, or a text such as "24h", "7d", "15min", "90s", "500ms", "10us".

    `hop`: a length of time; the window moves on only when the newest time passes a multiple of it. `up_to` as in
    `count`. Raises ConfigurationError for what is no positive length below 2^62 µs.
    """
    micros = _micros(span) if isinstance(span, str) else span
    if isinstance(micros, bool) or not isinstance(micros, int) or not 1 <= micros <= MAX_SPAN:
        raise ConfigurationError(
            f"policies.time: {span!r}, expected a positive length: µs as an int, or a text like '24h'"
        )
    step = _micros(hop) if isinstance(hop, str) else hop
    if isinstance(step, bool) or not isinstance(step, int) or not 1 <= step <= MAX_SPAN:
        raise ConfigurationError(
            f"policies.time(hop={hop!r}): expected a positive length: µs as an int, or a text like '1h'"
        )
    return Time(micros, step, _extreme("time", up_to))


def _extreme(name: str, up_to: str | None) -> str | None:
    if up_to not in (None, "max", "min"):
        raise ConfigurationError(f"policies.{name}(up_to={up_to!r}): expected 'max', 'min' or None")
    return up_to


def custom(
    rule: Callable[[Any, Any], Any], *, monotone: bool = False, remaining: bool = False, label: str = ""
) -> Custom:
    """Wrap a callable `rule(total, old) -> bool` and declare what it promises.

    `monotone`: where it is true of a prefix it is true of every shorter one, and evicting changes no later answer;
    then many readings leave in O(log n). Without it they are tested one by one. `remaining`: it depends only on what
    is left after `old` leaves. `label`: the name a stored window is checked against, where the callable's own is not
    telling.
    """
    if not callable(rule):
        raise ConfigurationError(f"policies.custom: {rule!r} is not callable; expected rule(total, old) -> bool")
    return Custom(rule, monotone, remaining, label)


def as_policy(policy: Any) -> Policy:
    """Accept a policy or a bare callable, whose attributes `monotone` and `remaining` (default False) declare it."""
    if isinstance(policy, Count):
        return count(policy.limit, hop=policy.hop, up_to=policy.up_to)
    if isinstance(policy, Time):
        return time(policy.span, hop=policy.hop, up_to=policy.up_to)
    if isinstance(policy, Custom):
        return policy
    if callable(policy):
        return custom(
            policy,
            monotone=bool(getattr(policy, "monotone", False)),
            remaining=bool(getattr(policy, "remaining", False)),
        )
    raise ConfigurationError(
        f"policy: {policy!r}, expected sg.policies.count(n), sg.policies.time('24h') or a callable"
    )
