from typing import Any

def sums(
    lines: Any,
    count_low: Any,
    count_high: Any,
    window: Any,
    around: Any,
    low: Any,
    high: Any,
    raw_low: Any,
    raw_high: Any,
) -> None: ...
def offs(
    records: Any,
    row: Any,
    start: Any,
    length: int,
    lines: Any,
    count_low: Any,
    count_high: Any,
    window: Any,
    around: Any,
    near: Any,
    low: Any,
    high: Any,
) -> None: ...
