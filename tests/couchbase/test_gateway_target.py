"""The sync-gateway target keeps the targets' contract on a real gateway and the stand-in, whatever the network does."""

from __future__ import annotations

import json
import os
import time

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from chunked import document, target
from gateway.proxy import Proxy
from gateway.stand_in import StandIn
from target_suite import TargetSuite
from target_suite.suite import FIRST, SECOND, Subject

from gateway import Gateway, databases
from sluicegate.format import chunk as chunks
from sluicegate_agent.sync import Document
from sluicegate_agent.sync.aside import Aside
from sluicegate_agent.sync.splitting import halves, missing
from sluicegate_agent.sync.sync_gateway import OTHER_BYTES, SyncGatewayTarget


class AtGateway(Subject):
    """A gateway whose network is cut to be away."""

    def __init__(self, gateway: Gateway, proxy: Proxy, *, basic: bool = False) -> None:
        self.gateway, self.proxy = gateway, proxy
        self.target = target(proxy.url, basic=basic)

    def held(self) -> dict[str, bytes]:
        """What the gateway's administrator sees, as compact JSON."""
        found = self.gateway.documents_of(databases.PLAIN)
        return {name: json.dumps(body, separators=(",", ":")).encode() for name, body in found.items()}

    def go_away(self) -> None:
        """Cut everybody who connects."""
        self.proxy.away = True

    def come_back(self) -> None:
        """Let them pass."""
        self.proxy.restore()


class TestSyncGatewayTarget(TargetSuite):
    """A Sync Gateway keeps the contract of a directory."""

    @pytest.fixture
    def subject(self, gateway: Gateway, proxy: Proxy) -> AtGateway:
        """Behind a proxy, by session."""
        return AtGateway(gateway, proxy)


class TestWithBasicAuthentication(TargetSuite):
    """The same with the password in each request."""

    @pytest.fixture
    def subject(self, gateway: Gateway, proxy: Proxy) -> AtGateway:
        """Behind a proxy."""
        return AtGateway(gateway, proxy, basic=True)


def test_chunks_come_back_as_they_went(gateway: Gateway) -> None:
    """What the gateway holds decodes to the chunk that was sent, though its keys and numbers may be written anew."""
    sent = [document(20, seed=seed, first=seed * 1000) for seed in range(5)]
    assert set(target(gateway.public_url).put(sent).accepted) == {each.id for each in sent}
    held = gateway.documents_of(databases.PLAIN)
    for each in sent:
        assert chunks.decode(json.dumps(held[each.id]).encode()) == chunks.decode(each.data)


def test_a_lost_answer_is_success_the_second_time(gateway: Gateway, proxy: Proxy) -> None:
    """Cut at any byte of the exchange: never accepted unless it is there, and the same put again ends well."""
    sent = [document(3, seed=seed, first=seed * 100) for seed in range(3)]
    one = target(proxy.url)
    for budget in (1, 50, 400, 900, 1500, 2200, 2800, 3400, 4000):
        one.close()
        proxy.budget = lambda budget=budget: budget
        outcome = one.put(sent)
        assert set(outcome.accepted) <= set(gateway.documents_of(databases.PLAIN))
        assert outcome.rejected == {}
        if outcome.retry_after is not None:
            assert "cut" in outcome.error
    proxy.restore()
    assert set(one.put(sent).accepted) == {each.id for each in sent}
    assert len(gateway.documents_of(databases.PLAIN)) == 3


def test_a_kept_connection_that_was_let_go_is_opened_again(gateway: Gateway, proxy: Proxy) -> None:
    """A gateway restarts between two puts, or its load balancer tires of waiting: no failure is shown for that."""
    one = target(proxy.url)
    assert one.put([FIRST]).accepted
    cuts, proxy.away = proxy.cuts, True
    end = time.monotonic() + 60
    while proxy.cuts == cuts and time.monotonic() < end:
        time.sleep(0.01)
    assert (proxy.connections, proxy.cuts - cuts) == (1, 1), "no connection was kept"
    proxy.restore()
    outcome = one.put([SECOND])
    assert (outcome.accepted, outcome.error) == ((SECOND.id,), "")


