"""The contract of a payload's format, and the formats by name: each is imported when a configuration asks for it.

A package of others adds one by an entry point of the group `sluicegate.payloads`, whose object is a `Payload`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from sluicegate_agent.naming.plugins import UnknownName, found

if TYPE_CHECKING:
    import sqlite3

    from sluicegate_agent.config.model import LimitsConfig
    from sluicegate_agent.config.sources import SourceConfig
    from sluicegate_agent.messages import Decoded, Message

GROUP = "sluicegate.payloads"
#: Where the formats of this package are.
BUILT_IN = {
    "json": "sluicegate_agent.payloads.text:JSON",
    "array": "sluicegate_agent.payloads.text:ARRAY",
    "number": "sluicegate_agent.payloads.text:NUMBER",
    "cbor": "sluicegate_agent.payloads.concise:OBJECT",
    "cbor-array": "sluicegate_agent.payloads.concise:ARRAY",
    "msgpack": "sluicegate_agent.payloads.message_pack:OBJECT",
    "msgpack-array": "sluicegate_agent.payloads.message_pack:ARRAY",
    "sparkplug": "sluicegate_agent.payloads.sparkplug.format:SPARKPLUG",
    "line": "sluicegate_agent.payloads.line_protocol:LINE",
}


class Finding(NamedTuple):
    """What is wrong with a key of a source: its name, its value and what to do."""

    key: str
    value: Any
    remedy: str


def is_path(path: str) -> bool:
    """Whether a text is a path of 1 to 16 steps, such as "data.0.temp"."""
    steps = path.split(".")
    return len(path) <= 256 and len(steps) <= 16 and all(steps)


def _as_it_is(source: SourceConfig) -> SourceConfig:
    return source


def _no_findings(source: SourceConfig) -> Iterator[Finding]:
    yield from ()


class Session(Protocol):
    """What was said before by the senders of a format: durable in the commits that count by it."""

    def resolve(self, source: SourceConfig, message: Message, limits: LimitsConfig) -> Message | None:
        """A message that needs nothing any more; None: it says nothing to count. Raises Unreadable."""

    def connected(self, *, session_present: bool) -> None:
        """A new connection to the broker."""

    def commands(self, publish: Callable[[str, bytes], bool]) -> None:
        """Publish what senders are asked for; what is not taken waits."""

    @property
    def changed(self) -> bool:
        """Whether anything waits for the commit."""

    def save(self, connection: sqlite3.Connection) -> None:
        """Write what changed, inside the caller's transaction."""

    def saved(self) -> None:
        """The transaction is durable."""


class Payload(NamedTuple):
    """One format. `read` gives a message's readings, and raises nothing but Unreadable, whatever the bytes are.

    It is a function of the source and the bytes alone: a message that waits is read again, after a restart too.
    The bytes are no more than `limits.payload`; whatever else it allocates it bounds by `limits.readings`.
    `parts`: where one message holds several that are known each for itself, their bytes; each is read by itself then.
    `has_fields`: a time, a key and the like can be in it. `has_many`: a message may have many readings of one stream.
    `has_items`: `items` says where. `is_value`: whether a text may say where a stream's value is.
    `findings`: what else is wrong with a source. `implied`: the source with what the format says of what is left out.
    `module`, `extra`: what has to be installed. `memory`: bytes that it takes once it is loaded.
    `session`: where messages need what was said before, makes what turns them into such that need nothing.
    `key_of`: the key of a topic. `kept`: bytes that are kept for each stream besides.
    """

    read: Callable[[SourceConfig, bytes, int, LimitsConfig], Decoded]
    parts: Callable[[SourceConfig, bytes, LimitsConfig], list[bytes]] | None = None
    has_fields: bool = True
    has_many: bool = False
    has_items: bool = False
    is_value: Callable[[str], bool] = is_path
    findings: Callable[[SourceConfig], Iterator[Finding]] = _no_findings
    implied: Callable[[SourceConfig], SourceConfig] = _as_it_is
    module: str = ""
    extra: str = ""
    memory: int = 0
    session: Callable[[sqlite3.Connection, Iterable[SourceConfig], Any], Session] | None = None
    key_of: Callable[[str], str] | None = None
    kept: int = 0


@cache
def payload_of(name: str) -> Payload:
    """The format of a name. Raises UnknownName, also where its library is not installed."""
    payload = found(name, Payload, GROUP, BUILT_IN)
    if payload.module and not _is_installed(payload.module):
        raise UnknownName(f'needs the package {payload.module}: pip install "sluicegate[{payload.extra}]"')
    return payload


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package that it would be in
        return False
