"""Readings by POST: taken by the listener's thread, counted by the agent's, answered when they are durable.

`/in/TOPIC` names the source by its topic; `/api/v2/write?bucket=TOPIC` and `/write?db=TOPIC` are what senders of line
protocol call. With the header `Idempotency-Key` a request that is sent again counts once, whatever is in it.
"""

from __future__ import annotations

import contextlib
import gzip
import logging
import socket
import zlib
from collections import deque
from collections.abc import Iterator
from io import BytesIO
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec

from sluicegate_agent.config.sources import SourceConfig
from sluicegate_agent.identity.identities import is_bare
from sluicegate_agent.identity.posted import AGAIN_MOST, KEYS_LEAST, Posted, mark_of, short_of
from sluicegate_agent.identity.verdict import digest_of
from sluicegate_agent.messages import Message, NotAsked, Unreadable
from sluicegate_agent.payloads import parts_of
from sluicegate_agent.plant.senders import POSTS
from sluicegate_agent.routing.routes import Route
from sluicegate_agent.web.access import Access
from sluicegate_agent.web.desk import Ticket
from sluicegate_agent.web.http import Refused, Request, Response
from sluicegate_agent.web.server import Server

if TYPE_CHECKING:
    from sluicegate_agent.config import Config
    from sluicegate_agent.pipeline import Pipeline

log = logging.getLogger("sluicegate.http")
KEY = "idempotency-key"
_KEY_MOST = 128
_TOPIC_MOST = 1024
_WRITES = {"/api/v2/write": "bucket", "/write": "db"}
#: What InfluxDB 1 calls units.
_PRECISIONS = {"n": "ns", "u": "us"}
_WHOLE = ("cbor", "cbor-array", "msgpack", "msgpack-array")


class Post(Ticket):
    """One request on its way: what is left of it, and what became of the rest; `number` tells it from others."""

    def __init__(self, number: int, topic: str, body: bytes, key: str, precision: str, *, is_one: bool) -> None:
        super().__init__(dict, _told)
        self.number, self.precision = number, _PRECISIONS.get(precision, precision)
        self.topic, self.body, self.key, self.is_one = topic, body, key, is_one
        self.messages: Iterator[Message] | None = None
        self.source: SourceConfig | None = None
        self.at = self.mark = 0
        #: Whether its sender was told to send it again, did not hear what became of it, or has stopped sending.
        self.is_withdrawn = self.is_lost = self.is_ended = False
        #: Digests of its messages that would look new if they were sent again; how many more such messages have no
        #: digest here; whether `unanswered` has them already.
        self.said: list[bytes] = []
        self.unsaid = 0
        self.is_known = False
        self.lost_ones: deque[Post] | None = None
        self.heard_ones: deque[Post] | None = None
        self.counts = {"accepted": 0, "duplicates": 0, "refused": 0}

    def withdraw(self) -> None:
        """Its sender was told to send it again."""
        self.is_withdrawn = True
        self.lost()

    def lost(self) -> None:
        """Its sender may not know what became of it."""
        self.is_lost = True
        if self.lost_ones is not None:
            self.lost_ones.append(self)

    def ended(self) -> None:
        """Its sender has sent all of it and waits for the answer, or has given up and will send it again."""
        self.is_ended = True

    def heard(self) -> None:
        """Its sender knows what became of it."""
        if self.heard_ones is not None and self.is_ended:
            self.heard_ones.append(self)

    def end(self, status: int, why: str = "") -> None:
        """Have it answered."""
        self.found = status, why, self.counts
        self.is_done = True


def _told(found: tuple[int, str, dict[str, int]]) -> Response:
    status, why, counts = found
    return Response(status, msgspec.json.encode({**counts, "error": why} if why else counts), "application/json")


