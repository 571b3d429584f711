"""`sluicegate cloud provision` makes a device's user, which may then do what a device may, and nothing else."""

from __future__ import annotations

import json
import stat
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from chunked import document
from click.testing import CliRunner
from gateway.stand_in import StandIn

from gateway import Gateway, databases
from sluicegate_agent.sync.connection import Connection
from sluicegate_agent.sync.sync_gateway import Session, SyncGatewayTarget
from sluicegate_cloud.commands import cloud
from sluicegate_cloud.errors import GatewayError, ProvisionError
from sluicegate_cloud.feed import provision


def made(gateway: Gateway, name: str, **options: bool) -> provision.Credentials:
    """Provision a user of the telemetry database."""
    public = f"{gateway.public_url}/{databases.TELEMETRY}"
    return provision.provision(f"{gateway.admin_url}/{databases.TELEMETRY}", name, public, **options)


def target(credentials: provision.Credentials) -> SyncGatewayTarget:
    """The agent's target with these credentials."""
    return SyncGatewayTarget(
        Connection(credentials.url, None, None, 5.0), Session(credentials.user, credentials.password)
    )


def test_a_new_device_writes_its_own_chunks_and_no_others(gateway: Gateway) -> None:
    """From the command to the first document; another device's is refused."""
    one = target(made(gateway, "board.new-1", renew=True))
    mine, foreign = document(2, device="board.new-1"), document(2, device="board-1")
    assert one.put([mine]).accepted == (mine.id,)
    outcome = one.put([foreign])
    assert (outcome.accepted, "403" in outcome.error) == ((), True)


def test_a_device_that_exists_keeps_its_password_unless_told(gateway: Gateway) -> None:
    """A second time is refused, `renew` ends the old password."""
    old = made(gateway, "board.renewed", renew=True)
    with pytest.raises(ProvisionError, match="--renew"):
        made(gateway, "board.renewed")
    new = made(gateway, "board.renewed", renew=True)
    sent = document(2, device="board.renewed")
    assert "401" in target(old).put([sent]).error
    assert target(new).put([sent]).accepted == (sent.id,)


def test_a_reader_sees_all_and_writes_nothing(gateway: Gateway) -> None:
    """The role `reader` has every shard."""
    sent = document(2)
    assert target(made(gateway, "board.read", renew=True)).put([document(2, device="board.read")]).accepted
    reader = target(made(gateway, "spark.two", reader=True, renew=True))
    assert reader.put([sent]).accepted == ()
    answer = reader.connection.ask("GET", "/_changes", headers=reader.login.headers(reader.connection))
    assert [row["id"] for row in json.loads(answer.body)["results"] if row["id"][:1] != "_"]


def test_no_device_takes_a_readers_name(gateway: Gateway) -> None:
    """A user with other rights is not turned into a device, not even with `renew`."""
    with pytest.raises(ProvisionError, match="other rights"):
        made(gateway, databases.READER, renew=True)


def test_what_cannot_be_is_said(gateway: Gateway) -> None:
    """A name that is none, a database that is none, a gateway that is none."""
    with pytest.raises(ProvisionError, match="letters"):
        made(gateway, "a/b")
    with pytest.raises(GatewayError, match="no such database"):
        provision.provision(f"{gateway.admin_url}/nowhere", "x", "http://h/d")
    with pytest.raises(GatewayError, match="nobody listens there"):
        provision.provision("http://127.0.0.1:9/telemetry", "x", "http://h/d")
    with pytest.raises(ProvisionError, match=provision.ADMIN_USER):
        provision.provision("http://a:b@127.0.0.1:9/telemetry", "x", "http://h/d")
    with pytest.raises(ProvisionError, match="admin URL"):
        provision.provision("http://127.0.0.1:9", "x", "http://h/d")


