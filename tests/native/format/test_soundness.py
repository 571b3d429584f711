"""A packed bucket is sound exactly where `record.broken` names nothing, whatever is in its fields."""

from __future__ import annotations

import math
import random
import sys

import pytest

from sluicegate.format._soundness import is_sound
from sluicegate.format.bucket import FIELDS, Bucket, Builder, merge
from sluicegate.format.record import INT64, LARGEST, WHOLE, broken

FLOATS = (0.0, -0.0, 1.0, -1.5, LARGEST, 2 * LARGEST, math.inf, -math.inf, math.nan)
WHOLES = (-1, 0, 1, 2, 3, 4, WHOLE, -WHOLE, WHOLE + 1, INT64 - 1, -INT64)


def bucket(rng: random.Random) -> Bucket:
    """One of one reading or some, merged or not, with and without what older records lack."""
    builder, found = Builder(rng.choice([0.0, 2.5])), list[Bucket]()
    for _ in range(rng.choice([1, 1, 2, 3])):
        for _ in range(rng.choice([1, 1, 2, 5])):
            builder.add(
                rng.choice([1.0, 2.0, 2.0, 7.5, rng.uniform(-3, 9)]), rng.choice([5, 6, 6, 9]), 0, rng.randrange(2)
            )
        found.append(builder.close())
    while len(found) > 1:
        found[:2] = [merge(*found[:2])]
    return found[0]


@pytest.mark.skipif(sys.byteorder == "big", reason="nobody can tell there, and the words are asked for")
@pytest.mark.parametrize("seed", range(40))
def test_sound_is_what_nothing_is_broken_of(seed: int) -> None:
    """As folded, and with one or two fields as others are, a little beside, or at an end of their range."""
    rng, sound = random.Random(seed), [0, 0]
    for _ in range(400):
        one = whole = bucket(rng)
        for name in rng.sample(FIELDS, rng.choice([0, 1, 1, 1, 2])):
            is_float = isinstance(getattr(one, name), float)
            alike = [x for x in one if isinstance(x, float) == is_float]
            beside = [getattr(one, name) + step for step in (-1, 1)]
            value = rng.choice([*alike, *beside, *(FLOATS if is_float else WHOLES)])
            one = one._replace(**{name: value if is_float else max(-INT64, min(INT64 - 1, value))})
        is_whole = not [*broken(one)]
        assert is_sound(one.pack()) == is_whole, [*broken(one)]
        assert is_sound(whole.pack())
        sound[is_whole] += 1
    assert min(sound) > 50


def test_records_of_another_length_are_left_to_the_words() -> None:
    """Older ones lack fields."""
    packed = bucket(random.Random(1)).pack()
    assert not any(is_sound(other) for other in (b"", packed[:168], packed[:248], packed + bytes(8)))
