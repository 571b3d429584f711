"""Faults at numbered steps: the n-th time a matching client reaches a step the link fails there, always alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

Step = Literal["connect", "subscribe", "receive", "keep", "deliver", "acknowledge"]
Action = Literal["cut", "stall", "duplicate", "forget"]


@dataclass(frozen=True, slots=True)
class Fault:
    """Do `action` when `step` is reached for the `number`-th time (from 1) by clients whose id starts with `client`.

    Steps: `connect` (before CONNACK), `subscribe` (before SUBACK), `receive` (a PUBLISH came, not yet kept), `keep`
    (kept, before its PUBACK), `deliver` (before a PUBLISH goes out), `acknowledge` (a PUBACK came, not yet counted).
    Actions: `cut` drops the connection, `stall` leaves it silent for `seconds`, `duplicate` sends a delivery twice,
    `forget` cuts and loses the session with all it holds, so the client is told "session present 0".
    """

    step: Step
    number: int
    action: Action
    client: str = ""
    seconds: float = 0.5

    def __post_init__(self) -> None:
        if self.step not in get_args(Step) or self.action not in get_args(Action):
            raise ValueError(f"fault {self.step}/{self.action}: steps are {get_args(Step)}, actions {get_args(Action)}")
        if self.action == "duplicate" and self.step != "deliver":
            raise ValueError(f"only a delivery can be duplicated, not the step {self.step}")
        if self.number < 1:
            raise ValueError(f"steps are numbered from 1, not {self.number}")


class Faults:
    """Counts steps and says which fault is due; `fired` lists those that were."""

    def __init__(self, planned: Iterable[Fault] = ()) -> None:
        self._left = {fault: fault.number for fault in planned}
        self.fired: list[Fault] = []

    def at(self, step: Step, client: str) -> Fault | None:
        """The fault due at this step, once; every planned fault that matches moves one step closer."""
        if not self._left:
            return None
        due = None
        for fault in [one for one in self._left if one.step == step and client.startswith(one.client)]:
            self._left[fault] -= 1
            if not self._left[fault]:
                del self._left[fault]
                self.fired.append(fault)
                due = fault
        return due
