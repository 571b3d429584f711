"""The checks that need more than one key, or more than a type: each finding names its key, value and remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sluicegate.constants import MOST_EXTRAS
from sluicegate.errors import ConfigurationError
from sluicegate.monoids.monoid import PAIRED
from sluicegate_agent.config.aggregates import build_aggregate, kind_of
from sluicegate_agent.config.broker import MqttConfig
from sluicegate_agent.config.carrying import asked_of, has_second
from sluicegate_agent.config.entering import input_problems
from sluicegate_agent.config.errors import Problem
from sluicegate_agent.config.formats import Payload, is_path, payload_of
from sluicegate_agent.config.linking import budget_problems
from sluicegate_agent.config.model import Config, WindowConfig
from sluicegate_agent.config.outward_checks import outward_problems
from sluicegate_agent.config.plants import plant_problems
from sluicegate_agent.config.questions import histogram_problems
from sluicegate_agent.config.shaping import shaping_problems
from sluicegate_agent.config.sharing import shared_problems
from sluicegate_agent.config.sources import SourceConfig
from sluicegate_agent.config.specified import spec_problems
from sluicegate_agent.config.targets import readable, sync_problems
from sluicegate_agent.config.topics import result_problems, source_problems
from sluicegate_agent.naming.plugins import UnknownName
from sluicegate_agent.naming.templates import Template

_NAME = re.compile(r"\w[\w.\-]{0,63}", re.ASCII)
_PLACE = re.compile(r"\{[^{}]*\}")
_NAME_RULE = "expected 1 to 64 letters, digits, `_`, `-` or `.`, starting with a letter, digit or `_`"


def check(config: Config) -> list[Problem]:
    """Every finding in a converted configuration, in the order of the file's tables."""
    parts = (_names, _ranges, _mqtt, _sources, input_problems, plant_problems, _windows, _storage, outward_problems)
    return [problem for part in parts for problem in part(config)]


def _names(config: Config) -> Iterator[Problem]:
    named = [("device.id", config.device.id)]
    named += [(f"window[{i}].name", window.name) for i, window in enumerate(config.windows, 1)]
    named += [(f"alert[{i}].name", alert.name) for i, alert in enumerate(config.alert, 1)]
    for i, source in enumerate(config.sources, 1):
        named += [(f"source[{i}].streams", _PLACE.sub("x", stream)) for stream in source.streams]
    for key, name in named:
        if not _NAME.fullmatch(name):
            yield Problem(key, name, _NAME_RULE)


