"""The broker: routes QoS 0 and 1 on loopback, keeps sessions in memory, holds publishers back instead of dropping."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from sluicegate_demo.broker.connection import Connection
from sluicegate_demo.broker.faults import Fault, Faults
from sluicegate_demo.broker.packets import Connect, Message, Reason
from sluicegate_demo.broker.session import Session, matches

CONNECTIONS, SESSIONS, RETAINED = 256, 256, 1024  # most of each; beyond it a newcomer is refused


class Broker:
    """A context manager with a `port`: MQTT 3.1.1 and 5 on 127.0.0.1, QoS 0 and 1, persistent sessions.

    What it is not: no TLS, no accounts, no QoS 2, no shared subscriptions, and its memory ends with it. `queue` and
    `queue_bytes` bound what waits for one subscriber; a publisher to a full one gets no PUBACK until there is room.
    Raises OSError when the port is taken.
    """

    def __init__(
        self, port: int = 0, *, faults: Iterable[Fault] = (), queue: int = 10_000, queue_bytes: int = 16 << 20
    ) -> None:
        self.port = port
        self.faults = Faults(faults)
        self.counts: Counter[str] = Counter()
        self._limits = queue, queue_bytes
        self._sessions: dict[str, Session] = {}
        self._online: dict[str, Connection] = {}
        self._connections: set[Connection] = set()
        self._routes: dict[bytes, list[tuple[Session, int]]] = {}
        self._retained: dict[bytes, Message] = {}
        self._ids = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="broker", daemon=True)

    def __enter__(self) -> Broker:
        self._server = self._loop.run_until_complete(
            self._loop.create_server(lambda: Connection(self), "127.0.0.1", self.port)
        )
        self.port = self._server.sockets[0].getsockname()[1]
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        self._loop.run_forever()
        self._server.close()
        for connection in list(self._connections):
            connection.close()
        self._loop.run_until_complete(asyncio.sleep(0.01))

    def waiting(self, client: str) -> int:
        """Messages a client's session holds that the client has not acknowledged."""
        session = self._sessions.get(client)
        return session.waiting if session else 0

    def is_served(self, client: str) -> bool:
        """Whether a client is connected now and has subscribed: what is published from here on reaches it."""
        session = self._sessions.get(client)
        return client in self._online and session is not None and bool(session.filters)

    # what a connection calls

    def admit(self, connection: Connection) -> bool:
        """Whether there is a place left."""
        self._connections.add(connection)
        return len(self._connections) <= CONNECTIONS

    def new_client_id(self) -> str:
        """An id for a client that has none."""
        self._ids += 1
        return f"assigned-{self._ids}"

    def open_session(self, connection: Connection, hello: Connect) -> tuple[Session, bool]:
        """The client's session, old or new, and whether it was there; an older connection of the client is closed."""
        if older := self._online.get(hello.client):
            older.session = None
            older.close(Reason.TAKEN_OVER)
        if hello.clean:
            self.forget(hello.client)
        session = self._sessions.get(hello.client)
        present = session is not None
        if session is None:
            self._make_room()
            session = self._sessions[hello.client] = Session(hello.client, *self._limits)
        session.expiry = hello.expiry
        session.resume()
        self._online[hello.client] = connection
        return session, present

    def _make_room(self) -> None:
        """Beyond the most sessions the one that has been away longest goes: a bound, and a counter that shows it."""
        if len(self._sessions) >= SESSIONS:
            away = next((client for client in self._sessions if client not in self._online), None)
            self.counts["sessions_pushed_out"] += 1
            self.forget(away if away is not None else next(iter(self._sessions)))

    def left(self, connection: Connection, will: Message | None) -> None:
        """A connection is gone: its session stays as long as agreed."""
        self._connections.discard(connection)
        if will is not None:
            self.route(will)
        session, connection.session = connection.session, None
        if session is None or self._online.get(session.client) is not connection:
            return
        del self._online[session.client]
        if session.expiry is not None:
            self._loop.call_later(session.expiry, self._expire, session, session.epoch)

    def _expire(self, session: Session, epoch: int) -> None:
        if session.epoch == epoch and self._sessions.get(session.client) is session:
            self.forget(session.client)

    def forget(self, client: str) -> None:
        """Lose a session with all it holds; publishers that waited for it go on."""
        if session := self._sessions.pop(client, None):
            self._routes.clear()
            self._online.pop(client, None)
            self.counts["sessions_forgotten"] += 1
            session.wake(gone=True)

    def subscribed(self, session: Session, fresh: list[str]) -> None:
        """A session's filters changed: routes are worked out anew, retained messages that match go to it."""
        self._routes.clear()
        for message in list(self._retained.values()):
            topic = message.topic.decode()
            if any(matches(name, topic) for name in fresh if name in session.filters):
                session.add(message, session.wants(topic) or 0)

    def _takers(self, topic: bytes) -> list[tuple[Session, int]]:
        found = self._routes.get(topic)
        if found is None:
            if len(self._routes) >= 10_000:
                self._routes.clear()
            text = topic.decode()
            wanted = [(session, session.wants(text)) for session in self._sessions.values()]
            found = self._routes[topic] = [(session, qos) for session, qos in wanted if qos is not None]
        return found

    def first_full(self, topic: bytes, own: Session | None) -> Session | None:
        """A subscriber that has no room; the publisher itself does not count, or it would wait for itself."""
        return next((session for session, _ in self._takers(topic) if session.full and session is not own), None)

    def route(self, message: Message) -> int:
        """Queue a message for everyone who wants it; returns how many that are."""
        self.counts["published"] += 1
        if message.retain:
            self._retain(message)
            message = replace(message, retain=False)
        takers = self._takers(message.topic)
        for session, qos in takers:
            online = self._online.get(session.client)
            if online is None and not (qos and message.qos):
                continue
            session.add(message, qos)
            if online is not None:
                self._loop.call_soon(online.pump)
        return len(takers)

    def _retain(self, message: Message) -> None:
        self._retained.pop(message.topic, None)
        if message.payload and len(self._retained) < RETAINED:
            self._retained[message.topic] = message
