"""The format "sparkplug": what a source of it may be configured to, and what it takes."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from sluicegate_agent.config.formats import Finding, Payload
from sluicegate_agent.config.sources import SourceConfig
from sluicegate_agent.payloads.sparkplug.nodes import BIRTHS_KEPT
from sluicegate_agent.payloads.sparkplug.reading import read
from sluicegate_agent.payloads.sparkplug.session import Session
from sluicegate_agent.payloads.sparkplug.topics import SPACE

#: Its library, and the largest payload as objects (measured: 4.1 MiB and 90 bytes a metric of two bytes).
MEMORY = 8 << 20
#: What stands for a number, an epoch and a time.
_OWN = {"sequence": "seq", "epoch": "bdSeq", "time": "timestamp"}


def _implied(source: SourceConfig) -> SourceConfig:
    """Its number, epoch and time are the protocol's own."""
    own = {key: getattr(source, key) or value for key, value in _OWN.items()}
    form = "ms" if source.time_format == "iso8601" else source.time_format
    return structs.replace(source, **own, time_format=form)


def _findings(source: SourceConfig) -> Iterator[Finding]:
    levels = source.filter.levels
    if (
        levels[0] != SPACE
        or levels[-1] != "#"
        or len(levels) not in (2, 3, 4, 5)
        or (len(levels) > 3 and levels[2] != "+")
    ):
        remedy = f'expected whole nodes: "{SPACE}/#", "{SPACE}/group/#" or "{SPACE}/group/+/node/#"'
        yield Finding("topic", source.subscribed, remedy)
    for key, own in _OWN.items():
        if getattr(source, key) != own:
            yield Finding(key, getattr(source, key), "Sparkplug B has its own: leave it out")
    if source.time_format != "ms":
        yield Finding("time_format", source.time_format, "Sparkplug B has milliseconds: leave it out")
    if source.key is not None:
        yield Finding("key", source.key, "the key is group/node/device: leave it out")


def _key(topic: str) -> str:
    """Group, node and device: the type of a message tells no streams apart."""
    levels = topic.split("/")
    return "/".join([*levels[1:2], *levels[3:]])


def _is_value(name: str) -> bool:
    return 0 < len(name) <= 256 and name.isprintable()


SPARKPLUG = Payload(
    read,
    has_many=True,
    is_value=_is_value,
    findings=_findings,
    implied=_implied,
    key_of=_key,
    session=Session,
    module="google.protobuf",
    extra="sparkplug",
    memory=MEMORY,
    kept=256 * BIRTHS_KEPT,
)
