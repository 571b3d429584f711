"""A Modbus device's values, neighbours in one request: what cannot be read is None, with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.polling.config import ModbusConfig, RegisterConfig
from sluicegate_agent.polling.reading import DeviceError, Readings

#: What one request may ask for (Modbus Application Protocol 1.1b3, sections 6.1 and 6.3).
_MOST_BITS, _MOST_REGISTERS = 2000, 125


@dataclass(frozen=True)
class Block:
    """Values of one kind that stand beside each other: one request."""

    kind: str
    address: int
    count: int
    values: tuple[tuple[str, RegisterConfig], ...]


def blocks(values: dict[str, RegisterConfig]) -> Iterator[Block]:
    """The requests for these values. Registers that nobody asks for are not read: a device may refuse them."""
    ordered = sorted(values.items(), key=lambda item: (item[1].kind, item[1].address))
    held: list[tuple[str, RegisterConfig]] = []
    end = 0
    for name, value in ordered:
        most = _MOST_BITS if value.is_bit else _MOST_REGISTERS
        beside = held and held[0][1].kind == value.kind and value.address <= end
        reach = max(end, value.address + value.words)
        if held and not (beside and reach - held[0][1].address <= most):
            yield _block(held, end)
            held, reach = [], value.address + value.words
        held.append((name, value))
        end = reach
    if held:
        yield _block(held, end)


def _block(held: list[tuple[str, RegisterConfig]], end: int) -> Block:
    first = held[0][1]
    return Block(first.kind, first.address, end - first.address, tuple(held))


class Modbus:
    """A connection to one device, made when it is first asked and again after it was lost."""

    def __init__(self, config: ModbusConfig) -> None:
        """Raises EnvironmentRefused where the extra is not installed."""
        try:
            from pymodbus.client import AsyncModbusTcpClient
        except ImportError:
            raise EnvironmentRefused("[[modbus]] needs pymodbus: pip install 'sluicegate[modbus]'") from None
        self._config = config
        self._blocks = [*blocks(config.values)]
        # Reconnecting is ours: once a period.
        timeout = config.timeout.seconds
        self._client = AsyncModbusTcpClient(
            config.host, port=config.port, timeout=timeout, retries=0, reconnect_delay=0
        )

    async def read(self) -> Readings:
        """All values once. Raises DeviceError where the device does not answer at all."""
        from pymodbus.exceptions import ModbusException

        if not self._client.connected and not await self._client.connect():
            raise DeviceError(f"no connection to {self._config.host}:{self._config.port}")
        found = Readings()
        for block in self._blocks:
            try:
                answer = await self._ask(block)
            except ModbusException as error:
                self._client.close()
                place = f"{self._config.host}:{self._config.port}, unit {self._config.unit}"
                raise DeviceError(f"{place}: no answer that can be read ({error})") from None
            if answer.isError():
                reason = f"{block.kind} {block.address} … {block.address + block.count - 1}: {answer}"
                found.problems.append(reason)
            for name, value in block.values:
                found.values[name] = None if answer.isError() else self._value(block, value, answer)
        found.values = {name: found.values[name] for name in self._config.values}
        return found

    async def _ask(self, block: Block) -> Any:
        client = self._client
        ask = {
            "holding": client.read_holding_registers,
            "input": client.read_input_registers,
            "coil": client.read_coils,
            "discrete": client.read_discrete_inputs,
        }[block.kind]
        return await ask(block.address, count=block.count, device_id=self._config.unit)

    def _value(self, block: Block, value: RegisterConfig, answer: Any) -> float | None:
        at = value.address - block.address
        if value.is_bit:
            return int(answer.bits[at]) if at < len(answer.bits) else None
        words = answer.registers[at : at + value.words]
        if len(words) < value.words:
            return None
        kind = self._client.DATATYPE[value.type.upper()]
        found = self._client.convert_from_registers(words, kind, word_order=value.word_order)
        return found if isinstance(found, int | float) else None

    async def close(self) -> None:
        """Hang up."""
        self._client.close()
