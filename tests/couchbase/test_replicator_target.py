"""The couchbase-lite target keeps the contract on a real gateway: pushed by the library, acknowledged one by one."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
pytest.importorskip("cffi", reason="missing: cffi (pip install 'sluicegate[cblite]')")
from chunked import document
from chunked import target as by_rest
from gateway.launcher import SyncGateway
from gateway.proxy import Proxy
from gateway.tls_front import TlsFront
from target_suite import TargetSuite
from target_suite.suite import FIRST, SECOND, Subject

from gateway import certificates, databases
from sluicegate import cblite
from sluicegate.format import chunk as chunks
from sluicegate_agent.sync import Document
from sluicegate_agent.sync.couchbase_lite import CouchbaseLiteTarget, replicator_url
from sluicegate_agent.sync.sync_gateway import rest_url

USER = "board-1"


@pytest.fixture
def library() -> Iterator[cblite.Library]:
    """The real library; afterwards nothing of it is alive."""
    try:
        found = cblite.library()
    except cblite.LibraryMissing:
        pytest.skip("missing: libcblite (install it, or set SLUICEGATE_LIBCBLITE)")
    yield found
    gc.collect()
    end = time.monotonic() + 60
    while cblite.instances() and time.monotonic() < end:  # its own threads let go a moment later
        time.sleep(0.05)
    assert cblite.instances() == 0


@pytest.fixture
def at(library: cblite.Library, real_gateway: SyncGateway) -> SyncGateway:
    """An empty real gateway."""
    real_gateway.purge()
    return real_gateway


@pytest.fixture
def network(at: SyncGateway) -> Iterator[Proxy]:
    """The network before it."""
    with Proxy(at.public_url) as proxy:
        yield proxy


Makes = Callable[..., CouchbaseLiteTarget]


@pytest.fixture
def make(tmp_path: Path, network: Proxy) -> Iterator[Makes]:
    """Makes targets behind the network, and closes them."""
    made: list[CouchbaseLiteTarget] = []

    def one(
        database: str = databases.PLAIN, user: str = USER, secret: str = databases.PASSWORD, **more: float
    ) -> CouchbaseLiteTarget:
        url = f"{network.url.replace('http', 'ws')}/{database}"
        settings = cblite.Settings(user=user, password=secret)
        beside = by_rest(network.url, database, user)
        made.append(CouchbaseLiteTarget(tmp_path, url, settings, beside, **{"timeout": 60.0, **more}))
        return made[-1]

    yield one
    for target in made:
        target.close()


class ByReplicator(Subject):
    """A gateway whose network is cut to be away."""

    def __init__(self, at: SyncGateway, network: Proxy, target: CouchbaseLiteTarget) -> None:
        self.at, self.network, self.target = at, network, target

    def held(self) -> dict[str, bytes]:
        """What the gateway's administrator sees, as compact JSON."""
        found = self.at.documents_of(databases.PLAIN)
        return {name: json.dumps(body, separators=(",", ":")).encode() for name, body in found.items()}

    def go_away(self) -> None:
        """Cut everybody who connects."""
        self.network.away = True

    def come_back(self) -> None:
        """Let them pass."""
        self.network.restore()


class TestCouchbaseLiteTarget(TargetSuite):
    """The replicator keeps the contract of a directory."""

    @pytest.fixture
    def subject(self, at: SyncGateway, network: Proxy, make: Makes) -> ByReplicator:
        """Behind a proxy."""
        return ByReplicator(at, network, make())


def first_revisions(at: SyncGateway, database: str = databases.PLAIN) -> bool:
    """Whether no document at the gateway was ever changed."""
    return all(revision.startswith("1-") for revision in at.revisions_of(database).values())


def test_chunks_come_back_as_they_went(at: SyncGateway, make: Makes) -> None:
    """Through Fleece and back: what the gateway holds decodes to the chunk that was sent."""
    sent = [document(20, seed=seed, first=seed * 1000) for seed in range(5)]
    assert set(make(databases.TELEMETRY).put(sent).accepted) == {each.id for each in sent}
    held = at.documents_of(databases.TELEMETRY)
    for each in sent:
        assert chunks.decode(json.dumps(held[each.id]).encode()) == chunks.decode(each.data)
    assert first_revisions(at, databases.TELEMETRY)