def _ranges(config: Config) -> Iterator[Problem]:
    second, day = 1_000_000, 86_400_000_000
    bounds: list[tuple[str, int, int, int, str]] = [
        ("state.memory", config.state.memory, 1 << 20, 1 << 40, "1MiB to 1024GiB"),
        ("state.disk", config.state.disk, 1 << 20, 1 << 40, "1MiB to 1024GiB"),
        ("mqtt.port", config.mqtt.actual_port, 1, 65535, "1 to 65535"),
        ("mqtt.receive_maximum", config.mqtt.receive_maximum, 1, 65535, "1 to 65535"),
        ("mqtt.keepalive", config.mqtt.keepalive, 5 * second, 65535 * second, "5s to 65535s"),
        ("mqtt.session_expiry", config.mqtt.session_expiry, 60 * second, (2**32 - 2) * second, "1min to 49710d"),
        ("commit.every", config.commit.every, second // 1000, 600 * second, "1ms to 10min"),
        ("identity.horizon", config.identity.horizon, 1, 1 << 20, "1 to 1048576"),
        ("guard.future", config.guard.future, 0, 36500 * day, "0 (off) to 36500d"),
        ("held.rows", config.held.rows, 0, 1 << 20, "0 (nothing waits) to 1048576"),
        ("held.bytes", config.held.bytes, 0, 1 << 30, "0 (nothing waits) to 1GiB"),
        ("bucket.readings", config.bucket.readings, 1, 1 << 20, "1 to 1048576"),
        ("bucket.span", config.bucket.span, 1, 36500 * day, "1us to 36500d"),
        ("outbox.rows", config.outbox.rows, 4, 1 << 24, "4 to 16777216"),
        ("outbox.bytes", config.outbox.bytes, 4096, 1 << 40, "4KiB to 1024GiB"),
        ("outbox.chunk_buckets", config.outbox.chunk_buckets, 1, 1 << 16, "1 to 65536"),
        ("outbox.chunk_age", config.outbox.chunk_age, 1, 36500 * day, "1us to 36500d"),
        ("sync.timeout", config.sync.timeout, second, 600 * second, "1s to 10min"),
        ("sync.couchbase_lite.keep", config.sync.couchbase_lite.keep, 0, 36500 * day, "0 (purged at once) to 36500d"),
        ("sync.every", config.sync.every, second // 1000, 36500 * day, "1ms to 36500d"),
        ("availability.away", config.availability.away, 0, 36500 * day, "0 (at once) to 36500d"),
        ("availability.back", config.availability.back, 0, 36500 * day, "0 (at once) to 36500d"),
        ("availability.every", config.availability.every, second // 1000, 36500 * day, "1ms to 36500d"),
        ("dead_letters.rows", config.dead_letters.rows, 0, 1 << 20, "0 to 1048576"),
        ("dead_letters.bytes_each", config.dead_letters.bytes_each, 0, 1 << 16, "0 to 64KiB"),
        ("results.every", max(0, config.results.every), 0, day, '0 (at each commit) to 1d, or "reading"'),
        ("limits.payload", config.limits.payload, 64, 1 << 24, "64B to 16MiB"),
        ("limits.readings", config.limits.readings, 1, 1 << 20, "1 to 1048576"),
    ]
    for key, value, least, most, rule in bounds:
        if not least <= value <= most:
            yield Problem(key, int(value), f"expected {rule}")


def _mqtt(config: Config) -> Iterator[Problem]:
    mqtt = config.mqtt
    if not mqtt.host or any(c.isspace() or c in "/@" for c in mqtt.host):
        yield Problem("mqtt.host", mqtt.host, 'expected a host name or address alone, such as "broker.local"')
    if mqtt.client_id is not None and not 1 <= len(mqtt.client_id) <= 64:
        yield Problem("mqtt.client_id", mqtt.client_id, "expected 1 to 64 characters: the session is kept by this name")
    if mqtt.password_file and mqtt.password_env:
        yield Problem("mqtt.password_env", mqtt.password_env, "leave out one of password_file and password_env")
    if (mqtt.password_file or mqtt.password_env) and mqtt.username is None:
        yield Problem("mqtt.username", None, "is required when a password is given")
    if mqtt.password_file:
        yield from readable("mqtt.password_file", mqtt.password_file)
    yield from _tls(mqtt)


def _tls(mqtt: MqttConfig) -> Iterator[Problem]:
    files = {"ca_file": mqtt.tls.ca_file, "cert_file": mqtt.tls.cert_file, "key_file": mqtt.tls.key_file}
    for name, path in files.items():
        if path is not None:
            yield from readable(f"mqtt.tls.{name}", path)
            if not mqtt.uses_tls:
                yield Problem(f"mqtt.tls.{name}", str(path), "TLS is off: add enabled = true to [mqtt.tls]")
    if mqtt.tls.key_file and not mqtt.tls.cert_file:
        yield Problem("mqtt.tls.cert_file", None, "is required when key_file is given")


def _sources(config: Config) -> Iterator[Problem]:
    if not config.sources:
        yield Problem("source", None, "is required; write [[source]] with the topic to subscribe to")
    topics: dict[str, int] = {}
    owners: dict[str, int] = {}
    for i, source in enumerate(config.sources, 1):
        yield from _source(source, f"source[{i}]")
        yield from _twice(topics, source.topic, i, f"source[{i}].topic")
        for stream in source.streams:
            yield from _twice(owners, stream, i, f"source[{i}].streams")


def _twice(seen: dict[str, int], name: str, number: int, key: str) -> Iterator[Problem]:
    if seen.setdefault(name, number) != number:
        yield Problem(key, name, f"source[{seen[name]}] has it already: give each topic and stream to one source")


def _source(source: SourceConfig, at: str) -> Iterator[Problem]:
    yield from source_problems(source, at)
    if not source.streams:
        yield Problem(f"{at}.streams", None, 'is empty: name at least one, such as streams = { temp = "temp" }')
    if source.epoch is not None and source.sequence is None:
        yield Problem(f"{at}.epoch", source.epoch, "tells when sequence numbers start anew: give `sequence` too")
    try:
        payload = payload_of(source.format)
    except UnknownName as remedy:
        yield Problem(f"{at}.format", source.format, str(remedy))
        return
    yield from _format(source, payload, at)
    yield from _paths(source, payload, at)
    yield from shaping_problems(source, at)


def _format(source: SourceConfig, payload: Payload, at: str) -> Iterator[Problem]:
    for key in ("time", "sequence", "epoch"):
        if not payload.has_fields and getattr(source, key) is not None:
            remedy = 'a message that is one number has no other fields: leave it out, or use format = "json"'
            yield Problem(f"{at}.{key}", getattr(source, key), remedy)
    if source.sequence_in != "item" and not (payload.has_items and source.sequence is not None):
        remedy = 'says where the number of a list of readings is: use it with `sequence` and format = "array"'
        yield Problem(f"{at}.sequence_in", source.sequence_in, remedy)
    if source.items and not payload.has_items:
        yield Problem(f"{at}.items", source.items, 'is the place of the list: use it with format = "array"')
    for key, value, remedy in payload.findings(source):
        yield Problem(f"{at}.{key}", value, remedy)


def _paths(source: SourceConfig, payload: Payload, at: str) -> Iterator[Problem]:
    paths: dict[str, Any] = {f"{at}.{key}": getattr(source, key) for key in ("items", "time", "sequence", "epoch")}
    paths |= {f"{at}.streams.{stream}": path for stream, path in source.streams.items()}
    for key, path in paths.items():
        whole = key == f"{at}.items" or payload.has_items or not payload.has_fields
        right = payload.is_value if key.startswith(f"{at}.streams") else is_path
        if path is not None and not (whole and path == "") and not right(path):
            yield Problem(key, path, 'expected a path of up to 16 steps such as "temp" or "data.0.temp"')


def _windows(config: Config) -> Iterator[Problem]:
    names: set[str] = set()
    right = True
    for i, window in enumerate(config.windows, 1):
        if window.name in names:
            yield Problem(
                f"window[{i}].name", window.name, "another window has this name: results could not be told apart"
            )
        names.add(window.name)
        found = [*_window(window, config.names, f"window[{i}]"), *_paired(config, window, f"window[{i}]")]
        own = window.shares is None and not window.sliced
        found = found or [*histogram_problems(window, f"window[{i}]")] if own else found
        yield from found
        right = right and not found
    yield from _renamed(config)
    yield from _carried(config) if right else ()
    for i, window in enumerate(config.windows, 1):
        if window.shares is not None and right:  # it is asked of the other one's window, which has to be right
            yield from shared_problems(config, window, f"window[{i}]")


def _paired(config: Config, window: WindowConfig, at: str) -> Iterator[Problem]:
    """An aggregate of two values is asked of streams that have two."""
    asked = [name for name in window.named if kind_of(name) in PAIRED]
    single = [name for name in config.names if asked and window.covers(name) and not has_second(config, name)]
    if single:
        remedy = (
            f"readings of stream {single[0]} have one value: give them a second, [source.values.{single[0]}] with = "
            '"humidity", or name in `streams` those that have two'
        )
        yield Problem(f"{at}.aggregate", asked[0], remedy)


def _carried(config: Config) -> Iterator[Problem]:
    """What is sent beside the buckets is bounded by its names."""
    for stream in config.names:
        names, most = asked_of(config, stream), MOST_EXTRAS - 1  # one more says what came late
        if len(names) > most:
            yield Problem("window.cloud", ", ".join(names), f"expected at most {most} kinds for stream {stream}")


def _renamed(config: Config) -> Iterator[Problem]:
    names, taken = {window.name for window in config.windows}, set()
    for i, window in enumerate(config.windows, 1):
        if window.was is None:
            continue
        if window.was in names or window.was in taken:
            yield Problem(
                f"window[{i}].was", window.was, "expected the old name of this window, which no other one has"
            )
        taken.add(window.was)


def _window(window: WindowConfig, streams: tuple[str, ...], at: str) -> Iterator[Problem]:
    for stream in window.streams:
        is_made = any("{" in name and Template(name).fits(stream) for name in streams)
        if stream != "*" and stream not in streams and not is_made:
            yield Problem(f"{at}.streams", stream, f"no source feeds it; there are: {', '.join(streams)}")
    if not window.streams:
        yield Problem(f"{at}.streams", None, 'is empty: name streams, or "*" for all')
    yield from _aggregates(window, at)
    found = [] if window.sliced else [*_policy(window, at)]
    yield from found or spec_problems(window, at)


def _aggregates(window: WindowConfig, at: str) -> Iterator[Problem]:
    for name in window.named:
        try:
            build_aggregate(name)
        except ConfigurationError as error:
            yield Problem(f"{at}.aggregate", name, str(error))
    if not window.named or len(set(window.named)) != len(window.named):
        yield Problem(f"{at}.aggregate", str(list(window.named)), "expected each aggregate once, at least one")
    asked = [name for name in window.named if name not in window.aggregates]
    if asked and not window.cloud:
        remedy = "its answer is something to put questions to, which the cloud alone gives: cloud = true"
        yield Problem(f"{at}.aggregate", asked[0], remedy)
    elif asked and not window.aggregates:
        yield Problem(f"{at}.aggregate", asked[0], 'the cloud alone answers it: ask one for the board too, as "count"')


def _policy(window: WindowConfig, at: str) -> Iterator[Problem]:
    policy = window.policy
    if (policy.time is None) == (policy.count is None):
        remedy = 'expected exactly one: { time = "24h" } or { count = 100 }; or, without policy, `kind` and `evict`'
        yield Problem(f"{at}.policy", None, remedy)
    if policy.time is not None and policy.time <= 0:
        yield Problem(f"{at}.policy.time", int(policy.time), 'expected more than nothing, such as "24h"')
    if policy.count is not None and not 1 <= policy.count <= 2**40:
        yield Problem(f"{at}.policy.count", policy.count, "expected 1 to 1099511627776 readings")
    try:
        if not 1 <= policy.step <= 2**61:
            yield Problem(
                f"{at}.policy.hop", policy.hop, "expected more than nothing: how far the window moves at once"
            )
    except ValueError as error:
        yield Problem(f"{at}.policy.hop", policy.hop, str(error))
    if window.buckets == 0 and policy.time is not None:
        remedy = (
            "a time window without a bound on its buckets has no worst case: give the most readings it may hold; "
            "it is exact while they fit, and coarser beyond; a histogram decides within them"
        )
        yield Problem(f"{at}.buckets", 0, remedy)
    elif window.merge == "pairs" and window.buckets == 0:
        yield Problem(
            f"{at}.merge", "pairs", "says how room is made, but there is no limit: give `buckets`, or leave it out"
        )
    elif not (window.buckets == 0 or 4 <= window.buckets <= 1 << 24):
        yield Problem(
            f"{at}.buckets", window.buckets, "expected 4 to 16777216, or 0 for a count window without that limit"
        )


def _storage(config: Config) -> Iterator[Problem]:
    for key in ("backlog", "floor"):
        share = getattr(config.availability, key)
        if not 0 < share <= 1:
            yield Problem(f"availability.{key}", float(share), 'expected more than 0 and at most 1, such as "25%"')
    if config.outbox.chunk_buckets > config.outbox.rows // 2:
        remedy = f"expected at most half of outbox.rows ({config.outbox.rows}): a chunk leaves room for what comes next"
        yield Problem("outbox.chunk_buckets", config.outbox.chunk_buckets, remedy)
    yield from sync_problems(config.sync)
    yield from budget_problems(config.sync.budget, config.names, config.sync.target)
    if config.results.topic:
        yield from result_problems(config)
