"""What an agent can be told: one frozen struct per table of the configuration file, with every default.

Times are microseconds (`Duration`), sizes bytes (`Size`), paths absolute once loaded. The commented twin of this module
is `sample.toml`; a test holds the two together.
"""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from msgspec import field
from msgspec.structs import asdict

from sluicegate.hosts import is_loopback
from sluicegate.windowing.spec import WindowSpec
from sluicegate_agent.config.aggregates import CARRIED, kind_of
from sluicegate_agent.config.broker import MqttConfig
from sluicegate_agent.config.linking import BudgetConfig
from sluicegate_agent.config.outward import AlertConfig, AlertsConfig, HttpConfig, MetricsConfig, ResultsConfig
from sluicegate_agent.config.sources import HORIZON_OF_MANY, SourceConfig, may_feed
from sluicegate_agent.config.table import Table
from sluicegate_agent.config.units import Duration, Share, Size
from sluicegate_agent.naming.names import base_of

_SECOND = 1_000_000
STAGING = 512  # of a staircase, the paper's buffer; the library's own is larger than a board's budget
_DAY = 86_400 * _SECOND


class DeviceConfig(Table, frozen=True):
    """[device]: who speaks."""

    id: str


class StateConfig(Table, frozen=True):
    """[state]: where everything durable lives, in what, and the budgets `run` refuses to exceed.

    `endurance`: bytes that the card takes before it wears out, for `plan` and `status` to tell in years.
    """

    path: Path
    store: Literal["sqlite", "couchbase-lite"] = "sqlite"
    memory: Size = Size(60 * 2**20)
    disk: Size = Size(96 * 2**20)
    endurance: Size = Size(10**13)


class CommitConfig(Table, frozen=True):
    """[commit]: how long an accepted message may wait for its commit (or half of receive_maximum messages).

    `fold`: how often at least the tables are written; between that commits append to the record. 0: with each commit.
    `profile`: what is left out means something else for a card that is to last (see `profiles`).
    """

    profile: Literal["usual", "low-wear"] = "usual"
    every: Duration = Duration(_SECOND)
    fold: Duration = Duration(3600 * _SECOND)


class IdentityConfig(Table, frozen=True):
    """[identity]: how many messages per source are remembered, to know one that comes again."""

    horizon: int = 4096


class GuardConfig(Table, frozen=True):
    """[guard]: what is later than the board's clock by more than `future` waits; 0 turns it off.

    Without a `clock_chip` the clock is wrong after a start until it is set: what has no time of its own waits for that,
    but no longer than `clock_wait`.
    """

    future: Duration = Duration(_DAY)
    clock_chip: bool = True
    clock_wait: Duration = Duration(600 * _SECOND)

    @property
    def unset_seconds(self) -> float:
        """For how long after a start the clock may be wrong."""
        return 0.0 if self.clock_chip else self.clock_wait.seconds


class HeldConfig(Table, frozen=True):
    """[held]: how much waits for a second message of its source, or for the board's clock; the oldest goes first."""

    rows: int = 2200
    bytes: Size = Size(256 * 2**10)


class PolicyConfig(Table, frozen=True):
    """`policy` of a window: exactly one of a length of time and a number of readings.

    `hop`: how far the window moves on at once, in the same unit. `up_to`: what cannot be the extreme any more leaves.
    """

    time: Duration | None = None
    count: int | None = None
    hop: int | str | None = None
    up_to: Literal["max", "min"] | None = None

    @property
    def step(self) -> int:
        """The hop in µs or readings, 1 where there is none; raises ValueError that says what is expected."""
        if self.hop is None:
            return 1
        if self.time is not None:
            return int(Duration.parse(self.hop))
        if not isinstance(self.hop, int):
            raise ValueError("expected a whole number of readings, as the policy counts")
        return self.hop


class SumLikeConfig(Table, frozen=True):
    """`sum_like` of a window: the error that a bucket may bring into a result, as a share of it, and a floor."""

    error: Share | None = None
    floor: float = 0.0
    of: str | tuple[str, ...] | None = None
    confidence: float = 0.95
    withhold: bool = False

    @property
    def definition(self) -> dict[str, Any]:
        """What kept buckets depend on: not whether a value is given out."""
        return {name: value for name, value in asdict(self).items() if name != "withhold"}


