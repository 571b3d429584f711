"""A run as it was drawn: (seed, index) gives broker, identity, settings, habits and faults, always alike."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from campaign import foreign
from campaign.sensor import Habits

BROKERS = ("mosquitto-5", "mosquitto-3.1.1", "rabbitmq-3.1.1", "builtin-5", "builtin-3.1.1")
IDENTITIES = ("sequence", "time", "bare", "constant", "epochs")
STEPS = (
    "accept: begin",
    "accept: end",
    "commit: begin",
    "commit: streams",
    "commit: windows",
    "commit: identities",
    "commit: counters",
    "record: gathered",
    "record: before append",
    "record: written",
    "record: durable",
    "commit: durable, not acknowledged",
    "transaction: before commit",
    "transaction: after commit",
    "seal: begin",
    "seal: encoded",
    "seal: rows replaced",
    "put: before",
    "directory: written",
    "directory: file synced",
    "directory: named",
    "directory: folder synced",
    "put: after",
    "settle: deleted",
    "store: before opening commits",
)
#: family → the events that it brings in; every run has kills and cuts.
FAMILIES: dict[str, tuple[str, ...]] = {
    "stall": ("stall",),
    "half-open": ("half_open",),
    "broker killed": ("broker_killed_saved",),
    "broker forgets": ("broker_killed_bare",),
    "disk full": ("disk_full",),
    "disk read-only": ("read_only",),
    "power cut": ("power_cut",),
    "clock": ("clock",),
    "share hangs": ("share_hangs",),
    "share away": ("share_away",),
    "gateway slow": ("gateway_slow",),
    "gateway lies": ("gateway_lies",),
    "retained": ("session_lost",),
    "sensor": (),
    "reload": ("reload", "reload", "reload"),
    "standby": ("standby",),
}
#: Brought in by a chance of their own, so that the other runs of a seed stay as they are.
LATER = {"standby": 0.2}
KILLS = ("kill", "kill", "kill_at", "kill_at", "restart")
#: Events that last for a while, and in which the agent may be killed.
LASTING = (
    "stall", "share_hangs", "share_away", "disk_full", "gateway_slow", "gateway_lies", "read_only", "half_open",
)  # fmt: skip
CUTS = ("rst", "fin", "half", "pubacks")


@dataclass(frozen=True)
class Plan:
    """One run, whole."""

    seed: int
    index: int
    broker: str
    identity: str
    families: tuple[str, ...]
    settings: dict[str, Any]
    habits: Habits
    events: list[dict[str, Any]] = field(default_factory=list)
    messages: int = 500
    plant: str = ""

    @property
    def form(self) -> str:
        """How its messages are written: what says nothing of itself is a number."""
        if self.identity in ("bare", "constant") or self.way == "tail":
            return "json"
        if self.way == "sparkplug":
            return "sparkplug"
        forms = ["json", "json", *(("line",) if self.identity == "time" else ("items",))]
        forms += ["msgpack", "cbor"] * (self.way != "http")
        return self.random("form").choice(forms)

    @property
    def way(self) -> str:
        """How its messages come: over MQTT, there by a shared subscription or as Sparkplug B, by POST, in a file."""
        ways = ["mqtt"] * 5
        of_session = {"retained", "broker killed", "broker forgets"} & {*self.families}
        if not of_session and self.kind != "rabbitmq":
            ways += ["tail", "tail"]
            if self.identity not in ("bare", "constant"):
                ways += ["http", "http"]
        if self.kind == "mosquitto" and "retained" not in self.families:
            ways += ["shared", "shared"]
        # Without a birth that the broker lost its data cannot be read.
        loses = self.broker in foreign.LOSES
        if self.identity == "sequence" and not of_session and "sensor" not in self.families and not loses:
            ways += ["sparkplug"] * 4
        return self.random("way").choice(ways)

    @property
    def version(self) -> str:
        """MQTT's."""
        return self.broker.partition("-")[2]

    @property
    def kind(self) -> str:
        """The broker without its version."""
        return self.broker.partition("-")[0]

    def random(self, what: str) -> random.Random:
        """The run's own source of chance for one purpose."""
        return random.Random(f"{self.seed}/{self.index}/{what}")

    def described(self) -> dict[str, Any]:
        """For a report."""
        return asdict(self)


