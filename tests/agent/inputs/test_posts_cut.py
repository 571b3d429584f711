"""POST over connections that end anywhere, answers that are late or lost: counted once, or in doubt."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
import posting
from posting import Receiver
from thorough import WHOLE

from sluicegate_agent.inputs.posts import Post
from sluicegate_agent.web import server as served


def request(body: bytes, topic: str = "bare", **headers: str) -> bytes:
    """One POST as it goes over the line."""
    lines = [f"POST /in/{topic} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def connected(one: Receiver) -> socket.socket:
    """A connection to the listener."""
    return socket.create_connection(("127.0.0.1", one.port), timeout=10)


def reset(sock: socket.socket) -> None:
    """End a connection as a machine that crashes does: nothing more is taken, whatever comes."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def turned(one: Receiver, work: Callable[[], Any], *, commit: bool = True) -> Any:
    """What `work` comes to in a thread, while turns are made."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    while thread.is_alive():
        one.turn(commit=commit)
        thread.join(0.002)
    return found[0]


def all_of(sock: socket.socket) -> bytes:
    """Everything up to the end of the connection. Raises ConnectionResetError where that is no orderly one."""
    found = b""
    while piece := sock.recv(65536):
        found += piece
    return found


def settled(one: Receiver) -> None:
    """Turns until the listener has let all connections go."""
    while one.inputs._posts and one.inputs._posts._server._peers:
        one.turn()


def test_a_request_that_is_cut_counts_nothing(receiver: Callable[..., Receiver]) -> None:
    """At each byte, by an orderly end of the connection or by a reset; the whole one counts once."""
    one = receiver()
    whole = request(b"1\n2\n3\n")
    for length in range(len(whole)):
        with connected(one) as sock:
            sock.sendall(whole[:length])
            if length % 2:
                reset(sock)
    settled(one)
    assert one.desk.sums() == {}
    assert one.desk.state.counters["messages"] == 0


def test_who_says_no_more_is_answered(receiver: Callable[..., Receiver]) -> None:
    """As `nc -N` does: the sending side is closed after the request, and the answer is waited for."""
    one = receiver()
    with connected(one) as sock:
        sock.sendall(request(b"1\n2\n"))
        sock.shutdown(socket.SHUT_WR)
        assert turned(one, lambda: all_of(sock)).startswith(b"HTTP/1.1 200 ")
    assert one.desk.sums() == {"y": (3.0, 2)}
    settled(one)
    one.post("/in/bare", "1\n2")
    assert one.desk.state.counters["undecidable"] == 0


@pytest.mark.parametrize("more", [b"x", request(b"5"), request(b"5" * 100_000)])
def test_what_comes_behind_a_request_is_not_read_and_its_answer_arrives(
    receiver: Callable[..., Receiver], more: bytes
) -> None:
    """Several requests in one packet: the first is answered, and that the connection ends; others are sent again."""
    one = receiver()
    with connected(one) as sock:
        sock.sendall(request(b"1\n2\n") + more)
        found = turned(one, lambda: all_of(sock))
    assert found.startswith(b"HTTP/1.1 200 ")
    assert b"Connection: close" in found
    assert one.desk.sums() == {"y": (3.0, 2)}


def test_two_senders_with_one_key(receiver: Callable[..., Receiver]) -> None:
    """At the same time: each reading counts once, and both are told."""
    one = receiver()
    whole = request(b"1\n2\n", Idempotency_Key="k")
    with connected(one) as first, connected(one) as second:
        first.sendall(whole)
        second.sendall(whole)
        answers = turned(one, lambda: (all_of(first), all_of(second)))
    assert all(each.startswith(b"HTTP/1.1 200 ") for each in answers)
    assert one.desk.sums() == {"y": (3.0, 2)}


@pytest.mark.parametrize("killed", [False, True])
def test_a_key_knows_a_request_of_many_lines(receiver: Callable[..., Receiver], killed: bool) -> None:
    """However many there are, and where it was cut between two commits: sent again it counts once."""
    one = receiver()
    body = b"1\n" * 10_000
    if killed:
        with connected(one) as sock:
            sock.sendall(request(body, Idempotency_Key="k"))
            while not one.desk.state.counters["accepted"]:
                one.turn()
        one.killed()
    assert one.post("/in/bare", body, Idempotency_Key="k")[0] == 200
    if killed:
        one.killed()
    assert one.post("/in/bare", body, Idempotency_Key="k")[1] == {"accepted": 0, "duplicates": 10_000, "refused": 0}
    assert one.desk.sums() == {"y": (10_000.0, 10_000)}


@pytest.mark.parametrize("time", ["", ', "t": 1700000000'])
def test_more_epochs_than_are_known_may_be_posted_again(receiver: Callable[..., Receiver], time: str) -> None:
    """A sensor began anew nine times in a request whose sender had no answer: what is not known counts in doubt."""
    one = receiver()
    body = "".join(f'{{"n": {n}, "boot": {boot}, "x": 1{time}}}\n' for boot in range(9) for n in range(3)).encode()
    with connected(one) as sock:
        sock.sendall(request(body, "booted"))
        while not one.desk.state.counters["accepted"]:
            one.turn()
    one.killed()
    one.post("/in/booted", body)
    counted, doubt = one.desk.state.counters["accepted"], one.desk.state.counters["undecidable"]
    assert counted - doubt <= 27 <= counted
    one.post("/in/booted", b'{"n": 0, "boot": 9, "x": 1}')
    assert one.desk.state.counters["accepted"] == counted + 1
    assert one.desk.state.counters["undecidable"] == doubt


def test_a_request_that_was_told_to_come_again_is_not_taken(
    receiver: Callable[..., Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent was busy for too long: 503, and the same sent again counts once, without doubt."""
    monkeypatch.setattr(served, "ANSWERING", 0.1)
    one = receiver()
    assert one.send("/in/bare", b"1\n2\n")[0] == 503
    monkeypatch.setattr(served, "ANSWERING", 5.0)
    assert one.post("/in/bare", "1\n2\n")[1]["accepted"] == 2
    assert one.desk.sums() == {"y": (3.0, 2)}
    assert one.desk.state.counters["undecidable"] == 0


