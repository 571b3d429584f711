"""The checks of what people see of an agent: its listener, and its alerts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isfinite
from urllib.parse import urlsplit

from sluicegate.hosts import is_loopback
from sluicegate_agent.config.errors import Problem
from sluicegate_agent.config.model import Config
from sluicegate_agent.config.outward import UNIX, AlertConfig, AlertsConfig, ListenConfig
from sluicegate_agent.config.targets import readable

#: Aggregates whose answer is no one number: nothing to compare with a threshold.
_PARTS = re.compile(r"(histogram|top_k|longest_run|quantiles)\b")
_LONGEST_SOCKET = 100
_TOPIC_NAMES = ("device", "alert", "stream")


def outward_problems(config: Config) -> Iterator[Problem]:
    """Every finding in [metrics], [alerts] and [[alert]]."""
    yield from _listener("metrics", config.metrics)
    if not 0 <= config.metrics.streams_most <= 100_000:
        yield Problem("metrics.streams_most", config.metrics.streams_most, "expected 0 to 100000")
    yield from _http(config)
    yield from _alerts(config.alerts)
    names: set[str] = set()
    for i, alert in enumerate(config.alert, 1):
        if alert.name in names:
            yield Problem(f"alert[{i}].name", alert.name, "another alert has this name: give each its own")
        names.add(alert.name)
        yield from _alert(config, alert, f"alert[{i}]")


def _listener(table: str, asked: ListenConfig) -> Iterator[Problem]:
    if not 1 <= asked.connections <= 1024:
        yield Problem(f"{table}.connections", asked.connections, "expected 1 to 1024")
    if asked.token_file is not None:
        yield from readable(f"{table}.token_file", asked.token_file)
    if asked.listen is None:
        return
    if asked.is_unix:
        path = asked.listen.removeprefix(UNIX)
        if not path.startswith("/") or len(path.encode()) > _LONGEST_SOCKET or "\0" in path:
            remedy = f'expected "unix:" and a whole path of at most {_LONGEST_SOCKET} bytes'
            yield Problem(f"{table}.listen", asked.listen, remedy)
    elif not asked.host or not asked.port or asked.listen != _written(asked):
        yield Problem(
            f"{table}.listen",
            asked.listen,
            'expected address:port such as "127.0.0.1:9464", or "unix:/run/agent.sock"',
        )
    elif not asked.is_private and asked.token_file is None:
        remedy = "others can reach this address: give a token_file too, or listen on 127.0.0.1"
        yield Problem(f"{table}.listen", asked.listen, remedy)


def _http(config: Config) -> Iterator[Problem]:
    """What takes readings beside MQTT."""
    http = config.http
    yield from _listener("http", http)
    if http.listen is not None and http.listen == config.metrics.listen:
        yield Problem("http.listen", http.listen, "[metrics] listens there: give each an address of its own")
    if not 64 <= http.body <= 1 << 24:
        yield Problem("http.body", int(http.body), "expected 64B to 16MiB")


def _written(metrics: ListenConfig) -> str:
    host = f"[{metrics.host}]" if ":" in metrics.host else metrics.host
    return f"{host}:{metrics.port}"


def _alerts(alerts: AlertsConfig) -> Iterator[Problem]:
    if not 1 <= alerts.queue <= 65536:
        yield Problem("alerts.queue", alerts.queue, "expected 1 to 65536 messages")
    if not 1_000_000 <= alerts.timeout <= 300_000_000:
        yield Problem("alerts.timeout", int(alerts.timeout), "expected 1s to 5min")
    topic = alerts.topic
    for name in _TOPIC_NAMES:
        topic = topic.replace(f"{{{name}}}", "x")
    if any(c in topic for c in "+#{}\0") or len(alerts.topic.encode()) > 512 or topic.startswith("$"):
        remedy = "expected a topic without wildcards, at most 512 bytes; {device}, {alert}, {stream} stand for names"
        yield Problem("alerts.topic", alerts.topic, remedy)
    for key in ("token_file", "ca_file"):
        path = getattr(alerts, key)
        if path is not None:
            yield from readable(f"alerts.{key}", path)
            if alerts.webhook is None:
                yield Problem(f"alerts.{key}", str(path), "is for a webhook: give alerts.webhook too")
    if alerts.webhook is not None:
        yield from _webhook(alerts.webhook)


def _webhook(url: str) -> Iterator[Problem]:
    try:
        parts = urlsplit(url)
        whole = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        parts, whole = urlsplit(""), False
    if not whole or parts.scheme not in ("https", "http") or any(c.isspace() or not c.isprintable() for c in url):
        yield Problem("alerts.webhook", url, 'expected a URL such as "https://alerts.example/sluicegate"')
    elif parts.username is not None or parts.password is not None:
        yield Problem("alerts.webhook", None, "no user and password in a URL, where logs show it: give a token_file")
    elif parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        yield Problem("alerts.webhook", url, "is not encrypted, and leaves this machine: expected https://…")


def _alert(config: Config, alert: AlertConfig, at: str) -> Iterator[Problem]:
    for stream in alert.streams:
        if stream != "*" and stream not in config.names:
            yield Problem(f"{at}.streams", stream, f"no source feeds it; there are: {', '.join(config.names)}")
    if not alert.streams:
        yield Problem(f"{at}.streams", None, 'is empty: name streams, or "*" for all')
    if alert.hold < 0 or alert.hold > 36500 * 86_400_000_000:
        yield Problem(f"{at}.for", int(alert.hold), "expected 0 to 36500d")
    yield from _absence(alert, at) if alert.absent is not None else _threshold(config, alert, at)


def _absence(alert: AlertConfig, at: str) -> Iterator[Problem]:
    if alert.absent is not None and not 1_000_000 <= alert.absent <= 36500 * 86_400_000_000:
        yield Problem(f"{at}.absent", int(alert.absent), "expected 1s to 36500d without a reading")
    for key in ("window", "aggregate", "above", "below", "clear", "per"):
        if getattr(alert, key) is not None:
            yield Problem(f"{at}.{key}", getattr(alert, key), "an alert on absence has no threshold: leave it out")
    if alert.hold:
        yield Problem(f"{at}.for", int(alert.hold), "`absent` says how long already: leave it out")


def _threshold(config: Config, alert: AlertConfig, at: str) -> Iterator[Problem]:
    window = next((window for window in config.windows if window.name == alert.window), None)
    if window is None:
        names = ", ".join(each.name for each in config.windows) or "none"
        yield Problem(f"{at}.window", alert.window, f"expected one of the windows ({names}), or `absent`")
        return
    asked = window.aggregates
    if alert.aggregate is None and len(asked) > 1:
        yield Problem(f"{at}.aggregate", None, f"is required, as the window has several: {', '.join(asked)}")
    elif alert.aggregate is not None and alert.aggregate not in asked:
        yield Problem(f"{at}.aggregate", alert.aggregate, f"the window asks: {', '.join(asked)}")
    elif _PARTS.match(alert.aggregate or asked[0]):
        yield Problem(f"{at}.aggregate", alert.aggregate or asked[0], "has parts: no one number to compare")
    streams = [stream for stream in config.names if alert.covers(stream) and window.covers(stream)]
    if not streams:
        yield Problem(f"{at}.streams", ", ".join(alert.streams), f"window {window.name} is asked of none of them")
    yield from _limits(alert, at)


def _limits(alert: AlertConfig, at: str) -> Iterator[Problem]:
    if (alert.above is None) == (alert.below is None):
        yield Problem(f"{at}.above", alert.above, "expected exactly one of `above` and `below`")
        return
    for key in ("above", "below", "clear"):
        value = getattr(alert, key)
        if value is not None and not isfinite(value):
            yield Problem(f"{at}.{key}", value, "expected a finite number")
    if alert.clear is not None and alert.above is not None and alert.clear > alert.above:
        yield Problem(f"{at}.clear", alert.clear, f"expected at most `above` ({alert.above}): where the alert ends")
    if alert.clear is not None and alert.below is not None and alert.clear < alert.below:
        yield Problem(f"{at}.clear", alert.clear, f"expected at least `below` ({alert.below}): where the alert ends")
    if alert.per is not None and not 1_000 <= alert.per <= 36500 * 86_400_000_000:
        yield Problem(f"{at}.per", int(alert.per), "expected 1ms to 36500d: the length over which a change is taken")
