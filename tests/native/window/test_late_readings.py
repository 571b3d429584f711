"""A stream whose times jump back and forth for ever stays within its buckets, and its bounds stay certain."""

from __future__ import annotations

import random

import sluicegate as sg


def test_many_late_readings_do_not_evict_levels_for_ever() -> None:
    """Thousands of readings in no order at all: at most `limit` buckets, the exact result inside the bounds."""
    source, day = random.Random(3), 86_400
    window = sg.Window(
        {"mean": sg.mean(), "count": sg.count()}, policy=sg.policies.time(day), histograms=[sg.Constrained(16)]
    )
    inside: list[tuple[int, float]] = []
    newest = 0
    for i in range(6000):
        time, value = source.randrange(100_000), source.random()
        window.insert(value, time=time)
        newest = max(newest, time)
        inside = [each for each in [*inside, (time, value)] if each[0] > newest - day]
        if i % 50 == 0:
            answer = window.query(bounds=True)
            mean = sum(value for _, value in inside) / len(inside)
            assert answer["mean"].low <= mean <= answer["mean"].high
            assert answer["count"].low <= len(inside) <= answer["count"].high
            assert window.footprint.held <= 16
