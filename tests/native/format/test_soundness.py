"""A packed bucket is sound where readings may have made it, and not where a field contradicts the others."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from sluicegate.format._soundness import is_sound
from sluicegate.format.bucket import Bucket, Builder, merge
from sluicegate.format.record import LARGEST, WHOLE

INT64 = 2**63


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


@pytest.mark.parametrize("seed", range(10))
def test_what_is_folded_is_sound(seed: int) -> None:
    """However readings are folded and merged."""
    rng = random.Random(seed)
    for _ in range(400):
        bucket(rng).verify()


ONE: dict[str, tuple[Any, ...]] = {  # of 7.5 at 5 µs, ordinal 3
    "n": (0, -1, 2), "t_first": (4, 6), "t_last": (4, 6), "pre_low": (0.0, math.nan), "pre_high": (0.0, math.nan),
    "low": (7.0, 8.0, math.nan), "high": (7.0, 8.0), "x_first": (7.0,), "x_last": (8.0,), "flags": (0, 2, 4, -1),
    "gap": (WHOLE + 1, -WHOLE - 1), "doubt": (-1, 2), "total": (math.nan, math.inf), "m2": (1.0, -1.0, math.inf),
    "low_n": (0, 2, -2), "high_n": (0, 2), "low_pre": (7.5, -math.inf), "low_suf": (7.5,), "high_pre": (math.inf,),
    "high_suf": (7.5,), "log_pre_low": (0.0, math.nan), "log_pre_high": (0.0, math.nan), "low_o_first": (2, 4),
    "low_o_last": (2, 4), "high_o_first": (2, 4), "high_t_first": (4, 6), "low_t_last": (4, 6), "first": (-1,),
}  # fmt: skip
SOME: dict[str, tuple[Any, ...]] = {  # of 2, -1, 4, -1, 3 at 5, 6, 6, 8, 9 µs, from ordinal 3 on
    "n": (0, 4), "t_first": (7, 10), "t_last": (7, WHOLE + 1), "total": (math.nan, -math.inf), "first": (-1, INT64 - 3),
    "pre_low": (math.nan, math.inf, -math.inf), "pre_high": (math.nan, -math.inf, math.inf), "m2": (-1.0, math.inf),
    "low": (2.5, -2 * LARGEST), "high": (2.5, 2 * LARGEST), "x_first": (-1.0, 4.0, 5.0), "x_last": (-2.0, 4.0),
    "low_o_first": (3, 2, 7), "low_o_last": (7, 3, 8), "high_o_first": (3, 7, 6), "high_o_last": (7, 4),
    "low_t_first": (4, 9), "low_t_last": (5, 10), "high_t_first": (5, 7), "high_t_last": (10, 8),
    "low_n": (0, 1, 4, 5), "low_pre": (-1.0, -2.0, 5.0, math.inf, 3.0), "low_suf": (-1.0, 2.0, math.inf),
    "high_n": (0, 2, 5), "high_pre": (4.0, 5.0, 1.0, -math.inf), "high_suf": (4.0, 2.0, -2.0, -math.inf),
    "log_total": (0.0, math.inf), "log_pre_low": (0.0,), "log_pre_high": (0.0,), "flags": (4, 8), "gap": (WHOLE + 1,),
    "doubt": (-1, 6),
}  # fmt: skip


@pytest.mark.parametrize(
    ("readings", "damage"), [([(7.5, 5)], ONE), ([(2, 5), (-1, 6), (4, 6), (-1, 8), (3, 9)], SOME)]
)
def test_what_no_readings_make_is_not(readings: list[tuple[float, int]], damage: dict[str, tuple[Any, ...]]) -> None:
    """One field is another: it contradicts the others, or what any bucket keeps to."""
    builder = Builder(2.5, 3)
    for value, time in readings:
        builder.add(value, time)
    whole = builder.close()
    assert is_sound(whole.pack())
    for name, values in damage.items():
        for value in values:
            assert not is_sound(whole._replace(**{name: value}).pack()), (name, value)
            with pytest.raises(ValueError, match=r"bucket at ordinal .* contradict each other"):
                whole._replace(**{name: value}).verify()
    for name, value in {"m2": math.nan, "low_n": -1, "high_pre": math.nan, "gap": -5, "doubt": 1}.items():
        whole._replace(**{name: value}).verify()  # not known, or as likely
    with pytest.raises(ValueError, match="bucket at ordinal"):
        whole._replace(n=INT64).verify()


def test_records_of_another_length_are_none() -> None:
    """Older ones lack fields: what those are is for `Bucket.unpack` to say."""
    packed = bucket(random.Random(1)).pack()
    assert not any(is_sound(other) for other in (b"", packed[:168], packed[:248], packed + bytes(8)))