def test_a_retry_after_a_commit_that_failed_is_in_doubt(receiver: Callable[..., Receiver]) -> None:
    """Without a key or a time nobody can know whether it is a repeat; the same said later is none."""
    one = receiver()
    assert one.post("/in/bare", "4\n5", commit=False)[0] == 503
    assert one.post("/in/bare", "4\n5\n6")[0] == 200
    assert one.desk.state.counters["undecidable"] == 2
    assert one.desk.sums() == {"y": (24.0, 5)}
    assert one.post("/in/bare", "4\n5")[0] == 200
    assert one.desk.state.counters["undecidable"] == 2


@pytest.mark.parametrize("read", [0, 1, 20, None])
def test_a_retry_after_an_answer_that_was_lost_is_in_doubt(receiver: Callable[..., Receiver], read: int | None) -> None:
    """The sender was gone before the answer, or in the middle of it; who has read it all says something new."""
    one = receiver()
    sock = connected(one)
    sock.sendall(request(b"7\n8\n"))
    if read:
        turned(one, lambda: sock.recv(read))
    elif read is None:
        turned(one, lambda: all_of(sock))
    if read is None:
        sock.close()
    else:
        reset(sock)
        while not one.desk.state.counters["accepted"]:
            one.turn()
    settled(one)
    with contextlib.suppress(OSError):
        one.post("/in/bare", "7\n8")
    assert one.desk.sums() == {"y": (30.0, 4)}
    assert one.desk.state.counters["undecidable"] == (0 if read is None else 2)


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("end", [socket.socket.close, reset])
def test_a_retry_by_who_gave_up_before_the_answer_is_in_doubt(
    receiver: Callable[..., Receiver], end: Callable[[socket.socket], None], committed: bool
) -> None:
    """A commit that lasts longer than a sender's patience: the same is there again before the first is answered."""
    one = receiver()
    first, second = connected(one), connected(one)
    first.sendall(request(b"7\n8\n"))
    while not one.inputs.wants_commit:
        one.inputs.step()
    end(first)
    until_it_is_known(one)
    second.sendall(request(b"7\n8\n"))
    until_it_waits(one)
    if committed:
        one.desk.pipeline.commit()
        one.inputs.committed()
    assert turned(one, lambda: all_of(second)).startswith(b"HTTP/1.1 200 ")
    second.close()
    assert one.desk.sums() == {"y": (30.0, 4)}
    assert one.desk.state.counters["undecidable"] == 2
    settled(one)
    one.post("/in/bare", "7\n8")
    assert one.desk.state.counters["undecidable"] == 2


