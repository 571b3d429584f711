from typing import Any

FIELDS: tuple[str, ...]
TOLD: tuple[str, ...]
LINES: int

def cut(
    records: Any,
    row: Any,
    start: Any,
    length: int,
    count_low: Any,
    count_high: Any,
    told: Any,
    lines: Any,
) -> None: ...
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
