"""A window that takes batches beside one that takes its readings one by one; times as clocks and networks have them."""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import sluicegate as sg

SUMS = ("sum", "mean")
EPSILON = 2.0**-52


def readings(rng: random.Random, count: int) -> array[float]:
    """Numbers whose sums depend on the order, and zeros of both signs."""
    return array("d", (rng.choice((rng.uniform(-1, 1) * 10 ** rng.randrange(9), 0.0, -0.0)) for _ in range(count)))


def wild(rng: random.Random, count: int) -> array[float]:
    """The same with numbers beside which all others vanish, which cancel out or are hardly there."""
    kinds = (1e288, -1e288, 1e-300, 5e-324, 1e17, -1e17, 1.0, 0.1, -0.0, 0.0)
    return array("d", (rng.choice(kinds) if rng.random() < 0.3 else rng.uniform(-1, 1) for _ in range(count)))


def even(rng: random.Random, size: int) -> Iterator[int]:
    """A step apart."""
    while True:
        yield 1_000


def jitter(rng: random.Random, size: int) -> Iterator[int]:
    """A step, give or take nearly half of it."""
    before = 0
    while True:
        late = rng.randrange(-400, 401)
        yield 1_000 + late - before
        before = late


def walk(rng: random.Random, size: int) -> Iterator[int]:
    """The rate itself goes up and down: windows hold more, then fewer."""
    while True:
        gap = rng.choice((400, 700, 1_000, 1_500))
        yield from (gap + rng.randrange(-200, 201) for _ in range(rng.randrange(2 * size)))


def geometric(rng: random.Random, size: int) -> Iterator[int]:
    """As independent events come: none or several leave at once, now and then more than are evicted one by one."""
    while True:
        yield int(rng.expovariate(0.001))


def bursts(rng: random.Random, size: int) -> Iterator[int]:
    """Many at one time, and gaps with which a part, most or all of a window goes."""
    while True:
        yield from [0] * rng.randrange(size // 2 + 1)
        yield from (900 + rng.randrange(200) for _ in range(rng.randrange(3 * size)))
        yield rng.choice((30_000, size * 300, size * 600, size * 950, size * 2_000))


def backwards(rng: random.Random, size: int) -> Iterator[int]:
    """Now and then one comes late, by little or by more than the window's length."""
    while True:
        yield from (900 + rng.randrange(200) for _ in range(rng.randrange(5 * size)))
        yield -rng.randrange(1, 2_000 * size)


def set_back(rng: random.Random, size: int) -> Iterator[int]:
    """A step apart; the clock goes back once in a while, and goes on from there."""
    while True:
        yield from [1_000] * rng.randrange(1, 6_000)
        yield -1_000 * rng.choice((1, 11, size // 3 + 1, size, 2 * size + 3)) + rng.choice((0, 0, 7))


def in_no_order(rng: random.Random, size: int) -> Iterator[int]:
    """Every other is late: each up to three steps."""
    behind = 0
    while True:
        lag = rng.randrange(3_000)
        yield 1_000 + behind - lag
        behind = lag


class Twins:
    """Two windows of one policy: `whole` takes batches, `single` the same readings one by one."""

    def __init__(self, aggregates: Any, policy: Any, seed: str, engine: str = "amta", scale: int = 1) -> None:
        self.rng, self.scale = random.Random(seed), scale  # `scale`: how many µs a gap's µs is
        self.whole, self.single = (sg.Window(aggregates, policy=policy, engine=engine) for _ in range(2))
        self.stored = engine == "amta"
        self.now = 0
        self.values = Summed()

    def take(self, count: int, gaps: Iterable[int], results: bool = True, numbers: Any = readings) -> None:
        """A batch into both: answers, states and what they say of themselves are the same."""
        values, times = numbers(self.rng, count), array("q")
        for gap in islice(gaps, count):
            self.now += gap * self.scale
            times.append(self.now)
        found = self.whole.insert_many(values, times, results=results)
        self.values.extend(values)
        answers, held = [], array("q")
        for x, time in zip(values, times, strict=True):
            answers.append(self.single.slide(x, time))
            held.append(len(self.single))
        for name, column in (found or {}).items():
            expected = [answer[name] if isinstance(answer, dict) else answer for answer in answers]
            self._compare(name, column, expected, held)
        assert not self.stored or self.whole.snapshot() == self.single.snapshot(), count
        assert self.whole.query() == self.single.query()

    def _compare(self, name: str, column: array[float], expected: list[Any], held: array[int]) -> None:
        """To the bit; what is not is looked at answer by answer."""
        first = len(self.values) - len(column)
        for i, (found, wanted) in enumerate(zip(column, expected, strict=True)):
            if found == wanted and found:  # zeros have two signs
                continue
            end = first + i + 1
            assert same(name, found, wanted, self.values, end - held[i], end), (name, i, found, wanted)


class Summed:
    """Numbers of which each stretch's sum and sum of |x| are known exactly, in units of the least double."""

    def __init__(self) -> None:
        self._sums, self._sizes = [0], [0]

    def __len__(self) -> int:
        return len(self._sums) - 1

    def extend(self, values: Iterable[float]) -> None:
        """These come last."""
        for x in map(units, values):
            self._sums.append(self._sums[-1] + x)
            self._sizes.append(self._sizes[-1] + abs(x))

    def of(self, start: int, end: int) -> tuple[int, int]:
        """Both sums of what lies from one place to before another."""
        return self._sums[end] - self._sums[start], self._sizes[end] - self._sizes[start]


def units(x: float) -> int:
    """How many times the least double a double is."""
    numerator, denominator = x.as_integer_ratio()
    return numerator << (1075 - denominator.bit_length())


def same(name: str, found: float, expected: float | None, values: Summed, start: int, end: int) -> bool:
    """To the bit; sums to the rounding of a sum in any order (error-algebra: 2·n·ε·Σ|x|)."""
    if expected is None:
        return math.isnan(found)
    if array("d", [found]).tobytes() == array("d", [expected]).tobytes():
        return True
    if name not in SUMS or not math.isfinite(found):
        return False
    (exact, sizes), count = values.of(start, end), end - start
    share = 1 if name == "sum" else count
    return abs(units(found) * share - exact) << 52 <= 2 * (count + 1) * sizes
