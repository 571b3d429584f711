from typing import Any

def greatest(
    n: Any,
    mean: Any,
    squares: Any,
    least: Any,
    most: Any,
    part_low: Any,
    part_high: Any,
    count_low: Any,
    count_high: Any,
    segments: int,
    out: Any,
) -> None: ...
