"""What asking a device gives: its values, what could not be read of them, or that it cannot be reached."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


class DeviceError(Exception):
    """The device does not answer; it is asked again a period later."""


@dataclass
class Readings:
    """Values by name, None for what has none now, and the reasons for those."""

    values: dict[str, float | None] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


class Device(Protocol):
    """Something that can be asked."""

    async def read(self) -> Readings:
        """All values once. Raises DeviceError."""

    async def close(self) -> None:
        """Hang up."""
