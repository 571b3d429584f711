"""What a window's core is told of a policy that it enforces by itself, besides count and time."""

from __future__ import annotations

from typing import NamedTuple

DELTA, TOTAL, MAXIMUM, LONGEST_RUN, COMPILED = range(1, 6)  # 0: the core enforces no such rule


class EvictionRule(NamedTuple):
    """Numbers and places only; see policies/_eviction.pxd for what each kind makes of them."""

    kind: int
    name: str  # of the policy, for its errors
    monotone: bool
    slot: int = 0  # the first component read: the least attribute, the sum, the maximum or the run
    other: int = 0  # the second: the greatest attribute, the least value
    dimension: int = 0  # whose newest value the attribute is
    limit: float = 0.0
    most: int = 0  # readings at most, 0: any number
    growing: bool = False  # a value that falls is refused
    address: int = 0  # of the compiled rule
    context: int = 0
    until: int = 0  # address of what says how long nothing leaves, 0: none
