from array import array
from typing import Any

INT_NAMES: tuple[str, ...]
FLOAT_NAMES: tuple[str, ...]

def unpack_ints(data: Any, at: int, n: int) -> tuple[array[int], int] | None: ...
def unpack_floats(data: Any, at: int, n: int) -> tuple[array[float], int] | None: ...
def unpack_whole(
    data: Any, at: int, first: Any, n: Any, codec: int
) -> tuple[dict[str, array[int] | array[float]], int] | None: ...