@pytest.mark.parametrize("host", ["gateway.example", "192.0.2.7", "127.0.0.1.example.org"])
def test_no_password_crosses_a_network_unencrypted(host: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Http to another machine is refused before anything is asked, and no file is left; --plain-http asks."""
    asked: list[str] = []
    monkeypatch.setattr(provision, "_asked", lambda request, *_: asked.append(request.full_url) or (500, None))
    out = tmp_path / "board.json"
    arguments = ["provision", f"http://{host}:4985/telemetry", "board-9", "--url", "https://g/t", "--out", str(out)]
    refused = CliRunner().invoke(cloud, arguments)
    assert isinstance(refused.exception, ProvisionError)
    assert "--plain-http" in str(refused.exception)
    assert (asked, out.exists()) == ([], False)
    assert isinstance(CliRunner().invoke(cloud, [*arguments, "--plain-http"]).exception, GatewayError)
    assert asked


def test_a_redirection_takes_no_password_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the gateway answers is the answer, and a proxy from the environment is not asked about this machine."""
    seen: list[str] = []

    class Redirecting(BaseHTTPRequestHandler):
        """Sends everything elsewhere."""

        def do_GET(self) -> None:
            """A redirection to itself."""
            seen.append(self.path)
            self.send_response(302)
            self.send_header("Location", f"http://127.0.0.1:{server.server_port}/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Redirecting)
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(GatewayError, match="302"):
        provision.provision(f"http://127.0.0.1:{server.server_port}/telemetry", "x", "http://h/d")
    server.shutdown()
    assert seen == ["/telemetry/_user/x"]


def test_http_to_a_port_that_speaks_tls_is_told_in_its_own_words() -> None:
    """The answer is no JSON: its text is the reason."""

    class Tls(BaseHTTPRequestHandler):
        """Answers plain HTTP as a gateway with a certificate does."""

        def do_GET(self) -> None:
            """No JSON."""
            self.send_response(400)
            self.end_headers()
            self.wfile.write(b"Client sent an HTTP request to an HTTPS server.\n")

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Tls)
    Thread(target=server.serve_forever, daemon=True).start()
    with pytest.raises(GatewayError, match="400: Client sent an HTTP request to an HTTPS server"):
        provision.provision(f"http://127.0.0.1:{server.server_port}/telemetry", "x", "http://h/d")
    server.shutdown()


def test_the_command_writes_a_file_for_its_owner_alone(tmp_path: Path) -> None:
    """JSON of url, user and password, mode 0600, never over a file that is there; without --out it is printed."""
    out = tmp_path / "board-7.json"
    with StandIn() as gateway:
        admin, public = (f"{url}/{databases.TELEMETRY}" for url in (gateway.admin_url, gateway.public_url))
        arguments = ["provision", admin, "board-7", "--url", public]
        result = CliRunner().invoke(cloud, [*arguments, "--out", str(out)])
        assert result.exit_code == 0, result.output
        assert stat.S_IMODE(out.stat().st_mode) == 0o600
        written = json.loads(out.read_text())
        assert (written["url"], written["user"]) == (public, "board-7")
        assert len(written["password"]) >= 24
        assert written["password"] not in result.output
        again = CliRunner().invoke(cloud, [*arguments, "--renew", "--out", str(out)])
        assert isinstance(again.exception, ProvisionError)
        assert json.loads(out.read_text()) == written
        sent = document(2, device="board-7")
        kept = target(provision.Credentials(**written)).put([sent])
        assert kept.accepted == (sent.id,), "the password in use was not renewed"
        failed = CliRunner().invoke(cloud, [*arguments, "--out", str(tmp_path / "second.json")])
        assert isinstance(failed.exception, ProvisionError)
        assert not (tmp_path / "second.json").exists()
        printed = CliRunner().invoke(cloud, [*arguments, "--renew"])
        assert json.loads(printed.output)["user"] == "board-7"


def test_many_devices_of_a_file(tmp_path: Path) -> None:
    """A file each; one that has its file is passed over, one that exists is named, the others are made."""
    listed, out = tmp_path / "devices.csv", tmp_path / "made"
    listed.write_text("site,device\nnorth,new-1\nsouth,new-2\nsouth,new-2\n")
    with StandIn() as gateway:
        admin, public = (f"{url}/{databases.TELEMETRY}" for url in (gateway.admin_url, gateway.public_url))
        arguments = ["provision", admin, "--url", public, "--many", str(listed), "--out", str(out)]
        first = CliRunner().invoke(cloud, arguments)
        assert first.exit_code == 0, first.output
        assert "2 made, 0 there before, 0 failed" in first.output
        before = {path.name: path.read_text() for path in out.iterdir()}
        assert set(before) == {"new-1.json", "new-2.json"}
        assert {stat.S_IMODE(path.stat().st_mode) for path in out.iterdir()} == {0o600}
        sent = document(2, device="new-2")
        assert target(provision.Credentials(**json.loads(before["new-2.json"]))).put([sent]).accepted == (sent.id,)
        listed.write_text("device\nnew-1\nnew-2\nnew-3\nnew-4\n")
        made(gateway, "new-3")
        second = CliRunner().invoke(cloud, arguments)
        assert second.exit_code == 1
        assert "new-3: " in second.output
        assert "1 made, 2 there before, 1 failed" in second.output
    assert {path.name: path.read_text() for path in out.iterdir() if path.name in before} == before
    assert sorted(path.name for path in out.iterdir()) == ["new-1.json", "new-2.json", "new-4.json"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("name\na\n", "column `device`"),
        ("device\n", "no device"),
        ("device\na/b\n", "line 2"),
        (None, "cannot be read"),
    ],
)
def test_a_list_that_cannot_be_makes_nobody(content: str | None, said: str, tmp_path: Path) -> None:
    """It is read whole before the first request."""
    if content is not None:
        (tmp_path / "devices.csv").write_text(content)
    arguments = ["provision", "http://127.0.0.1:1/d", "--url", "http://h/d", "--many", str(tmp_path / "devices.csv")]
    result = CliRunner().invoke(cloud, [*arguments, "--out", str(tmp_path / "made")])
    assert isinstance(result.exception, ProvisionError)
    assert said in str(result.exception)
    assert not (tmp_path / "made").exists()
