"""Which source reads a topic, and which streams it feeds there: found once a topic, kept for those heard of lately.

Whatever of a topic or payload becomes a name passes the rules for names first: its length, its characters, and what the
configuration lets in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import field, structs

from sluicegate_agent.config.formats import payload_of
from sluicegate_agent.config.sources import SourceConfig, used_levels
from sluicegate_agent.messages import NotLetIn
from sluicegate_agent.naming.names import flaw_of_key, full_name
from sluicegate_agent.naming.templates import Template, key_template

if TYPE_CHECKING:
    from sluicegate_agent.config import Config

#: Routes that are kept ready at least, else as many as there may be keys; bytes of one, with what is known beside it.
READY_LEAST = 256
ROUTE_OBJECTS = 2048
#: Characters of a tag's value, and bytes of a topic, at most.
TAG_MOST = 256
TOPIC_MOST = 1024
_NAME = re.compile(r"\w[\w.\-]{0,63}", re.ASCII)
#: No tags, the same for all routes.
_NONE: dict[str, Any] = {}
#: Between topic and key of a sender: no level that becomes a name has control characters.
SENDER = "\x1f"


class Route(SourceConfig, frozen=True, kw_only=True):
    """One topic of a source: its streams by full name, or by name alone where the payload has the key.

    `origin`: the source's topic as it is configured; `configured`: that source. `unfilled`: the key, where places of it
    are in the payload.
    `told`: the tags that are known; `asked`: those that the payload has.
    `is_member`: its streams come as they are heard of.
    """

    origin: str
    configured: SourceConfig
    speaker: str = ""
    unfilled: Template | None = None
    told: dict[str, str] = field(default_factory=dict)
    asked: dict[str, Template] = field(default_factory=dict)
    is_member: bool = True

    def key_at(self, at: Callable[[str], str]) -> str:
        """The key of one item of a payload, `at` giving texts of it. Raises NotLetIn."""
        key = self.unfilled.fill({}, at) if self.unfilled else ""
        return _let_in(key, self.keys.allow)

    def named(self, key: str) -> Iterator[tuple[str, str]]:
        """The streams of a key that the payload gave, with the paths of their values."""
        return ((full_name(self.speaker, name, key), path) for name, path in self.streams.items())

    def sender(self, key: str) -> str:
        """Whose messages these are: what numbers and contents are held against."""
        return f"{self.topic}{SENDER}{key}" if self.sequence_per == "key" else self.topic


class Routes:
    """The sources of a configuration, by topic."""

    def __init__(self, config: Config) -> None:
        self._device = config.device.id
        self._fixed = {source.topic: source for source in config.sources if not source.is_plant}
        self._fixed |= {topic: _tagged(source) for topic, source in self._fixed.items() if source.tags}
        self._horizons = {source.subscribed: config.horizon_of(source) for source in config.plants}
        self._plants = [(source.filter, source) for source in config.plants]
        self._ready: dict[str, SourceConfig] = {}
        self._most = ready_most(config)

    def find(self, topic: str) -> SourceConfig | None:
        """The source of a topic, as it is there; None where no source reads it. Raises NotLetIn."""
        found = self._fixed.get(topic)
        if found is None and self._plants:
            found = self._ready.pop(topic, None)
            if found is None:
                return self._found(topic)
            self._ready[topic] = found  # the newest is last
        return found

    def _found(self, topic: str) -> SourceConfig | None:
        for filter, source in self._plants:
            values = filter.match(topic)
            if values is not None:
                route = self._route(source, topic, values)
                self._ready[topic] = route
                if len(self._ready) > self._most:
                    del self._ready[next(iter(self._ready))]
                return route
        return None

    def _route(self, source: SourceConfig, topic: str, values: tuple[str, ...]) -> Route:
        if any(not value.isprintable() or "{" in value or "}" in value for value in values):
            raise NotLetIn("a level of its topic has characters that no name may have")
        if len(topic) > TOPIC_MOST:
            raise NotLetIn(f"its topic is longer than {TOPIC_MOST} characters")
        names = source.filter.names
        levels = {name: value for name, value in zip(names, values, strict=True) if name is not None}
        speaker = self._speaker(source, levels)
        streams = {_stream(name, levels): path for name, path in source.streams.items()}
        key, unfilled = _key(source, topic, levels, values)
        if unfilled is None:
            streams = {full_name(speaker, name, key): path for name, path in streams.items()}
        route = _route(source, topic, streams, levels, speaker=speaker, unfilled=unfilled)
        return structs.replace(route, horizon=self._horizons[source.subscribed])

    def _speaker(self, source: SourceConfig, levels: dict[str, str]) -> str:
        if source.device is None:
            return ""
        device = Template(source.device).fill(levels)
        if not _NAME.fullmatch(device) or not _pattern(source.devices or ".*").fullmatch(device):
            raise NotLetIn(f"device {device[:64]!r} is not among those that `devices` lets in")
        if device == self._device:
            raise NotLetIn(f"device {device!r} is this agent's own: it has streams of its own")
        return device


def ready_most(config: Config) -> int:
    """So many topics' routes are kept ready, those heard of lately: as many as senders are; none without a plant."""
    return max(READY_LEAST, sum(source.keys.most for source in config.plants)) if config.plants else 0


