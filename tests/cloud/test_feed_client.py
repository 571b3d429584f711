"""The feed's client promises bounded answers, an end to every wait, another try where it helps, and no secret told."""

from __future__ import annotations

import base64
import json
import logging
import socket
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from scripted import Answer, scripted

from sluicegate_cloud.errors import GatewayError, SourceError
from sluicegate_cloud.feed import access, client, gateway
from sluicegate_cloud.feed.client import Client, TooLargeError
from sluicegate_cloud.feed.gateway import Gateway

SECRET = "hunter2-is-secret"  # noqa: S105
GOOD = {"ok": True}


@pytest.fixture(autouse=True)
def reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader in the environment, and no long waits."""
    for name in (gateway.CREDENTIALS, gateway.CA_FILE, gateway.PLAIN):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(gateway.USER, "spark")
    monkeypatch.setenv(gateway.PASSWORD, SECRET)
    monkeypatch.setattr(client, "FIRST_DELAY", 0.01)


def get(url: str, most: int = 1 << 20, timeout: float = 60.0, **options: int) -> object:
    """What a client reads at `_session`."""
    with Client(Gateway.at(url, timeout=timeout), **options) as one:
        return one.get("_session", {}, most)


@pytest.mark.parametrize(
    "bad",
    [
        Answer(b"busy", 503),
        Answer({"reason": "slow down"}, 429, {"Retry-After": "0"}),
        Answer(b"", 500),
        Answer(GOOD, cut=3),
        Answer(GOOD, cut=3, chunked=True),
        Answer(GOOD, length=500),
        Answer(b'{"results":['),
        Answer(GOOD, pause=1.0),
    ],
    ids=["503", "429", "500", "cut", "cut-chunk", "short", "half-json", "silent"],
)
def test_what_may_pass_is_tried_again(bad: Answer) -> None:
    """A busy gateway, a cut, short, broken or missing answer: twice, then the good one.

    What a client gives up waiting for after 0.3 s may be a good answer on a busy machine: then it asks once more.
    """
    silent = bad.pause > 0
    with scripted(bad, bad, Answer(GOOD)) as server:
        assert get(server.url, timeout=0.3 if silent else 60.0, tries=40) == GOOD
        assert len(server.asked) >= 3 if silent else len(server.asked) == 3


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "knows no such reader"),
        (403, "needs the role `reader`"),
        (404, "no such database"),
        (400, "HTTP 400: odd"),
    ],
)
def test_a_refusal_is_said_at_once(status: int, said: str) -> None:
    """Another try would not help: one request, one message with what to do, and no password in it."""
    with scripted(Answer({"reason": "odd"}, status)) as server, pytest.raises(GatewayError, match=said) as caught:
        get(server.url)
    assert len(server.asked) == 1
    assert SECRET not in str(caught.value)


def test_a_redirection_is_not_followed() -> None:
    """A password goes to the host that was named, and to no other."""
    with scripted(Answer(GOOD)) as other, scripted(Answer(GOOD, 302, {"Location": other.url})) as server:
        with pytest.raises(GatewayError, match="HTTP 302"):
            get(server.url)
        assert other.asked == []


def test_a_gateway_that_stays_away_ends_the_wait(caplog: pytest.LogCaptureFixture) -> None:
    """So many tries and no more, each said in the log, none with the password."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (
        caplog.at_level(logging.WARNING, "sluicegate.feed"),
        pytest.raises(GatewayError, match=r"in 4 tries: .*refused"),
    ):
        get(f"http://127.0.0.1:{port}/telemetry", tries=4)
    assert len(caplog.records) == 3
    assert SECRET not in caplog.text


def test_retry_after_is_respected_within_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the gateway asks for is waited, and never longer than LONGEST_DELAY."""
    waits: list[float] = []
    # The client's own: threads of other tests sleep too.
    monkeypatch.setattr(client, "time", SimpleNamespace(sleep=waits.append, monotonic=time.monotonic))
    busy = [Answer(b"", 503, {"Retry-After": text}) for text in ("7", "86400", "soon")]
    with scripted(*busy, Answer(GOOD)) as server:
        assert get(server.url) == GOOD
    assert 7 <= waits[0] <= 7 * 1.25
    assert client.LONGEST_DELAY <= waits[1] <= client.LONGEST_DELAY * 1.25
    assert waits[2] < 1


@pytest.mark.parametrize(
    "answer", [Answer(b"x" * 5_000), Answer(b"x" * 5_000, chunked=True)], ids=["length", "chunked"]
)
def test_a_large_answer_is_refused_before_it_is_held(answer: Answer) -> None:
    """By its stated length, or as soon as it passes the bound; no second try."""
    with scripted(answer) as server, pytest.raises(TooLargeError):
        get(server.url, most=4_999)
    assert len(server.asked) == 1


def test_an_answer_that_only_trickles_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket that always has a byte more does not hold a task for ever."""
    monkeypatch.setattr(client, "LONGEST_ANSWER", -1.0)
    with scripted(Answer(GOOD)) as server, pytest.raises(GatewayError, match="was not whole after"):
        get(server.url, tries=2)


