"""What the listener answers: which path asks what of the agent, and how that is written."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from sluicegate_agent.web.access import Access
from sluicegate_agent.web.desk import Desk
from sluicegate_agent.web.http import Refused, Request, Response
from sluicegate_agent.web.metrics import Exposition
from sluicegate_agent.web.server import Follow, Handled
from sluicegate_agent.web.view import View

_JSON, _CSV = "application/json", "text/csv; charset=utf-8"
_encode = msgspec.json.Encoder(enc_hook=int).encode  # sizes and lengths of time are whole numbers
#: Path → file of the page and its type.
PAGE = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
}
_FOLDER = Path(__file__).parent
_OLDEST, _NEWEST = -(2**63), 2**63 - 1


def as_json(found: Any) -> Response:
    """What was found as JSON; what is infinite or no number is null."""
    return Response(200, _encode(found), _JSON)


class Routes:
    """Handles requests: each path is one question to the agent, asked through the desk."""

    def __init__(self, view: View, desk: Desk, access: Access) -> None:
        """Raises ModuleNotFoundError where prometheus-client is not installed."""
        self._view, self._desk, self._access = view, desk, access
        self._metrics = Exposition()
        self._paths: dict[str, Callable[[Request], Handled]] = {
            "/metrics": self._ask_metrics,
            "/health": lambda _: desk.ask(lambda: {"status": "ok"}, as_json),
            "/ready": lambda _: desk.ask(view.ready, _readiness),
            "/api/status": self._ask_status,
            "/api/answers": self._ask_answers,
            "/api/streams": lambda r: desk.ask(lambda: view.status(r.query.get("stream"))["streams"], as_json),
            "/api/buckets": self._ask_buckets,
            "/api/events": lambda _: Follow(lambda: desk.ask(view.status, as_json)),
        }

    def handle(self, request: Request) -> Handled:
        """The response, or the question that has to be asked. Raises Refused."""
        self._access.check(request)
        if request.path in PAGE:
            name, kind = PAGE[request.path]
            return Response(200, (_FOLDER / name).read_bytes(), kind)
        found = self._paths.get(request.path)
        if found is None:
            raise Refused(404, f"there are: {', '.join(sorted([*PAGE, *self._paths]))}")
        return found(request)

    def _ask_metrics(self, request: Request) -> Handled:
        return self._desk.ask(self._view.status, self._metrics.response)

    def _ask_status(self, request: Request) -> Handled:
        return self._desk.ask(partial(self._view.status, request.query.get("stream")), as_json)

    def _ask_answers(self, request: Request) -> Handled:
        wanted = {key: request.query[key] for key in ("stream", "window", "aggregate") if key in request.query}
        view = self._view

        def look() -> dict[str, Any]:
            kept = view.answers.values()
            found = [a for a in kept if all(getattr(a, key) == value for key, value in wanted.items())]
            return {"device": view.config.device.id, "results": found}

        return self._desk.ask(look, as_json)

    def _ask_buckets(self, request: Request) -> Handled:
        query = request.query
        stream, window = query.get("stream"), query.get("window")
        if not stream or not window:
            raise Refused(400, "expected ?stream=NAME&window=NAME, and perhaps &from=µs&to=µs since 1970")
        start, end = (_time(query.get(key), default) for key, default in (("from", _OLDEST), ("to", _NEWEST)))

        def look() -> Any:
            try:
                return self._view.buckets(stream, window, start, end)
            except KeyError as error:
                return error

        return self._desk.ask(look, _table)


def _time(text: str | None, default: int) -> int:
    if text is None:
        return default
    if not text.lstrip("-").isdecimal() or len(text) > 19:
        raise Refused(400, "expected whole microseconds since 1970 for from and to")
    return int(text)


def _readiness(found: dict[str, Any]) -> Response:
    return as_json(found)._replace(status=200 if found["ready"] else 503)


def _table(found: Any) -> Response:
    """Buckets as CSV: count, first and last time in µs, and a column an aggregate."""
    if isinstance(found, KeyError):
        return Response(404, f"{found.args[0]}\n".encode())
    names, rows = found
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("count", "t_first_us", "t_last_us", *names))
    table.writerows(rows)
    return Response(200, text.getvalue().encode(), _CSV)
