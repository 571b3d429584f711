"""What people see of an agent, as tables of the configuration: its listener, results, alerts."""

from __future__ import annotations

from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from msgspec import field

from sluicegate.hosts import is_loopback
from sluicegate_agent.config.table import Table
from sluicegate_agent.config.units import Duration, Pace, Size
from sluicegate_agent.naming.names import base_of

_SECOND = 1_000_000
UNIX = "unix:"


class ListenConfig(Table, frozen=True):
    """Where a listener is, who may ask it, and how many at once; without `listen` there is none.

    `listen`: "127.0.0.1:9464", or "unix:/run/sluicegate.sock".
    """

    listen: str | None = None
    token_file: Path | None = None
    connections: int = 8

    @property
    def is_unix(self) -> bool:
        """Whether it listens on a socket of the file system."""
        return (self.listen or "").startswith(UNIX)

    @property
    def host(self) -> str:
        """The address without its port and brackets; empty for a Unix socket or where it cannot be read."""
        try:
            return "" if self.is_unix else urlsplit(f"//{self.listen or ''}").hostname or ""
        except ValueError:
            return ""

    @property
    def port(self) -> int | None:
        """The port; None where there is none."""
        try:
            return None if self.is_unix else urlsplit(f"//{self.listen or ''}").port
        except ValueError:
            return None

    @property
    def is_private(self) -> bool:
        """Whether only this machine can reach it."""
        return self.is_unix or is_loopback(self.host)


class MetricsConfig(ListenConfig, frozen=True):
    """[metrics]: the listener for metrics, health, answers and the page. `streams_most`: streams with own metrics."""

    streams_most: int = 100


class HttpConfig(ListenConfig, frozen=True):
    """[http]: the listener that takes readings by POST; `body`: bytes of one request at most."""

    connections: int = 4
    body: Size = Size(2**18)


class ResultsConfig(Table, frozen=True):
    """[results]: where answers are published; an empty topic publishes none.

    `every`: at most so often, or after each reading. `on_change`: only what differs from what was sent by more than
    `deadband`. `home_assistant`: the prefix under which each answer is described for it; empty: none.
    """

    topic: str = "sluicegate/{device}/results"
    every: Pace = Pace(_SECOND)
    qos: Literal[0, 1] = 0
    retain: bool = False
    on_change: bool = False
    deadband: float = 0.0
    home_assistant: str = ""

    @property
    def answers_each(self) -> bool:
        """Whether each reading is answered."""
        return self.every.is_each and bool(self.topic)


class AlertConfig(Table, frozen=True):
    """[[alert]]: what of a window's answers, or of a stream's silence, somebody has to be told.

    `on`: what is compared: the value or an end of its interval. `clear`: where a raised alert ends (default: at the
    threshold). `hold` (`for` in the file): how long it has to be so, in the stream's own time. `per`: not the answer is
    compared but how much it changed in so long. `absent`: no reading for so long, by the board's clock.
    """

    name: str
    window: str | None = None
    streams: tuple[str, ...] = ("*",)
    aggregate: str | None = None
    above: float | None = None
    below: float | None = None
    on: Literal["value", "low", "high"] = "value"
    clear: float | None = None
    hold: Duration = field(name="for", default=Duration(0))
    per: Duration | None = None
    absent: Duration | None = None

    def covers(self, stream: str) -> bool:
        """Whether this alert is about the stream."""
        return "*" in self.streams or stream in self.streams or base_of(stream) in self.streams


class AlertsConfig(Table, frozen=True):
    """[alerts]: where messages of alerts go, and how many wait at most for those that take them."""

    topic: str = "sluicegate/{device}/alerts/{alert}/{stream}"
    retain: bool = True
    queue: int = 256
    webhook: str | None = None
    token_file: Path | None = None
    ca_file: Path | None = None
    timeout: Duration = Duration(10 * _SECOND)

    @property
    def uses_tls(self) -> bool:
        """Whether the webhook is reached by TLS."""
        return urlsplit(self.webhook or "").scheme == "https"
