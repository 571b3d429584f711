"""A slow uplink progresses: bytes that move are no silence, and nothing is sent again that may have arrived."""

from __future__ import annotations

import os
import socket
import threading
import time
import zlib
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from chunked import document, target
from gateway.proxy import Proxy
from gateway.stand_in import StandIn

from gateway import Gateway, databases
from sluicegate_agent.sync import Document
from sluicegate_agent.sync.pace import FIRST
from sluicegate_agent.sync.splitting import halves


class Throttle:
    """Passes `rate` bytes a second to the host of `url`, everything back at once; `sent` counts what it took.

    `buffers`: it takes whatever comes at once and passes it on slowly, as a proxy of a provider; else it holds back.
    """

    def __init__(self, url: str, rate: int, *, buffers: bool = False) -> None:
        self._target = (urlsplit(url).hostname or "", urlsplit(url).port or 0)
        self._listener = socket.socket()
        if not buffers:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.rate, self.sent = rate, 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take nobody any more."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._target)
            threading.Thread(target=self._up, args=(client, server), daemon=True).start()
            threading.Thread(target=self._down, args=(server, client), daemon=True).start()

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while data := client.recv(1024):
                self.sent += len(data)
                time.sleep(len(data) / self.rate)
                server.sendall(data)
        except OSError:
            pass

    def _down(self, server: socket.socket, client: socket.socket) -> None:
        try:
            while data := server.recv(65536):
                client.sendall(data)
        except OSError:
            pass


@pytest.fixture
def standing_in() -> Iterator[StandIn]:
    """A gateway of our own, whatever real one is here: its link is what matters."""
    with StandIn() as one:
        yield one


def large(stream: int, size: int = 60_000) -> Document:
    """A document whose deflated bytes are about half as many as it has."""
    return Document(
        f"board-1::s{stream}::00060a24181e4000::0000000000000000", b'{"a":"%s"}' % os.urandom(size).hex().encode()
    )


def needed(documents: list[Document]) -> int:
    """Bytes that have to go up at least: each document deflated."""
    return sum(len(zlib.compress(each.data, 1)) for each in documents)


@pytest.mark.parametrize("buffers", [False, True])
def test_documents_arrive_steadily_over_a_slow_link(standing_in: StandIn, buffers: bool) -> None:
    """Four streams; one request takes many times the time-out: each put brings something, at 1.3 times the bytes."""
    slow = Throttle(standing_in.public_url, 80_000, buffers=buffers)
    one, left, puts = target(slow.url, basic=True, timeout=1.0), [large(stream) for stream in range(4)], 0
    sent = list(left)
    while left and puts < 12:
        outcome = one.put(left)
        puts += 1
        assert outcome.rejected == {}
        left = [each for each in left if each.id not in outcome.accepted]
    assert not left, outcome.error
    if not buffers:
        assert puts <= 4, "no put ends without a document"
        assert slow.sent <= 1.3 * needed(sent) + 4096
    assert len(standing_in.documents_of(databases.PLAIN)) == 4
    slow.close()


def test_what_may_have_arrived_is_looked_for_first(gateway: Gateway, proxy: Proxy) -> None:
    """An answer that was lost: the ids are asked for, and what is there is compared instead of sent again."""
    here, absent = document(40), document(40, first=4000)
    target(gateway.public_url).put([here])
    one = target(proxy.url)
    one.put([document(1, first=9000)])  # a session
    one._unknown = {here.id, absent.id}
    outcome = one.put([here, absent])
    assert set(outcome.accepted) == {here.id, absent.id}
    assert one._unknown == set()
    assert len(gateway.documents_of(databases.PLAIN)) == 3


def test_an_answer_that_is_lost_costs_no_second_sending(standing_in: StandIn) -> None:
    """The gateway stored it and the connection ended: the next put asks, and posts nothing."""
    one, sent = target(standing_in.public_url, basic=True), [document(3), document(3, first=300)]
    standing_in.lost_answers = 1
    assert one.put(sent).accepted == ()
    standing_in.requests.clear()
    assert set(one.put(sent).accepted) == {each.id for each in sent}
    assert not [request for request in standing_in.requests if "_bulk_docs" in request]
    assert [request.split("/")[-1] for request in standing_in.requests][:1] == ["_all_docs"]


def test_a_document_too_long_for_the_link_goes_in_halves(standing_in: StandIn) -> None:
    """After silence a long chunk is sent as its parts: each of them is progress."""
    sent = document(700)
    one = target(standing_in.public_url, basic=True)
    for _ in range(10):
        one.pace.silent()
    assert len(sent.data) > 4 * one.pace.bytes
    assert one.put([sent]).accepted == (sent.id,)
    first, _ = halves(sent) or pytest.fail("it has halves")
    assert first.id in standing_in.documents_of(databases.PLAIN)
    assert len(standing_in.documents_of(databases.PLAIN)) > 1


def test_a_fast_link_is_soon_used_whole(standing_in: StandIn) -> None:
    """Requests grow from 32 KiB."""
    one = target(standing_in.public_url, basic=True)
    outcome = one.put([large(stream, 30_000) for stream in range(60)])
    assert len(outcome.accepted) == 60
    posts = [request for request in standing_in.requests if "_bulk_docs" in request]
    assert len(posts) < 12
    assert one.pace.bytes > 8 * FIRST
