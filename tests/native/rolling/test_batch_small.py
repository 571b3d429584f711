"""Batches through windows of every small size: AMTA gives what single readings give; sums of few within rounding."""

from __future__ import annotations

import random
from array import array
from typing import Any

import pytest
from batch_twins import readings, same

import sluicegate as sg

QUESTIONS = {"sum": sg.sum(), "max": sg.max(), "min": sg.min()}
SIZES = (*range(1, 81), 127, 128, 129, 160, 191, 193, 255, 256, 257, 300, 384, 511, 512, 513, 700, 1_023, 1_024, 1_025)
LARGE = (2_047, 2_100, 4_096, 5_000)


def steady(count: int, start: int, step: int = 1_000) -> array[int]:
    """One leaves for each that comes."""
    return array("q", range(start, start + step * count, step))


def one_by_one(window: sg.Window, values: array[float], times: array[int] | None) -> array[float]:
    """The results after each."""
    found = array("d")
    for i, x in enumerate(values):
        answer: Any = window.slide(x, None if times is None else times[i])
        found.append(answer)
    return found


def agree(question: str, policy: Any, size: int, batches: tuple[int, ...], by_time: bool) -> None:
    """Results (sums of few: within rounding), states and what single readings then give are the same to the bit."""
    rng = random.Random(f"{question} {size} {by_time}")
    whole, single = (sg.Window(QUESTIONS[question], policy=policy, engine="amta") for _ in range(2))
    now, fed = 0, array("d")
    for count in (size + rng.randrange(size + 40), *batches):
        values = readings(rng, count)
        times = steady(count, now) if by_time else None
        now += 1_000 * count
        found = whole.insert_many(values, times)[question]
        fed.extend(values)
        for i, expected in enumerate(one_by_one(single, values, times), len(fed) - count + 1):
            assert same(question, found[i - 1 - len(fed)], expected, fed[max(0, i - size) : i]), (size, count)
        assert whole.snapshot() == single.snapshot(), (size, count)
        if rng.random() < 0.5:  # single readings between batches find all as they left it
            value = readings(rng, 1)
            alone = steady(1, now) if by_time else None
            now += 1_000
            fed.extend(value)
            assert one_by_one(whole, value, alone) == one_by_one(single, value, alone), (size, count)
    whole.verify()


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_small_size_by_count(question: str) -> None:
    """Batches of several lengths begin and end everywhere in the forest's changes."""
    for size in SIZES:
        agree(question, sg.policies.count(size), size, (33, 512, 100, 1, 1_131), False)


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_small_size_by_time(question: str) -> None:
    """The same where the times say what leaves."""
    for size in SIZES[::3]:
        agree(question, sg.policies.time(size * 1_000), size, (40, 600, 77, 1_030), True)


@pytest.mark.parametrize("question", QUESTIONS)
def test_larger_windows_take_eights_at_once(question: str) -> None:
    """Stretches of eights, whose ends and beginnings lie anywhere."""
    for size in LARGE:
        agree(question, sg.policies.count(size), size, (2_048, 900, 3_000), False)


@pytest.mark.parametrize("policy", [sg.policies.count(140_000), sg.policies.time(140_000_000)], ids=["count", "time"])
@pytest.mark.parametrize("jitter", [0, 900], ids=["even", "jittered"])
@pytest.mark.parametrize("question", [*QUESTIONS, "std"])
def test_a_batch_into_a_large_window_is_cut_anywhere(question: str, jitter: int, policy: Any) -> None:
    """Blocks of thousands of readings give what short batches give, to the bit, and leave the same window."""
    rng = random.Random(f"{question} {jitter}")
    whole, pieces = (sg.Window(QUESTIONS.get(question, sg.std()), policy=policy, engine="amta") for _ in range(2))
    now = 0
    for count in (139_000, 30_011, 12_288, 8_191):
        values = readings(rng, count)
        times = array("q", (t + rng.randrange(jitter + 1) for t in steady(count, now)))
        now += 1_000 * count
        found = whole.insert_many(values, times)[question]
        for start in range(0, count, 997):
            piece = pieces.insert_many(values[start : start + 997], times[start : start + 997])[question]
            assert piece.tobytes() == found[start : start + 997].tobytes(), (count, start)
    assert whole.snapshot() == pieces.snapshot()
    whole.verify()
