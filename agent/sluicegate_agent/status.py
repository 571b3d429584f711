"""The agent's status as one dictionary, and as a page of text for people."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from sluicegate_agent import health
from sluicegate_agent.config import Config
from sluicegate_agent.config.units import show_duration, show_size
from sluicegate_agent.record import wear
from sluicegate_agent.record.limits import limits
from sluicegate_agent.state import read_status
from sluicegate_agent.state.status import damage_of

#: Bytes free on the state's disk below which `status` says so.
DISK_LOW = 1 << 20
SILENT_SHOWN = 5


def gather(config: Config) -> dict[str, Any]:
    """What the state directory holds as of the last commit, and how the process is (or was when it last wrote).

    Raises EnvironmentRefused where no agent has run, NewerStore for a state this version cannot read.
    """
    found, process = read_status(config.state.path), health.read(config.state.path) or {}
    card = wear.measured(config, process.get("written_bytes"), process.get("uptime_s", 0))
    told = {"process": process or None, "wear": card and card._asdict(), "log_limit": limits(config).log}
    return {"device": config.device.id, **found, **told}


def show(found: dict[str, Any]) -> str:
    """The dictionary of `gather` as text: what runs, links, streams, windows, outbox, what was dropped and why."""
    parts = (_head, _links, _budget, _waiting, _keys, _streams, _windows, _outbox, _counters, _dead_letters)
    return "\n".join(line for part in parts for line in part(found))


def table(rows: list[tuple[object, ...]]) -> Iterator[str]:
    """Lines of aligned columns under the first row: the first column to the left, numbers to the right."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for text in texts:
        cells = [
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(text, widths, strict=True))
        ]
        yield "  " + "  ".join(cells).rstrip()


def _head(found: dict[str, Any]) -> Iterator[str]:
    process = found["process"] or {}
    state = "running" if found["running"] else "not running"
    if found["running"] and process:
        up_us = process["uptime_s"] * 1_000_000 + time.time_ns() // 1000 - process["clock_us"]
        state += f" for {show_duration(max(up_us, 0))}, resident {show_size(process['rss_bytes'])}"
        state += f" (at most {show_size(process['peak_rss_bytes'])})"
    yield f"{found['device']}: {state}"
    yield f"  incarnation {found['incarnation']}, {show_size(found['bytes_on_disk'])} on disk"
    if card := found.get("wear"):
        yield f"  written since the start: {wear.Wear(**card)}"
    elif written := process.get("written_bytes"):
        yield f"  written since the start: {show_size(written)}; what that is a day can be told after an hour"
    if folds := {name: n for name, n in found["counters"].items() if name.startswith("record.folds.") and n}:
        early = {name.rpartition(".")[2]: n for name, n in folds.items() if name != "record.folds.due"}
        why = ", ".join(f"{name} {n:,}" for name, n in sorted(early.items()))
        told = f", {sum(early.values()):,} of them early ({why})" if early else ""
        yield f"  record folded into the tables {sum(folds.values()):,} times{told}"
    if lost := found["record_lost"]:
        yield (
            f"  ALARM: the record was damaged before the start of {_time(lost['at_us'])}: readings that were "
            f"acknowledged are lost, {lost['readings']:,} that could be told among them; answers that may lack them "
            "say no bound"
        )
    yield from _store(found)
    if damage := damage_of(found):
        told = ", ".join(f"{name} {count:,}" for name, count in damage.items())
        yield f"  ALARM: the state was damaged, and repaired as far as it can be: {told}; replace the card"


def _store(found: dict[str, Any]) -> Iterator[str]:
    """What stands in the way of commits: nothing is taken while they fail."""
    refusal = (found["process"] or {}).get("store") or {}
    if found["running"] and refusal.get("refuses"):
        since = _time(refusal.get("since_us"))
        yield f"  ALARM: the store refuses since {since}: {refusal['refuses']}; no reading is taken or acknowledged"
    if found["disk_free"] < DISK_LOW:
        yield f"  ALARM: {show_size(found['disk_free'])} are free on the disk of the state"
    if found["log_bytes"] > found["log_limit"] and found["running"]:
        size = show_size(found["log_bytes"])
        yield f"  the log has {size}: another process reads the state and keeps it from shrinking"


def _links(found: dict[str, Any]) -> Iterator[str]:
    mqtt = (found["process"] or {}).get("mqtt")
    running = found["running"]
    if mqtt:
        yield f"  broker {mqtt['broker']}{' (TLS)' if mqtt['tls'] else ''}: {mqtt['state'] if running else 'no agent'}"
    if sync := found["link"]:
        error = f": {sync['error']}" if sync.get("error") else ""
        yield f"  sync to {sync.get('target')}: {sync.get('state')} since {_time(sync.get('since_us'))}{error}"


def _budget(found: dict[str, Any]) -> Iterator[str]:
    """What the link has carried in this period, and since when what waits is kept coarser for it."""
    if spent := found.get("budget"):
        yield f"  link in {spent['period']}: {show_size(spent['used'])} sent"
        if spent["short_since_us"]:
            yield (
                f"  ALARM: its budget runs short since {_time(spent['short_since_us'])}: "
                f"{spent['merged']:,} pairs of buckets or single readings were merged since, to fit into it"
            )


