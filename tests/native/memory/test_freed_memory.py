"""No window reads memory that it has given back: the C library fills what is freed, and answers stay right."""

from __future__ import annotations

import os
import platform
import random
import subprocess
import sys
from pathlib import Path

import pytest

import sluicegate as sg

HERE = Path(__file__).parent


def grow(seed: int) -> None:
    """A full window whose buckets become shorter, so that its queues move to longer chunks while old ones are cut."""
    rng, size = random.Random(seed), 2600 + 100 * seed  # chunks of the heap hold up to 2,304 buckets
    histograms: list[sg.SumLike | sg.Constrained] = [sg.SumLike(atol=30.0), sg.Constrained(10 * size)]
    batch, single = (
        sg.Window({"x": sg.sum()}, policy=sg.policies.count(size), histograms=histograms) for _ in range(2)
    )
    values = [rng.uniform(2.5, 5.0) for _ in range(size + 300)] + [rng.uniform(40.0, 60.0) for _ in range(size)]
    at = 0
    while at < len(values):
        part = values[at : at + rng.choice((30, 300))]
        found = batch.insert_many(part)["x"]
        for i, x in enumerate(part):
            single.insert(x)
            assert found[i] == single.query()["x"], (seed, at + i)
        at += len(part)
    assert batch.snapshot() == single.snapshot(), seed


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's free fills memory on demand")
def test_small_buckets_read_nothing_that_was_freed() -> None:
    """Opening a bucket may move its queue: the oldest one is then looked at where it has gone to."""
    code = (
        f"import sys; sys.path.insert(0, {str(HERE)!r}); import test_freed_memory as t; [t.grow(s) for s in range(8)]"
    )
    filled = {"MALLOC_PERTURB_": "85", "GLIBC_TUNABLES": "glibc.malloc.perturb=85"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | filled, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
