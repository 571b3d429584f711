"""A small server in one thread: few connections, each with a bounded request and a deadline, nobody can hold it up."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import selectors
import socket
import sys
import termios
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from sluicegate_agent.config.outward import UNIX, ListenConfig
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.logs.repeats import Repeats
from sluicegate_agent.web.desk import Ticket
from sluicegate_agent.web.http import HEAD_MOST, Refused, Request, Response, head_of, parse, written

log = logging.getLogger("sluicegate.web")
#: Seconds a peer has for its whole request, the agent for an answer, and a peer for taking a piece of the response.
ASKING, ANSWERING, TAKING = 5.0, 5.0, 10.0
#: Seconds that a peer has to end the connection once it has all, unless another one wants its place.
LINGERING = 1.0
#: Seconds that a connection lasts at most, unless it follows events.
LONGEST = 60.0
#: Connections that follow events, of all; seconds between two events; bytes that may wait for such a peer.
FOLLOWERS_MOST, EVENT_EVERY, BEHIND_MOST = 4, 1.0, 1 << 20
_STACK = 256 << 10
_PIECE = 65536
#: SIOCOUTQ: bytes that the other side's system has not taken yet.
_NOT_TAKEN = termios.TIOCOUTQ


class Follow:
    """Returned for a request that goes on: a new ticket every EVENT_EVERY seconds, its body one event."""

    def __init__(self, ask: Callable[[], Ticket]) -> None:
        self.ask = ask


#: What a handler returns: the response, the question whose answer it is, or a question again and again.
Handled = Response | Ticket | Follow


class _Peer:
    """One connection: what was read of its request, what waits to be written, and until when."""

    def __init__(self, sock: socket.socket, now: float) -> None:
        self.sock = sock
        self.read, self.unsent = bytearray(), b""
        self.ends, self.dies = now + ASKING, now + LONGEST
        self.request: Request | None = None
        self.ticket: Ticket | None = None
        self.owed: Ticket | None = None  # until the peer's system has the whole answer
        self.follow: Follow | None = None
        self.next_event = 0.0
        self.is_asking, self.head_only, self.closes = True, False, False
        self.says_no_more = self.is_answered = False


class Server:
    """Listens while it is open; `handle` is called in its thread and must not block."""

    def __init__(
        self, config: ListenConfig, handle: Callable[[Request], Handled], table: str = "metrics", body: int = 0
    ) -> None:
        """`table`: where it is configured; `body`: bytes of one request at most, 0: it is for reading.

        Bind, so that who is told of it can connect; raises EnvironmentRefused where that is not possible."""
        self._most, self._handle = config.connections, handle
        self._body, self._name = body, table
        self._socket = _bound(config, table)
        self._path = _path(config)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._socket, selectors.EVENT_READ)
        self._wake, self._woken = socket.socketpair()
        for each in (self._wake, self._woken):
            each.setblocking(False)
        self._selector.register(self._wake, selectors.EVENT_READ)
        self._peers: dict[socket.socket, _Peer] = {}
        self._closing = False
        self._repeats = Repeats(log)

    def start(self) -> None:
        """Serve in a thread that ends with the process."""
        before = threading.stack_size(_STACK)
        try:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        finally:
            threading.stack_size(before)

    def wake(self) -> None:
        """Look at the tickets now; from any thread."""
        with contextlib.suppress(OSError):
            self._woken.send(b"\0")

    def close(self) -> None:
        """Stop serving and let every connection go."""
        self._closing = True
        self.wake()
        self._thread.join(5.0)
        for peer in [*self._peers.values()]:
            self._drop(peer)
        for each in (self._socket, self._wake, self._woken):
            each.close()
        self._selector.close()
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.unlink()

    def _run(self) -> None:
        while not self._closing:
            found = self._selector.select(self._patience())
            self._look(time.monotonic())
            # What became of an answer is known before the same may be sent again.
            for key, events in sorted(found, key=self._is_new):
                sock: Any = key.fileobj
                if sock is self._socket:
                    self._accept()
                elif sock is self._wake:
                    with contextlib.suppress(OSError):
                        self._wake.recv(4096)
                elif sock in self._peers:
                    self._guarded(self._peers[sock], partial(self._exchange, self._peers[sock], events))
            self._look(time.monotonic())

    def _is_new(self, ready: tuple[selectors.SelectorKey, int]) -> bool:
        sock: Any = ready[0].fileobj
        return sock not in self._peers or self._peers[sock].owed is None

    def _patience(self) -> float | None:
        """Without a peer there is nothing to look after: an idle listener costs no wake-up."""
        return 0.25 if self._peers else None

    def _accept(self) -> None:
        try:
            sock, _ = self._socket.accept()
        except OSError as error:
            self._repeats.tell(logging.WARNING, "a connection could not be taken", f": {error}")
            time.sleep(0.05)  # no descriptor is left: trying again at once would only burn time
            return
        sock.setblocking(False)
        if len(self._peers) >= self._most:
            answered = next((each for each in self._peers.values() if each.is_answered), None)
            if answered is not None:
                self._drop(answered)
        if len(self._peers) >= self._most:
            self._repeats.tell(logging.WARNING, f"more than {self._most} connections at once: refused", "")
            with contextlib.suppress(OSError):
                sock.send(written(Response(503, b"too many connections; try again later\n")))
            sock.close()
            return
        self._peers[sock] = _Peer(sock, time.monotonic())
        self._selector.register(sock, selectors.EVENT_READ)

    def _exchange(self, peer: _Peer, events: int) -> None:
        if events & selectors.EVENT_READ:
            self._receive(peer)
        if events & selectors.EVENT_WRITE and peer.sock in self._peers:
            self._send(peer)

    def _guarded(self, peer: _Peer, work: Callable[[], None]) -> None:
        try:
            work()
        except OSError:
            self._drop(peer)
        except Exception:
            # A peer's bytes must not end the listener, whatever they are.
            log.exception("a request failed in a way that was not foreseen")
            self._drop(peer)

    def _receive(self, peer: _Peer) -> None:
        piece = peer.sock.recv(self._wanted(peer))
        if not piece:
            self._end_of(peer)
        elif peer.is_asking:
            peer.read += piece
            self._judge(peer)

    def _end_of(self, peer: _Peer) -> None:
        """A peer says no more: it is gone, or waits for its answer."""
        if peer.is_asking or peer.follow is not None:
            self._drop(peer)
        else:
            peer.says_no_more = True
            if peer.ticket is not None:
                peer.ticket.ended()
            self._watch(peer)

    def _wanted(self, peer: _Peer) -> int:
        """Bytes to be read at most: of a head, of a body whose length is known, or of what nobody asked for."""
        if not peer.is_asking:
            return _PIECE
        return HEAD_MOST + 1 - len(peer.read) if peer.request is None else peer.request.length - len(peer.read)

    def _judge(self, peer: _Peer) -> None:
        try:
            if peer.request is None and not self._has_head(peer):
                return
            request = peer.request
            if request is None or len(peer.read) < request.length:
                return
            peer.is_asking = False
            handled = self._handle(request._replace(body=bytes(peer.read[: request.length])))
        except Refused as refusal:
            peer.is_asking = False
            handled = refusal.response
        peer.read = bytearray()
        self._begin(peer, handled)

    def _has_head(self, peer: _Peer) -> bool:
        """Whether the head has come; what followed it is the begin of the body. Raises Refused."""
        head, end, rest = peer.read.partition(b"\r\n\r\n")
        if not end:
            if len(peer.read) > HEAD_MOST:
                raise Refused(431, "the request's head is too long")
            return False
        peer.request = parse(bytes(head), self._body)
        peer.head_only = peer.request.method == "HEAD"
        peer.read = rest
        if peer.request.headers.get("expect", "").lower() == "100-continue" and len(rest) < peer.request.length:
            self._queue(peer, b"HTTP/1.1 100 Continue\r\n\r\n")
        return True

    def _begin(self, peer: _Peer, handled: Handled) -> None:
        if isinstance(handled, Response):
            self._finish(peer, handled)
        elif isinstance(handled, Ticket):
            peer.ticket, peer.owed, peer.ends = handled, handled, time.monotonic() + ANSWERING
        elif sum(each.follow is not None for each in self._peers.values()) >= FOLLOWERS_MOST:
            self._finish(peer, Response(503, b"too many follow the events already\n"))
        else:
            peer.follow, peer.ends = handled, time.monotonic() + ANSWERING
            self._queue(peer, head_of(200, "text/event-stream; charset=utf-8"))

    def _finish(self, peer: _Peer, response: Response) -> None:
        peer.is_asking, peer.ticket, peer.closes = False, None, True
        self._queue(peer, written(response, head_only=peer.head_only))

    def _queue(self, peer: _Peer, data: bytes) -> None:
        peer.unsent += data
        peer.ends = time.monotonic() + TAKING
        self._send(peer)

    def _send(self, peer: _Peer) -> None:
        try:
            sent = peer.sock.send(peer.unsent[:_PIECE]) if peer.unsent else 0
        except BlockingIOError:
            sent = 0
        if sent:
            peer.unsent = peer.unsent[sent:]
            peer.ends = time.monotonic() + TAKING
        if not peer.unsent and peer.closes and not peer.is_answered:
            # Closed at once, the connection would be reset where more came than was read: the answer may go with it.
            peer.sock.shutdown(socket.SHUT_WR)
            peer.is_answered, peer.ends = True, time.monotonic() + LINGERING
        self._watch(peer)

    def _watch(self, peer: _Peer) -> None:
        reads = 0 if peer.says_no_more else selectors.EVENT_READ
        events = reads | (selectors.EVENT_WRITE if peer.unsent else 0)
        found = self._selector.get_map().get(peer.sock)
        if found is not None and found.events != events:
            self._selector.unregister(peer.sock)
        if events and (found is None or found.events != events):
            self._selector.register(peer.sock, events)

    def _look(self, now: float) -> None:
        """Answers that came, events that are due, and peers whose time is over."""
        for peer in [*self._peers.values()]:
            self._guarded(peer, partial(self._look_at, peer, now))

    def _look_at(self, peer: _Peer, now: float) -> None:
        ticket = peer.ticket
        if peer.is_answered:
            self._look_after(peer, now)
        elif ticket is not None and ticket.is_done:
            peer.ticket = None
            if peer.follow is None:
                self._finish(peer, ticket.response())
            else:
                self._queue(peer, b"data: " + ticket.response().body + b"\n\n")
        elif ticket is None and peer.follow is not None and now >= peer.next_event:
            peer.next_event = now + EVENT_EVERY
            peer.ticket, peer.ends = peer.follow.ask(), now + ANSWERING
        elif now >= peer.ends and (ticket is not None or peer.is_asking or peer.unsent):
            self._expire(peer)
        elif peer.follow is None and now >= peer.dies:
            self._drop(peer)
        if len(peer.unsent) > BEHIND_MOST and peer.follow is not None:
            self._drop(peer)

    def _look_after(self, peer: _Peer, now: float) -> None:
        """Let an answered peer go when it has ended the connection, or its time is over. Raises OSError: it is gone."""
        if error := peer.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(error, os.strerror(error))
        has_all = not int.from_bytes(fcntl.ioctl(peer.sock, _NOT_TAKEN, bytes(4)), sys.byteorder)
        if now >= peer.ends or (has_all and peer.says_no_more):
            if has_all and peer.owed is not None:
                peer.owed.heard()
                peer.owed = None
            self._drop(peer)

    def _expire(self, peer: _Peer) -> None:
        if peer.ticket is not None and peer.follow is None:
            peer.owed = None
            peer.ticket.withdraw()
            self._finish(peer, Response(503, b"the agent does not answer\n"))
        elif peer.is_asking and peer.read:
            self._finish(peer, Response(408, b"the request did not come in time\n"))
        else:
            self._drop(peer)

    def _drop(self, peer: _Peer) -> None:
        if self._peers.pop(peer.sock, None) is None:
            return
        if peer.sock in self._selector.get_map():
            self._selector.unregister(peer.sock)
        peer.sock.close()
        if peer.owed is not None:
            peer.owed.lost()


def _path(config: ListenConfig) -> Path | None:
    return Path((config.listen or "").removeprefix(UNIX)) if config.is_unix else None


def _bound(config: ListenConfig, table: str) -> socket.socket:
    path = _path(config)
    internet = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    family = internet if path is None else socket.AF_UNIX
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        if path is None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((config.host, config.port))
        else:
            _bind_file(sock, path)
        sock.listen(config.connections)
    except OSError as error:
        sock.close()
        raise EnvironmentRefused(
            f"{table}.listen = {config.listen}: {error.strerror or error}; give an address of this machine that is free"
        ) from None
    sock.setblocking(False)
    return sock


def _is_served(path: Path) -> bool:
    """Whether somebody listens there now."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trial:
        try:
            trial.connect(str(path))
        except OSError:
            return False
        return True


def _bind_file(sock: socket.socket, path: Path) -> None:
    """A socket for the agent's user alone; one that an agent left behind is taken away, any other file is not."""
    if path.is_socket() and not _is_served(path):
        path.unlink()
    before = os.umask(0o177)
    try:
        sock.bind(str(path))
    finally:
        os.umask(before)