def _stream(name: str, levels: dict[str, str]) -> str:
    if "{" not in name:
        return name
    filled = Template(name).fill(levels)
    if not _NAME.fullmatch(filled):
        raise NotLetIn(f"{filled[:64]!r} can be no stream's name")
    return filled


def _key(
    source: SourceConfig, topic: str, levels: dict[str, str], values: tuple[str, ...]
) -> tuple[str, Template | None]:
    """The key that the topic gives; or its template where the payload has some of it."""
    if source.key is None:
        key_of = payload_of(source.format).key_of
        key = key_of(topic) if key_of else "/".join(rest(source, values))
        return (_let_in(key, source.keys.allow) if key else ""), None
    template = key_template(source.key)
    filled = template.fill(levels)
    if template.paths:
        return "", Template(filled)
    return _let_in(filled, source.keys.allow), None


def rest(source: SourceConfig, values: tuple[str, ...]) -> list[str]:
    """Of each wildcard's value, those that no other name is made of: together they are the key where none is given."""
    used = used_levels(source)
    return [value for name, value in zip(source.filter.names, values, strict=True) if name is None or name not in used]


def _let_in(key: str, allow: str | None) -> str:
    flaw = flaw_of_key(key)
    if not flaw and allow is not None and not _pattern(allow).fullmatch(key):
        flaw = "keys.allow does not let it in"
    if flaw:
        raise NotLetIn(f"key {key[:64]!r}: {flaw}")
    return key


@cache
def _pattern(expression: str) -> re.Pattern[str]:
    return re.compile(expression)


def _tagged(source: SourceConfig) -> Route:
    """A source of one topic and fixed streams that has tags."""
    return structs.replace(_route(source, source.topic, source.streams, {}), is_member=False)


def _route(
    source: SourceConfig,
    topic: str,
    streams: dict[str, str],
    levels: dict[str, str],
    *,
    speaker: str = "",
    unfilled: Template | None = None,
) -> Route:
    kept = {name: getattr(source, name) for name in SourceConfig.__struct_fields__}
    templates = {name: Template(value) for name, value in source.tags.items()}
    told = {name: each.fill(levels)[:TAG_MOST] for name, each in templates.items() if not each.paths}
    asked = {name: Template(each.fill(levels)) for name, each in templates.items() if each.paths}
    kept |= {"subscribed": topic, "streams": streams}
    kept |= {"origin": source.subscribed, "configured": source, "told": told or _NONE, "asked": asked or _NONE}
    return Route(**kept, speaker=speaker, unfilled=unfilled)