class MaxLikeConfig(Table, frozen=True):
    """`max_like` of a window: readings a block whose maxima say what may become the maximum.

    `staging`: so many of the newest buckets are decided late (0: none); `staircase`: without any estimate.
    """

    block: int | Literal["auto"] = "auto"
    confidence: float = 0.95
    staging: int | None = None
    staircase: bool = False

    @property
    def tail(self) -> int:
        """The most buckets of the staging tail, 0: there is none."""
        return self.staging if self.staging is not None else STAGING if self.staircase else 0

    @property
    def definition(self) -> dict[str, Any]:
        """What kept buckets depend on."""
        late = {"staging": self.tail} if self.tail else {}
        late |= {"staircase": True} if self.staircase else {}
        return {"block": self.block, "confidence": self.confidence} | late


class HopConfig(Table, frozen=True):
    """`hop` of a window: how sure a boundary is to lie among single readings; what is known of a hop's size."""

    confidence: float = 0.9999
    hint: int | None = None
    deviation: float = 0.0

    @property
    def definition(self) -> dict[str, Any]:
        """What kept buckets depend on."""
        return asdict(self)


class WindowConfig(Table, frozen=True):
    """[[window]]: a question asked of streams; `buckets` bounds its footprint, 0 does not (count windows only).

    What it is, `policy` says, or `kind` and the keys down to `partitions`: as `sg.WindowSpec` and the cloud read them.
    `merge` says how room is made: whole levels, or the neighbouring pair that adds least to the bound.
    `sum_like`, `max_like` and `hop` decide where a bucket ends; without them and without `buckets` it is exact.
    `shares`: a longer window, by name, from whose buckets this one is answered; it keeps none of its own then.
    `was`: the name it had before: what that one kept is this one's. `cloud`: what its aggregates need beyond a bucket's
    record is kept and sent too.
    """

    name: str
    policy: PolicyConfig = PolicyConfig()
    kind: str | None = None
    evict: dict[str, Any] | None = None
    trigger: dict[str, Any] | None = None
    partial: bool = True
    lateness: int | str | None = None
    aligned: str | None = None
    timezone: str | None = None
    key: str | tuple[str, ...] | None = None
    partitions: dict[str, Any] | None = None
    streams: tuple[str, ...] = ("*",)
    aggregate: str | tuple[str, ...] = "mean"
    buckets: int = 64
    merge: Literal["levels", "pairs"] = "levels"
    sum_like: SumLikeConfig | None = None
    max_like: MaxLikeConfig | None = None
    hop: HopConfig | None = None
    shares: str | None = None
    was: str | None = None
    cloud: bool = False

    @cached_property
    def aggregates(self) -> tuple[str, ...]:
        """The aggregates that the board answers, by name, one or several."""
        return tuple(name for name in self.named if kind_of(name) not in CARRIED)

    @property
    def named(self) -> tuple[str, ...]:
        """Those that the cloud alone answers too."""
        return (self.aggregate,) if isinstance(self.aggregate, str) else self.aggregate

    @property
    def spec(self) -> WindowSpec:
        """What it is, for the library and the cloud alike. Raises ConfigurationError where it is no window."""
        table = {name: getattr(self, name) for name in SPECIFIED if getattr(self, name) != _UNSAID[name]}
        if self.policy != PolicyConfig():
            table["policy"] = self._kept_policy()
        return WindowSpec.from_dict(table)

    @property
    def sliced(self) -> bool:
        """Whether its windows have ends: they go by event time and are kept in slices. `policy` says nothing then."""
        return self.kind is not None

    @property
    def triggered(self) -> int:
        """It is answered after so many readings; 0: when the agent asks."""
        return int((self.trigger or {}).get("count", 0)) if not self.sliced else 0

    def covers(self, stream: str) -> bool:
        """Whether this window is asked of the stream."""
        return "*" in self.streams or stream in self.streams or base_of(stream) in self.streams

    @cached_property
    def definition(self) -> str:
        """What the kept state depends on, as canonical JSON: a window whose definition changed is started anew."""
        if self.sliced:  # what is kept answers whatever is asked, and early results change nothing of it
            return json.dumps(self.spec.to_dict() | {"trigger": None}, sort_keys=True, separators=(",", ":"))
        kept: dict[str, Any] = {"aggregates": self.aggregates, "policy": self._kept_policy()}
        if self.shares is not None:
            kept |= {"buckets": 0, "shares": self.shares}
        else:
            kept |= {"buckets": self.buckets} | ({"merge": self.merge} if self.merge != "levels" else {})
        deciding = {"sum_like": self.sum_like, "max_like": self.max_like, "hop": self.hop}
        kept |= {name: each.definition for name, each in deciding.items() if each is not None}
        return json.dumps(kept, sort_keys=True, separators=(",", ":"))

    def _kept_policy(self) -> dict[str, Any]:
        policy = {name: value for name, value in asdict(self.policy).items() if value is not None}
        return policy | ({"hop": self.policy.step} if self.policy.hop is not None else {})


