from typing import Any

ADD: int
LEAST: int
GREATEST: int

def numbers(
    first: Any,
    last: Any,
    values: Any,
    windows: Any,
    width: int,
    neutral: float,
    how: int,
    front: Any,
    back: Any,
    out: Any,
) -> None: ...
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
