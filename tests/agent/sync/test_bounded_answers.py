"""Whatever a gateway answers, `put` gives an outcome with a reason, in little memory, and never raises."""

from __future__ import annotations

import gzip
import http.client
import random
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from target_suite.suite import FIRST, SECOND

from sluicegate_agent.sync import answers
from sluicegate_agent.sync.aside import Aside
from sluicegate_agent.sync.connection import Connection, explained
from sluicegate_agent.sync.contract import Document, Outcome
from sluicegate_agent.sync.pace import FIRST as FIRST_BYTES
from sluicegate_agent.sync.pace import LEAST, MOST, Pace
from sluicegate_agent.sync.splitting import content, missing
from sluicegate_agent.sync.sync_gateway import Basic, Session, SyncGatewayTarget

DEEP = b"[" * 100_000


class Liar:
    """A server that answers each connection's requests with the same bytes; `asked` counts connections."""

    def __init__(self, answer: bytes, pause: float = 0.0) -> None:
        self.answer, self.pause, self.asked = answer, pause, 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/db"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.asked += 1
            threading.Thread(target=self._answered, args=(client,), daemon=True).start()

    def _answered(self, client: socket.socket) -> None:
        try:
            with client:
                client.recv(1 << 16)
                client.sendall(self.answer)
                time.sleep(self.pause)
        except OSError:
            pass

    def close(self) -> None:
        """Nobody is answered any more."""
        self._listener.close()


@pytest.fixture
def lying() -> Iterator[Callable[..., Liar]]:
    """Makes servers; closes them."""
    made: list[Liar] = []

    def make(answer: bytes, pause: float = 0.0) -> Liar:
        made.append(Liar(answer, pause))
        return made[-1]

    yield make
    for one in made:
        one.close()


def said(body: bytes, status: str = "201 Created", *headers: str) -> bytes:
    """An answer over HTTP."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(lines).encode("utf-8") + b"\r\n\r\n" + body


def put(url: str, *, session: bool = False, timeout: float = 5.0) -> Outcome:
    """The outcome at such a server, within a time and without an exception."""
    login = Session("board-1", "letmein") if session else Basic("board-1", "letmein")
    return SyncGatewayTarget(Connection(url, None, None, timeout), login).put([FIRST, SECOND])


LIES = {
    "deep": said(DEEP),
    "deep rows": said(b'[{"id":"a","x":' + DEEP),
    "a deep reason": said(b'{"reason":' + DEEP, "503 Busy"),
    "long number": said(b"[" + b"9" * 60_000 + b"]"),
    "no rows": said(b"{}"),
    "rows of nothing": said(b"[" + b"{}," * 20_000 + b"{}]"),
    "no UTF-8": said(b'[{"id":"\xff\xfe"}]'),
    "lone surrogates": said(b'[{"id":"\\ud800"}]'),
    "other types": said(b'[{"id":1,"rev":[]}]'),
    "nobody's ids": said(b'[{"id":"x","rev":"1-a"}]'),
    "a status of its own": said(b'[{"id":"%s","status":"teapot"}]' % FIRST.id.encode()),
    "no json": said(b"<html>" * 100, "200 OK"),
    "a strange wait": said(b"{}", "503 Busy", "Retry-After: ²"),
    "an endless wait": said(b"{}", "503 Busy", "Retry-After: " + "9" * 300),
    "a negative wait": said(b"{}", "503 Busy", "Retry-After: -5"),
    "a wait of no date": said(b"{}", "429 Many", "Retry-After: Mon, 99 Foo 99999 99:99:99 GMT"),
    "no status": b"HTTP/1.1 \r\n\r\n",
    "status of text": b"HTTP/1.1 abc def\r\n\r\n",
    "garbage": bytes(range(256)) * 64,
    "nothing": b"",
    "endless lines": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 90 + b"X: " + b"z" * 200_000,
    "endless continues": b"HTTP/1.1 100 Continue\r\n\r\n" * 5_000,
    "a negative length": b"HTTP/1.1 201 Created\r\nContent-Length: -5\r\n\r\n[]",
    "chunks of nonsense": b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "huge chunks": b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffff\r\n" + b"x" * 300_000,
    "no gzip": said(b"plain", "201 Created", "Content-Encoding: gzip"),
    "cut gzip": said(gzip.compress(b"[" * 9999)[:30], "201 Created", "Content-Encoding: gzip"),
    "brotli": said(b"x", "201 Created", "Content-Encoding: br"),
    "a bomb": said(gzip.compress(b"[" + b"{}," * (30 << 20)), "201 Created", "Content-Encoding: gzip"),
    "a redirect": said(b"", "302 Found", "Location: http://127.0.0.1:1/"),
    "always known": said(b'[{"id":"%s","status":409}]' % FIRST.id.encode()),
}


@pytest.mark.parametrize("session", [False, True])
@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_an_error_with_a_reason(lying: Callable[..., Liar], name: str, session: bool) -> None:
    """Nothing accepted, nothing refused for good, to be tried again, and words for people; in a bounded wait."""
    outcome = put(lying(LIES[name]).url, session=session)
    assert (outcome.accepted, outcome.rejected) == ((), {})
    assert outcome.retry_after is not None
    assert 0 <= outcome.retry_after <= 3600
    assert 10 < len(outcome.error) < 1000


def test_random_answers(lying: Callable[..., Liar]) -> None:
    """Honest answers with bytes changed, cut and doubled."""
    source = random.Random(16)
    rows = b'[{"id":"%s","rev":"1-a"},{"id":"%s","status":409}]' % (FIRST.id.encode(), SECOND.id.encode())
    honest = [said(rows), said(gzip.compress(rows), "201 Created", "Content-Encoding: gzip", "Retry-After: 3")]
    for _ in range(150):
        answer = bytearray(source.choice(honest))
        for _ in range(source.randrange(1, 6)):
            at = source.randrange(len(answer))
            answer[at : at + source.randrange(3)] = source.randbytes(source.randrange(4))
        outcome = put(lying(bytes(answer)).url, timeout=0.5)
        assert outcome.error or len(outcome.accepted) + len(outcome.rejected) == 2
        assert set(outcome.accepted) <= {FIRST.id, SECOND.id}


def test_a_session_that_is_never_accepted_is_not_asked_for_ever(lying: Callable[..., Liar]) -> None:
    """200 with a cookie and 401 with it, again and again: a few requests, then back-off's turn."""
    one = lying(said(b"{}", "401 Unauthorized"))
    login = Session("board-1", "letmein")
    login._cookie = "SyncGatewaySession=1"
    login.renew = lambda: True  # type: ignore[method-assign]
    outcome = SyncGatewayTarget(Connection(one.url, None, None, 5.0), login).put([FIRST])
    assert outcome.retry_after is not None
    assert one.asked <= 3


