from typing import Any

FIELDS: tuple[str, ...]
TOLD: tuple[str, ...]
LINES: int
__pyx_capi__: dict[str, object]

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
