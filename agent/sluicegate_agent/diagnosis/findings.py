"""What `sluicegate doctor FILE` looks at for an agent: each finding with a remedy of one line.

It connects to the broker and the target as far as their greeting, under a name of its own, and changes nothing.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from sluicegate_agent.config.units import Duration, show_size

if TYPE_CHECKING:
    from sluicegate_agent.config import Config

_PATIENCE = 5.0
_DAY = 86_400
#: A certificate that ends within so many days is told.
_SOON = 30


class Look(NamedTuple):
    """One thing looked at, as the doctor shows it: "ok", "missing" (it limits) or "broken"."""

    name: str
    status: str
    detail: str
    purpose: str
    remedy: str = ""


def findings(file: Path) -> Iterator[Look]:
    """All of them for a configuration file; one alone where that cannot be used."""
    from sluicegate_agent.config import ConfigError, load

    try:
        config = load(file)
    except ConfigError as error:
        yield Look("configuration", "broken", str(error), "an agent", f"sluicegate check {file}")
        return
    yield Look("configuration", "ok", config.told, "an agent")
    parts = (_state, _damage, _disk, _memory, _clock, _certificates, _broker, _target, _listener)
    for part in parts:
        yield from part(config)


def _state(config: Config) -> Iterator[Look]:
    """The folder, or the one that it would be made in, belongs to a user that may write there."""
    folder = config.state.path
    there = next(path for path in (folder, *folder.parents) if path.exists())
    good = os.access(there, os.W_OK | os.X_OK) and there.is_dir()
    remedy = f"chown the folder to the agent's user, or run this as that user: {there}"
    yield Look("state.path", "ok" if good else "broken", str(folder), "everything durable", "" if good else remedy)


def _damage(config: Config) -> Iterator[Look]:
    """The store is whole now, and was until now."""
    from sluicegate_agent.errors import EnvironmentRefused
    from sluicegate_agent.state.status import look_for_damage
    from sluicegate_agent.state.store import DATABASE

    if not (config.state.path / DATABASE).exists():
        return
    try:
        found = look_for_damage(config.state.path)
    except EnvironmentRefused as error:
        yield Look("state", "broken", str(error), "what waits, windows", "start the agent, then replace the card")
        return
    told = ", ".join(f"{name} {count:,}" for name, count in found.items())
    detail = f"was damaged and repaired: {told}" if found else "whole"
    remedy = "replace the card: one that damages a store once does it again" if found else ""
    yield Look("state", "missing" if found else "ok", detail, "what waits, windows", remedy)


def _disk(config: Config) -> Iterator[Look]:
    from sluicegate_agent.plan import plan
    from sluicegate_agent.state.store import bytes_on_disk, disk_free

    folder = config.state.path
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free, used, most = disk_free(there), bytes_on_disk(folder) if folder.exists() else 0, plan(config).disk
    good = free >= most - used
    detail = f"{show_size(free)} free, {show_size(max(0, most - used))} more may be needed"
    remedy = "" if good else "make room, or lower outbox.bytes and the windows' buckets (sluicegate plan shows which)"
    yield Look("disk", "ok" if good else "broken", detail, "the state at its worst", remedy)


def _memory(config: Config) -> Iterator[Look]:
    from sluicegate_agent.plan import plan

    most, budget = plan(config).memory, int(config.state.memory)
    free = _available()
    if most > budget:
        yield Look(
            "memory", "broken", f"{show_size(most)} planned, state.memory is {show_size(budget)}", "the agent",
            "raise state.memory, or ask for less: sluicegate plan shows every part",
        )  # fmt: skip
        return
    short = free is not None and free < most
    detail = f"{show_size(most)} planned" + (f", {show_size(free)} available now" if free is not None else "")
    remedy = "end what takes the board's memory, or ask for less" if short else ""
    yield Look("memory", "missing" if short else "ok", detail, "the agent at its worst", remedy)


def _available() -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError), Path("/proc/meminfo").open() as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    return None


def _clock(config: Config) -> Iterator[Look]:
    """The clock is not before what was written by it."""
    newest = max((path.stat().st_mtime for path in _files(config.state.path)), default=0.0)
    behind = newest - time.time()
    if behind > _DAY:
        detail = f"{behind / _DAY:.1f} days behind what the state was written at"
        yield Look("clock of the state", "broken", detail, "times of readings", "timedatectl set-ntp true, and wait")
    synchronised = Path("/run/systemd/timesync/synchronized")
    if synchronised.parent.exists():
        good = synchronised.exists()
        detail = "set by the network" if good else "not set by the network since the start"
        remedy = "" if good else "timedatectl set-ntp true; a board without a clock chip: guard.clock_chip = false"
        yield Look("clock synchronised", "ok" if good else "missing", detail, "times of readings", remedy)


def _files(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return [path for path in folder.iterdir() if path.is_file()]
    return []


def _certificates(config: Config) -> Iterator[Look]:
    """The ends of the certificates that the configuration names."""
    files = {
        "mqtt.tls.ca_file": config.mqtt.tls.ca_file,
        "mqtt.tls.cert_file": config.mqtt.tls.cert_file,
        "sync.tls.ca_file": config.sync.tls.ca_file,
        "sync.tls.pin_file": config.sync.tls.pin_file,
        "alerts.ca_file": config.alerts.ca_file,
    }
    for key, path in files.items():
        if path is not None:
            yield _certificate(key, path)


def _certificate(key: str, path: Path) -> Look:
    import ssl

    decode = getattr(getattr(ssl, "_ssl", None), "_test_decode_cert", None)  # the only reader Python has of a file
    if decode is None:
        return Look(key, "missing", f"{path}: this Python cannot tell when it ends", "TLS", "openssl x509 -enddate")
    try:
        return _ending(key, decode(str(path)))
    except (OSError, ValueError) as error:
        return Look(key, "broken", f"{path}: {error}", "TLS", "give a certificate in PEM")


def _ending(key: str, found: dict[str, Any]) -> Look:
    import ssl

    end = ssl.cert_time_to_seconds(str(found["notAfter"]))
    left = (end - time.time()) / _DAY
    # Not fromtimestamp: the C library's time of a 32-bit board ends in 2038, that of authorities does not.
    until = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=end)).strftime("%Y-%m-%d")
    if left < 0:
        return Look(key, "broken", f"ended on {until}", "TLS", "renew the certificate; is the clock right?")
    soon = left < _SOON
    return Look(key, "missing" if soon else "ok", f"ends on {until}", "TLS", "renew it in time" if soon else "")


def _broker(config: Config) -> Iterator[Look]:
    mqtt = config.mqtt
    if not config.uses_broker:
        return
    place = f"{mqtt.host}:{mqtt.actual_port}"
    yield (reached := _reached("broker", mqtt.host, mqtt.actual_port, "readings", "mqtt.host and mqtt.port"))
    if reached.status == "ok":
        yield from _greeting(config, place)


def _reached(name: str, host: str, port: int, purpose: str, keys: str) -> Look:
    try:
        with socket.create_connection((host, port), _PATIENCE):
            return Look(name, "ok", f"{host}:{port} answers", purpose)
    except OSError as error:
        remedy = f"start it, open the way to it, or correct {keys}"
        return Look(name, "broken", f"{host}:{port}: {error.strerror or error}", purpose, remedy)


def _greeting(config: Config, place: str) -> Iterator[Look]:
    """What the broker says of itself when we connect, under another name than the agent's."""
    import threading

    from msgspec.structs import replace

    from sluicegate_agent.errors import EnvironmentRefused
    from sluicegate_agent.link.options import client_id, client_of

    answered = threading.Event()
    said: dict[str, Any] = {}
    trial = replace(
        config, mqtt=replace(config.mqtt, client_id=f"{client_id(config)[:50]}-doctor", session_expiry=Duration(0))
    )
    try:
        client = client_of(trial)
    except EnvironmentRefused as error:
        yield Look("broker's greeting", "broken", str(error), "readings", "correct the file or variable")
        return

    def connected(_c: Any, _u: Any, _f: Any, reason: Any, properties: Any) -> None:
        said["reason"], said["properties"] = reason, properties
        answered.set()

    client.on_connect = connected
    try:
        client.connect(config.mqtt.host, config.mqtt.actual_port, 10)
        end = time.monotonic() + _PATIENCE
        while not answered.is_set() and time.monotonic() < end:
            client.loop(0.2)
        client.disconnect()
        client.loop(0.1)
    except (OSError, ValueError) as error:
        yield Look("broker's greeting", "broken", f"{place}: {error}", "readings", "is TLS as the broker expects it?")
        return
    yield from _judged(said, config)