def test_the_connection_is_kept_and_says_who_asks() -> None:
    """Basic authentication on each request, all over one connection."""
    with scripted(Answer(GOOD)) as server, Client(Gateway.at(server.url)) as one:
        one.get("_session", {}, 100)
        kept = one._connection
        assert kept is not None
        sock = kept.sock
        one.get("_session", {}, 100)
        assert one._connection is kept
        assert kept.sock is sock
    name, _, password = base64.b64decode(server.asked[1][2]["Authorization"].split()[1]).decode().partition(":")
    assert (name, password) == ("spark", SECRET)


def test_credentials_come_from_a_file_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of `cloud provision`; a damaged one is named, its content never shown."""
    path = tmp_path / "reader.json"
    with pytest.raises(SourceError, match="cannot be read: No such file"):
        gateway.authorization(str(path))
    path.write_text(f'{{"user": "other", "password": 7, "note": "{SECRET}"}}')
    with pytest.raises(
        SourceError, match="expected JSON with user and password: `sluicegate cloud provision`"
    ) as caught:
        gateway.authorization(str(path))
    assert SECRET not in str(caught.value)
    path.write_text(json.dumps({"url": "https://x/y", "user": "other", "password": "ö:1"}))
    assert base64.b64decode(gateway.authorization(str(path)).split()[1]).decode() == "other:ö:1"
    monkeypatch.setenv(gateway.CREDENTIALS, str(path))
    assert Gateway.at("https://gw:4984/t").credentials == str(path)


def test_without_credentials_the_names_to_set_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is asked of the gateway."""
    monkeypatch.delenv(gateway.PASSWORD)
    with scripted(Answer(GOOD)) as server, pytest.raises(SourceError, match=gateway.CREDENTIALS):
        get(server.url)
    assert server.asked == []


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://spark:hunter2@gw:4984/telemetry", "no name and password in a URL"),
        ("https://gw:4984", "expected https://HOST:4984/DATABASE"),
        ("https://gw:4984/a/b", "expected https://HOST:4984/DATABASE"),
        ("https://gw:99999/a", "expected https://HOST:4984/DATABASE"),
        ("https://gw:4984/a?x=1", "expected https://HOST:4984/DATABASE"),
        ("http://gw:4984/telemetry", "in the clear"),
        ("http://192.0.2.1:4984/telemetry", "in the clear"),
    ],
)
def test_a_url_that_will_not_do_is_refused(url: str, said: str) -> None:
    """Passwords in URLs, no database, no encryption to another host."""
    with pytest.raises((SourceError, GatewayError), match=said) as caught:
        Gateway.at(url)
    assert "hunter2" not in str(caught.value)


def test_plain_http_is_for_this_machine_or_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loopback by name and number; elsewhere only where the environment says so."""
    for host in ("127.0.0.1", "localhost", "[::1]"):
        assert not Gateway.at(f"http://{host}:4984/t/").secure
    monkeypatch.setenv(gateway.PLAIN, "1")
    assert Gateway.at("http://gw:4984/t").url == "http://gw:4984/t"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A certificate for 127.0.0.1 that only itself vouches for."""
    folder = tmp_path_factory.mktemp("tls")
    key, cert = str(folder / "key.pem"), str(folder / "cert.pem")
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    command += ["-keyout", key, "-out", cert, "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)
    return cert, key


def test_a_certificate_is_verified(certificate: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """One that nobody vouches for is refused at once, with what to set; one of the given roots is taken."""
    with scripted(Answer(GOOD), tls=certificate) as server:
        begun = time.monotonic()
        with pytest.raises(GatewayError, match="not trusted by the system's roots") as caught:
            get(server.url)
        assert gateway.CA_FILE in str(caught.value)
        assert server.asked == []
        monkeypatch.setenv(gateway.CA_FILE, certificate[0])
        assert get(server.url) == GOOD
        with pytest.raises(GatewayError, match=r"not trusted by the roots in .*mismatch"):
            get(server.url.replace("127.0.0.1", "localhost"))
        assert time.monotonic() - begun < 45, "at once: nothing was waited for, of which a time-out is 60 s"


def test_a_file_without_certificates_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong path, or a file of something else."""
    (tmp_path / "ca.pem").write_text("no certificate")
    for path in (tmp_path / "ca.pem", tmp_path / "absent.pem"):
        monkeypatch.setenv(gateway.CA_FILE, str(path))
        with pytest.raises(SourceError, match="holds no CA certificate"):
            get("https://127.0.0.1:1/telemetry")


def test_another_server_is_not_taken_for_a_gateway() -> None:
    """JSON of something else at the URL is named."""
    with scripted(Answer(["hello"])) as server, pytest.raises(GatewayError, match="no session of a Sync Gateway"):
        access.require_access(Gateway.at(server.url))
