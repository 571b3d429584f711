from array import array
from typing import Any

def columns(
    items: list[Any], time: str | None, scale: int, earliest: int, latest: int, keys: tuple[str, ...]
) -> tuple[array[int], list[array[float]], int, float] | None: ...
def run_length(items: list[Any], sequence: str, first: int, epoch: str | None, named: str | int | None) -> int: ...
