from typing import Any

def squares(
    first: Any,
    last: Any,
    n: Any,
    total: Any,
    squared: Any,
    windows: Any,
    width: int,
    front: Any,
    back: Any,
    out: Any,
) -> None: ...
def occurrences(
    first: Any,
    last: Any,
    least: Any,
    low: Any,
    high: Any,
    windows: Any,
    width: int,
    front: Any,
    back: Any,
    out: Any,
) -> None: ...