def test_a_trickle_ends(lying: Callable[..., Liar], monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence is counted from the last byte; a peer that says nothing more is given up."""
    begun = time.monotonic()
    outcome = put(lying(b"HTTP/1.1 201 Created\r\nContent-Length: 50\r\n\r\n[", pause=30.0).url, timeout=0.3)
    assert "no answer in time" in outcome.error
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize(
    ("asked", "now", "seconds"),
    [
        ("7", "", 7.0),
        ("0", "", 0.0),
        ("99999", "", 3600.0),
        ("²", "", 0.0),
        ("٣", "", 0.0),
        ("1e3", "", 0.0),
        (formatdate(1_750_000_030, usegmt=True), formatdate(1_750_000_000, usegmt=True), 30.0),
        (formatdate(1_750_000_000, usegmt=True), formatdate(1_750_000_030, usegmt=True), 0.0),
        ("Tue, 02 Oct 2096 07:06:40 GMT", "", 3600.0),
    ],
)
def test_when_to_come_again(asked: str, now: str, seconds: float) -> None:
    """ASCII digits, or a date as far ahead as the answer's own date says; an hour at most."""
    headers = http.client.HTTPMessage()
    headers["Retry-After"], headers["Date"] = asked, now
    assert answers.retry_after(headers) == seconds


@pytest.mark.parametrize("theirs", [b'{"a":' + DEEP, b'{"a":[' + b"{}," * 40_000 + b"{}]}", b"[]", b'{"a":1', b"\xff"])
def test_a_document_that_is_compared_is_bounded(theirs: bytes) -> None:
    """What a gateway claims to have: never an exception, and other content than ours."""
    assert content(theirs) is None
    assert missing(Document(FIRST.id, b'{"a":1}'), content(theirs)) is None


def test_a_target_that_fails_unforeseen_does_not_end_the_agent() -> None:
    """It is an error with the exception's name, and the next put is tried."""

    class Broken:
        def put(self, documents: object) -> Outcome:
            raise KeyError("unforeseen")

        def close(self) -> None:
            """Nothing."""

    aside = Aside(Broken())
    for _ in range(2):
        while (outcome := aside.put([FIRST])).pending:
            time.sleep(0.001)
        assert "KeyError" in outcome.error
        assert outcome.retry_after == 0.0


MEMORY = """
import sys
from pathlib import Path
def peak():
    return next(int(l.split()[1]) for l in Path("/proc/self/status").read_text().splitlines() if l.startswith("VmHWM"))
import sluicegate_agent.agent
from sluicegate_agent.sync.sync_gateway import Basic, SyncGatewayTarget
from sluicegate_agent.sync.connection import Connection
from sluicegate_agent.sync.contract import Document
target = SyncGatewayTarget(Connection(sys.argv[1], None, None, 30.0), Basic("a", "b"))
before = peak()
for _ in range(3):
    target.put([Document("a::b::00060a24181e4000::0000000000000000", b"{}")])
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("body", [b"[" + b"{}," * (3 << 20) + b"{}]", b'{"reason":[' + b"[]," * (3 << 20) + b"1]}"])
def test_nine_megabytes_of_gzip_cost_next_to_nothing(lying: Callable[..., Liar], body: bytes) -> None:
    """265 MiB were seen; a few are planned for a request."""
    one = lying(said(gzip.compress(body, 1), "201 Created", "Content-Encoding: gzip"))
    done = subprocess.run([sys.executable, "-c", MEMORY, one.url], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 3 << 10, "KiB"


def test_a_wrong_clock_is_called_that() -> None:
    """A certificate that is not valid yet, or no more, is a matter of the clock, not of an authority."""
    for code, words in ((9, "is not valid yet"), (10, "has expired")):
        error = ssl.SSLCertVerificationError(1, "certificate verify failed")
        error.verify_code, error.verify_message = code, "certificate is not yet valid"
        assert words in explained(error)
        assert "set the clock" in explained(error)
    error.verify_code = 20
    assert "name its authority" in explained(error)


def test_a_link_that_fails_gets_less_and_one_that_works_more() -> None:
    """Doubled by success as far as a few seconds carry, halved by silence, within limits."""
    pace = Pace()
    assert pace.bytes == FIRST_BYTES
    for _ in range(10):
        pace.took(pace.bytes, 0.1)
    assert pace.bytes == MOST
    for _ in range(20):
        pace.silent()
    assert pace.bytes == LEAST
    for _ in range(20):
        pace.took(pace.bytes, pace.bytes / 8000)  # 8 kB/s
    assert pace.bytes == 64_000, "eight seconds"
