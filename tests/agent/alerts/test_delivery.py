"""Messages reach broker and webhook: in order, until taken, under one id, whatever the other side answers."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from brokers import until
from durable_agent import bare, configured

from sluicegate_agent.alerts.alerts import Alerts
from sluicegate_agent.alerts.delivery import Delivery
from sluicegate_agent.alerts.webhook import Webhook
from sluicegate_agent.config.outward import AlertsConfig
from sluicegate_agent.config.units import Duration
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.state import State

WINDOW = {"name": "last", "policy": {"count": 1}, "aggregate": "last", "buckets": 0, "streams": ["door"]}
ALERT = {"name": "high", "window": "last", "above": 2}


class Info:
    """What was sent, and whether it was taken."""

    def __init__(self) -> None:
        self.taken = False

    def is_published(self) -> bool:
        """As paho says it."""
        return self.taken


class Sender:
    """A broker's link that takes messages while it is up."""

    def __init__(self) -> None:
        self.up = True
        self.sent: list[tuple[str, dict[str, Any], bool, Info]] = []

    def send(self, topic: str, payload: bytes, *, retain: bool) -> Info | None:
        """Take one, or not."""
        if not self.up:
            return None
        self.sent.append((topic, json.loads(payload), retain, Info()))
        return self.sent[-1][3]


class Hook:
    """A receiver of POSTs on this machine; answers what is next in `answers`, then 204."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        self.got: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                hook.got.append((self.path, dict(self.headers), body))
                self.send_response(hook.answers.pop(0) if hook.answers else 204)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Nothing to stderr."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server.server_port}/hook?x=1"


@pytest.fixture
def hook() -> Iterator[Hook]:
    """A receiver, closed afterwards."""
    found = Hook()
    yield found
    found.server.shutdown()
    found.server.server_close()


class Board:
    """An agent's inner half with alerts and their delivery."""

    def __init__(self, folder: Path, alerts: dict[str, Any]) -> None:
        config = configured(folder, window=[WINDOW], alert=[ALERT], alerts=alerts)
        self.state = State(config)
        self.pipeline = Pipeline(config, self.state)
        self.alerts = self.pipeline.beside = Alerts(config, self.state, self.pipeline)
        self.sender = Sender()
        self.delivery = Delivery(config, self.alerts, self.sender)
        self.sent = 0

    def take(self, *values: float) -> None:
        """A message and a commit a value."""
        for value in values:
            self.sent += 1
            self.pipeline.accept(bare(value, self.sent))
            self.pipeline.commit()

    def kept(self) -> int:
        """Messages in the store."""
        query = "SELECT count(*) FROM meta WHERE key LIKE 'alert.message/%'"
        return int(self.state.store.connection.execute(query).fetchone()[0])


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Callable[..., Board]]:
    """Makes a board; closes it."""
    made: list[Board] = []

    def make(**alerts: Any) -> Board:
        made.append(Board(tmp_path, alerts))
        return made[-1]

    yield make
    for one in made:
        one.state.close()


def test_a_message_is_kept_until_the_broker_has_it(board: Callable[..., Board]) -> None:
    """Sent once, retained, under its topic; forgotten only with its PUBACK."""
    one = board()
    one.take(3)
    for now in range(3):
        one.delivery.step(now)
    ((topic, body, retain, info),) = one.sender.sent
    assert (topic, body["state"], retain) == ("sluicegate/board-1/alerts/high/door", "raised", True)
    assert one.kept() == 1
    info.taken = True
    one.delivery.step(3)
    one.pipeline.commit()
    assert (one.kept(), dict(one.alerts.waiting)) == (0, {})


def test_the_order_is_kept_while_the_broker_is_away(board: Callable[..., Board]) -> None:
    """What waits goes first, and no more than a few are under way."""
    one = board()
    one.sender.up = False
    one.take(*[3, 0] * 8)
    one.delivery.step(0)
    assert one.sender.sent == []
    one.sender.up = True
    for now in range(40):
        one.delivery.step(now)
        assert sum(not info.taken for *_, info in one.sender.sent) <= 8
        for *_, info in one.sender.sent[: now // 2]:
            info.taken = True
    assert [body["number"] for _, body, _, _ in one.sender.sent] == list(range(1, 17))


def test_the_webhook_gets_each_message_once_it_answers(board: Callable[..., Board], hook: Hook, tmp_path: Path) -> None:
    """With the token and an id to know it again by; a server in trouble is asked again, later and later."""
    (tmp_path / "token").write_text("hook-token-0123\n")
    one = board(webhook=hook.url, token_file=str(tmp_path / "token"), topic="")
    hook.answers = [500, 503]
    one.take(3)
    now = [0.0]

    def stepped() -> bool:
        now[0] += 0.5
        one.delivery.step(now[0])
        time.sleep(0.005)
        return not one.alerts.waiting

    until(stepped)
    assert now[0] >= 3  # 1 s, then 2 s
    assert [body["id"] for _, _, body in hook.got] == [hook.got[0][2]["id"]] * 3
    path, headers, body = hook.got[0]
    assert path == "/hook?x=1"
    assert headers["Authorization"] == "Bearer hook-token-0123"
    assert headers["Idempotency-Key"] == body["id"]
    assert one.state.counters["alerts.retries"] == 2
    assert one.sender.sent == []


def test_a_message_that_the_webhook_calls_wrong_does_not_block_the_next(
    board: Callable[..., Board], hook: Hook
) -> None:
    """It is given up after some tries, with a count; a refused token is a person's to mend, and waits."""
    one = board(webhook=hook.url, topic="")
    hook.answers = [422, 422, 422]
    one.take(3, 0)
    now = [0.0]

    def stepped() -> bool:
        now[0] += 5
        one.delivery.step(now[0])
        time.sleep(0.005)
        return not one.alerts.waiting

    until(stepped)
    assert [body["number"] for _, _, body in hook.got] == [1, 1, 1, 2]
    assert one.state.counters["alerts.given_up"] == 1


@pytest.mark.parametrize(("status", "hopeless"), [(400, True), (401, False), (404, False), (429, False), (500, False)])
def test_what_an_answer_means(status: int, hopeless: bool, hook: Hook) -> None:
    """A 4xx that says the message is wrong is hopeless; what a person or time mends is not."""
    hook.answers = [status]
    webhook = Webhook(AlertsConfig(webhook=hook.url))
    webhook.post(b"{}", "1")
    found: list[Any] = []
    until(lambda: found.append(webhook.outcome()) or found[-1])
    assert (found[-1].taken, found[-1].hopeless) == (False, hopeless)


def test_a_webhook_that_never_answers_is_given_up_in_time() -> None:
    """After the time-out, said in words; the agent's thread never waits for it."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/"
        webhook = Webhook(AlertsConfig(webhook=url, timeout=Duration(1_500_000)))
        begun = time.monotonic()
        webhook.post(b"{}", "1")
        assert time.monotonic() - begun < 1.5 or not webhook.is_busy
        found: list[Any] = []
        until(lambda: found.append(webhook.outcome()) or found[-1], 30)
    assert "no answer in time" in found[-1].error
