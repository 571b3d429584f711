"""What a configuration can cost at worst, in bytes of memory and disk, before anything runs.

Each line is an upper bound from the configuration alone. What the windows hold is asked of the windows themselves,
filled to their worst. What the interpreter and its modules take was measured (BASE_*, x86-64, Python 3.11); a test runs
an agent with `data_bytes` as its RLIMIT_DATA.
"""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from sluicegate_agent import carried, replayed, streams
from sluicegate_agent.backlog.rows import READING_COST, ROW_COST, encoded
from sluicegate_agent.config import Config
from sluicegate_agent.config.carrying import asked_of
from sluicegate_agent.config.credentials import resolved
from sluicegate_agent.config.formats import payload_of
from sluicegate_agent.config.inputs import BUILT_IN, MQTT, input_of
from sluicegate_agent.config.units import show_size
from sluicegate_agent.costs.remembered import PAGE_FILL, Line, identities_of
from sluicegate_agent.costs.windows import RESULT_OBJECTS, stream_cost
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.link import HELD, RECEIVE
from sluicegate_agent.pipeline import BACKLOG, READINGS_MOST
from sluicegate_agent.record import recorder, wear
from sluicegate_agent.record.limits import limits
from sluicegate_agent.results import EACH_MOST
from sluicegate_agent.routing.routes import ROUTE_OBJECTS, ready_most
from sluicegate_agent.state import store
from sluicegate_agent.state.positions import POSITION_MOST
from sluicegate_agent.sync import sealing
from sluicegate_agent.web.view import BUCKETS_MOST

MIB = 1 << 20

#: Started, with an open store and one stream: 27.9 MiB resident, as installed (29.6 where Python has to compile the
#: modules first), and 19.0 MiB of what RLIMIT_DATA counts were measured. The rest is margin, and room for modules
#: that a part beside brings (`inspect`, `decimal`, names beyond ASCII: 2.1 MiB). TLS loads OpenSSL.
#: docs/reference/agent.md says both; a test holds them together.
BASE_RESIDENT = 30 * MIB
BASE_DATA = 22 * MIB
OPENSSL = 6 * MIB
#: A closed bucket, a message, a dead letter, a result on their way; JSON's objects per byte of payload ("{},{},").
CLOSED_OBJECTS = 400
MESSAGE_OBJECTS = 256
LETTER_OBJECTS = 1024
JSON_GROWTH = 32
#: SQLite beyond its cache (statements, the log's index); encoding a document, times the bytes of its rows.
SQLITE_BESIDE = MIB
ENCODING_GROWTH = 8
#: Modules, thread and connection of a target of the network (measured: 1.8 MiB; the SDK 29 MiB resident, and 47 MiB of
#: what RLIMIT_DATA counts, most of it its threads' stacks); the system's certificates (1.1 MiB); a request beside its
#: documents (modules and requests together grew by 4.1 to 5.1 MiB, of 60 runs in five by 6.5; 6.8 are planned).
TARGETS = {"sync-gateway": 4 * MIB, "couchbase": 56 * MIB}
TLS_ROOTS = 3 * MIB // 2
REQUEST = MIB
#: The directory target's own process: what of it is not shared with the agent's (3.3 MiB measured); a document in it.
WRITER = 7 * MIB // 2
#: Couchbase Lite: its library, threads and handles (7.2 MiB measured), and the page cache of each database it has open
#: (10 MiB is its bound). The tables stand in memory. On disk a row is a document with its revision: 1.4 times the
#: outbox's bytes were measured, the log included, within what the tables are counted with anyway; half of it on top.
CBLITE_LIBRARY = 8 * MIB
CBLITE_CACHE = 10 * MIB
CBLITE_TABLES = 1.2
CBLITE_FILL = 0.5
CBLITE_LOG = 4 * MIB
#: Its threads; six were seen at once. Their stacks are reserved and hardly touched, but RLIMIT_DATA counts them
#: whole, and under one that has no room for them a replicator never connects.
CBLITE_THREADS = 8
STACK = 8 * MIB
#: The last value of a stream that counted, and its row.
LAST_OBJECTS, LAST_ROW = 512, 160
#: What Python imports to find the entry points of packages.
ENTRY_POINTS = 2 << 20
#: What is read of a file at once (inputs/tail.py).
PIECE = 65_536
#: The listener: its modules, thread and one look (0.6 to 1.1 MiB measured); text of a stream, a window, an answer in a
#: response, and of a table of buckets; each connection may hold one.
LISTENER = 3 * MIB // 2
STREAM_TEXT, WINDOW_TEXT, ANSWER_TEXT, BUCKET_TEXT, STATUS_TEXT = 640, 512, 768, 160, 48 * 1024
#: An alert of a stream with the answers from which its change is taken; its row; a message that waits.
ALERT_MODULES = MIB // 4
ALERT_OBJECTS = 2048
ALERT_ROW = 192
ALERT_TEXT = 1024
WEBHOOK = 3 * MIB // 2
#: What the allocator leaves unused between what is used.
FRAGMENTATION = 0.10
#: As PAGE_FILL, in the outbox: up to 2.9 was measured (long rows overflow a page).
OUTBOX_FILL = 3.0
LETTER_ROW = 560
#: Of a frame as it is made: bytes of a step, and of what a message changes in identities, all copies of them.
STEP, CONTENT = 116, 1200
#: Tables with nothing in them, and the small files beside.
SCHEMA = 256 * 1024


