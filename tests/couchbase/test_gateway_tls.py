"""TLS to a gateway: verified unless told otherwise, by custom roots or one pinned certificate, with words that help."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from gateway.certificates import Certificates
from gateway.stand_in import StandIn
from target_suite.suite import FIRST

from gateway import certificates, databases
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.sync.connection import Connection, tls
from sluicegate_agent.sync.contract import Outcome
from sluicegate_agent.sync.sync_gateway import Session, SyncGatewayTarget


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Of this test run."""
    return certificates.make(tmp_path_factory.mktemp("tls"))


def put(shown: Path, ca: Path | None = None, pin: Path | None = None) -> Outcome:
    """One document to a gateway that shows the certificate `shown`, by a target that trusts `ca` or `pin`."""
    with StandIn(tls=(shown, shown.with_suffix(".key"))) as gateway:
        context, pinned = tls(ca, pin)
        connection = Connection(f"{gateway.public_url}/{databases.PLAIN}", context, pinned, 5.0)
        outcome = SyncGatewayTarget(connection, Session("board-1", databases.PASSWORD)).put([FIRST])
        assert bool(outcome.accepted) == bool(gateway.documents_of(databases.PLAIN))
        connection.close()
        return outcome


def test_its_own_authority_is_trusted(made: Certificates) -> None:
    """`sync.tls.ca_file`."""
    assert put(made.here, ca=made.authority).accepted == (FIRST.id,)


@pytest.mark.parametrize("trusted", [None, "stranger"])
def test_an_unknown_authority_is_not(made: Certificates, trusted: str | None) -> None:
    """By default the system's roots, or another authority: nothing is sent, and the message says what to name."""
    outcome = put(made.here, ca=getattr(made, trusted) if trusted else None)
    assert (outcome.accepted, outcome.rejected) == ((), {})
    assert "not trusted" in outcome.error
    assert "sync.tls.ca_file" in outcome.error


def test_another_hosts_certificate_is_not(made: Certificates) -> None:
    """Signed by a trusted authority, for another name."""
    outcome = put(made.elsewhere, ca=made.authority)
    assert outcome.accepted == ()
    assert "not trusted" in outcome.error


@pytest.mark.parametrize("shown", ["here", "elsewhere", "stranger"])
def test_a_pinned_certificate_is_trusted_whoever_signed_it(made: Certificates, shown: str) -> None:
    """`sync.tls.pin_file`: self-signed, or for another name; it alone counts."""
    path = getattr(made, shown)
    assert put(path, pin=path).accepted == (FIRST.id,)


@pytest.mark.parametrize("pin", ["authority", "elsewhere", "stranger"])
def test_no_other_certificate_passes_a_pin(made: Certificates, pin: str) -> None:
    """Not even one that the pinned certificate has signed."""
    outcome = put(made.here, pin=getattr(made, pin))
    assert outcome.accepted == ()
    assert "not trusted" in outcome.error


def test_a_port_without_tls_is_said(made: Certificates) -> None:
    """https:// to a gateway that speaks plainly."""
    with StandIn() as gateway:
        context, pinned = tls(made.authority, None)
        connection = Connection(gateway.public_url.replace("http", "https") + "/plain", context, pinned, 2.0)
        outcome = SyncGatewayTarget(connection, Session("board-1", databases.PASSWORD)).put([FIRST])
    assert outcome.accepted == ()
    assert "TLS" in outcome.error


@pytest.mark.parametrize("key", ["ca_file", "pin_file"])
def test_files_that_are_no_certificates_end_the_start(tmp_path: Path, key: str) -> None:
    """Named at once, with the key to correct."""
    (tmp_path / "bad.pem").write_text("no certificate")
    with pytest.raises(EnvironmentRefused, match=f"sync.tls.{key}"):
        tls(*((tmp_path / "bad.pem", None) if key == "ca_file" else (None, tmp_path / "bad.pem")))