def until_it_is_known(one: Receiver) -> None:
    """The listener has seen that the sender of the request that was taken is gone, or says no more."""
    assert one.inputs._posts is not None
    while not any(post.is_ended or post.is_lost for post in one.inputs._posts._counted):
        one.inputs._posts._server.wake()


def until_it_waits(one: Receiver) -> None:
    """A request waits to be taken."""
    assert one.inputs._posts is not None
    while not one.inputs._posts._waiting:
        one.inputs._posts._server.wake()


def test_a_request_that_comes_while_the_agent_looks_ends_nothing(receiver: Callable[..., Receiver]) -> None:
    """The listener's thread puts it behind the others at any moment: also while the agent asks whether to commit."""
    one = receiver()
    posts = one.inputs._posts
    assert posts is not None

    class Looked(Post):
        """Another one comes just when this one is looked at."""

        @property
        def at(self) -> int:
            """Nothing of it was taken."""
            posts._waiting.append(Post(2, "in/bare", b"9", "", "", is_one=False))
            return 0

        @at.setter
        def at(self, _: int) -> None:
            """It stays so."""

    posts._waiting.append(Looked(1, "in/bare", b"8", "", "", is_one=False))
    assert not one.inputs.wants_commit
    assert len(posts._waiting) == 2
    posts._waiting.clear()


def test_a_request_that_comes_while_a_commit_has_failed_waits_for_the_next(receiver: Callable[..., Receiver]) -> None:
    """It was gone with those that were told to come again, and its sender never had an answer."""
    one = receiver()
    posts = one.inputs._posts
    assert posts is not None
    later = Post(2, "in/bare", b"9", "", "", is_one=False)

    class Failed(Post):
        """Another one comes just when this one is answered."""

        def end(self, status: int, why: str = "") -> None:
            """As any other."""
            posts._waiting.append(later)
            super().end(status, why)

    first = Failed(1, "in/bare", b"8", "", "", is_one=False)
    posts._waiting.append(first)
    posts.failed("disk full")
    assert first.found[0] == 503
    assert list(posts._waiting) == [later]
    posts._waiting.clear()


@pytest.mark.parametrize("answered", [False, True])
def test_a_retry_after_a_kill_between_commit_and_answer_is_in_doubt(
    receiver: Callable[..., Receiver], answered: bool
) -> None:
    """The sender never heard of it; once it was answered, and a commit more was made, the same is a new reading."""
    one = receiver()
    if answered:
        assert one.post("/in/bare", "7\n8")[0] == 200
        one.desk.take(("other", b'{"o": 1}'))
    else:
        with connected(one) as sock:
            sock.sendall(request(b"7\n8\n"))
            while not one.inputs.wants_commit:
                one.inputs.step()
            one.desk.pipeline.commit()
    one.killed()
    assert one.post("/in/bare", "7\n8\n9")[1]["accepted"] == 3
    assert one.desk.sums() == {"y": (39.0, 5)} | ({"o": (1.0, 1)} if answered else {})
    assert one.desk.state.counters["undecidable"] == (0 if answered else 2)


