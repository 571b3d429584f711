"""OPC UA that is signed and encrypted, against asyncua's own server: Basic256Sha256, certificates made here."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
pytest.importorskip("asyncua", reason="needs the extra `opcua`")
from asyncua import Server, ua
from asyncua.crypto.permission_rules import User, UserRole
from asyncua.server.internal_session import InternalSession
from asyncua.server.user_managers import UserManager
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from sluicegate_agent.config.units import Duration
from sluicegate_agent.polling.config import OpcUaConfig
from sluicegate_agent.polling.opcua import OpcUa
from sluicegate_agent.polling.reading import DeviceError, Readings
from sluicegate_demo.ports import free_port

HEAT = 180.25


def certified(folder: Path, name: str) -> None:
    """A key, and a certificate that it signed itself, of the application urn:NAME."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    named, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), datetime.now(UTC)
    built = x509.CertificateBuilder(named, named, key.public_key(), 1, now - timedelta(days=1), now + timedelta(days=1))
    names = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(f"urn:{name}")])
    certificate = built.add_extension(names, critical=False).sign(key, hashes.SHA256())
    (folder / f"{name}.der").write_bytes(certificate.public_bytes(serialization.Encoding.DER))
    pem, pkcs8, plain = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / f"{name}.pem").write_bytes(key.private_bytes(pem, pkcs8, plain))


class Users(UserManager):  # type: ignore[misc]
    """One user, by a password."""

    def get_user(self, server: Any, username: Any = None, password: Any = None, certificate: Any = None) -> User | None:
        """Whoever it is."""
        return User(role=UserRole.User) if (username, password) == ("poller", "secret") else None


class Plant:
    """A started server that takes nothing that is not signed, and one user; certificates are in its folder."""

    def __init__(self, folder: Path) -> None:
        for name in ("server", "poller", "other"):
            certified(folder, name)
        (folder / "password").write_text("secret\n")
        (folder / "password").chmod(0o600)
        self.folder, self.url = folder, f"opc.tcp://127.0.0.1:{free_port()}/"
        self.loop = asyncio.new_event_loop()
        self.server = Server(user_manager=Users())
        self.run(self._start())

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """What it gives, in a minute at most."""
        return self.loop.run_until_complete(asyncio.wait_for(work, 60))

    async def _start(self) -> None:
        server, policies = self.server, ua.SecurityPolicyType
        await server.init()
        server.set_endpoint(self.url)
        server.set_security_policy([policies.Basic256Sha256_Sign, policies.Basic256Sha256_SignAndEncrypt])
        await server.load_certificate(str(self.folder / "server.der"))
        await server.load_private_key(str(self.folder / "server.pem"))
        space = await server.register_namespace("urn:plant")
        await server.nodes.objects.add_variable(ua.NodeId("Heat", space), "Heat", HEAT)
        await server.start()

    def asked(self, **more: Any) -> Readings:
        """What one question gives; DeviceError is raised."""
        of = {"certificate": "poller.der", "key": "poller.pem", "server_certificate": "server.der"}
        paths = {key: self.folder / name for key, name in of.items()} | {"password_file": self.folder / "password"}
        device = OpcUa(
            OpcUaConfig("oven", self.url, values={"heat": "ns=2;s=Heat"}, **{"user": "poller", **paths, **more})
        )

        async def once() -> Readings:
            try:
                return await device.read()
            finally:
                await device.close()

        found: Readings = self.run(once())
        return found


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plant]:
    """One for all tests: the server's address space takes a while."""
    made = Plant(tmp_path_factory.mktemp("opcua"))
    yield made
    made.run(made.server.stop())
    made.loop.close()


@pytest.mark.parametrize("security", ["sign", "sign_and_encrypt"])
def test_values_come_by_a_signed_connection(plant: Plant, security: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With user and password, as the application that the certificate names."""
    told, real = [], InternalSession.create_session

    async def create(self: Any, params: Any, *more: Any, **named: Any) -> Any:
        told.append(params.ClientDescription.ApplicationUri)
        return await real(self, params, *more, **named)

    monkeypatch.setattr(InternalSession, "create_session", create)
    found = plant.asked(security=security)
    assert (found.values, found.problems) == ({"heat": HEAT}, [])
    assert told == ["urn:poller"]


def test_a_password_that_is_wrong_is_told(plant: Plant, tmp_path: Path) -> None:
    """By the server's word."""
    wrong = tmp_path / "wrong"
    wrong.write_text("other\n")
    wrong.chmod(0o600)
    with pytest.raises(DeviceError, match="BadUserAccessDenied"):
        plant.asked(security="sign_and_encrypt", password_file=wrong)


def test_another_servers_certificate_reads_nothing(plant: Plant) -> None:
    """What is encrypted for it the server cannot read; the message says what that may mean."""
    with pytest.raises(DeviceError, match=r"no answer in 0\.5 s; a server that does not know `certificate`"):
        plant.asked(
            security="sign_and_encrypt", server_certificate=plant.folder / "other.der", timeout=Duration(500_000)
        )


def test_a_server_that_wants_signatures_refuses_none(plant: Plant) -> None:
    """Nothing is sent in the clear to it."""
    with pytest.raises(DeviceError, match="No matching endpoints"):
        plant.asked(security="none", user=None, password_file=None)
