"""[[source]]: topics, how their messages are read, and which streams they feed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from msgspec import field

from sluicegate_agent.config.table import Table
from sluicegate_agent.config.units import Duration
from sluicegate_agent.naming.names import base_of, device_of, key_of
from sluicegate_agent.naming.templates import Template
from sluicegate_agent.naming.topics import Filter

#: Messages remembered of one sender where a source has many, unless it says otherwise.
HORIZON_OF_MANY = 512


class KeysConfig(Table, frozen=True):
    """`keys` of a source: how many there may be, what happens to one more, and which are let in (a regular expression).

    `evict`: the one that was "oldest" heard of first, or "lru", heard of least lately, makes room; "refuse": none does.
    """

    most: int = 100
    evict: Literal["refuse", "oldest", "lru"] = "refuse"
    allow: str | None = None


class ValueConfig(Table, frozen=True):
    """[source.values.STREAM]: what becomes of its values before any window: (value + plus) · scale + offset, in `unit`.

    `plus`: path of another value in the same message → its coefficient. Below `min` or above `max` a value is refused,
    or is the limit itself ("clip"). `deadband`: what differs from the last one that counted by no more is passed over;
    `every`: so is what comes sooner after it, in the stream's time. `with`: path of a second value of each reading, as
    it is in the message, for the covariance of both.
    """

    scale: float = 1.0
    offset: float = 0.0
    plus: dict[str, float] = field(default_factory=dict)
    unit: str = ""
    min: float | None = None
    max: float | None = None
    outside: Literal["refuse", "clip"] = "refuse"
    deadband: float | None = None
    every: Duration | None = None
    second: str | None = field(name="with", default=None)

    @property
    def remembers(self) -> bool:
        """Whether the last value that counted decides about the next."""
        return self.deadband is not None or self.every is not None


class SourceConfig(Table, frozen=True):
    """[[source]]: topics, how their messages are read, and the streams they feed (stream name → path of the value).

    `subscribed`: as in the file, perhaps `$share/group/topic`, with `{name}` where a level of the topic has a name.
    `input`: where its messages come from, by its name in config/inputs.py, with the `options` of that; of "tail" the
    lines of `file`. `format`: by its name in config/formats.py.
    `sequence_in`: whether a list or each item has the number. `key`: what tells the streams of one name apart, a path
    in the payload or a template; `device`: a template, too.
    """

    subscribed: str = field(name="topic")
    streams: dict[str, str]
    input: str = "mqtt"
    file: Path | None = None
    options: Any = field(default_factory=dict)
    format: str = "json"
    items: str = ""
    time: str | None = None
    time_format: Literal["iso8601", "s", "ms", "us", "ns"] = "iso8601"
    sequence: str | None = None
    sequence_in: Literal["item", "message"] = "item"
    epoch: str | None = None
    resolution: Duration | None = None
    sequence_per: Literal["key", "topic"] = "key"
    horizon: int | None = None
    key: str | None = None
    keys: KeysConfig = KeysConfig()
    device: str | None = None
    devices: str | None = None
    tags: dict[str, str] = field(default_factory=dict)
    values: dict[str, ValueConfig] = field(default_factory=dict)

    @property
    def clock_step(self) -> int | None:
        """µs of a step of the sensor's clock, as told or as its format says; None: to be seen from its times."""
        if self.resolution is None and self.time_format in ("ms", "us", "ns"):
            return 0
        return None if self.resolution is None else int(self.resolution)

    @property
    def topic(self) -> str:
        """The topic that its messages come with: of a shared subscription, what stands behind the group."""
        return self.filter.path if self.subscribed.startswith("$share/") else self.subscribed

    @property
    def filter(self) -> Filter:
        """The topics that it reads."""
        return Filter(self.subscribed)

    @property
    def is_plant(self) -> bool:
        """Whether its streams come as they are heard of: by topic, by key, or for several devices."""
        return self.key is not None or self.device is not None or self.filter.is_wild

    @property
    def is_shared(self) -> bool:
        """Whether the broker deals the topic's messages out among the members of a group."""
        return self.subscribed.startswith("$share/") and self.subscribed.count("/") >= 2


def may_feed(source: SourceConfig, stream: str) -> bool:
    """Whether a stream of this full name may be one of a source's: by its device, its name and whether it has a key."""
    if bool(device_of(stream)) != (source.device is not None) or (source.key is not None and not key_of(stream)):
        return False
    base = base_of(stream)
    return any(base == name or ("{" in name and Template(name).fits(base)) for name in source.streams)


def used_levels(source: SourceConfig) -> set[str]:
    """The levels of the topic that become the device or a stream's name."""
    templates = [source.device or "", *source.streams]
    return {level for each in templates for level in Template(each).levels}