def test_a_gateway_that_says_nothing_is_given_up_in_time(gateway: Gateway, proxy: Proxy) -> None:
    """No answer: `put` ends after its time-out with the reason, and goes on when the network does."""
    one = target(proxy.url, timeout=0.3)
    proxy.stalled = True
    begun = time.monotonic()
    outcome = one.put([FIRST])
    assert time.monotonic() - begun < 30, "the time-out is 0.3 s, and a put asks a few times at most"
    assert outcome.retry_after is not None
    assert "no answer in time" in outcome.error
    proxy.restore()
    end = time.monotonic() + 60
    while not (outcome := one.put([FIRST])).accepted and time.monotonic() < end:
        pass  # 0.3 s may be too short for a machine that has much else to do
    assert outcome.accepted == (FIRST.id,)


def test_a_slow_gateway_does_not_hold_the_agent(gateway: Gateway, proxy: Proxy) -> None:
    """Beside the agent's thread: `put` says within a moment that an answer is pending; it has it when it is there."""
    aside = Aside(target(proxy.url, timeout=300))
    proxy.stalled = True
    begun = time.monotonic()
    assert aside.put([FIRST]).pending
    assert aside.put([FIRST]).pending
    assert time.monotonic() - begun < 60, "far from the time-out"
    proxy.restore()
    end = time.monotonic() + 60
    while (outcome := aside.put([FIRST])).pending and time.monotonic() < end:
        pass
    assert outcome.accepted == (FIRST.id,)
    aside.close()


@pytest.mark.parametrize("basic", [False, True])
def test_a_wrong_password_waits_and_is_not_shown(gateway: Gateway, basic: bool) -> None:
    """Nothing is given up for a password that a person has to mend, and no message says it."""
    one = target(gateway.public_url, basic=basic)
    secret = "not-it-at-all"  # noqa: S105
    login = type(one.login)("board-1", secret)
    outcome = SyncGatewayTarget(one.connection, login).put([FIRST])
    assert (outcome.accepted, outcome.rejected, outcome.retry_after) == ((), {}, 0.0)
    assert "check user and password (sync.credentials_file, or sync.username)" in outcome.error
    assert secret not in repr(outcome)


def test_a_session_that_expired_is_renewed(gateway: Gateway) -> None:
    """A cookie that the gateway does not know any more costs one request."""
    one = target(gateway.public_url)
    assert one.put([FIRST]).accepted
    one.login._cookie = "SyncGatewaySession=0000000000000000000000000000000000000000"  # type: ignore[attr-defined]
    assert one.put([SECOND]).accepted == (SECOND.id,)


def test_a_wrong_database_waits(gateway: Gateway) -> None:
    """The URL's last part is no database there: the message says what to look at."""
    outcome = target(gateway.public_url, "nowhere", basic=True).put([FIRST])
    assert (outcome.accepted, outcome.rejected, outcome.retry_after) == ((), {}, 0.0)
    assert "sync.url" in outcome.error or "password" in outcome.error


def test_a_document_of_a_foreign_channel_is_nobodys_alarm(gateway: Gateway) -> None:
    """What this user may neither write nor read is a matter of rights, which a person mends: it waits."""
    sent = document(2)
    assert target(gateway.public_url, databases.TELEMETRY).put([sent]).accepted == (sent.id,)
    outcome = target(gateway.public_url, databases.TELEMETRY, "board-2").put([sent])
    assert (outcome.accepted, outcome.rejected, outcome.retry_after) == ((), {}, 0.0)
    assert "403" in outcome.error


def test_too_large_a_chunk_goes_in_parts() -> None:
    """413 for a document: its halves are there in the end, decode to the same buckets, and sending again is success."""
    sent, small = document(12), document(2, first=10_000)
    with StandIn() as gateway:
        gateway.largest = 900
        outcome = target(gateway.public_url).put([sent, small])
        assert set(outcome.accepted) == {sent.id, small.id}
        held = gateway.documents_of(databases.PLAIN)
        assert len(held) > 3
        parts = [chunks.decode(json.dumps(held[name]).encode()) for name in sorted(held)]
        buckets = [bucket for part in parts for bucket in part.buckets]
        assert buckets == chunks.decode(sent.data).buckets + chunks.decode(small.data).buckets
        before = dict(held)
        assert set(target(gateway.public_url).put([sent]).accepted) == {sent.id}
        gateway.largest = 20 << 20
        assert set(target(gateway.public_url).put([sent]).accepted) == {sent.id}, "also where the limit was raised"
        assert gateway.documents_of(databases.PLAIN) == before


