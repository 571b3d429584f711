"""TLS to a gateway: verified unless told otherwise, by custom roots or one pinned certificate, with words that help."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from gateway.stand_in import StandIn
from target_suite.suite import FIRST

from gateway import databases
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.sync.connection import Connection, tls
from sluicegate_agent.sync.contract import Outcome
from sluicegate_agent.sync.sync_gateway import Session, SyncGatewayTarget


class Certificates(NamedTuple):
    """An authority; two certificates that it signed, one for this machine, one for another host; a stranger's."""

    authority: Path
    here: Path
    elsewhere: Path
    stranger: Path


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Made by openssl for this test run; keys lie beside them."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make certificates")
    folder = tmp_path_factory.mktemp("tls")
    made = Certificates(*(folder / f"{name}.pem" for name in Certificates._fields))
    for path in (made.authority, made.stranger):
        _run("req", "-x509", *_new(path), "-subj", f"/CN={path.stem}", "-days", "2", "-out", path)
    for path, name in ((made.here, "IP:127.0.0.1"), (made.elsewhere, "DNS:gateway.example")):
        request, extra = path.with_suffix(".csr"), path.with_suffix(".ext")
        extra.write_text(f"subjectAltName={name}\n")
        _run("req", *_new(path), "-subj", f"/CN={path.stem}", "-out", request)
        signed = ("-CA", made.authority, "-CAkey", made.authority.with_suffix(".key"), "-CAcreateserial")
        _run("x509", "-req", "-in", request, *signed, "-days", "2", "-extfile", extra, "-out", path)
    return made


def _new(path: Path) -> tuple[object, ...]:
    return "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path.with_suffix(".key")


def _run(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=30)


def put(shown: Path, ca: Path | None = None, pin: Path | None = None) -> Outcome:
    """One document to a gateway that shows the certificate `shown`, by a target that trusts `ca` or `pin`."""
    with StandIn(tls=(shown, shown.with_suffix(".key"))) as gateway:
        context, pinned = tls(ca, pin)
        connection = Connection(f"{gateway.public_url}/{databases.PLAIN}", context, pinned, 5.0)
        outcome = SyncGatewayTarget(connection, Session("board-1", databases.PASSWORD)).put([FIRST])
        assert bool(outcome.accepted) == bool(gateway.documents_of(databases.PLAIN))
        connection.close()
        return outcome


def test_its_own_authority_is_trusted(certificates: Certificates) -> None:
    """`sync.tls.ca_file`."""
    assert put(certificates.here, ca=certificates.authority).accepted == (FIRST.id,)


@pytest.mark.parametrize("trusted", [None, "stranger"])
def test_an_unknown_authority_is_not(certificates: Certificates, trusted: str | None) -> None:
    """By default the system's roots, or another authority: nothing is sent, and the message says what to name."""
    outcome = put(certificates.here, ca=getattr(certificates, trusted) if trusted else None)
    assert (outcome.accepted, outcome.rejected) == ((), {})
    assert "not trusted" in outcome.error
    assert "sync.tls.ca_file" in outcome.error


def test_another_hosts_certificate_is_not(certificates: Certificates) -> None:
    """Signed by a trusted authority, for another name."""
    outcome = put(certificates.elsewhere, ca=certificates.authority)
    assert outcome.accepted == ()
    assert "not trusted" in outcome.error


@pytest.mark.parametrize("shown", ["here", "elsewhere", "stranger"])
def test_a_pinned_certificate_is_trusted_whoever_signed_it(certificates: Certificates, shown: str) -> None:
    """`sync.tls.pin_file`: self-signed, or for another name; it alone counts."""
    path = getattr(certificates, shown)
    assert put(path, pin=path).accepted == (FIRST.id,)


@pytest.mark.parametrize("pin", ["authority", "elsewhere", "stranger"])
def test_no_other_certificate_passes_a_pin(certificates: Certificates, pin: str) -> None:
    """Not even one that the pinned certificate has signed."""
    outcome = put(certificates.here, pin=getattr(certificates, pin))
    assert outcome.accepted == ()
    assert "not trusted" in outcome.error


def test_a_port_without_tls_is_said(certificates: Certificates) -> None:
    """https:// to a gateway that speaks plainly."""
    with StandIn() as gateway:
        context, pinned = tls(certificates.authority, None)
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
