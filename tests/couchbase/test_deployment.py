"""`deploy/couchbase`: what sets up a gateway does so on a real one, and again; no file of it holds a secret."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from chunked import document
from gateway.launcher import Bootstrapped

from gateway import certificates, databases
from sluicegate_agent.sync.connection import Connection, tls
from sluicegate_agent.sync.sync_gateway import Session, SyncGatewayTarget
from sluicegate_cloud.errors import GatewayError
from sluicegate_cloud.feed import provision

DEPLOY = databases.SYNC_FUNCTION.parent
#: What rosmar does not have, or is told in another way.
OF_A_SERVER = ("index",)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bootstrapped]:
    """A real gateway that begins without any database; skips where there is none, or no curl."""
    if databases.program() is None:
        pytest.skip(databases.MISSING)
    if shutil.which("curl") is None:
        pytest.skip("configure.sh needs curl")
    with Bootstrapped(tmp_path_factory.mktemp("gateway")) as gateway:
        yield gateway


def configured(gateway: Bootstrapped, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """configure.sh run against the gateway, with the database as rosmar can have it."""
    told: dict[str, Any] = json.loads((DEPLOY / "database.json").read_text())
    for key in OF_A_SERVER:
        del told[key]
    (folder / "database.json").write_text(json.dumps({**told, "use_views": True}))
    env = {**os.environ, "GATEWAY_ADMIN_URL": gateway.admin_url, "DATABASE": str(folder / "database.json")}
    return subprocess.run(
        ["bash", str(DEPLOY / "configure.sh")], env=env | environment, capture_output=True, text=True, check=False
    )


def test_a_bare_gateway_becomes_ours(bare: Bootstrapped, tmp_path: Path) -> None:
    """configure.sh, provision, the first chunk: in; another device's: out; and the script again changes nothing."""
    for keep in ("0", "400"):
        done = configured(bare, tmp_path, KEEP_DAYS=keep)
        assert done.returncode == 0, done.stderr
    admin, public = f"{bare.admin_url}/telemetry", f"{bare.public_url}/telemetry"
    made = provision.provision(admin, "board-9", public)
    one = SyncGatewayTarget(Connection(public, None, None, 5.0), Session(made.user, made.password))
    sent = document(2, device="board-9")
    assert one.put([sent]).accepted == (sent.id,)
    assert "403" in one.put([document(2, device="board-1")]).error
    _, stored = bare.admin("GET", f"/telemetry/{sent.id}?show_exp=true")
    assert "_exp" in stored, "KEEP_DAYS=400"
    assert provision.provision(admin, "spark", public, reader=True).user == "spark"
    _, role = bare.admin("GET", "/telemetry/_role/reader")
    assert role["admin_channels"] == provision.shards()


def test_a_bare_gateway_with_tls(tmp_path: Path) -> None:
    """The same where both interfaces speak TLS only: by an authority of one's own, or the pinned certificate."""
    if databases.program() is None:
        pytest.skip(databases.MISSING)
    made = certificates.make(tmp_path)
    shown = (made.here, made.here.with_suffix(".key"))
    with Bootstrapped(tmp_path / "gateway", shown, made.authority) as gateway:
        done = configured(gateway, tmp_path, GATEWAY_CA=str(made.authority))
        assert done.returncode == 0, done.stderr
        admin, public = f"{gateway.admin_url}/telemetry", f"{gateway.public_url}/telemetry"
        with pytest.raises(GatewayError, match=r"not trusted.*SLUICEGATE_GATEWAY_CA"):
            provision.provision(admin, "board-9", public)
        told = provision.provision(admin, "board-9", public, ca_file=made.authority)
        outcomes = []
        for first, trust in enumerate((tls(made.authority, None), tls(None, made.here), tls(None, None))):
            one = SyncGatewayTarget(Connection(public, *trust, 5.0), Session(told.user, told.password))
            outcomes.append(one.put([document(2, first=first, device="board-9")]))
            one.close()
    assert [len(outcome.accepted) for outcome in outcomes] == [1, 1, 0]
    assert "not trusted" in outcomes[2].error


def test_configure_says_what_refused(bare: Bootstrapped, tmp_path: Path) -> None:
    """A sync function or database that the gateway does not take ends with its reason, not with silence."""
    (tmp_path / "broken").mkdir()
    for name in ("configure.sh", "database.json"):
        shutil.copy(DEPLOY / name, tmp_path / "broken" / name)
    (tmp_path / "broken" / "sync.js").write_text("function (doc) {")
    assert configured(bare, tmp_path).returncode == 0
    env = {**os.environ, "GATEWAY_ADMIN_URL": bare.admin_url}
    script = str(tmp_path / "broken" / "configure.sh")
    done = subprocess.run(["bash", script], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert "the sync function: status 400" in done.stderr


def test_no_secret_is_in_the_files() -> None:
    """Passwords come from the environment; the admin interfaces are published on this machine only."""
    compose = (DEPLOY / "compose.yaml").read_text()
    assert set(re.findall(r"127\.0\.0\.1:\d+:(\d+)", compose)) == {"8091", "4985"}
    bootstrap = (DEPLOY / "gateway.json").read_text()
    assert '"password": "${GATEWAY_SERVER_PASSWORD}"' in bootstrap
    assert 'skip_verify": false' in bootstrap
    json.loads(bootstrap.replace("${COUCHBASE_TLS}", "true"))
