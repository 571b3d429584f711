"""Where a Kafka topic is, and how to connect: encrypted and verified unless the broker is on this machine."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from sluicegate.hosts import is_loopback
from sluicegate_cloud.errors import SinkError

#: A properties file of Kafka's clients: credentials, trust store, protocol. No password is an option.
CONFIG = "SLUICEGATE_KAFKA_CONFIG"
#: The topic of the note which version is there.
NOTES = ".published"
_EXPECTED = "expected kafka://HOST:PORT[,HOST:PORT]/TOPIC"
_URL = re.compile(r"kafka://(?P<hosts>[^/@\s]+)/(?P<topic>[A-Za-z0-9._-]+)")
_HOST = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:]+)\]|(?P<name>[A-Za-z0-9._-]+)):[0-9]+")
_LONGEST = 249 - len(NOTES)
#: Whatever the file says: a message counts once all replicas have it, and a retry of the client's makes no second one.
_SAFE = {"acks": "all", "enable.idempotence": "true"}
#: A broker that does not answer is told of within a minute or two.
_PATIENCE = {"default.api.timeout.ms": "30000", "request.timeout.ms": "20000", "max.block.ms": "30000"}


class Topic(NamedTuple):
    """A topic, its brokers, and Spark's options to reach them."""

    name: str
    told: str
    options: dict[str, str]

    @property
    def notes(self) -> str:
        """The topic of the note."""
        return self.name + NOTES


def topic_at(url: str, environment: Mapping[str, str] = os.environ) -> Topic:
    """The topic of a kafka:// URL. Raises SinkError for what is none, or would send a password in the clear."""
    found = _URL.fullmatch(url)
    hosts = [_HOST.fullmatch(host) for host in found["hosts"].split(",")] if found else []
    if not found or not all(hosts) or len(found["topic"]) > _LONGEST or set(found["topic"]) <= {"."}:
        raise SinkError(f"this is no place for windows: {_EXPECTED}; whose password it is belongs into {CONFIG}'s file")
    is_here = all(is_loopback(host["six"] or host["name"]) for host in hosts if host)
    told = _read(environment[CONFIG]) if environment.get(CONFIG) else {}
    protocol = told.get("security.protocol") or _protocol(is_here, "sasl.mechanism" in told)
    if protocol == "SASL_PLAINTEXT" and not is_here:
        raise SinkError(f"{url} would send the password in the clear: use security.protocol=SASL_SSL")
    known = {"bootstrap.servers": found["hosts"], "security.protocol": protocol}
    settings = {**_PATIENCE, **told, **known, **_SAFE}
    return Topic(found["topic"], url, {f"kafka.{name}": value for name, value in settings.items()})


def _protocol(is_here: bool, has_password: bool) -> str:
    return ("SASL_" if has_password else "") + ("PLAINTEXT" if is_here else "SSL")


def _read(path: str) -> dict[str, str]:
    """A file as Kafka's own commands read it: NAME=VALUE, # comments, a backslash that goes on in the next line."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SinkError(f"{CONFIG}: {path} cannot be read: {error}") from None
    lines = re.sub(r"\\\r?\n[ \t]*", "", text).splitlines()
    pairs = [line.strip().partition("=") for line in lines if line.strip() and line.strip()[0] not in "#!"]
    if wrong := [at for at, (_, sign, _) in enumerate(pairs, 1) if not sign]:
        raise SinkError(f"{CONFIG}: setting {wrong[0]} of {path} has no =: expected NAME=VALUE, as Kafka's clients do")
    return {name.strip(): value.strip() for name, _, value in pairs}