SPECIFIED = ("kind", "evict", "trigger", "partial", "lateness", "aligned", "timezone", "key", "partitions")
"""The keys that, beside `policy`, say what a window is."""
_UNSAID: dict[str, Any] = dict.fromkeys(SPECIFIED) | {"partial": True}


class BucketConfig(Table, frozen=True):
    """[bucket]: when the outbox's base bucket of a stream closes, whichever comes first."""

    readings: int = 16
    span: Duration = Duration(_DAY)


class OutboxConfig(Table, frozen=True):
    """[outbox]: the bound of what waits for the cloud, and the size and age at which a chunk is sealed."""

    rows: int = 20_000
    bytes: Size = Size(5 * 2**20)
    chunk_buckets: int = 256
    chunk_age: Duration = Duration(3600 * _SECOND)


class SyncTlsConfig(Table, frozen=True):
    """[sync.tls]: on by the URL; for another host than this machine turning it off has to be written here."""

    enabled: bool | None = None
    ca_file: Path | None = None
    pin_file: Path | None = None


class CouchbaseConfig(Table, frozen=True):
    """[sync.couchbase]: where in a Couchbase Server, and how durable a document is before it is acknowledged."""

    bucket: str = "telemetry"
    scope: str = "_default"
    collection: str = "_default"
    durability: Literal["none", "majority", "majority_and_persist_to_active", "persist_to_majority"] = "majority"


class CouchbaseLiteConfig(Table, frozen=True):
    """[sync.couchbase_lite]: how long acknowledged documents stay in the database of the target "couchbase-lite"."""

    keep: Duration = Duration(0)


class SyncConfig(Table, frozen=True):
    """[sync]: where sealed chunks go."""

    target: Literal["directory", "sync-gateway", "couchbase", "couchbase-lite", "none"] = "none"
    path: Path | None = None
    url: str | None = None
    credentials_file: Path | None = None
    username: str | None = None
    password_file: Path | None = None
    password_env: str | None = None
    auth: Literal["session", "basic"] = "session"
    timeout: Duration = Duration(30 * _SECOND)
    every: Duration = Duration(10 * _SECOND)
    tls: SyncTlsConfig = SyncTlsConfig()
    couchbase: CouchbaseConfig = CouchbaseConfig()
    couchbase_lite: CouchbaseLiteConfig = CouchbaseLiteConfig()
    budget: BudgetConfig = BudgetConfig()

    @property
    def uses_tls(self) -> bool:
        """Whether the URL asks for an encrypted connection."""
        return urlsplit(self.url or "").scheme in ("https", "wss", "couchbases")

    @property
    def is_loopback(self) -> bool:
        """Whether the URL's host is this machine (see sluicegate.hosts), so that nothing leaves it."""
        return is_loopback(urlsplit(self.url or "").hostname or "")


class AvailabilityConfig(Table, frozen=True):
    """[availability]: when windows keep fewer buckets because the target is away, and how far that goes."""

    away: Duration = Duration(3600 * _SECOND)
    backlog: Share = Share(0.5)
    back: Duration = Duration(600 * _SECOND)
    every: Duration = Duration(300 * _SECOND)
    floor: Share = Share(0.25)


class DeadLettersConfig(Table, frozen=True):
    """[dead_letters]: how much of what cannot be read is kept."""

    rows: int = 1000
    bytes_each: Size = Size(256)


