"""No window says that it is more complete than it is, where losses, keys, mistimed late readings and clocks meet."""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from attacked_worlds import SECOND, Attack, attack, missing
from table_worlds import store_at, table_of, take_in
from test_sent_truth import in_batch, said
from thorough import number

from sluicegate_cloud.grid import Grid
from sluicegate_cloud.table import read
from sluicegate_cloud.table.versions import Definition

Came = dict[tuple[str, str], set[int]]


def judged(rows: Sequence[dict[str, Any]], attacks: Sequence[Attack], came: Came, grid: Grid) -> dict[str, int]:
    """How many windows there are, are complete, say so, say too much, and say falsely that they are complete."""
    found = dict.fromkeys(("windows", "complete", "say", "over", "false"), 0)
    width, slide = grid.width * grid.slide_us, grid.slide_us
    known = {
        of: (sorted(one.lines[of[1]].times[at] for at in ordinals), sorted(missing(one, of[1], ordinals)))
        for one in attacks for of, ordinals in came.items() if of[0] == one.device
    }  # fmt: skip
    for row in rows:
        mine = [of for (device, name), of in known.items() if row["device"] in (None, device) and name == row["stream"]]
        for start in range(row["window_start"], row["window_end"] - width + 1, slide)[:50]:
            here, lost = (
                sum(bisect_left(of[at], start + width) - bisect_left(of[at], start) for of in mine) for at in (0, 1)
            )
            value = row["completeness"]
            says = None if value is None or math.isnan(value) else value
            truth = here / (here + lost) if here + lost else None
            found["windows"] += 1
            found["complete"] += truth == 1.0
            found["say"] += truth == 1.0 and says == 1.0
            over = lost > 0 and (says is None or (truth is not None and says > truth + 1e-9))
            found["over"] += over
            found["false"] += over and says == 1.0
    return found


def attacks_of(rng: random.Random, *, whole: bool, back: bool, stamps: bool, **more: int) -> list[Attack]:
    """Two devices."""
    made = [attack(rng, device, whole=whole, back=back, stamps=stamps, **more) for device in "ab"]
    return [one for one in made if not one.restarts]


@pytest.mark.parametrize("kind", ["whole", "parts", "back", "all", "coarse", "short"])
def test_no_window_of_an_attack_says_too_much(kind: str) -> None:
    """Of both devices and of them together. A clock that is set back within a loss, and ahead after it, nobody sees:
    the worlds that have that may say too much in one of 500 windows.
    """
    windows = over = 0
    for seed in range(number(300, 6)):
        rng = random.Random(seed)
        more = {"coarse": {"step": rng.choice([1, 60]) * SECOND}, "short": {"horizon": rng.choice([3, 9, 30])}}
        how = {"whole": kind in ("whole", "back"), "back": kind in ("back", "all"), "stamps": kind == "all"}
        attacks = attacks_of(rng, **how, **more.get(kind, {}))
        grid = Grid(rng.choice([7, 30, 200]) * SECOND, rng.choice([1, 2, 5]), 0)
        documents = [each for one in attacks for line in one.lines.values() for each, _ in line.documents]
        if documents:
            came = {(one.device, name): {*range(len(of.times))} for one in attacks for name, of in one.lines.items()}
            found = judged([*in_batch(documents, grid, 50)], attacks, came, grid)
            windows, over = windows + found["windows"], over + found["over"]
    assert windows > 1_000
    assert over <= (windows // 500 if kind in ("back", "all") else 0), (over, windows)


@pytest.mark.parametrize("seed", range(number(200, 4)))
def test_increments_of_an_attack_say_what_batch_says(seed: int, tmp_path: Path) -> None:
    """Documents in any order, in some runs, some of them never."""
    rng = random.Random(seed)
    attacks = attacks_of(rng, whole=False, back=True, stamps=True)
    grid = Grid(rng.choice([7, 30, 200]) * SECOND, rng.choice([1, 2, 5]), 0)
    documents = [each for one in attacks for line in one.lines.values() for each, _ in line.documents]
    documents = rng.sample(documents, len(documents) * 9 // 10)
    width, slide = grid.width * grid.slide_us, grid.slide_us
    told = {"shards": 2, "cell_us": slide * 50, "max_empty": 50}
    store, version = store_at(tmp_path / "table", Definition(width, slide, 0, ("count",), **told))
    for part in range(4):
        if some := documents[part::4]:
            version = take_in(store, version, table_of(some, 1_000 * part))
    if documents:
        assert said(read.rows_of(store, version).to_pylist()) == said([*in_batch(documents, grid, 50)])