class Plan(NamedTuple):
    """The whole worst case. `data_bytes`: the least RLIMIT_DATA the agent runs under."""

    device: str
    lines: tuple[Line, ...]
    streams: dict[str, dict[str, int]]
    memory: int
    disk: int
    data_bytes: int
    memory_budget: int
    disk_budget: int
    wear: wear.Wear

    @property
    def fits(self) -> bool:
        """Whether both budgets hold."""
        return self.memory <= self.memory_budget and self.disk <= self.disk_budget

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        lines = [line._asdict() for line in self.lines]
        return self._asdict() | {"lines": lines, "fits": self.fits, "wear": self.wear._asdict()}


def plan(config: Config) -> Plan:
    """The worst case of a configuration."""
    per_stream = {stream: stream_cost(config, stream) for stream in config.streams}
    lines = [
        Line("interpreter, modules, connection", BASE_RESIDENT, 0),
        *(libraries := [*_libraries(config)]),
        *(Line(f"stream {name}", cost.memory, cost.disk) for name, cost in per_stream.items()),
        *_keys(config),
        *_shared(config),
    ]
    used = sum(line.memory for line in lines[1 + len(libraries) :])
    lines.append(Line("left unused by the allocator", int(used * FRAGMENTATION), 0))
    lines.extend(_beside(config))
    live = sum(line.disk for line in lines) - sum(line.disk for line in _record(config))
    lines.append(Line(f"damaged stores set aside ({store.SET_ASIDE_KEPT} kept)", 0, live * store.SET_ASIDE_KEPT))
    memory, disk = sum(line.memory for line in lines), sum(line.disk for line in lines)
    shown = {name: {"memory": cost.memory, "disk": cost.disk} for name, cost in per_stream.items()}
    beside = sum(line.memory for line in _beside(config))
    data = memory - beside - BASE_RESIDENT + BASE_DATA + _stacks(config)
    budgets = int(config.state.memory), int(config.state.disk)
    return Plan(config.device.id, tuple(lines), shown, memory, disk, data, *budgets, wear.forecast(config))


def refuse_over_budget(config: Config) -> Plan:
    """Raises EnvironmentRefused, with what to change, for a configuration whose worst case exceeds a budget."""
    worst = plan(config)
    for name, need, budget in (
        ("memory", worst.memory, worst.memory_budget),
        ("disk", worst.disk, worst.disk_budget),
    ):
        if need > budget:
            largest = max(worst.lines[1:], key=lambda line: line.memory if name == "memory" else line.disk)
            raise EnvironmentRefused(
                f"state.{name} = {show_size(budget)}, but this configuration needs up to {show_size(need)}: raise the "
                f"budget, or ask for less (most goes to: {largest.part}); `sluicegate plan` shows every part"
            )
    return worst