def draw(seed: int, index: int, brokers: Sequence[str] = BROKERS) -> Plan:
    """The run number `index` of a seed, over these brokers."""
    rng = random.Random(f"{seed}/{index}")
    broker = brokers[index % len(brokers)]
    identity = IDENTITIES[index // len(brokers) % len(IDENTITIES)]
    among = [name for name in FAMILIES if name != "sensor" and name not in LATER]
    chosen = rng.sample(among, rng.choice((0, 1, 1, 2, 3)))
    chosen += ["sensor"] if identity in ("sequence", "epochs", "time") and rng.random() < 0.3 else []
    chosen += [name for name, share in LATER.items() if random.Random(f"{seed}/{index}/{name}").random() < share]
    families = _compatible(tuple(family for family in chosen if _can(family, broker)))
    habits = _habits(identity, "sensor" in families, rng)
    habits.retain = rng.choice((1.0, 1.0, 0.5)) if "retained" in families else 0.0
    settings = {
        "receive_maximum": rng.choice((10, 40, 100, 1000)),
        "every": rng.choice(("10ms", "50ms", "200ms", "1s")),
        "bucket": rng.choice((1, 1, 1, 5)),
        "inflight": rng.choice((5, 20, 0)),
        "horizon": 4096,
        "sync_every": rng.choice(("50ms", "50ms", "500ms")),
        "fold": rng.choice(("1h", "1h", "1s", "0s")),
        "gateway": "gateway slow" in families or "gateway lies" in families,
    }
    if habits.wrap == 8:
        # With more than 128 numbers on their way, laps of a counter of 8 bits look alike.
        settings |= {"receive_maximum": min(settings["receive_maximum"], 40), "inflight": settings["inflight"] or 20}
    if Plan(seed, index, broker, identity, families, settings, habits).way == "sparkplug":  # its numbers have 8 bits
        settings |= {"receive_maximum": min(settings["receive_maximum"], 40), "inflight": settings["inflight"] or 20}
    events = [_event(rng.choice(KILLS), rng) for _ in range(rng.randint(10, 22))]
    events += [{"do": "cut", "how": rng.choice(CUTS), "count": rng.randint(1, 8)} for _ in range(rng.randint(14, 28))]
    for family in families:
        once = family == "half-open" or (family == "broker killed" and broker.startswith("rabbitmq"))
        often = 1 if once else rng.randint(1, 2)
        events += [_event(name, rng) for name in FAMILIES[family] for _ in range(often)]
    rng.shuffle(events)
    for event in events:
        event["after"] = round(rng.choice((0.0, rng.uniform(0, 0.03), rng.uniform(0.02, 0.12))), 4)
    return Plan(seed, index, broker, identity, families, settings, habits, events, rng.choice((200, 500, 900)))


def _can(family: str, broker: str) -> bool:
    """RabbitMQ always keeps what it has. Only it and Mosquitto have persistence, and keep retained messages here."""
    if family == "standby":  # the first one has to keep our session meanwhile, and nothing else may be lost
        return broker.startswith(("mosquitto", "rabbitmq", "builtin"))
    if family in ("broker killed", "retained"):
        return broker.startswith(("mosquitto", "rabbitmq"))
    return family != "broker forgets" or not broker.startswith("rabbitmq")


def _compatible(families: tuple[str, ...]) -> tuple[str, ...]:
    """One kind of disk a run, one kind of target, one kind of broker's death."""
    groups = (
        ("power cut", "disk full", "disk read-only"),
        ("gateway slow", "gateway lies", "share hangs", "share away"),
        ("broker killed", "broker forgets", "standby"),
        ("retained", "standby"),
        # A sensor that begins again without a word, just as a session with what it said is lost: who could tell?
        ("retained", "sensor"),
    )
    for group in groups:
        found = [family for family in families if family in group]
        families = tuple(family for family in families if family not in found[1:])
    return families


def _habits(identity: str, odd: bool, rng: random.Random) -> Habits:
    habits = Habits()
    if identity in ("sequence", "epochs"):
        habits.skip = rng.choice((0.0, 0.02))
        habits.reboot = 0.01 if identity == "epochs" else 0.0
    if not odd:
        return habits
    if identity in ("sequence", "epochs"):
        habits.repeat, habits.shuffle = rng.choice((0.0, 0.05)), rng.choice((0.0, 0.05))
        if identity == "sequence":
            habits.reboot = rng.choice((0.0, 0.01))
            habits.wrap = 0 if habits.reboot else rng.choice((0, 8, 16, 32))
        else:
            habits.reboot = rng.choice((0.01, 0.05))
    elif identity == "time":
        habits.repeat, habits.late = rng.choice((0.0, 0.05)), rng.choice((0.0, 0.2))
    return habits


def _event(name: str, rng: random.Random) -> dict[str, Any]:
    event: dict[str, Any] = {"do": name}
    if name == "kill_at":
        step = rng.choice((*STEPS, ""))
        most = 300 if not step else 60 if step.startswith("accept") else 5
        event["at"] = f"{rng.randint(1, most)}" + (f"@{step}" if step else "")
    elif name in (
        "stall",
        "share_hangs",
        "share_away",
        "disk_full",
        "gateway_slow",
        "gateway_lies",
        "read_only",
        "half_open",
    ):
        event["seconds"] = round(rng.uniform(0.05, 0.6), 3)
        event["kill"] = rng.random() < 0.4
        event["lie"] = rng.choice(("busy", "lost", "garbage", "conflict", "short", "close"))
    elif name == "standby":
        event["seconds"], event["kill"] = round(rng.uniform(0.05, 0.4), 3), rng.random() < 0.4
    elif name == "clock":
        event["offset"] = rng.choice(("-3d", "-1h", "-5s", "+5s", "+1h", "+3d", "-9y"))
        event["seconds"] = round(rng.uniform(0.1, 0.4), 3)
    elif name == "reload":
        event["seconds"] = round(rng.choice((0.0, rng.uniform(0, 0.03), rng.uniform(0.02, 0.2))), 4)
        event["kill"], event["broken"] = rng.random() < 0.5, rng.random() < 0.2
    return event
