"""The message of one change of an alert's state: what is so, since when, how sure, and a name to know it again by."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from msgspec import Struct

from sluicegate_agent.alerts.rules import Seen
from sluicegate_agent.config.outward import AlertConfig
from sluicegate_agent.config.units import show_duration


class Told(Struct, frozen=True, omit_defaults=False):
    """A message. `id` is the same whenever it is sent again; `number` grows with each message of one state folder.

    `certainty`: "certain" where the exact answer is beyond the limit whatever the buckets do not know.
    """

    id: str
    number: int
    device: str
    alert: str
    stream: str
    state: Literal["raised", "cleared"]
    certainty: Literal["certain", "possible"]
    text: str
    time_us: int
    since_us: int
    window: str | None = None
    aggregate: str | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None


def of_answer(
    name: str, number: int, device: str, stream: str, alert: AlertConfig, asked: str, seen: Seen, since_us: int,
    *, raised: bool, certain: bool,
) -> Told:  # fmt: skip
    """What is told of a threshold: `asked` is the aggregate."""
    limit = alert.above if alert.above is not None else alert.below
    which = f"{asked} of {stream} in {alert.window}"
    which += f", its change in {show_duration(alert.per)}," if alert.per is not None else ""
    beyond = "above" if alert.above is not None else "below"
    how = "is certainly" if certain else "is possibly"
    said = f"{how} {beyond} {limit:g}" if raised else f"is no longer {beyond} {limit:g}"
    shown = "unknown" if seen.value is None else f"{seen.value:.6g}"
    interval = f" (between {_end(seen.low)} and {_end(seen.high)})"
    text = f"{alert.name}: {which} {said}: {shown}{interval} since {_clock(since_us)}"
    return Told(
        name, number, device, alert.name, stream, "raised" if raised else "cleared",
        "certain" if certain or not raised else "possible", text, seen.time_us, since_us, alert.window, asked,
        seen.value, seen.low, seen.high, limit,
    )  # fmt: skip


def of_silence(
    name: str, number: int, device: str, stream: str, alert: AlertConfig, now_us: int, since_us: int, *, raised: bool
) -> Told:
    """What is told of a stream that says nothing, or that speaks again."""
    said = f"no reading since {_clock(since_us)}" if raised else "readings come again"
    text = f"{alert.name}: {stream}: {said}"
    state: Literal["raised", "cleared"] = "raised" if raised else "cleared"
    return Told(name, number, device, alert.name, stream, state, "certain", text, now_us, since_us)


def _end(value: float | None) -> str:
    return "?" if value is None else f"{value:.6g}"


def _clock(us: int) -> str:
    try:
        return datetime.fromtimestamp(us // 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{us} us"
