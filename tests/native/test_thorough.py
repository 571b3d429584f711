"""What `make test` leaves of the long checks attacks each value of each parameter; a whole run leaves nothing out."""

from __future__ import annotations

from itertools import product

import pytest
from thorough import spread


@pytest.mark.parametrize("sizes", [(3, 4), (5, 7), (2, 3, 4), (20, 10)])
def test_each_value_of_each_parameter_runs_and_some_of_their_combinations(sizes: tuple[int, ...]) -> None:
    """Fewer than all, the same each time."""
    cases = [(f"test[{values}]", dict(zip("abc", values, strict=False))) for values in product(*map(range, sizes))]
    chosen = spread(cases)
    for parameter, size in zip("abc", sizes, strict=False):
        assert {values[parameter] for name, values in cases if name in chosen} == {*range(size)}
    assert len(chosen) < len(cases)
    assert spread(iter(cases)) == chosen


def test_what_are_no_combinations_all_run() -> None:
    """Cases of one parameter, rows of which each has a value of its own, and few."""
    one = [(f"test[{value}]", {"a": value}) for value in range(50)]
    rows = [(f"test[{value}]", {"a": value, "b": value % 2}) for value in range(50)]
    few = [(f"test[{at}]", {"a": at // 2, "b": at % 2}) for at in range(4)]
    for cases in (one, rows, few, [("test", {})]):
        assert spread(cases) == {name for name, _ in cases}
