"""Nobody can hold the listener up: slow peers, huge heads, many connections, deaf peers, agents that hang."""

from __future__ import annotations

import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from brokers import until
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate_agent.config.outward import MetricsConfig
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.web import server as served
from sluicegate_agent.web.desk import Desk, Ticket
from sluicegate_agent.web.http import Request, Response
from sluicegate_agent.web.server import Follow, Handled, Server
from sluicegate_demo.ports import free_port

ASK = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
Serve = Callable[..., int]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Starts servers on free ports, with short patience, and closes them."""
    for name, seconds in (("ASKING", 0.4), ("ANSWERING", 0.4), ("TAKING", 0.4), ("EVENT_EVERY", 0.02)):
        monkeypatch.setattr(served, name, seconds)
    opened: list[Server] = []

    def start(handle: Callable[[Request], Handled] = lambda _: Response(200, b"fine"), connections: int = 4) -> int:
        port = free_port()
        opened.append(Server(MetricsConfig(listen=f"127.0.0.1:{port}", connections=connections), handle))
        opened[-1].start()
        return port

    yield start
    for each in opened:
        each.close()


def connect(port: int) -> socket.socket:
    """A connection that gives up after a while."""
    return socket.create_connection(("127.0.0.1", port), 20)


def all_of(sock: socket.socket) -> bytes:
    """Everything until the other side closes."""
    found = b""
    try:
        while piece := sock.recv(65536):
            found += piece
    except ConnectionResetError:
        pass
    return found


def ask(port: int, data: bytes = ASK) -> bytes:
    """The answer to one request."""
    with connect(port) as sock:
        sock.sendall(data)
        return all_of(sock)


def test_a_request_is_answered_and_the_connection_ends(serve: Serve) -> None:
    """Also where it comes byte by byte."""
    port = serve()
    assert ask(port).startswith(b"HTTP/1.1 200 OK")
    with connect(port) as sock:
        for byte in ASK:
            sock.send(bytes([byte]))
        assert all_of(sock).endswith(b"fine")


def test_a_peer_that_says_nothing_is_let_go(serve: Serve) -> None:
    """Without a word; one that began a request and never ends it is told."""
    port = serve()
    with connect(port) as silent, connect(port) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nX: ")
        assert all_of(silent) == b""
        assert b"408" in all_of(slow)
    assert b"200 OK" in ask(port)


def test_a_peer_that_drips_cannot_stay(serve: Serve) -> None:
    """A byte now and then does not move its deadline."""
    port = serve()
    begun = time.monotonic()
    with connect(port) as sock:
        try:
            while time.monotonic() - begun < 60:
                sock.send(b"G")
                time.sleep(0.05)
        except OSError:
            pass
    assert time.monotonic() - begun < 60


def test_a_huge_head_is_refused_before_it_is_kept(serve: Serve) -> None:
    """After HEAD_MOST bytes, however many more are sent."""
    port = serve()
    with connect(port) as sock:
        try:
            for _ in range(2000):
                sock.sendall(b"X: " + b"y" * 1000 + b"\r\n")
        except OSError:
            return  # it hung up, with an answer that went under in what we sent
        assert b"431" in all_of(sock)


def test_more_connections_than_allowed_are_refused(serve: Serve) -> None:
    """Those that are there go on, and a place that is free again is given."""
    port = serve(connections=2)
    with connect(port) as first, connect(port) as second:
        for each in (first, second):
            each.sendall(b"GET")
        time.sleep(0.05)
        with connect(port) as third:
            assert b"503" in all_of(third)
        first.sendall(ASK[3:])
        assert b"200" in all_of(first)
    assert b"200" in ask(port)


def test_a_peer_that_never_reads_is_let_go(serve: Serve) -> None:
    """While it does not, others are served."""
    port = serve(lambda r: Response(200, b"x" * (8 << 20)) if r.path == "/" else Response(200, b"small"))
    with connect(port) as deaf:
        deaf.sendall(ASK)
        assert ask(port, ASK.replace(b"/ ", b"/s ")).endswith(b"small")
        time.sleep(1.0)
        assert len(all_of(deaf)) < 8 << 20


def test_many_short_lived_peers(serve: Serve) -> None:
    """Many that connect, send nonsense or nothing and leave; the next request is answered."""
    port = serve()

    def bother() -> None:
        for i in range(20):
            with connect(port) as sock:
                if i % 3:
                    sock.sendall(bytes([i]) * 50)

    threads = [threading.Thread(target=bother) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    until(lambda: b"200 OK" in ask(port), 30)


@settings(max_examples=40, deadline=None)
@given(st.binary(min_size=1, max_size=600))
def test_any_bytes_leave_it_serving(data: bytes) -> None:
    """What a peer sends never ends the thread; nothing that a handler raises does either."""

    def handle(request: Request) -> Handled:
        raise ValueError(request.path)

    config = MetricsConfig(listen=f"127.0.0.1:{free_port()}")
    server = Server(config, handle)
    server.start()
    try:
        assert config.port is not None
        for sent in (data + b"\r\n\r\n", ASK):
            with connect(config.port) as sock:
                sock.sendall(sent)
                sock.shutdown(socket.SHUT_WR)
                all_of(sock)
        assert server._thread.is_alive()
    finally:
        server.close()


def test_an_answer_of_the_agents_thread(serve: Serve) -> None:
    """Asked in one thread, looked at in another, told in the first."""
    desk = Desk(lambda: None)
    port = serve(lambda _: desk.ask(threading.get_ident, lambda found: Response(200, str(found).encode())))
    with connect(port) as sock:
        sock.sendall(ASK)
        until(lambda: desk.serve() or desk.wake is not None)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            desk.serve()
            time.sleep(0.01)
            if _readable(sock):
                break
        assert all_of(sock).endswith(str(threading.get_ident()).encode())
    desk.close()


def _readable(sock: socket.socket) -> bool:
    import select

    return bool(select.select([sock], [], [], 0)[0])


def test_an_agent_that_hangs_shows(serve: Serve) -> None:
    """Nobody answers the question: 503, so that who watches over the agent starts it again."""
    desk = Desk(lambda: None)
    port = serve(lambda _: desk.ask(lambda: None, lambda _: Response(200, b"")))
    assert b"503" in ask(port)
    desk.close()


def test_a_look_that_fails_is_told_and_nothing_else_fails(serve: Serve) -> None:
    """The agent's thread goes on."""
    desk = Desk(lambda: None)
    ticket = desk.ask(lambda: 1 / 0, lambda _: Response(200, b""))
    desk.serve()
    assert ticket.is_done
    assert ticket.response().status == 503
    desk.close()