def test_what_is_acknowledged_is_purged_here(at: SyncGateway, make: Makes, tmp_path: Path) -> None:
    """The database beside the state stays empty; with `keep` its documents expire instead."""
    target = make()
    assert target.put([FIRST, SECOND]).accepted
    target.close()
    with cblite.Database("sync", tmp_path) as database:
        assert len(database.collection()) == 0
    keeping = make(keep=60.0)
    sent = document(2, first=5000)
    assert keeping.put([sent]).accepted == (sent.id,)
    assert keeping.put([sent, SECOND]).accepted == (sent.id, SECOND.id)
    sent = document(2, first=6000)
    assert keeping.put([sent]).accepted == (sent.id,)
    keeping.close()
    assert first_revisions(at)
    with cblite.Database("sync", tmp_path) as database:
        assert database.collection().expires(sent.id) > time.time() * 1000 + 20_000


def test_cut_at_any_byte_nothing_is_lost_or_changed(at: SyncGateway, network: Proxy, make: Makes) -> None:
    """Never accepted unless it is there; the same put again ends well; no document has a second revision."""
    sent = [document(3, seed=seed, first=seed * 100) for seed in range(3)]
    target = make()
    for budget in (1, 300, 700, 1200, 2000, 3000, 4500, 6000):
        target.close()
        target = make()
        network.budget = lambda budget=budget: budget
        outcome = target.put(sent)
        assert set(outcome.accepted) <= set(at.documents_of(databases.PLAIN))
        assert outcome.rejected == {}
        if len(outcome.accepted) < 3:
            assert outcome.retry_after is not None
            assert outcome.error
    network.restore()
    assert set(target.put(sent).accepted) == {each.id for each in sent}
    assert len(at.documents_of(databases.PLAIN)) == 3
    assert first_revisions(at)


def test_a_process_that_died_sends_the_same_again(at: SyncGateway, make: Makes, tmp_path: Path) -> None:
    """Left in the database when it died, pushed or not: put again as a first revision, and not a second one."""
    for pushed in (False, True):
        sent = document(3, first=1000 + pushed)
        if pushed:
            assert by_rest(at.public_url).put([sent]).accepted
        with cblite.Database("sync", tmp_path) as database:
            database.collection().save_json(sent.id, sent.data)
            database.collection().save_json("left::over::0000000000000000::0", b"{}")
        target = make()
        assert target.put([sent]).accepted == (sent.id,)
        target.close()
    assert "left::over::0000000000000000::0" not in at.documents_of(databases.PLAIN)
    assert first_revisions(at)


def test_a_wrong_password_waits_and_is_not_shown(at: SyncGateway, make: Makes) -> None:
    """Nothing is given up for a password that a person has to mend, and no message says it."""
    outcome = make(secret="not-it-at-all").put([FIRST])  # noqa: S106
    assert (outcome.accepted, outcome.rejected) == ((), {})
    assert outcome.retry_after is not None
    assert "check user name and password" in outcome.error
    assert "not-it-at-all" not in repr(outcome)


def test_what_the_sync_function_refuses_waits(at: SyncGateway, make: Makes) -> None:
    """Another device's chunk: refused by the gateway, kept here, said why; the one beside it goes."""
    mine, other = document(2), document(2, device="board-2")
    outcome = make(databases.TELEMETRY).put([mine, other])
    assert outcome.accepted == (mine.id,)
    assert outcome.rejected == {}
    assert outcome.retry_after is not None
    assert other.id in outcome.error
    assert set(at.documents_of(databases.TELEMETRY)) == {mine.id}


def test_a_gateway_that_dies_and_comes_back(at: SyncGateway, network: Proxy, make: Makes) -> None:
    """The connection is cut while nothing is sent, and then again while something is."""
    target = make()
    assert target.put([FIRST]).accepted
    network.away = True
    assert target.put([SECOND]).retry_after is not None
    network.restore()
    assert target.put([SECOND]).accepted == (SECOND.id,)