class Posts:
    """The listener, and the requests that wait: `step` takes of them, `committed` and `failed` have them answered."""

    def __init__(self, config: Config, pipeline: Pipeline) -> None:
        """Raises EnvironmentRefused where the address or the token cannot be used."""
        self._config, self._pipeline = config, pipeline
        self._access = Access(config.http, "http")
        self.wake, self._woken = socket.socketpair()
        for each in (self.wake, self._woken):
            each.setblocking(False)
        self._waiting: deque[Post] = deque(maxlen=config.http.connections)
        self._counted: list[Post] = []
        self._lost: deque[Post] = deque()
        self._heard: deque[Post] = deque()
        self._numbers = count(1)
        place = pipeline.state.store.connection, POSTS, max(config.identity.horizon, KEYS_LEAST)
        self._keys = pipeline.identities.posted = Posted(*place)
        self._unanswered = pipeline.identities.bare.unanswered
        self._server = Server(config.http, self._handle, "http", body=int(config.http.body))
        self._server.start()
        log.info("taking readings on %s", config.http.listen)

    def close(self) -> None:
        """Stop listening; who waits is not answered, and asks again."""
        self._server.close()
        self.wake.close()
        self._woken.close()

    # in the listener's thread

    def _handle(self, request: Request) -> Response | Ticket:
        self._access.check(request)
        if request.method != "POST":
            raise Refused(405, "readings are taken by POST to /in/TOPIC")
        if "origin" in request.headers:
            raise Refused(403, "a page in a browser may not send readings")
        topic = _topic(request)
        key = request.headers.get(KEY, "")
        if len(key) > _KEY_MOST or not key.isprintable():
            raise Refused(400, f"expected {KEY} of up to {_KEY_MOST} printable characters")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        named = next(self._numbers), topic, self._unpacked(request), key, request.query.get("precision", "")
        post = Post(*named, is_one=kind == "application/json")
        post.lost_ones, post.heard_ones = self._lost, self._heard
        if len(self._waiting) == self._waiting.maxlen:
            raise Refused(503, "too many requests wait; try again later")
        self._waiting.append(post)
        with contextlib.suppress(OSError):
            self._woken.send(b"\0")
        return post

    def _unpacked(self, request: Request) -> bytes:
        coding = request.headers.get("content-encoding", "identity").lower()
        if coding == "identity":
            return request.body
        if coding != "gzip":
            raise Refused(415, "expected Content-Encoding gzip, or none")
        most = int(self._config.http.body)
        try:
            found = gzip.GzipFile(fileobj=BytesIO(request.body)).read(most + 1)
        except EOFError:
            raise Refused(400, "the body has no end") from None
        except (OSError, zlib.error):
            raise Refused(400, "the body is not gzip") from None
        if len(found) > most:
            raise Refused(413, f"unpacked, the body is larger than http.body ({most})")
        return found

    # in the agent's thread

    def step(self, room: int) -> int:
        """Take at most `room` messages of the requests that wait, the first one first; how many."""
        with contextlib.suppress(OSError):
            self.wake.recv(4096)
        taken = 0
        self._settle()
        while self._waiting and taken < room and self._pipeline.has_room:
            post = self._waiting[0]
            if post.is_withdrawn:
                post.messages = iter(())  # it comes again
            elif post.messages is None:
                self._begin(post)
            message = next(post.messages, None) if post.messages else None
            if message is None:
                self._waiting.popleft()
                self._counted.append(post)
            else:
                self._take(post, message)
                taken += 1
        return taken

    @property
    def is_busy(self) -> bool:
        """Whether there is more to take at once."""
        return bool(self._waiting)

    @property
    def wants_commit(self) -> bool:
        """Whether somebody waits for an answer."""
        # Messages are taken of the first request only; the listener may append others at any moment.
        return bool(self._counted or (self._waiting and self._waiting[0].at))

    def _settle(self) -> None:
        """Notes which senders heard their answer, and which may send their request again."""
        while self._lost:
            self._may_come_again(self._lost.popleft())
        while self._heard:
            post = self._heard.popleft()
            if post.is_known:
                self._unanswered.heard(post.said, post.unsaid)
        for post in self._counted:
            if post.is_lost or post.is_ended:
                self._may_come_again(post)

    def _begin(self, post: Post) -> None:
        self._settle()  # this request may be one that was sent before
        try:
            source = self._pipeline.entry.source(Message(post.topic, b"", 0, 0))
            if source.input != "http":
                raise NotAsked("its source has another input")
        except Unreadable as reason:
            post.end(404, f"topic {post.topic[:64]}: {reason}")
            return
        unit = "ns" if source.time_format == "iso8601" else source.time_format
        if source.format == "line" and post.precision not in ("", unit):
            post.end(400, f"precision={post.precision[:8]}, but topic {post.topic[:64]} is read in {unit}")
            return
        post.source, post.messages = source, self._messages(source, post)
        post.mark = mark_of(post.body) if post.key else 0
        if post.key and self._keys.is_of_another(post.topic, post.key, post.mark):
            why = f"{KEY} {post.key[:32]!r} came with another body before: give each request a key of its own"
            self._pipeline.refuse(
                _message(post, post.body, int(self._config.limits.payload)),
                self._pipeline.clock(),
                "idempotency_key",
                why,
            )
            post.counts["refused"], post.messages = 1, iter(())
            post.end(422, why)

    def _messages(self, source: SourceConfig, post: Post) -> Iterator[Message]:
        limit = int(self._config.limits.payload)
        return (_message(post, each, limit) for each in _split(source, post))

    def _may_come_again(self, post: Post) -> None:
        """Its sender may send it again without knowing that it counted: then it counts in doubt if it looks new."""
        is_taken = post.is_done or post in self._counted
        if is_taken and post.said and not post.is_known:
            if beyond := self._unanswered.add(post.said, post.unsaid):
                self._pipeline.note("http.forgotten", beyond)
            post.is_known = True

    def _digests(self, source: SourceConfig, message: Message) -> list[bytes]:
        """A digest of each part of a message, as each part is recognised by itself."""
        try:
            return [short_of(digest_of(part)) for part in parts_of(source, message, self._config.limits)]
        except Unreadable:
            return []

    def _may_be_new_again(self, post: Post) -> bool:
        """Whether what it says may look new when it is said again: nothing tells it apart, or what did is forgotten.

        Then it is remembered until its sender has the answer.
        """
        source = post.source
        if post.key or source is None:
            return False
        is_told = source.epoch is None and not is_bare(source)
        return not is_told or (isinstance(source, Route) and source.keys.evict != "refuse")

    def _take(self, post: Post, message: Message) -> None:
        """Count one message of a request, unless it was under its key."""
        counters = self._pipeline.state.counters
        before = counters["accepted"], counters["duplicates"], _refused(counters)
        if post.key and not self._keys.take(post.topic, post.key, post.at, post.mark):
            counters.add("duplicates")
        else:
            if post.source is not None and self._may_be_new_again(post):
                said = self._digests(post.source, message)
                self._unanswered.take_now(said)
                room = AGAIN_MOST - len(post.said)
                post.said += said[:room]
                post.unsaid += len(said[room:])
            self._pipeline.accept(message)
        after = counters["accepted"], counters["duplicates"], _refused(counters)
        for name, old, new in zip(post.counts, before, after, strict=True):
            post.counts[name] += new - old
        post.at += 1

    def committed(self) -> None:
        """All that was taken is durable."""
        self._unanswered.answered()
        if self._waiting:
            self._unanswered.take_now(self._waiting[0].said, self._waiting[0].unsaid)
        for post in self._counted:
            if not post.is_done:
                is_useless = post.counts["refused"] and not (post.counts["accepted"] or post.counts["duplicates"])
                post.end(422 if is_useless else 200, "nothing of it can be used; see the dead letters" * is_useless)
            if post.is_lost or post.is_ended:
                self._may_come_again(post)
        if self._counted or not self._waiting:
            self._counted.clear()
            self._server.wake()

    def failed(self, why: str) -> None:
        """The commit failed: who waits may send it again."""
        # One by one: the listener may put another one behind them meanwhile, which waits for the next commit.
        waiting = [self._waiting.popleft() for _ in range(len(self._waiting))]
        for post in [*self._counted, *waiting]:
            if not post.is_done:
                post.end(503, f"the state cannot be written ({why}): send it again")
                self._may_come_again(post)
        self._counted.clear()
        self._server.wake()


def _refused(counters: Any) -> int:
    return sum(count for name, count in counters.as_dict().items() if name.startswith("refused."))


def _topic(request: Request) -> str:
    topic = request.path.removeprefix("/in/") if request.path.startswith("/in/") else ""
    if request.path in _WRITES:
        topic = request.query.get(_WRITES[request.path], "")
    if not topic or len(topic) > _TOPIC_MOST or not topic.isprintable():
        raise Refused(404, "expected POST /in/TOPIC, /api/v2/write?bucket=TOPIC or /write?db=TOPIC")
    return topic


def _split(source: SourceConfig, post: Post) -> Iterator[bytes]:
    """The messages of a body: its lines, where a line can be one and the body is not said to be one document."""
    if source.format in _WHOLE or (post.is_one and source.format != "line"):
        yield post.body
    elif source.format == "line":
        from sluicegate_agent.payloads.line_protocol import each_line

        yield from each_line(post.body)
    else:
        yield from (line.strip() for line in BytesIO(post.body) if line.strip())


def _message(post: Post, payload: bytes, limit: int) -> Message:
    """A part of a request, cut at the limit, with its length before the cut."""
    return Message(post.topic, payload[:limit], post.number, 0, len(payload) if len(payload) > limit else 0)
