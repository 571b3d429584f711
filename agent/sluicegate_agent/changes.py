"""What a start with this configuration would lose of what the state holds, before anything is lost.

`check` prints it and `run` refuses it without `--accept`. What loses nothing is not listed: a new window, stream or
source, a larger budget, another bucket size, a window renamed with `was`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sluicegate_agent.backlog.rows import READING_COST, ROW_COST
from sluicegate_agent.config.broker import client_of
from sluicegate_agent.errors import EnvironmentRefused, InputRefused
from sluicegate_agent.identity.kinds import asked_before, changed_kinds, kinds_of, known_by, without_their_place
from sluicegate_agent.state.status import looked_into
from sluicegate_agent.streams import Stream

if TYPE_CHECKING:
    from sluicegate_agent.config import Config, WindowConfig

_KINDS = {
    "sequence": "sequence numbers",
    "time": "their time and content",
    "bare": "neither number nor time",
    "once": "being handed out once",
}


class WouldLose(InputRefused):
    """Raised where a start would throw away what the state holds: change the configuration back, or accept it."""


def refuse_losses(config: Config, *, accept: bool) -> None:
    """Raises WouldLose with the whole list, unless it is accepted. A state that cannot be read is left to the start."""
    try:
        found = list_losses(config)
    except EnvironmentRefused:
        return
    if found and not accept:
        listed = "\n".join(f"  - {line}" for line in found)
        raise WouldLose(
            f"with this configuration a start would lose some of what {config.state.path} holds:\n{listed}\n"
            "Change the configuration back, or start once with --accept."
        )


def list_losses(config: Config) -> list[str]:
    """A line for each loss; none where no agent has run. Raises EnvironmentRefused where the state cannot be read."""
    with looked_into(config.state.path, plays=lambda tables: _depends_on_record(config, tables)) as connection:
        if connection is None:
            return []
        parts = (_device, _session, _sources, _windows, _outbox, _dead_letters)
        return [line for part in parts for line in part(config, connection)]


def _depends_on_record(config: Config, tables: sqlite3.Connection) -> bool:
    """Whether what commits recorded since the tables were written may be lost too: else nobody plays it back for this.

    A source, a window and a stream's first reading are in the tables at once.
    """
    before = asked_before(tables)
    same_device = before.get("device") == config.device.id
    return (
        not same_device or _is_smaller(config, before) or config.dead_letters.rows < before.get("dead_letters", 1 << 62)
    )


def _is_smaller(config: Config, before: dict[str, Any]) -> bool:
    """Whether its outbox is smaller than at the last start."""
    rows, size = before.get("outbox", (config.outbox.rows + 1, 0))
    return bool(rows > config.outbox.rows or size > config.outbox.bytes)


def asked(config: Config) -> dict[str, Any]:
    """What the state keeps of a configuration to tell a later one from it."""
    return {
        "device": config.device.id,
        "horizon": config.identity.horizon,
        **kinds_of(config),
        "broker": [config.mqtt.host, config.mqtt.actual_port, config.mqtt.client_id or ""],
        "outbox": [config.outbox.rows, int(config.outbox.bytes)],
        "dead_letters": config.dead_letters.rows,
        "retired": [],
    }


def retired(config: Config, before: dict[str, Any]) -> list[str]:
    """Topics that the broker may still keep for us although the configuration has them no more."""
    return sorted({*before["topics"], *before["retired"]} - _topics(config))


def _topics(config: Config) -> set[str]:
    return {topic for source in config.subscribed for topic in (source.topic, source.filter.subscription)}


def _device(config: Config, connection: sqlite3.Connection) -> Iterator[str]:
    """A user of Sync Gateway writes for one device."""
    was = asked_before(connection).get("device", config.device.id)
    waiting = sum(
        connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608  our own names
        for table in ("outbox", "packed", "chunk")
    )
    if was != config.device.id and waiting and config.sync.target in ("sync-gateway", "couchbase-lite"):
        yield (
            f'device.id = "{config.device.id}": it was "{was}", and buckets of that device wait; the gateway takes '
            "them from the old user alone, so send them before"
        )


def _session(config: Config, connection: sqlite3.Connection) -> Iterator[str]:
    """The broker keeps messages for a client id, which is made of the device's name unless it is given."""
    before = asked_before(connection)
    if not before.get("subscribed_us") or not config.uses_broker:
        return
    was, now = before["broker"][2] or client_of(before["device"]), config.mqtt.client_id or client_of(config.device.id)
    if was != now:
        yield (
            f'mqtt.client_id = "{now}": it was "{was}", and what the broker still holds for that client is not '
            f'counted; mqtt.client_id = "{was}" keeps it'
        )