def test_chunks_and_asking_first(receiver: Callable[..., Receiver]) -> None:
    """Chunks are refused before anything counts; who asks whether to go on and never does counts nothing."""
    one = receiver()
    head = b"POST /in/bare HTTP/1.1\r\nHost: localhost\r\n"
    with connected(one) as sock:
        sock.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n2\r\n1\n\r\n0\r\n\r\n")
        assert turned(one, lambda: all_of(sock)).startswith(b"HTTP/1.1 411 ")
    with connected(one) as sock:
        sock.sendall(head + b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert sock.recv(100).startswith(b"HTTP/1.1 100 ")
    settled(one)
    assert one.desk.sums() == {}
    with connected(one) as sock:
        sock.sendall(head + b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert sock.recv(100).startswith(b"HTTP/1.1 100 ")
        sock.sendall(b"3\n")
        assert turned(one, lambda: all_of(sock)).startswith(b"HTTP/1.1 200 ")
    assert one.desk.sums() == {"y": (3.0, 1)}


#: A body of twenty machines of which three are remembered at a time.
KEYED = {"topic": "keyed", "input": "http", "key": "id", "streams": {"k": "v"}, "time": "t", "time_format": "s"}
MACHINES = "\n".join(f'{{"id": "m{i}", "v": {i}, "t": {1_750_000_000 + i}}}' for i in range(20))


@pytest.mark.parametrize("most", [3, 10])
def test_a_retry_of_senders_that_are_forgotten_is_in_doubt(
    receiver: Callable[..., Receiver], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Killed before the answer: of those that are remembered none counts again, of the others none for certain."""
    monkeypatch.setattr(posting, "OTHER", KEYED | {"keys": {"most": most, "evict": "lru"}})
    one = receiver()
    for _ in range(2):
        assert one.post("/in/keyed", MACHINES)[0] == 200
        one.killed()
    counters = one.desk.state.counters
    assert counters["accepted"] - counters["undecidable"] == 20
    assert counters["undecidable"] == (0 if most == 10 else 14)


@pytest.mark.parametrize("said", [5000, *[20_000] * WHOLE])
@pytest.mark.parametrize("end", ["lost", "killed", "killed later"])
def test_a_retry_of_more_than_is_remembered_is_in_doubt(
    receiver: Callable[..., Receiver], monkeypatch: pytest.MonkeyPatch, end: str, said: int
) -> None:
    """The answer did not arrive: whatever counts twice is in doubt, and it is counted how much was not remembered."""
    monkeypatch.setattr(served, "ANSWERING", 60.0)
    one = receiver()
    body = b"\n".join(b"%d" % i for i in range(said))
    sock = connected(one)
    sock.sendall(request(body))
    while not one.inputs._posts or len(one.inputs._posts._counted) < 1:
        one.inputs.step()
        if one.desk.pipeline.has_enough:
            one.desk.pipeline.commit()
            one.inputs.committed()
    if end == "killed":
        one.desk.pipeline.commit()
        sock.close()
        one.killed()
    else:
        reset(sock)
        until_it_is_known(one)
        one.turn()
        settled(one)
        assert one.desk.state.counters["http.forgotten"] == said - 4096
        one.post("/in/timed", '{"x": 1, "t": 1750000000}')
        if end == "killed later":
            one.killed()
    counters = one.desk.state.counters
    before = counters["accepted"]
    assert one.post("/in/bare", body)[1]["accepted"] == said
    assert counters["accepted"] - before == said
    assert one.desk.sums()["y"][1] - counters["undecidable"] == said
    assert one.post("/in/bare", b"1\n2\n3")[0] == 200
    assert counters["undecidable"] == said


def test_a_retry_of_a_request_that_was_cut_between_two_commits_is_in_doubt(receiver: Callable[..., Receiver]) -> None:
    """Killed after the first of them: what it had counted is in doubt, the rest is new."""
    one = receiver()
    body = b"\n".join(b"%d" % i for i in range(3000))
    with connected(one) as sock:
        sock.sendall(request(body))
        commits = 0
        while commits < 2:
            one.inputs.step()
            if one.inputs.wants_commit:
                one.desk.pipeline.commit()
                one.inputs.committed()
                commits += 1
    counted = int(one.desk.state.counters["accepted"])
    assert 0 < counted < 3000
    one.killed()
    one.post("/in/bare", body)
    assert one.desk.state.counters["undecidable"] == counted
