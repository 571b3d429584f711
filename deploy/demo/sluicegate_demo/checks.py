"""The verdict: summary.json of fixed shape, a short table, and the checks that decide the exit code."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sluicegate_demo.edge import EdgeRun
from sluicegate_demo.proof import Custody, Tally
from sluicegate_demo.truth import Streams

PEAK_MIB = 48.0
LEAST_WINDOWS = 20_000
#: 8.5 to 10.6 % were seen: the shorter the outage is on a machine, the fewer buckets are merged.
SYNCED_SHARE = 0.12


@dataclass(frozen=True)
class Check:
    """One thing that has to be so; `passed` None: it does not apply to this input, and is shown only."""

    name: str
    passed: bool | None
    said: str


def deflated_bytes(streams: Streams) -> int:
    """The raw columns at zlib level 9: the times (int64) and values (float64) of every stream."""
    columns = [array("q", times).tobytes() for times, _ in streams.published.values()]
    columns += [array("d", values).tobytes() for _, values in streams.published.values()]
    return sum(len(zlib.compress(column, 9)) for column in columns)


def summary(edge: EdgeRun, found: Custody, tally: Tally, streams: Streams, seconds: float) -> dict[str, Any]:
    """`summary.json`: readings, windows, agents, bytes and seconds."""
    return {
        "readings": {
            "published": found.published,
            "accepted": edge.counters.get("accepted", 0),
            "duplicates": edge.counters.get("duplicate_readings", 0),
            "lost": found.lost,
            "double_counted": found.double_counted,
        },
        "windows": {
            "checked": tally.checked,
            "outside_bounds": tally.outside,
            "exact": tally.exact,
            "max_relative_error": tally.max_relative_error,
        },
        "agents": edge.agents,
        "bytes": {
            "mqtt_payload": edge.payload_bytes,
            "raw_columns_deflated": deflated_bytes(streams),
            "synced": found.synced_bytes,
        },
        "seconds": round(seconds, 1),
    }


def checks(said: dict[str, Any], edge: EdgeRun, found: Custody, tally: Tally, *, whole: bool) -> Iterator[Check]:
    """Every check, in the order of the table; `whole`: the full weather run, whose size is promised too."""
    yield from _custody_checks(said["readings"], edge, found)
    yield from _window_checks(said["windows"], tally, whole=whole)
    yield from _cost_checks(said, whole=whole)


def _custody_checks(readings: dict[str, int], edge: EdgeRun, found: Custody) -> Iterator[Check]:
    merged = f"{found.merged:,} of {readings['published']:,} published are in {found.buckets:,} buckets"
    yield Check("lost", found.lost == 0, f"{found.lost:,}; {merged}")
    yield Check("counted twice", found.double_counted == 0, f"{found.double_counted:,}; {_repeats(edge, readings)}")
    yield Check("buckets that misreport", found.wrong == 0, f"{found.wrong:,}, each held to its raw rows")
    same = readings["accepted"] == readings["published"]
    yield Check("accepted by the agents", same, f"{readings['accepted']:,}")
    boxes = {device: state["outbox"] for device, state in edge.streams.items()}
    left = [device for device, box in boxes.items() if box["rows"] or box["chunks_sealed"]]
    yield Check("outboxes empty at the end", not left, ", ".join(left) or "all")


def _repeats(edge: EdgeRun, readings: dict[str, int]) -> str:
    return f"{readings['duplicates']:,} readings came again ({edge.messages_sent:,} messages were sent)"


def _window_checks(windows: dict[str, Any], tally: Tally, *, whole: bool) -> Iterator[Check]:
    enough = windows["checked"] >= LEAST_WINDOWS if whole else None
    exact = f"{windows['checked']:,}, {windows['exact']:,} exact"
    yield Check("windows checked", enough, exact)
    yield Check("windows outside their bounds", windows["outside_bounds"] == 0, f"{windows['outside_bounds']:,}")
    yield Check("windows missing", tally.missing == 0, f"{tally.missing:,}")
    yield Check(
        "largest error of a value",
        None,
        f"{windows['max_relative_error']:.3g} of what the stream's largest readings would give",
    )


def _cost_checks(said: dict[str, Any], *, whole: bool) -> Iterator[Check]:
    peak = max(agent["peak_rss_mib"] for agent in said["agents"])
    kills = sum(agent["kills"] for agent in said["agents"])
    yield Check("peak memory of an agent", peak <= PEAK_MIB, f"{peak:.1f} MiB (at most {PEAK_MIB:.0f}), {kills} kills")
    cost = said["bytes"]
    share = cost["synced"] / cost["mqtt_payload"]
    raw = f"raw columns deflated {cost['raw_columns_deflated']:,}"
    shown = f"{cost['synced']:,} = {share:.1%} of the MQTT payload's {cost['mqtt_payload']:,}; {raw}"
    yield Check("bytes synced", share <= SYNCED_SHARE if whole else None, shown)


def table(found: list[Check]) -> Iterator[str]:
    """The checks as lines, for people."""
    width = max(len(check.name) for check in found)
    marks = {True: "ok", False: "FAILED", None: "-"}
    for check in found:
        yield f"  {marks[check.passed]:>6}  {check.name:<{width}}  {check.said}"