def test_a_stalled_network_is_given_up_in_time(at: SyncGateway, network: Proxy, make: Makes) -> None:
    """No answer: `put` ends after its time-out with the reason, and goes on when the network does."""
    target = make(timeout=1.5)
    network.stalled = True
    begun = time.monotonic()
    outcome = target.put([FIRST])
    assert time.monotonic() - begun < 45
    assert outcome.accepted == ()
    assert outcome.retry_after is not None
    network.restore()
    end = time.monotonic() + 60
    while not (outcome := target.put([FIRST])).accepted and time.monotonic() < end:
        pass
    assert outcome.accepted == (FIRST.id,)


def test_bytes_that_differ_are_an_alarm_from_any_life(at: SyncGateway, make: Makes) -> None:
    """Another content under an id that the gateway knows is rejected, by a target that never saw the first."""
    assert by_rest(at.public_url).put([FIRST]).accepted
    outcome = make().put([Document(FIRST.id, b'{"a":2}')])
    assert "other bytes" in outcome.rejected[FIRST.id]
    assert first_revisions(at)


def test_addresses_for_rest() -> None:
    """The same host, port and database."""
    assert rest_url("wss://gateway.example:4984/telemetry") == "https://gateway.example:4984/telemetry"
    assert rest_url("ws://127.0.0.1:4984/t") == "http://127.0.0.1:4984/t" == rest_url("http://127.0.0.1:4984/t")
    assert replicator_url("https://gateway.example:4984/telemetry") == "wss://gateway.example:4984/telemetry"


# TLS


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Of this test run, and one that its authority signed for `localhost`: the library compares no addresses."""
    folder = tmp_path_factory.mktemp("tls")
    found = certificates.make(folder)._asdict()
    path = folder / "named.pem"
    path.with_suffix(".ext").write_text("subjectAltName=DNS:localhost\n")
    request = path.with_suffix(".csr")
    certificates._run("req", *certificates._new(path), "-subj", "/CN=localhost", "-out", request)
    signed = ("-CA", found["authority"], "-CAkey", found["authority"].with_suffix(".key"), "-CAcreateserial")
    extra = ("-days", "2", "-extfile", path.with_suffix(".ext"), "-out", path)
    certificates._run("x509", "-req", "-in", request, *signed, *extra)
    return found | {"named": path}


@pytest.mark.parametrize(
    ("shown", "pinned", "roots", "goes"),
    [
        ("named", "", "authority", True),
        ("named", "named", "", True),
        ("stranger", "stranger", "", True),
        ("named", "", "", False),
        ("named", "", "stranger", False),
        ("named", "stranger", "", False),
        ("elsewhere", "", "authority", False),
    ],
)
def test_certificates(
    at: SyncGateway, made: dict[str, Path], tmp_path: Path, shown: str, pinned: str, roots: str, goes: bool
) -> None:
    """By roots of one's own or one pinned certificate; any other: nothing is sent, and it says what to check."""

    def read(name: str) -> bytes:
        return made[name].read_bytes() if name else b""

    settings = cblite.Settings(user=USER, password=databases.PASSWORD, pinned=read(pinned), roots=read(roots))
    with TlsFront(at.public_url, made[shown]) as front:
        url = f"wss://localhost:{front.port}/{databases.PLAIN}"
        target = CouchbaseLiteTarget(tmp_path, url, settings, by_rest(at.public_url), 20.0)
        outcome = target.put([FIRST])
        target.close()
    if goes:
        assert outcome.accepted == (FIRST.id,)
        return
    assert (outcome.accepted, outcome.rejected) == ((), {})
    assert "check the pinned certificate or the roots" in outcome.error
    assert at.documents_of(databases.PLAIN) == {}


@pytest.mark.parametrize("key", ["ca_file", "pin_file"])
def test_a_file_without_a_certificate_is_refused_at_the_start(tmp_path: Path, key: str) -> None:
    """Missing or no PEM: told with its key before anything is sent, as the REST target does."""
    from sluicegate_agent.errors import EnvironmentRefused
    from sluicegate_agent.sync.couchbase_lite import _certificates

    with pytest.raises(EnvironmentRefused, match=f"sync.tls.{key}: .* cannot be used"):
        _certificates(key, tmp_path / "none.pem")
    (tmp_path / "text.pem").write_text("letmein")
    with pytest.raises(EnvironmentRefused, match=f"sync.tls.{key}: .*no certificate in it") as told:
        _certificates(key, tmp_path / "text.pem")
    assert "letmein" not in str(told.value), "what a file holds is not told"