def test_followers_get_events_and_are_few(serve: Serve) -> None:
    """Each gets one event after the other; one more than FOLLOWERS_MOST is refused."""

    def done() -> Ticket:
        ticket = Ticket(lambda: None, lambda _: Response(200, b"{}"))
        ticket.is_done = True
        return ticket

    port = serve(lambda _: Follow(done), connections=served.FOLLOWERS_MOST + 2)
    followers = [connect(port) for _ in range(served.FOLLOWERS_MOST)]
    for sock in followers:
        sock.sendall(ASK)
    for sock in followers:
        found = b""
        while found.count(b"data: {}\n\n") < 3:
            piece = sock.recv(4096)
            assert piece, found
            found += piece
        assert b"text/event-stream" in found
    assert b"503" in ask(port)
    for sock in followers:
        sock.close()
    until(lambda: b"text/event-stream" in _first_of(port), 30)


def _first_of(port: int) -> bytes:
    with connect(port) as sock:
        sock.sendall(ASK)
        return sock.recv(4096)


def test_a_socket_of_the_file_system_is_for_its_user_alone(tmp_path: Path) -> None:
    """Made with mode 600, taken away at the end; one that was left behind is replaced, one in use is not."""
    path = tmp_path / "agent.sock"
    config = MetricsConfig(listen=f"unix:{path}")
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()
    server = Server(config, lambda _: Response(200, b"fine"))
    server.start()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(EnvironmentRefused, match="in use"):
        Server(config, lambda _: Response(200, b""))
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(path))
        sock.sendall(ASK)
        assert all_of(sock).endswith(b"fine")
    server.close()
    assert not path.exists()


def test_an_address_that_is_taken_is_refused() -> None:
    """With the key and what to do."""
    config = MetricsConfig(listen=f"127.0.0.1:{free_port()}")
    first = Server(config, lambda _: Response(200, b""))
    first.start()
    with pytest.raises(EnvironmentRefused, match=r"metrics\.listen = 127\.0\.0\.1.*in use"):
        Server(config, lambda _: Response(200, b""))
    first.close()