def show(worst: Plan) -> str:
    """The plan as a table with its totals against the budgets."""
    from sluicegate_agent.status import table

    rows: list[tuple[object, ...]] = [("worst case of", "memory", "disk")]
    rows += [(line.part, show_size(line.memory), show_size(line.disk) if line.disk else "-") for line in worst.lines]
    rows.append(("in all", show_size(worst.memory), show_size(worst.disk)))
    rows.append(("budget ([state])", show_size(worst.memory_budget), show_size(worst.disk_budget)))
    verdict = "fits" if worst.fits else "does not fit: `run` will refuse it"
    foot = f"RLIMIT_DATA (systemd: LimitDATA) has to allow {worst.data_bytes} bytes ({show_size(worst.data_bytes)})"
    card = f"written to the card, at a reading a second of each stream: about {worst.wear}"
    return "\n".join([f"{worst.device}: {verdict}", *table(rows), foot, card])


def _keys(config: Config) -> Iterator[Line]:
    """Streams that come as they are heard of: as many as their source may have keys."""
    for source in config.plants:
        costs, most = [stream_cost(config, name) for name in source.streams], source.keys.most
        memory, disk = sum(cost.memory for cost in costs), sum(cost.disk for cost in costs)
        births = most * len(source.streams) * payload_of(source.format).kept
        yield Line(f"streams of {source.subscribed}, {most} keys", most * memory + births, most * disk + births)


def _uses_openssl(config: Config) -> bool:
    """Whether the broker or the gateway is reached by TLS; Couchbase Lite and Couchbase's SDK bring their own."""
    hooked = bool(config.alert) and config.alerts.uses_tls
    return config.mqtt.uses_tls or hooked or (config.sync.target == "sync-gateway" and resolved(config.sync).uses_tls)


def _libraries(config: Config) -> Iterator[Line]:
    """What is loaded once and stays: nothing of it is given back, so the allocator leaves no gaps there."""
    if _uses_openssl(config):
        yield Line("TLS", OPENSSL, 0)
    for name in dict.fromkeys(source.format for source in config.sources):
        if memory := payload_of(name).memory:
            yield Line(f"format {name}: its modules", memory, 0)
    kind = config.sync.target
    if kind in TARGETS:
        tls = TLS_ROOTS if kind == "sync-gateway" and resolved(config.sync).uses_tls else 0
        yield Line(f"sync target {kind}: its modules", TARGETS[kind] + tls, 0)
    if "couchbase-lite" in (config.state.store, kind):
        yield Line("Couchbase Lite", CBLITE_LIBRARY, 0)


def _shared(config: Config) -> Iterator[Line]:
    yield from identities_of(config)
    if routes := ready_most(config):
        yield Line("routes of topics", routes * ROUTE_OBJECTS, 0)
    readings, closed = _batch(config)
    yield Line("a batch before its commit", readings * CLOSED_OBJECTS + closed, 0)
    payload = int(config.limits.payload)
    messages = config.commit_messages * MESSAGE_OBJECTS + HELD + 2 * RECEIVE + payload * (2 + JSON_GROWTH)
    yield Line("messages as they arrive", messages, 0)
    yield _dead_letters(config)
    yield _replayed(config)
    rows, size = config.outbox.rows, int(config.outbox.bytes)
    yield Line("outbox", 24 * rows, int(size * OUTBOX_FILL))
    yield from _record(config)
    document = _document(config)
    yield Line("documents on their way", document * (ENCODING_GROWTH + sealing.IN_FLIGHT), 0)
    yield from _target(config, document)
    yield from _couchbase_lite(config)
    # As far as a reader may hold it, and one more commit.
    log = limits(config).log + store.WAL_MORE + int(1.5 * _batch_rows(config))
    yield Line("SQLite", store.CACHE_KIB * 1024 + SQLITE_BESIDE, log + SCHEMA)
    streams = dict.fromkeys(config.streams, 1)
    streams |= {name: each.keys.most for each in config.plants for name in each.streams}
    answers = sum(n * len(asked.aggregates) for name, n in streams.items() for asked in config.windows_of(name))
    yield Line("results", (answers + EACH_MOST * config.results.answers_each) * RESULT_OBJECTS, 0)
    remembering = {name for source in config.sources for name, each in source.values.items() if each.remembers}
    if last := sum(n for name, n in streams.items() if name in remembering):
        yield Line("last values (deadband, every)", last * LAST_OBJECTS, int(last * LAST_ROW * PAGE_FILL))
    yield from _alerts(config)
    yield from _listener(config)
    yield from _inputs(config)


