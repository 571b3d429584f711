"""The couchbase target keeps the targets' contract on CouchbaseMock; durability and authentication it cannot show."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from chunked import document
from msgspec.structs import replace
from target_suite import TargetSuite
from target_suite.suite import FIRST, Subject

from gateway import mock
from sluicegate.format import chunk as chunks
from sluicegate_agent.config.model import CouchbaseConfig, SyncConfig
from sluicegate_agent.config.units import Duration
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.sync.access import Access
from sluicegate_agent.sync.contract import Document, Outcome
from sluicegate_agent.sync.couchbase_server import OTHER_BYTES, CouchbaseTarget


@pytest.fixture(scope="module")
def server() -> Iterator[mock.CouchbaseMock]:
    """One mock for this module; skips with what is missing."""
    if why := mock.lacking():
        pytest.skip(why)
    with mock.CouchbaseMock() as server:
        yield server


@pytest.fixture(scope="module")
def shared(server: mock.CouchbaseMock) -> Iterator[CouchbaseTarget]:
    """One target, since connecting takes half a second; it connects again where a test has closed it."""
    one = target(server.url)
    yield one
    one.close()


def target(url: str, timeout: float = 60.0, durability: Any = "none") -> CouchbaseTarget:
    """The target over the server at `url`."""
    where = CouchbaseConfig(bucket=mock.BUCKET, durability=durability)
    sync = SyncConfig(target="couchbase", url=url, timeout=Duration(int(timeout * 1e6)), couchbase=where)
    return CouchbaseTarget(Access(sync, url, mock.BUCKET, mock.PASSWORD))


class Noting:
    """A target that remembers which ids were put: the key-value service lists no keys."""

    def __init__(self, inner: CouchbaseTarget) -> None:
        self.inner = inner
        self.known: set[str] = set()

    def put(self, documents: Sequence[Document]) -> Outcome:
        """As the target."""
        self.known |= {each.id for each in documents}
        return self.inner.put(documents)

    def close(self) -> None:
        """As the target."""
        self.inner.close()


class AtServer(Subject):
    """A server that is killed to be away would forget; so the target is pointed elsewhere instead."""

    def __init__(self, couchbase: CouchbaseTarget) -> None:
        self.couchbase = couchbase
        self.target = self.noting = Noting(couchbase)
        self._here = couchbase._where

    def held(self) -> dict[str, bytes]:
        """Of the ids that were put."""
        collection = self.couchbase._opened()
        ids = [name for name in self.noting.known if name]
        found = collection.get_multi(ids).results if ids else {}
        return {name: json.dumps(result.value, separators=(",", ":")).encode() for name, result in found.items()}

    def go_away(self) -> None:
        """Nobody listens."""
        self.couchbase.close()
        sync = replace(self._here.sync, timeout=Duration(300_000))
        self.couchbase._where = self._here._replace(url="couchbase://127.0.0.1:9", sync=sync)

    def come_back(self) -> None:
        """As before."""
        self.couchbase.close()
        self.couchbase._where = self._here

    def forget(self) -> None:
        """Remove what the test put."""
        if ids := [name for name in self.noting.known if name]:
            self.couchbase._opened().remove_multi(ids)


class TestCouchbaseTarget(TargetSuite):
    """A server's collection keeps the contract."""

    @pytest.fixture
    def subject(self, shared: CouchbaseTarget) -> Iterator[AtServer]:
        """Without documents, over one connection for all tests."""
        subject = AtServer(shared)
        yield subject
        subject.forget()


def test_chunks_arrive_byte_for_byte(shared: CouchbaseTarget) -> None:
    """The server keeps the document's own bytes; a Sync Gateway's or a person's other spelling is the same content."""
    one, sent = shared, document(9, stream="bytes")
    assert one.put([sent]).accepted == (sent.id,)
    stored = one._opened().get(sent.id, one._get_options).value
    assert stored == sent.data
    spelled = json.dumps({"_sync": {}, **dict(reversed(json.loads(sent.data).items()))}).encode()
    from couchbase.options import ReplaceOptions
    from couchbase.transcoder import RawJSONTranscoder

    one._opened().replace(sent.id, spelled, ReplaceOptions(transcoder=RawJSONTranscoder()))
    assert one.put([sent]).accepted == (sent.id,)


def test_another_chunk_under_an_id_is_an_alarm(shared: CouchbaseTarget) -> None:
    """Refused for good, the rest goes on."""
    one = shared
    mine, other, more = (document(4, stream="alarm", seed=1), document(4, stream="alarm", seed=2), document(4, 64))
    assert one.put([mine]).accepted == (mine.id,)
    outcome = one.put([other, more])
    assert (outcome.accepted, outcome.rejected) == ((more.id,), {mine.id: OTHER_BYTES})


def test_the_first_half_of_a_chunk_is_completed(shared: CouchbaseTarget) -> None:
    """What went in parts before, to a smaller limit, is no alarm now."""
    from sluicegate_agent.sync.splitting import halves

    one, whole = shared, document(8, stream="halves")
    first, second = halves(whole) or pytest.fail("eight buckets have halves")
    assert one.put([first]).accepted
    assert one.put([whole]).accepted == (whole.id,)
    held = [one._opened().get(each.id, one._get_options).value for each in (first, second)]
    assert held == [first.data, second.data]


def test_too_large_a_document_goes_in_halves(shared: CouchbaseTarget) -> None:
    """20 MiB are a server's limit; one that cannot be halved is refused for good."""
    one = shared
    huge = Document(FIRST.id.replace("level", "huge"), b'{"a":"' + b"x" * (21 << 20) + b'"}')
    small = document(1, stream="small")
    outcome = one.put([huge, small])
    assert "more than it takes" in outcome.rejected[huge.id]
    assert outcome.accepted == (small.id,)


def test_a_server_that_dies_is_no_success() -> None:
    """Killed while connected: nothing is accepted or given up, with the reason."""
    if why := mock.lacking():
        pytest.skip(why)
    with mock.CouchbaseMock() as dying:
        one = target(dying.url, timeout=8.0)
        assert one.put([document(3)]).accepted
        dying.kill()
        outcome = one.put([document(3, first=24)])
        assert (outcome.accepted, outcome.rejected, outcome.retry_after) == ((), {}, 0.0)
        assert "no answer in time" in outcome.error or "cut" in outcome.error
        one.close()


def test_a_level_the_server_does_not_know_is_no_success(server: mock.CouchbaseMock) -> None:
    """The mock knows no durability: a document is then not acknowledged."""
    one = target(server.url, timeout=1.0, durability="majority")
    outcome = one.put([document(3, stream="durable")])
    assert (outcome.accepted, outcome.rejected) == ((), {})
    assert outcome.error
    one.close()


def test_without_the_sdk_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Configured, and not installed: said at the start."""
    monkeypatch.setitem(sys.modules, "couchbase", None)
    monkeypatch.delitem(sys.modules, "couchbase.exceptions", raising=False)
    with pytest.raises(EnvironmentRefused, match=r"sluicegate\[couchbase\]"):
        target("couchbase://127.0.0.1:9")


def test_chunks_decode(shared: CouchbaseTarget) -> None:
    """What a reader of the bucket finds is the chunk."""
    one, sent = shared, document(5, stream="decoded")
    assert one.put([sent]).accepted
    assert chunks.decode(one._opened().get(sent.id, one._get_options).value) == chunks.decode(sent.data)