class LimitsConfig(Table, frozen=True):
    """[limits]: what one message may ask of the agent."""

    payload: Size = Size(64 * 2**10)
    readings: int = 1024


class Config(Table, frozen=True):
    """A whole configuration, checked."""

    device: DeviceConfig
    state: StateConfig
    sources: tuple[SourceConfig, ...] = field(name="source")
    mqtt: MqttConfig = MqttConfig()
    commit: CommitConfig = CommitConfig()
    identity: IdentityConfig = IdentityConfig()
    guard: GuardConfig = GuardConfig()
    held: HeldConfig = HeldConfig()
    windows: tuple[WindowConfig, ...] = field(name="window", default=())
    bucket: BucketConfig = BucketConfig()
    outbox: OutboxConfig = OutboxConfig()
    sync: SyncConfig = SyncConfig()
    availability: AvailabilityConfig = AvailabilityConfig()
    dead_letters: DeadLettersConfig = DeadLettersConfig()
    results: ResultsConfig = ResultsConfig()
    alerts: AlertsConfig = AlertsConfig()
    alert: tuple[AlertConfig, ...] = ()
    metrics: MetricsConfig = MetricsConfig()
    http: HttpConfig = HttpConfig()
    limits: LimitsConfig = LimitsConfig()

    @cached_property
    def streams(self) -> tuple[str, ...]:
        """The names of all streams that are there from the start, in the order of the file."""
        return tuple(stream for source in self.sources if not source.is_plant for stream in source.streams)

    @cached_property
    def plants(self) -> tuple[SourceConfig, ...]:
        """The sources whose streams come as they are heard of."""
        return tuple(source for source in self.sources if source.is_plant)

    @property
    def told(self) -> str:
        """How many streams there are, and may come by key, in words."""
        fixed, keyed = len(self.streams), sum(source.keys.most * len(source.streams) for source in self.plants)
        some = f"{fixed} stream{'s' * (fixed != 1)}"
        if not keyed:
            return some
        return f"{some} and up to {keyed} by key" if fixed else f"up to {keyed} streams by key"

    @property
    def names(self) -> tuple[str, ...]:
        """What streams are called without device and key, templates among them, in the order of the file."""
        return tuple(stream for source in self.sources for stream in source.streams)

    @property
    def subscribed(self) -> tuple[SourceConfig, ...]:
        """The sources that the broker is asked for."""
        return tuple(source for source in self.sources if source.input == "mqtt")

    @property
    def uses_broker(self) -> bool:
        """Whether there is a broker: as told, else whether a source is subscribed to."""
        return bool(self.subscribed) if self.mqtt.enabled is None else self.mqtt.enabled

    def feeds(self, stream: str) -> bool:
        """Whether a source of this configuration may feed a stream, by its full name."""
        return stream in self.streams or any(may_feed(source, stream) for source in self.plants)

    def is_numbered(self, stream: str) -> bool:
        """Whether its messages have numbers, which tell what is missing."""
        numbered = (source for source in self.sources if source.sequence is not None)
        return any(stream in source.streams or may_feed(source, stream) for source in numbered)

    def horizon_of(self, source: SourceConfig) -> int:
        """Messages that are remembered of each sender of a source."""
        usual = min(self.identity.horizon, HORIZON_OF_MANY) if source.is_plant else self.identity.horizon
        return source.horizon or usual

    def windows_of(self, stream: str) -> tuple[WindowConfig, ...]:
        """The windows asked of a stream, in the order of the file."""
        return tuple(window for window in self.windows if window.covers(stream))

    @cached_property
    def named(self) -> dict[str, WindowConfig]:
        """All windows by their names."""
        return {window.name: window for window in self.windows}

    def kept_of(self, stream: str) -> tuple[WindowConfig, ...]:
        """Those of them that keep buckets of their own."""
        return tuple(window for window in self.windows_of(stream) if window.shares is None)

    def sharing(self, stream: str, name: str) -> tuple[WindowConfig, ...]:
        """The windows of a stream that are answered from the buckets of the one called `name`."""
        return tuple(window for window in self.windows_of(stream) if window.shares == name)

    @property
    def commit_messages(self) -> int:
        """A commit is due when so many messages wait: half of Receive Maximum, so that the broker never has to stop."""
        return max(1, self.mqtt.receive_maximum // 2)