def _judged(said: dict[str, Any], config: Config) -> Iterator[Look]:
    reason = said.get("reason")
    if reason is None:
        yield Look("broker's greeting", "broken", f"none in {_PATIENCE:.0f} s", "readings", "is it an MQTT broker?")
        return
    if reason.is_failure:
        remedy = "correct mqtt.username and its password, or the broker's access rules"
        yield Look("broker's greeting", "broken", f"it refuses us: {reason}", "readings", remedy)
        return
    properties = said.get("properties")
    largest = getattr(properties, "MaximumPacketSize", None)
    keep = getattr(properties, "SessionExpiryInterval", None)
    detail = "it takes us" + (f", packets up to {show_size(largest)}" if largest else "")
    yield Look("broker's greeting", "ok", detail, "readings")
    if (
        any(source.is_shared for source in config.sources)
        and getattr(properties, "SharedSubscriptionAvailable", 1) == 0
    ):
        yield Look("shared topics", "broken", "it has none", "readings", "subscribe to the topic without $share/…")
    if keep is not None and keep < config.mqtt.session_expiry.seconds:
        detail = f"it keeps a session for {keep} s at most"
        yield Look("broker's session", "missing", detail, "readings while away", "raise its limit for sessions")


def _target(config: Config) -> Iterator[Look]:
    if config.sync.target == "directory" and config.sync.path is not None:
        good = config.sync.path.is_dir() and os.access(config.sync.path, os.W_OK)
        remedy = "" if good else "mount or make the folder, writable for the agent's user"
        yield Look("sync.path", "ok" if good else "broken", str(config.sync.path), "documents", remedy)
        return
    if config.sync.target == "none":
        return
    from sluicegate_agent.config.credentials import resolved

    try:
        parts = urlsplit(resolved(config.sync).url or "")
    except ValueError as error:
        yield Look(
            "sync", "broken", f"sync.credentials_file: {error}", "documents", "give the file that was provisioned"
        )
        return
    if parts.hostname:
        usual = {"https": 443, "http": 80, "wss": 443, "ws": 80, "couchbases": 11207, "couchbase": 11210}
        port = parts.port or usual.get(parts.scheme, 443)
        yield _reached("target", parts.hostname, port, "documents", "sync.url")


def _listener(config: Config) -> Iterator[Look]:
    from sluicegate_agent.errors import EnvironmentRefused
    from sluicegate_agent.lock import holder

    metrics = config.metrics
    if metrics.listen is None:
        return
    from sluicegate_agent.web.access import Access

    try:
        Access(metrics)
    except EnvironmentRefused as error:
        yield Look("metrics.token_file", "broken", str(error), "the listener", "openssl rand -hex 32 makes a token")
    if metrics.port is None:
        return
    running = config.state.path.exists() and holder(config.state.path) is not None
    served = _reached("listener", metrics.host, metrics.port, "metrics", "metrics.listen").status == "ok"
    good = served == running
    detail = f"{metrics.listen}: {'answers' if served else 'is free'}"
    remedy = "" if good else "another process has the address" if served else "the agent runs without it: start it anew"
    yield Look("listener", "ok" if good else "broken", detail, "metrics, health", remedy)