def _sources(config: Config, connection: sqlite3.Connection) -> Iterator[str]:
    before = asked_before(connection)
    for topic in sorted(set(before["topics"]) - _topics(config)):
        yield (
            f"source {topic}: no longer in the configuration: the agent unsubscribes from it, and what the broker "
            "still holds of it is not counted"
        )
    for source, was in changed_kinds(before, config):
        now = _KINDS[known_by(source)]
        yield (
            f"source {source.topic}: its messages were known again by {_KINDS[was]}, now by {now}: "
            "one counted before that comes again would count twice, in doubt"
        )
    for source in without_their_place(before, config):
        yield (
            f"source {source.topic}: up to where its input {source.input} was read is not known under this name: what "
            "counted before and is there yet would count twice, in doubt"
        )
    horizon = before.get("horizon", 0)
    if config.identity.horizon < horizon:
        yield (
            f"identity.horizon = {config.identity.horizon}: it was {horizon}; an older message that comes again would "
            "not be known"
        )


def _windows(config: Config, connection: sqlite3.Connection) -> Iterator[str]:
    """The histories that `StoredWindow` would begin anew or forget, a line for each window."""
    query = """SELECT stream.name, stream.row, window.name, definition,
        (SELECT count(*) FROM window_leaf WHERE window_leaf.window = window.id)
        + (SELECT coalesce(sum(last - first + 1), 0) FROM window_run WHERE window_run.window = window.id)
        FROM window JOIN stream ON stream.id = window.stream ORDER BY window.id"""
    rows = [row for row in connection.execute(query) if _has_readings(row[0], row[1])]
    stored = {(stream, name) for stream, _, name, _, _ in rows}
    lost: dict[tuple[str, str], tuple[list[str], int]] = {}
    for stream, _, name, definition, leaves in rows:
        if why := _why_lost(config, stream, name, definition, stored):
            streams, buckets = lost.setdefault((name, why), ([], 0))
            lost[name, why] = [*streams, stream], buckets + leaves
    for (name, why), (streams, buckets) in lost.items():
        yield f"window {name} of {', '.join(streams)}: {why}: its history ({buckets:,} closed buckets) is thrown away"


def _has_readings(name: str, row: bytes) -> bool:
    stream = Stream(0, name, 1, 1)
    stream.restore(row)
    return stream.accepted > 0


def _why_lost(config: Config, stream: str, name: str, definition: str, stored: set[tuple[str, str]]) -> str:
    if "shares" in json.loads(definition):
        return ""  # it keeps no buckets of its own
    if not config.feeds(stream):
        return "no source feeds its stream any more"
    windows = config.windows_of(stream)
    now = next((window for window in windows if window.name == name), None)
    renamed = next((w for w in windows if w.was == name and (stream, w.name) not in stored), None)
    if now is None and renamed is None:
        return 'no longer in the configuration (a renamed one keeps it with was = "…")'
    return _changed(now or renamed, definition, stream, stored)


def _changed(now: WindowConfig | None, definition: str, stream: str, stored: set[tuple[str, str]]) -> str:
    if now is None or now.definition == definition:
        return ""
    if now.shares is not None:
        return "" if (stream, now.shares) in stored else f"{now.shares}, which is to answer it, begins now"
    was, asks = json.loads(definition), json.loads(now.definition)
    keys = sorted(key for key in {*was, *asks} if was.get(key) != asks.get(key))
    return "changed (" + ", ".join(f"{key}: {_text(was.get(key))} → {_text(asks.get(key))}" for key in keys) + ")"


def _text(value: Any) -> str:
    return "none" if value is None else json.dumps(value)


def _outbox(config: Config, connection: sqlite3.Connection) -> Iterator[str]:
    """What a smaller outbox than at the last start would merge.

    The same outbox loses nothing by a start: what a kill left beyond it would have been merged by the next commit.
    """
    if not _is_smaller(config, asked_before(connection)):
        return
    query = "SELECT count(*), coalesce(sum(coalesce(length(readings), 0)), 0) / 16 FROM outbox"
    rows, singles = connection.execute(query).fetchone()
    documents = connection.execute("SELECT coalesce(sum(length(document)), 0) FROM chunk").fetchone()[0]
    held = rows * ROW_COST + singles * READING_COST + documents
    exact = "counts, sums and extremes stay exact, resolution is lost"
    if rows > config.outbox.rows:
        yield f"outbox.rows = {config.outbox.rows}: {rows:,} buckets wait and would be merged to as many: {exact}"
    elif held > config.outbox.bytes:
        yield (
            f"outbox.bytes = {int(config.outbox.bytes)}: {held:,} bytes wait, {singles:,} single readings among them; "
            f"they and then buckets would be merged: {exact}"
        )


def _dead_letters(config: Config, connection: sqlite3.Connection) -> Iterator[str]:
    rows = connection.execute("SELECT count(*) FROM dead_letter").fetchone()[0]
    if rows > config.dead_letters.rows:
        yield f"dead_letters.rows = {config.dead_letters.rows}: {rows:,} are kept, the oldest would be dropped"
