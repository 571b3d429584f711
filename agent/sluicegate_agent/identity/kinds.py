"""By what a source's messages are known again: now, and as the state says of the last start."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

from sluicegate_agent.config.inputs import MQTT, input_of

if TYPE_CHECKING:
    from sluicegate_agent.config import Config, SourceConfig


def kind_of(source: SourceConfig) -> str:
    """By what its messages are known again."""
    return "sequence" if source.sequence is not None else "time" if source.time is not None else "bare"


def kinds_of(config: Config) -> dict[str, dict[str, Any]]:
    """The same of each source, by the topic as configured, for `changes.asked`: of brokers, posted, read elsewhere.

    Of what is read elsewhere with its input's name, since where reading goes on is that input's. Standard input has no
    such place.
    """
    posted = {source.subscribed: kind_of(source) for source in config.sources if source.input == "http"}
    topics = {source.filter.subscription: kind_of(source) for source in config.subscribed}
    return {"topics": topics, "posted": posted, "read": {each.subscribed: _read(each) for each in readers(config)}}


def changed_kinds(before: dict[str, Any], config: Config) -> list[tuple[SourceConfig, str]]:
    """Sources that are known by something else than at the last start, as `asked_before` says, and by what then."""
    topics, posted, read = before["topics"], before.get("posted", {}), before.get("read", {})
    was = [(each, topics.get(each.filter.subscription)) for each in config.subscribed]
    was += [(each, posted.get(each.subscribed)) for each in config.sources if each.input == "http"]
    changed = [(source, kind) for source, kind in was if kind not in (None, kind_of(source))]
    for source in readers(config):
        (name, now), (former, kind) = _read(source), read.get(source.subscribed, _read(source))
        changed += [(source, kind)] if name == former and now != kind else []
    return changed


def without_their_place(before: dict[str, Any], config: Config) -> list[SourceConfig]:
    """Sources that may read what was read before: by another input, or under another name than one that is gone."""
    read = before.get("read", {})
    gone = {name for topic, (name, _) in read.items() if topic not in {each.subscribed for each in config.sources}}
    return [
        source
        for source in readers(config)
        if read.get(source.subscribed, ["", ""])[0] != source.input
        and (source.subscribed in read or source.input in gone)
    ]


def readers(config: Config) -> list[SourceConfig]:
    """Sources whose inputs keep a place."""
    return [source for source in config.sources if source.input not in (MQTT, "http", "stdin")]


def known_by(source: SourceConfig) -> str:
    """`kind_of`; "once" where its input hands out no message twice."""
    hands_out_once = source.input not in (MQTT, "http") and not input_of(source.input).repeats
    return "once" if hands_out_once else kind_of(source)


def _read(source: SourceConfig) -> list[str]:
    return [source.input, known_by(source)]


def asked_before(connection: sqlite3.Connection) -> dict[str, Any]:
    """What `changes.asked` gave at the last start; of a state that is older than that, the topics it knows of."""
    found = connection.execute("SELECT value FROM meta WHERE key = 'asked'").fetchone()
    if found is not None:
        kept: dict[str, Any] = json.loads(found[0])
        return kept
    topics = {name: "sequence" for (name,) in connection.execute("SELECT DISTINCT source FROM sequence")}
    topics |= {
        name: "time" for (name,) in connection.execute("SELECT DISTINCT source FROM identity WHERE source != ''")
    }
    return {"topics": topics, "retired": []}