def test_too_large_a_request_goes_in_smaller_ones() -> None:
    """413 for a whole request, as a proxy before a gateway says it: fewer documents, then smaller ones."""
    sent = [document(8, first=1000 * number, seed=number) for number in range(5)]
    with StandIn() as gateway:
        gateway.largest_body = max(len(each.data) for each in sent) * 2 // 3
        assert set(target(gateway.public_url).put(sent).accepted) == {each.id for each in sent}
        held = gateway.documents_of(databases.PLAIN)
        assert sum(body["buckets"] for body in held.values()) == 5 * 8


def test_a_proxy_that_reads_no_more_is_understood() -> None:
    """413 and a closed connection while megabytes are still being sent: too large, and not a cut to try again for."""
    sent = Document("a::b::c::0", b'{"x":"%s"}' % os.urandom(12 << 20).hex().encode())
    with StandIn() as gateway:
        gateway.largest_body, gateway.rude = 600_000, True
        outcome = target(gateway.public_url).put([sent])
    assert "more than the gateway takes" in outcome.rejected[sent.id], outcome.error


def test_one_bucket_that_is_too_large_is_refused_for_good() -> None:
    """There is nothing to split: it is set aside with the reason."""
    sent = document(1)
    with StandIn() as gateway:
        gateway.largest = 100
        outcome = target(gateway.public_url).put([sent])
        assert "more than the gateway takes" in outcome.rejected[sent.id]


def test_the_real_gateway_splits_too(real_gateway: Gateway) -> None:
    """20 MiB are the real gateway's limit: a document over it is 413 there, as in the stand-in."""
    real_gateway.purge()  # type: ignore[union-attr]
    sent = Document(FIRST.id, b'{"a":"' + b"x" * (21 << 20) + b'"}')
    outcome = target(real_gateway.public_url, timeout=120).put([sent, SECOND])
    assert outcome.accepted == (SECOND.id,)
    assert "more than the gateway takes" in outcome.rejected[sent.id]


def test_a_busy_gateway_says_when_to_come_again() -> None:
    """503 with Retry-After: the agent waits so long."""
    with StandIn() as gateway:
        gateway.busy = 2
        one = target(gateway.public_url, basic=True)
        outcome = one.put([FIRST])
        assert (outcome.accepted, outcome.retry_after) == ((), 7.0)
        assert "503 (busy)" in outcome.error


def test_parts_are_known_from_strangers() -> None:
    """The first half, or quarter, under a document's id is a part of it; any other content is not."""
    whole = document(8)
    first, second = halves(whole) or pytest.fail("eight buckets have halves")
    quarter, _ = halves(first) or pytest.fail("four have")
    read = {each: json.loads(each.data) for each in (whole, first, quarter)}
    assert missing(whole, read[whole]) == []
    assert missing(whole, read[first]) == [second]
    assert [each.id for each in missing(whole, read[quarter]) or []] == [halves(first)[1].id, second.id]  # type: ignore[index]
    stranger = json.loads(document(4, seed=99).data)
    assert missing(whole, stranger) is None
    assert missing(whole, None) is None
    assert missing(document(4), read[whole]) is None


def test_halves_are_deterministic_and_lose_nothing() -> None:
    """The same two each time; their buckets are the whole's, their health only once."""
    whole = document(7)
    first, second = halves(whole) or pytest.fail("seven buckets have halves")
    assert (first, second) == halves(whole)
    assert first.id == whole.id
    parts = [chunks.decode(each.data) for each in (first, second)]
    assert parts[0].buckets + parts[1].buckets == chunks.decode(whole.data).buckets
    assert [part.health for part in parts] == [{"seed": 1}, None]
    assert halves(document(1)) is None
    assert halves(FIRST) is None


def test_other_content_is_an_alarm_and_the_rest_goes_on(gateway: Gateway) -> None:
    """A conflicting chunk under a known id is refused for good, with the reason; what is there stays."""
    mine, other = document(4), document(4, seed=2)
    more = document(4, first=400)
    one = target(gateway.public_url)
    assert one.put([mine]).accepted == (mine.id,)
    outcome = one.put([other, more])
    assert outcome.rejected == {mine.id: OTHER_BYTES}
    assert outcome.accepted == (more.id,)
    assert gateway.documents_of(databases.PLAIN)[mine.id]["crc32"] == json.loads(mine.data)["crc32"]
