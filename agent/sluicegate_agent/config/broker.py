"""[mqtt]: the broker, and the session kept with it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from sluicegate.hosts import is_loopback
from sluicegate_agent.config.table import Table
from sluicegate_agent.config.units import Duration

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND


class TlsConfig(Table, frozen=True):
    """[mqtt.tls]: on for every host but loopback unless turned off here; certificates are always verified."""

    enabled: bool | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None


class MqttConfig(Table, frozen=True):
    """[mqtt]: the broker and the session kept with it; `enabled`: on where a source is subscribed to, or as told."""

    enabled: bool | None = None
    host: str = "localhost"
    port: int | None = None
    version: Literal[5, "3.1.1"] = 5
    client_id: str | None = None
    username: str | None = None
    password_file: Path | None = None
    password_env: str | None = None
    keepalive: Duration = Duration(60 * _SECOND)
    session_expiry: Duration = Duration(_DAY)
    receive_maximum: int = 1000
    tls: TlsConfig = TlsConfig()

    @property
    def uses_tls(self) -> bool:
        """Whether the connection is encrypted: as told, else for every host but this one."""
        return not self.is_loopback if self.tls.enabled is None else self.tls.enabled

    @property
    def is_loopback(self) -> bool:
        """Whether the broker is this machine (see sluicegate.hosts), so that nothing leaves it."""
        return is_loopback(self.host)

    @property
    def actual_port(self) -> int:
        """The port as told, else 8883 with TLS and 1883 without."""
        return self.port if self.port is not None else (8883 if self.uses_tls else 1883)


def client_of(device: str) -> str:
    """The client id of a device that was given none."""
    return f"sluicegate-{device}"
