"""The values of nodes of an OPC UA server: one read service call a period; a bad status is None, with its name."""

from __future__ import annotations

import contextlib
from typing import Any

from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.passwords import password
from sluicegate_agent.polling.config import OpcUaConfig
from sluicegate_agent.polling.reading import DeviceError, Readings

_MODES = {"sign": "Sign", "sign_and_encrypt": "SignAndEncrypt"}


def _application(certificate: Any) -> str:
    """The application that a certificate is of: the first URI among its names; empty where there is none."""
    from cryptography import x509

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ""
    return next(iter(names.get_values_for_type(x509.UniformResourceIdentifier)), "")


class OpcUa:
    """A session with one server, made when it is first asked and again after it was lost."""

    def __init__(self, config: OpcUaConfig) -> None:
        """Raises EnvironmentRefused where the extra is not installed, or a secret cannot be read."""
        try:
            from asyncua.client.client import Client
        except ImportError:
            raise EnvironmentRefused("[[opcua]] needs asyncua: pip install 'sluicegate[opcua]'") from None
        self._make = Client
        self._config = config
        self._password = password("opcua", config.password_file, None)
        self._client: Any = None

    async def read(self) -> Readings:
        """All nodes once. Raises DeviceError where the server does not answer, or not as the protocol has it."""
        try:
            if self._client is None:
                self._client = await self._connected()
            nodes = [self._client.get_node(node) for node in self._config.values.values()]
            answers = await self._client.read_attributes(nodes)
        except Exception as error:  # the library lets through whatever its codec and its sockets raise
            await self.close()
            raise DeviceError(f"{self._config.url}: {type(error).__name__}: {str(error) or self._silence()}") from None
        found = Readings()
        for name, answer in zip(self._config.values, answers, strict=True):
            value = answer.Value.Value if answer.Value is not None and answer.StatusCode.is_good() else None
            if isinstance(value, bool | int | float):
                found.values[name] = int(value) if isinstance(value, bool) else value
                continue
            found.values[name] = None
            told = answer.StatusCode.name if value is None else f"a {type(value).__name__} is no number"
            found.problems.append(f"{name} ({self._config.values[name]}): {told}")
        return found

    async def _connected(self) -> Any:
        config = self._config
        client = self._make(config.url, timeout=config.timeout.seconds)
        if config.user:
            client.set_user(config.user)
            client.set_password(self._password or "")
        if config.security != "none":
            await self._secure(client)
        await client.connect()
        return client

    async def _secure(self, client: Any) -> None:
        """Sign, or encrypt too, as the application that the certificate names: servers refuse any other."""
        from asyncua import ua
        from asyncua.crypto.security_policies import SecurityPolicyBasic256Sha256
        from asyncua.crypto.uacrypto import load_certificate

        config = self._config
        client.application_uri = _application(await load_certificate(str(config.certificate))) or client.application_uri
        await client.set_security(
            SecurityPolicyBasic256Sha256,
            str(config.certificate),
            str(config.key),
            server_certificate=str(config.server_certificate),
            mode=getattr(ua.MessageSecurityMode, _MODES[config.security]),
        )

    def _silence(self) -> str:
        """Why a server may say nothing."""
        told = f"no answer in {self._config.timeout.seconds:g} s"
        if self._config.security == "none":
            return told
        return (
            f"{told}; a server that does not know `certificate`, or is not that of `server_certificate`, may be silent"
        )

    async def close(self) -> None:
        """End the session."""
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(Exception):  # it is gone anyway
                await client.disconnect()
