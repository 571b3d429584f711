"""The screen of `sluicegate top`: figures, windows with their sparklines and bands, streams, alerts, last warnings."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import DataTable, Footer, Header, Static

from sluicegate_agent.config.units import show_duration, show_size
from sluicegate_agent.errors import EnvironmentRefused

_KEPT = 40
_BARS = "▁▂▃▄▅▆▇█"
Look = Callable[[], dict[str, Any]]


class Top(App[None]):
    """Looks every `every` seconds, in a thread, so that an agent that does not answer leaves the keys alive."""

    CSS = """
    #figures { padding: 0 1; height: auto; }
    #trouble { padding: 0 1; height: auto; color: $error; }
    DataTable { height: auto; margin: 1 0 0 0; }
    """
    BINDINGS: ClassVar = [("q", "quit", "Quit"), ("r", "look", "Look now")]

    def __init__(self, look: Look, every: float = 1.0) -> None:
        super().__init__()
        self._look, self._every = look, every
        self._histories: dict[tuple[str, str, str], deque[float]] = {}

    def compose(self) -> ComposeResult:
        """Figures above, tables below."""
        yield Header()
        with VerticalScroll():
            yield Static(id="figures", markup=False)
            yield Static(id="trouble", markup=False)
            yield DataTable(id="windows", cursor_type="none")
            yield DataTable(id="streams", cursor_type="none")
            yield DataTable(id="errors", cursor_type="none")
        yield Footer()

    def on_mount(self) -> None:
        """Name the columns and begin to look."""
        self.title = "Sluicegate"
        columns = {
            "windows": ("stream", "window", "value", "low", "high", "last minutes", "readings", "buckets"),
            "streams": ("stream", "readings", "late", "missing", "waiting"),
            "errors": ("level", "last warnings"),
        }
        for name, names in columns.items():
            self.query_one(f"#{name}", DataTable).add_columns(*names)
        self.set_interval(self._every, self.action_look)
        self.action_look()

    def action_look(self) -> None:
        """Look once; one look at a time."""
        self.run_worker(self._looked, thread=True, exclusive=True)

    def _looked(self) -> None:
        try:
            seen = self._look()
        except (EnvironmentRefused, ValueError) as error:
            self.call_from_thread(self._trouble, str(error))
        else:
            self.call_from_thread(self.show, seen)

    def _trouble(self, said: str) -> None:
        for line in self.query("#trouble").results(Static):  # none while the screen comes or goes
            line.update(said)

    def show(self, seen: dict[str, Any]) -> None:
        """Put one look on the screen, if it is there yet, and still."""
        if not self.query("#errors"):
            return
        self.sub_title = str(seen["device"])
        self.query_one("#figures", Static).update("\n".join(figures(seen)))
        self._trouble("\n".join(troubles(seen)))
        self._fill("windows", [self._window(answer, seen) for answer in seen["answers"]])
        keys = ("stream", "readings", "late", "missing", "buckets_waiting")
        self._fill("streams", [[_told(each[key]) for key in keys] for each in seen["streams"]])
        self._fill("errors", [[Text(each["level"]), Text(each["said"])] for each in seen["errors"][:8]])

    def _fill(self, name: str, rows: list[list[Text]]) -> None:
        table = self.query_one(f"#{name}", DataTable)
        table.clear()
        for row in rows:
            table.add_row(*row)

    def _window(self, answer: dict[str, Any], seen: dict[str, Any]) -> list[Text]:
        key = answer["stream"], answer["window"], answer["aggregate"]
        history = self._histories.setdefault(key, deque(maxlen=_KEPT))
        if isinstance(answer["value"], int | float):
            history.append(float(answer["value"]))
        ends = [Text("exact"), Text("")] if answer["exact"] else [_told(answer["low"]), _told(answer["high"])]
        held = [w["buckets"] for w in seen["windows"] if (w["stream"], w["window"]) == key[:2]]
        window = Text(f"{answer['window']} {answer['aggregate']}")
        counts = [_told(answer["count"]), _told(held[0] if held else answer["buckets"])]
        return [Text(answer["stream"]), window, _told(answer["value"]), *ends, Text(sparkline(history)), *counts]


def figures(seen: dict[str, Any]) -> list[str]:
    """The agent in a few lines."""
    outbox, target = seen["outbox"], seen["target"]
    memory = f"memory {show_size(seen['rss_bytes'])} of {show_size(seen['planned_bytes'])} planned"
    waits = f"outbox {outbox['buckets']} buckets, {show_size(outbox['bytes'])} of {show_size(outbox['bytes_most'])}"
    links = f"broker {seen['broker']['broker']}: {seen['broker']['state']}"
    links += "" if target["state"] == "unused" else f"   target {target['target']}: {target['state']}"
    budget = seen.get("budget")
    spent = f"   link {show_size(budget['used'])} of {show_size(budget['limit'])}" if budget and budget["limit"] else ""
    up = show_duration(seen["uptime_s"] * 1_000_000)
    readings = f"up {up}   readings {seen['counters'].get('accepted', 0):,}"
    return [f"{memory}   {waits}{spent}", f"{links}   {readings}"]


def troubles(seen: dict[str, Any]) -> list[str]:
    """What a person should look at."""
    found = [f"the store refuses: {seen['store']['refuses']}"] if seen["store"]["refuses"] else []
    found += [f"target: {seen['target']['error']}"] if seen["target"].get("error") else []
    raised = [each for each in seen["alerts"] if each["state"] == "raised"]
    return found + [f"alert {each['alert']} of {each['stream']}" for each in raised]


def sparkline(values: deque[float]) -> str:
    """The values as bars, least to greatest; a level line where they are all the same."""
    if not values:
        return ""
    least, span = min(values), max(values) - min(values)
    if span == 0:
        return _BARS[0] * len(values)
    return "".join(_BARS[min(7, int(8 * (value - least) / span))] for value in values)


def _told(value: Any) -> Text:
    if value is None:
        return Text("–")
    return Text(f"{value:.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value))
