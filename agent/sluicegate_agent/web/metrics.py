"""The agent's figures as Prometheus reads them: a collector over one look at the agent, written by its own library."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sluicegate_agent.lean import import_prometheus
from sluicegate_agent.web.http import Response

PREFIX = "sluicegate"
#: What each counter counts. Those that are not here come with their name alone.
COUNTED = {
    "messages": "Messages taken",
    "accepted": "Readings counted",
    "duplicates": "Messages that came again",
    "duplicate_readings": "Readings in messages that came again",
    "undecidable": "Readings counted that may be repeats",
    "absent": "Metrics without a value",
    "held": "Messages that had to wait to be judged",
    "windows.begun_anew": "Windows whose history was thrown away",
    "windows.squeezed": "Steps towards fewer buckets while the target was away",
    "windows.freed": "Steps back to all buckets",
    "commits.failed": "Commits that the disk refused",
    "mqtt.connects": "Connections to the broker",
    "mqtt.disconnects": "Connections that ended",
    "mqtt.connect_failures": "Connections that could not be made",
    "mqtt.sessions_lost": "Reconnects that found no session",
    "mqtt.taken_over": "Connections ended by another client of our name",
    "results.published": "Messages of answers sent",
    "results.skipped": "Messages of answers that had to wait",
    "results.dropped": "Results of windows with ends for which there was no room while the link was away",
    "alerts.messages": "Messages of alerts",
    "alerts.dropped": "Messages of alerts dropped for want of room in their queue",
    "alerts.retries": "Tries that the webhook did not take",
    "alerts.given_up": "Messages of alerts that the webhook calls wrong again and again",
    "sync.chunks": "Documents the target has",
    "sync.bytes": "Bytes of these documents",
    "sync.parted": "Streams that went on beside their backlog once the target was back",
    "sync.retries": "Tries that the target did not take",
    "sync.rejected": "Documents that the target refuses for good",
    "sync.store_refused": "Steps of sync that the store refused",
    "sync.readings_dropped": "Readings in refused documents for which there was no room",
    "record.damaged": "Times that the record of commits was damaged: answers that may lack readings have no bound",
    "record.readings_lost": "Readings in a damaged record that could be told",
    "inputs.waited": "Times that inputs waited for the target to take documents",
    "inputs.waited_in_vain": "Waits that ended with the outbox still full",
    "outbox.merges": "Pairs of buckets merged for want of room in the outbox",
    "outbox.single_readings": "Single readings given up for want of room in the outbox",
}
#: Counters that are one metric with a label: prefix → metric, label, help.
LABELLED = {
    "refused.": ("refused", "reason", "Readings and messages refused"),
    "record.folds.": ("record_folds", "reason", "Times that the tables were written"),
    "rows.lost.": ("store_rows_lost", "table", "Rows of a damaged store that could not be saved"),
    "rows.salvaged.": ("store_rows_salvaged", "table", "Rows of a damaged store that were saved"),
}
_REFUSED = (
    "unreadable", "value", "unknown_topic", "future", "beyond_horizon", "sequence_jump", "window", "backlog",
)  # fmt: skip
_GAUGES = {
    "resident_bytes": ("rss_bytes", "Memory resident now"),
    "peak_resident_bytes": ("peak_rss_bytes", "Memory resident at most since the start"),
    "planned_bytes": ("planned_bytes", "Memory that `sluicegate plan` says at most"),
    "memory_budget_bytes": ("memory_budget", "Memory budget, [state] memory"),
    "uptime_seconds": ("uptime_s", "Seconds since the start"),
    "streams": ("streams_in_all", "Streams there are, with metrics of their own or not"),
}
_OUTBOX = {
    "outbox_buckets": ("buckets", "Buckets that wait for the target"),
    "outbox_buckets_limit": ("buckets_most", "Buckets that may wait"),
    "outbox_bytes": ("bytes", "Bytes that wait for the target, as counted against the budget"),
    "outbox_bytes_limit": ("bytes_most", "Bytes that may wait"),
    "outbox_chunks_sealed": ("chunks_sealed", "Documents that are being sent"),
    "outbox_chunks_rejected": ("chunks_rejected", "Documents that the target refuses and that are kept here"),
}
_STREAM = {
    "stream_readings": ("readings", "Readings of the stream counted"),
    "stream_late": ("late", "Readings of the stream in buckets that came late"),
}
_STREAM_NOW = {
    "stream_missing": ("missing", "Readings that the sequence numbers say are missing"),
    "stream_buckets_waiting": ("buckets_waiting", "Buckets of the stream that wait for the target"),
}
_WINDOW = {
    "window_buckets": ("buckets", "Buckets that the window holds"),
    "window_buckets_limit": ("limit", "Buckets that it may hold now; 0: no limit"),
    "window_bytes": ("bytes", "Bytes that it holds"),
}
_ANSWER = {
    "window_value": ("value", "The window's newest answer"),
    "window_low": ("low", "The exact answer is not below this"),
    "window_high": ("high", "The exact answer is not above this"),
    "window_exact": ("exact", "Whether the answer is exact"),
}


class Exposition:
    """Writes looks of `View.status` as text; loads the parts of the library that it needs, once."""

    def __init__(self) -> None:
        """Raises ModuleNotFoundError where prometheus-client is not installed."""
        exposition, self._core = import_prometheus()
        self._write, self._kind = exposition.generate_latest, exposition.CONTENT_TYPE_PLAIN_0_0_4

    def response(self, seen: dict[str, Any]) -> Response:
        """The text of one look."""
        return Response(200, self._write(_Collector(self._core, seen)), self._kind)


class _Collector:
    """A registry of this one look, as the library's writer asks for it."""

    def __init__(self, core: Any, seen: dict[str, Any]) -> None:
        self._core, self._seen = core, seen

    def collect(self) -> Iterator[Any]:
        """All metrics."""
        yield from self._process()
        yield from self._counters()
        yield from self._gauges(_OUTBOX, self._seen["outbox"])
        yield self._commits()
        streams, windows = self._seen["streams"], self._seen["windows"]
        for name, (key, text) in _STREAM.items():
            yield self._family("counter", name, text, ("stream",), [((each["stream"],), each[key]) for each in streams])
        for name, (key, text) in _STREAM_NOW.items():
            yield self._family("gauge", name, text, ("stream",), [((each["stream"],), each[key]) for each in streams])
        newest = [((each["stream"],), each["newest_us"] / 1e6) for each in streams if each["newest_us"] is not None]
        yield self._family(
            "gauge", "stream_newest_seconds", "Time of the newest reading, s since 1970", ("stream",), newest
        )
        for name, (key, text) in _WINDOW.items():
            rows = [((each["stream"], each["window"]), each[key]) for each in windows]
            yield self._family("gauge", name, text, ("stream", "window"), rows)
        yield from self._answers()

    def _family(self, kind: str, name: str, text: str, labels: tuple[str, ...], rows: Any) -> Any:
        made = self._core.CounterMetricFamily if kind == "counter" else self._core.GaugeMetricFamily
        metric = made(f"{PREFIX}_{name}", text, labels=labels)
        for values, value in rows:
            metric.add_metric(values, value)
        return metric

    def _gauges(self, named: dict[str, tuple[str, str]], of: dict[str, Any]) -> Iterator[Any]:
        for name, (key, text) in named.items():
            yield self._family("gauge", name, text, (), [((), of[key])])

    def _process(self) -> Iterator[Any]:
        seen, version = self._seen, self._seen["versions"]["sluicegate"]
        info = [((seen["device"], version), 1)]
        yield self._family("gauge", "agent", "Which agent this is", ("device", "version"), info)
        yield from self._gauges(_GAUGES, seen)
        up = int(seen["broker"]["state"].startswith("connected"))
        yield self._family("gauge", "broker_up", "Whether the broker is connected", (), [((), up)])
        waits = seen["broker"]["unacknowledged"]
        yield self._family("gauge", "messages_waiting", "Messages that wait for their commit", (), [((), waits)])
        states = [((), int(seen["target"]["state"] == "up"))] if seen["target"]["state"] != "unused" else []
        yield self._family("gauge", "target_up", "Whether the target takes documents", (), states)
        since = [((), seen["target"]["since_us"] / 1e6)] if states else []
        yield self._family("gauge", "target_since_seconds", "Since when it is so, s since 1970", (), since)
        yield from self._budget()
        refuses = int(bool(seen["store"]["refuses"]))
        yield self._family("gauge", "store_refuses", "Whether the store refuses commits", (), [((), refuses)])

    def _budget(self) -> Iterator[Any]:
        spent = self._seen.get("budget")
        if not spent:
            return
        texts = {"used": "Bytes sent in this period", "limit": "Bytes that may be sent in a period; 0: no limit"}
        for key, text in texts.items():
            yield self._family("gauge", f"budget_{key}_bytes", text, (), [((), spent[key])])
        short = int(spent["short_since_us"] is not None)
        text = "Whether what waits is kept coarser for the budget's sake"
        yield self._family("gauge", "budget_short", text, (), [((), short)])

    def _counters(self) -> Iterator[Any]:
        counted = dict.fromkeys(COUNTED, 0) | {f"refused.{name}": 0 for name in _REFUSED} | self._seen["counters"]
        labelled: dict[str, list[tuple[tuple[str], int]]] = {prefix: [] for prefix in LABELLED}
        for name, count in counted.items():
            prefix = next((each for each in LABELLED if name.startswith(each)), None)
            if prefix is None:
                text = COUNTED.get(name, f"Counted as {name}")
                yield self._family("counter", name.replace(".", "_"), text, (), [((), count)])
            else:
                labelled[prefix].append(((name.removeprefix(prefix),), count))
        for prefix, (metric, label, text) in LABELLED.items():
            yield self._family("counter", metric, text, (label,), labelled[prefix])

    def _commits(self) -> Any:
        commits = self._seen["commits"]
        metric = self._core.HistogramMetricFamily(f"{PREFIX}_commit_seconds", "How long commits took")
        ends = [("+Inf" if end is None else str(end), count) for end, count in commits["at_most"]]
        metric.add_metric((), ends, commits["seconds"])
        return metric

    def _answers(self) -> Iterator[Any]:
        """Answers that are one number; what has parts is in the JSON of `/api/answers`."""
        labels = ("stream", "window", "aggregate")
        for name, (key, text) in _ANSWER.items():
            found = [(answer, getattr(answer, key)) for answer in self._seen["answers"]]
            rows = [
                ((answer.stream, answer.window, answer.aggregate), float(value))
                for answer, value in found
                if isinstance(value, int | float)
            ]
            yield self._family("gauge", name, text, labels, rows)
