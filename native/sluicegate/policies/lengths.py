"""The newest n readings, or the last stretch of time: both monotone and local, so that buckets have certain bounds."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from sluicegate.checks import check_count, check_span
from sluicegate.errors import ConfigurationError


class _Oldest:
    """What leaves are the oldest readings, and when depends on those that remain alone."""

    __slots__ = ()
    hop: int
    monotone: ClassVar[bool] = True
    remaining: ClassVar[bool] = True
    exact_only: ClassVar[str] = ""

    @property
    def hops(self) -> bool:
        """Whether many readings may leave at once by rule."""
        return self.hop > 1


@dataclass(frozen=True, slots=True)
class Count(_Oldest):
    """Keep the newest `limit` readings.

    `hop`: readings leave at each multiple of it, so many at once (the first time what is over `limit` then), so that
    the window holds limit … limit + hop − 1. `up_to`: "max" or "min", for a window whose only aggregates are maxima
    (minima): evict up to the current one; the answer is the whole window's. Raises ConfigurationError unless
    1 ≤ limit ≤ 2^53 and 1 ≤ hop ≤ 2^53.
    """

    limit: int
    _: KW_ONLY
    hop: int = 1
    up_to: str | None = None

    def __post_init__(self) -> None:
        """Check the settings."""
        check_count("policies.count", self.limit)
        check_count("policies.count", self.hop, "hop")
        _check_extreme("count", self.up_to)

    @property
    def name(self) -> str:
        """What a stored window is checked against."""
        return f"count:{self.limit}" + _suffix(self.hop, self.up_to)


@dataclass(frozen=True, slots=True)
class Time(_Oldest):
    """Keep the readings with time > now − `span` (µs), in whatever order they come; now is the greatest time seen.

    With `hop` (µs), now counts as the last multiple of it: the window moves on by a hop at once. `up_to` as for a
    count.
    """

    span: int
    hop: int = 1
    up_to: str | None = None

    @property
    def name(self) -> str:
        """What a stored window is checked against."""
        return f"time:{self.span}" + _suffix(self.hop, self.up_to)


def _suffix(hop: int, up_to: str | None) -> str:
    return (f":hop:{hop}" if hop > 1 else "") + (f":up-to:{up_to}" if up_to else "")


count = Count


def time(span: int | str, *, hop: int | str = 1, up_to: str | None = None) -> Time:
    """Keep the last `span` of time: µs as an int, or a text such as "24h", "7d", "15min", "90s", "500ms", "10us".

    `hop`: a length of time; the window moves on only when the newest time passes a multiple of it. `up_to` as in
    `count`. Raises ConfigurationError for what is no positive length below 2^62 µs.
    """
    length, step = check_span("policies.time", span, like="24h"), check_span("policies.time", hop, "hop")
    _check_extreme("time", up_to)
    return Time(length, step, up_to)


def _check_extreme(name: str, up_to: str | None) -> None:
    if up_to not in (None, "max", "min"):
        raise ConfigurationError(f"policies.{name}(up_to={up_to!r}): expected 'max', 'min' or None")