def _waiting(found: dict[str, Any]) -> Iterator[str]:
    """Messages that are not counted yet, or that may be repeats."""
    mqtt, held = (found["process"] or {}).get("mqtt") or {}, found["held"]
    unacknowledged = mqtt.get("unacknowledged", 0) if found["running"] else 0
    in_doubt = sum(stream["undecidable"] for stream in found["streams"].values())
    parts = (
        (unacknowledged, "for their commit and acknowledgement"),
        (held["for_clock"], "ahead of the clock or before it is set"),
        (held["for_second_message"], "for a second message of their source"),
    )
    told = [f"{count:,} {what}" for count, what in parts if count]
    if told:
        yield f"  messages that wait: {', '.join(told)}"
    if in_doubt:
        yield f"  readings in doubt: {in_doubt:,} may be repeats"


def _keys(found: dict[str, Any]) -> Iterator[str]:
    """Sources whose streams come as they are heard of: how full they are, and who was not let in."""
    for source, keys in ((found["process"] or {}).get("keys") or {}).items():
        yield f"  keys of {source}: {keys['keys']:,} of at most {keys['most']:,}"
        if refused := keys["refused"]:
            named = ", ".join(f"{key} ({count:,} times)" for key, count in refused.items())
            yield f"    not let in since the start, as there is no room (keys.most): {named}"


def _streams(found: dict[str, Any]) -> Iterator[str]:
    rows: list[tuple[object, ...]] = [
        ("stream", "readings", "in doubt", "missing", "late", "waiting buckets", "newest")
    ]
    for name, stream in found["streams"].items():
        counts = [stream[key] for key in ("accepted", "undecidable", "missing", "late", "buckets_waiting")]
        rows.append((name, *counts, _time(stream["newest_us"])))
    yield ""
    yield from table(rows)
    mqtt = (found["process"] or {}).get("mqtt") or {}
    silent = [name for name, stream in found["streams"].items() if not stream["accepted"]]
    if found["running"] and mqtt.get("state") == "connected" and silent:
        more = f" … ({len(silent):,})" if len(silent) > SILENT_SHOWN else ""
        yield f"  no reading yet of {', '.join(silent[:SILENT_SHOWN])}{more}: are their topic and paths right?"


def _windows(found: dict[str, Any]) -> Iterator[str]:
    if not found["windows"]:
        return
    rows: list[tuple[object, ...]] = [("window", "stream", "asks", "by", "stored buckets", "limit now", "bytes")]
    for window in found["windows"]:
        size = show_size(window["state_bytes"] + window["leaf_bytes"])
        asked, now = json.loads(window["definition"]), window["bucket_limit"] or "-"
        rows.append((window["window"], window["stream"], _asks(asked), _by(asked), window["leaves"], now, size))
    yield ""
    yield from table(rows)


def _asks(asked: dict[str, Any]) -> str:
    if "policy" not in asked:  # a window with ends: what it is, its kind says
        told = ", ".join(f"{name} {value}" for name, value in dict(asked.get("evict") or {}).items())
        return f"{asked.get('kind')} windows{': ' * bool(told)}{told}"
    policy = asked["policy"]
    over = show_duration(policy["time"]) if "time" in policy else f"{policy['count']} readings"
    if "hop" in policy:
        over += f" by {show_duration(policy['hop']) if 'time' in policy else policy['hop']}"
    if "up_to" in policy:
        over += f" up to the {policy['up_to']}"
    bound = f" in {asked['buckets']} buckets" if asked["buckets"] else ""
    bound += " merged by pairs" if asked.get("merge") == "pairs" else ""
    return f"{', '.join(asked['aggregates'])} over {over}{bound}"


def _by(asked: dict[str, Any]) -> str:
    """The histograms that decide where a bucket ends."""
    if "shares" in asked:
        return f"those of {asked['shares']}"
    if asked.get("max_like", {}).get("staircase"):
        return f"staircase, tail {asked['max_like']['staging']}"
    return ", ".join(name.replace("_", "-") for name in ("sum_like", "max_like", "hop") if name in asked) or "-"


def _outbox(found: dict[str, Any]) -> Iterator[str]:
    outbox = found["outbox"]
    yield ""
    chunks = outbox["chunks_sealed"]
    yield f"  outbox: {outbox['rows']} buckets and {chunks} sealed chunks, {show_size(outbox['bytes'])}"
    if outbox["oldest_unsent_us"] is not None:
        yield f"  oldest unsent reading: {_time(outbox['oldest_unsent_us'])}"
    if outbox["chunks_rejected"]:
        yield f"  ALARM: {outbox['chunks_rejected']} documents were refused for good by the target and are kept here:"
        yield from (f"    {name}: {reason}" for name, reason in outbox["refused"].items())


def _counters(found: dict[str, Any]) -> Iterator[str]:
    counted = [(name, count) for name, count in found["counters"].items() if count]
    yield ""
    yield from table([("counter", "count"), *sorted(counted)])


def _dead_letters(found: dict[str, Any]) -> Iterator[str]:
    if not found["dead_letters"]:
        return
    yield ""
    yield "  newest dead letters:"
    for letter in found["dead_letters"][:5]:
        yield f"    {_time(letter['at_us'])} {letter['topic']}: {letter['reason']} ({letter['size']} bytes)"


def _time(us: int | None) -> str:
    if us is None:
        return "-"
    try:
        return datetime.fromtimestamp(us // 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return f"{us} us"
