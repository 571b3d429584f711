"""The file of `sluicegate poll`: which devices are asked for what, how often, and the agent that takes it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from sluicegate.hosts import is_loopback
from sluicegate_agent.config.errors import ConfigError, Problem
from sluicegate_agent.config.files import Files
from sluicegate_agent.config.load import read_as
from sluicegate_agent.config.table import Table
from sluicegate_agent.config.units import Duration

_SECOND = 1_000_000
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
#: Registers that each type has.
WORDS = {"int16": 1, "uint16": 1, "int32": 2, "uint32": 2, "float32": 2, "int64": 4, "uint64": 4, "float64": 4}
_MOST_VALUES, _MOST_DEVICES, _MOST_WAITING = 1000, 256, 1_000_000


class AgentConfig(Table, frozen=True):
    """[agent]: its listener for readings, and how many messages of a device are held while it does not answer.

    `keep`: the folder where they are held as well, so that they outlive the process.
    """

    url: str = "http://127.0.0.1:9465"
    token_file: Path | None = None
    waiting: int = 10_000
    keep: Path | None = None
    timeout: Duration = Duration(10 * _SECOND)

    @property
    def parts(self) -> SplitResult:
        """The parts of the address."""
        return urlsplit(self.url)


class RegisterConfig(Table, frozen=True):
    """A value of a Modbus device: `address` counts from 0, as the protocol does, not from 40001."""

    address: int
    kind: Literal["holding", "input", "coil", "discrete"] = "holding"
    type: Literal["int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"] = "uint16"
    word_order: Literal["big", "little"] = "big"

    @property
    def is_bit(self) -> bool:
        """Whether it is a coil or a discrete input."""
        return self.kind in ("coil", "discrete")

    @property
    def words(self) -> int:
        """Registers or bits that it takes."""
        return 1 if self.is_bit else WORDS[self.type]


class ModbusConfig(Table, frozen=True):
    """[[modbus]]: a device that is reached by Modbus TCP."""

    topic: str
    host: str
    values: dict[str, RegisterConfig]
    port: int = 502
    unit: int = 1
    every: Duration = Duration(_SECOND)
    timeout: Duration = Duration(3 * _SECOND)


class OpcUaConfig(Table, frozen=True):
    """[[opcua]]: a server of OPC UA; `security` has to be said, since "none" sends all in the clear."""

    topic: str
    url: str
    security: Literal["none", "sign", "sign_and_encrypt"]
    values: dict[str, str]
    certificate: Path | None = None
    key: Path | None = None
    server_certificate: Path | None = None
    user: str | None = None
    password_file: Path | None = None
    every: Duration = Duration(_SECOND)
    timeout: Duration = Duration(4 * _SECOND)


class PollConfig(Table, frozen=True):
    """The whole file."""

    agent: AgentConfig = AgentConfig()
    modbus: tuple[ModbusConfig, ...] = ()
    opcua: tuple[OpcUaConfig, ...] = ()

    @property
    def devices(self) -> tuple[ModbusConfig | OpcUaConfig, ...]:
        """All devices."""
        return (*self.modbus, *self.opcua)


def load(path: Path) -> PollConfig:
    """Read and check a file. Raises ConfigError with every finding; opens no connection."""
    files = Files(path)
    config: PollConfig = read_as(PollConfig, files.raw, path)
    problems = [*_problems(config)]
    if problems:
        raise ConfigError(path, problems)
    return config


def _problems(config: PollConfig) -> Iterator[Problem]:
    if not config.devices:
        yield Problem("modbus", None, "name a device to ask: write [[modbus]] or [[opcua]]")
    if len(config.devices) > _MOST_DEVICES:
        yield Problem("modbus", len(config.devices), f"at most {_MOST_DEVICES} devices in one process")
    yield from _of_agent(config.agent)
    known: set[str] = set()
    named: list[tuple[str, ModbusConfig | OpcUaConfig]]
    named = [(f"modbus[{number}]", device) for number, device in enumerate(config.modbus, 1)]
    named += [(f"opcua[{number}]", device) for number, device in enumerate(config.opcua, 1)]
    for at, device in named:
        yield from _of_device(device, at)
        if device.topic in known:
            yield Problem(f"{at}.topic", device.topic, "another device has it: its numbers would be mixed up")
        known.add(device.topic)


def _of_agent(agent: AgentConfig) -> Iterator[Problem]:
    if agent.parts.scheme not in ("http", "https") or not agent.parts.hostname:
        yield Problem("agent.url", agent.url, "expected the agent's [http] listener, such as http://127.0.0.1:9465")
    elif agent.parts.scheme == "http" and not is_loopback(agent.parts.hostname):
        yield Problem("agent.url", agent.url, "readings and the token would be sent in the clear: use https")
    if not 1 <= agent.waiting <= _MOST_WAITING:
        yield Problem("agent.waiting", agent.waiting, f"expected 1 to {_MOST_WAITING:,} messages")


def _of_device(device: ModbusConfig | OpcUaConfig, at: str) -> Iterator[Problem]:
    if not 1 <= len(device.topic.encode()) <= 1024 or set(device.topic) & set("+#\0?"):
        yield Problem(f"{at}.topic", device.topic, "expected the topic of the agent's source, without wildcards")
    if device.every < _SECOND // 100:
        yield Problem(f"{at}.every", device.every, 'expected at least "10ms"')
    if not 1 <= len(device.values) <= _MOST_VALUES:
        yield Problem(f"{at}.values", len(device.values), f"expected 1 to {_MOST_VALUES} values")
    for name in device.values:
        if not _NAME.fullmatch(name):
            yield Problem(f"{at}.values", name, "expected a name of letters, digits, _ and -")
    yield from _of_modbus(device, at) if isinstance(device, ModbusConfig) else _of_opcua(device, at)


def _of_modbus(device: ModbusConfig, at: str) -> Iterator[Problem]:
    if not 0 <= device.unit <= 255:
        yield Problem(f"{at}.unit", device.unit, "expected 0 to 255")
    if not 1 <= device.port <= 65535:
        yield Problem(f"{at}.port", device.port, "expected 1 to 65535")
    for name, value in device.values.items():
        if not 0 <= value.address <= 65536 - value.words:
            yield Problem(f"{at}.values.{name}.address", value.address, "expected 0 to 65535, counted from 0")


def _of_opcua(device: OpcUaConfig, at: str) -> Iterator[Problem]:
    if urlsplit(device.url).scheme != "opc.tcp":
        yield Problem(f"{at}.url", device.url, "expected opc.tcp://HOST:PORT/PATH")
    if device.security != "none" and not (device.certificate and device.key and device.server_certificate):
        yield Problem(
            f"{at}.security", device.security, "needs `certificate`, `key` and the `server_certificate` that is trusted"
        )
    if device.password_file and device.security == "none":
        yield Problem(f"{at}.password_file", None, 'a password needs security = "sign_and_encrypt"')
