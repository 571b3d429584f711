"""Bounds the keys of each source: which streams there are, which one makes room, and which are not let in."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from sluicegate_agent.config.sources import SourceConfig, may_feed
from sluicegate_agent.naming.names import base_of, device_of, key_of
from sluicegate_agent.routing.routes import Route
from sluicegate_agent.streams import Stream

if TYPE_CHECKING:
    from sluicegate_agent.config import Config

log = logging.getLogger("sluicegate.plant")
#: Keys that were refused and are named in the status, of each source.
NAMED = 20


class Keys:
    """The keys of one source in the order in which one of them would make room, each with its streams."""

    def __init__(self, source: SourceConfig) -> None:
        self.source = source
        self.most, self.evict = source.keys.most, source.keys.evict
        self.streams: OrderedDict[str, list[str]] = OrderedDict()
        self.refused: dict[str, int] = {}
        self._by_name = any("{" in name for name in source.streams)

    def key(self, stream: str) -> str:
        """What of a stream's name counts as its key: device and key, and the name where the topic gives it."""
        parts = (device_of(stream), base_of(stream) if self._by_name else "", key_of(stream))
        return "/".join(part for part in parts if part)

    def add(self, stream: str) -> None:
        """It is there."""
        self.streams.setdefault(self.key(stream), []).append(stream)

    def heard(self, stream: str) -> None:
        """It has a reading."""
        if self.evict == "lru":
            self.streams.move_to_end(self.key(stream))

    def refuse(self, key: str) -> bool:
        """Count a reading of a key that there is no room for; whether the key is refused for the first time."""
        is_first = key not in self.refused
        if is_first and len(self.refused) >= NAMED:
            return False
        self.refused[key] = self.refused.get(key, 0) + 1
        return is_first


def _began(stream: Stream) -> tuple[str, int]:
    return stream.incarnation, stream.number  # other tags are another number


def _newest(stream: Stream) -> int:
    """Its newest reading's time: no row has when it was heard of last."""
    newest = stream.builder.newest if stream.builder else None
    return -(1 << 62) if newest is None else newest


class Members:
    """Which streams are there; `leave` is told of those that make room for others."""

    def __init__(self, config: Config, streams: Iterable[Stream], leave: Callable[[str], None]) -> None:
        self._keys = {source.subscribed: Keys(source) for source in config.plants}
        self._leave = leave
        there = sorted(streams, key=_began) if self._keys else []
        of = {stream.name: self._keys_of(stream.name) for stream in there}
        for stream in there:
            if (keys := of[stream.name]) is not None:
                keys.add(stream.name)
        for stream in sorted(there, key=_newest):
            if (keys := of[stream.name]) is not None:
                keys.heard(stream.name)

    def _keys_of(self, stream: str) -> Keys | None:
        return next((each for each in self._keys.values() if may_feed(each.source, stream)), None)

    def may_have_left(self, route: Route) -> bool:
        """Whether keys of a source make room for others."""
        return self._keys[route.origin].evict != "refuse"

    def refuses(self, route: Route, stream: str) -> str:
        """Why there is no room for a stream; empty where there is, or would be if another one left."""
        keys = self._keys[route.origin]
        return self._refused(keys, keys.key(stream)) if self.is_full_for(route, stream) else ""

    def is_full_for(self, route: Route, stream: str) -> bool:
        """Whether a stream is not there, and none may make room for it."""
        keys = self._keys[route.origin]
        return keys.evict == "refuse" and len(keys.streams) >= keys.most and keys.key(stream) not in keys.streams

    def room_for(self, route: Route, stream: str) -> str:
        """Make room for a stream that is not there, and note it; or why it cannot be there."""
        if why := self.refuses(route, stream):
            return why
        keys = self._keys[route.origin]
        if keys.key(stream) not in keys.streams:
            while len(keys.streams) >= keys.most:  # several, where an earlier configuration let in more
                self._make_room(keys)
        keys.add(stream)
        return ""

    def _refused(self, keys: Keys, key: str) -> str:
        reason = f"key {key}: there are {keys.most} keys (keys.most), and keys.evict is refuse"
        if keys.refuse(key):
            log.warning("source %s: %s; its readings are not counted", keys.source.subscribed, reason)
        return reason

    def _make_room(self, keys: Keys) -> None:
        key, streams = keys.streams.popitem(last=False)
        log.info("source %s: key %s makes room for another (keys.most)", keys.source.subscribed, key)
        for stream in streams:
            self._leave(stream)

    def heard(self, route: Route, stream: str) -> None:
        """A stream that is there has a reading."""
        self._keys[route.origin].heard(stream)

    def status(self) -> dict[str, dict[str, object]]:
        """By source: how many keys there are and may be, and which were refused how often."""
        return {
            source: {"keys": len(keys.streams), "most": keys.most, "refused": dict(keys.refused)}
            for source, keys in self._keys.items()
        }