def _document(config: Config) -> int:
    """Bytes of the largest document, as the outbox counts its rows."""
    size = int(config.outbox.bytes)
    return min(sealing.CHUNK_BYTES, size // (2 * sealing.IN_FLIGHT), config.outbox.chunk_buckets * _row(config))


def _record(config: Config) -> Iterator[Line]:
    """Closed buckets and rows of identities that wait for the tables, a frame as it is made; the file; and what one
    fold adds to the log: every row of the tables at worst."""
    if not recorder.is_recorded(config):
        return
    readings, _ = _batch(config)
    frame = readings * STEP + config.commit_messages * CONTENT
    log = sum(line.disk for line in (*map(partial(stream_cost, config), config.streams), *_keys(config)))
    log += sum(line.disk for line in identities_of(config))
    most = limits(config)
    yield Line("record of commits", most.buckets + most.rows + frame, most.file + log)


def _beside(config: Config) -> Iterator[Line]:
    """Processes beside the agent's: memory of the board that is none of the agent's own."""
    if config.sync.target == "directory":
        yield Line("writer of the directory, a process", WRITER + _document(config), 0)


def _target(config: Config, document: int) -> Iterator[Line]:
    """What a target of the network takes besides its modules and the documents: a request, a comparison."""
    kind = config.sync.target
    if kind not in TARGETS:
        return
    # A request is the documents deflated, at most as long as they are; one of them may be compared, or halved.
    request = REQUEST + document * (2 + ENCODING_GROWTH)
    yield Line(f"sync target {kind}: its requests", request, 0)


def _couchbase_lite(config: Config) -> Iterator[Line]:
    """What the library keeps, where the state or the target is in it."""
    kept, pushed = config.state.store == "couchbase-lite", config.sync.target == "couchbase-lite"
    if not kept and not pushed:
        return
    size = int(config.outbox.bytes)
    if kept:
        tables = size + sum(line.disk for line in _tables(config))
        yield Line("its tables in memory, and its cache", int(tables * CBLITE_TABLES) + CBLITE_CACHE, 0)
        yield Line("its documents", 0, int(tables * CBLITE_FILL) + CBLITE_LOG)
    if pushed:
        documents = sealing.IN_FLIGHT * min(sealing.CHUNK_BYTES, size // (2 * sealing.IN_FLIGHT))
        yield Line("documents that are pushed", 2 * documents + CBLITE_CACHE, 4 * documents + CBLITE_LOG)


def _alerts(config: Config) -> Iterator[Line]:
    """Each alert of each stream, and the messages that wait; a webhook's modules and its thread."""
    if not config.alert:
        return
    states = sum(alert.covers(stream) for alert in config.alert for stream in config.streams)
    queue = config.alerts.queue
    disk = int((states * ALERT_ROW + queue * ALERT_TEXT) * PAGE_FILL)
    yield Line("alerts", ALERT_MODULES + states * ALERT_OBJECTS + queue * (ALERT_TEXT + ALERT_OBJECTS), disk)
    if config.alerts.webhook is not None:
        yield Line("webhook", WEBHOOK + TLS_ROOTS * config.alerts.uses_tls, 0)


def _inputs(config: Config) -> Iterator[Line]:
    """A request is held as it comes, as it came and unpacked; of a file a piece, and a line that has no end yet."""
    http, payload = config.http, int(config.limits.payload)
    if http.listen is not None:
        waiting = 3 * http.connections * int(http.body)
        yield Line("listener for readings", (config.metrics.listen is None) * LISTENER + waiting, 0)
    if files := sum(source.input in ("tail", "stdin") for source in config.sources):
        yield Line("files that grow", files * (payload + 6 * PIECE), 0)
    added = Counter(source.input for source in config.sources if source.input not in (MQTT, *BUILT_IN))
    if added:
        yield Line("inputs that packages add, to find them", ENTRY_POINTS, 0)
    for name, count in added.items():
        yield Line(f'input "{name}"', count * (payload + input_of(name).memory), count * 2 * POSITION_MOST)


def _listener(config: Config) -> Iterator[Line]:
    """Who asks may be slow to take the answer: each connection holds the longest there is."""
    metrics = config.metrics
    if metrics.listen is None:
        return
    shown = config.streams[: metrics.streams_most]
    windows = [window for stream in shown for window in config.windows_of(stream)]
    answers = sum(len(window.aggregates) for window in windows)
    status = STATUS_TEXT + len(shown) * STREAM_TEXT + len(windows) * WINDOW_TEXT + answers * ANSWER_TEXT
    longest = max(status, BUCKETS_MOST * BUCKET_TEXT if windows else 0)
    kept = sum(len(window.aggregates) for stream in config.streams for window in config.windows_of(stream))
    yield Line("listener", LISTENER + metrics.connections * longest + kept * RESULT_OBJECTS, 0)


def _stacks(config: Config) -> int:
    """What RLIMIT_DATA counts of the library's threads beyond what is resident; as long as a new thread's stack is."""
    if "couchbase-lite" not in (config.state.store, config.sync.target):
        return 0
    soft = resource.getrlimit(resource.RLIMIT_STACK)[0]
    return CBLITE_THREADS * (STACK if soft == resource.RLIM_INFINITY else max(soft, STACK))


def _tables(config: Config) -> Iterator[Line]:
    """The rows besides the outbox."""
    yield from (stream_cost(config, stream) for stream in config.streams)
    yield from _keys(config)
    yield from identities_of(config)
    yield _dead_letters(config)
    yield _replayed(config)


def _row(config: Config) -> int:
    """Bytes of an outbox row as the outbox counts them, with all the single readings it may have."""
    section = max((carried.most(asked_of(config, stream)) for stream in config.names), default=0)
    singles = READING_COST * min(config.bucket.readings, streams.SINGLES_MOST)
    return ROW_COST + max(singles, encoded(section))


def _batch(config: Config) -> tuple[int, int]:
    """Readings that one commit may bring, after others failed, each closing a bucket at worst; and their bytes."""
    message = max(
        config.limits.readings if payload_of(source.format).has_many else len(source.streams)
        for source in config.sources
    )
    readings = min(config.mqtt.receive_maximum * message, BACKLOG * READINGS_MOST + message)
    return readings, 32 * readings


def _batch_rows(config: Config) -> int:
    """Bytes of outbox rows that one commit may bring: rows of one reading each, or fewer of more."""
    readings, _ = _batch(config)
    full = -(-readings // config.bucket.readings) * _row(config)
    return max(full, readings * (ROW_COST + READING_COST))


def _replayed(config: Config) -> Line:
    """Files that `replay` knows; it reads them at its start, in less memory than a broker's messages take in `run`."""
    longest = max(len(source.topic.encode()) for source in config.sources)
    rows = replayed.FILES_KEPT
    return Line("files that were replayed", 0, int(rows * (longest + 64) * PAGE_FILL))


def _dead_letters(config: Config) -> Line:
    each = int(config.dead_letters.bytes_each) + LETTER_OBJECTS
    rows = config.dead_letters.rows
    waiting = min(rows, _batch(config)[0])
    kept = int(config.dead_letters.bytes_each) + LETTER_ROW
    return Line("dead letters", waiting * each, int(rows * kept * PAGE_FILL))
