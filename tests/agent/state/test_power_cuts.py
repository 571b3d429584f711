"""Power cuts at any call, after syncs that failed, on cards that lie: nothing acknowledged is lost without a word."""

from __future__ import annotations

import logging
import os
import random
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from power_cuts import Call, Disk, Found, Known, calls, judged
from thorough import WHOLE, number

HERE = Path(__file__).parent
#: After so many syncs of a life one fails: of the record, of the log, of the database.
FAILING = range(1, 43) if WHOLE else (12, 15, 18, 26)


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`recorded_calls.c`, compiled."""
    target = tmp_path_factory.mktemp("shim") / "shim.so"
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    try:
        subprocess.run([compiler, "-shared", "-fPIC", "-o", target, HERE / "recorded_calls.c", "-ldl"], check=True)
    except FileNotFoundError:
        pytest.skip("there is no C compiler")
    return target


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """A thousand starts after power cuts have much to say."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def recorded(folder: Path, shim: Path, failing: int) -> list[Call]:
    """The calls of lives in which one sync fails; 0: none."""
    (folder / "lives" / "chunks").mkdir(parents=True)
    trace = folder / "trace"
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "LD_PRELOAD": str(shim), "TRACE": str(trace), "PYTHONPATH": path}
    subprocess.run(
        [sys.executable, HERE / "power_cuts.py", folder / "lives", str(failing)], env=environment, check=True
    )
    return list(calls(trace))


def cut(folder: Path, made: list[Call], at: int, seed: int, lies_from: int | None = None) -> Found:
    """What comes of a power cut before call `at`; `seed` 0: nothing that was on its way is there."""
    disk, known = Disk(), Known()
    for place, call in enumerate(made[:at]):
        if call.kind == "M":
            known.learn(call.data)
        else:
            disk.do(call, lies=lies_from is not None and place >= lies_from)
    life = folder / f"cut-{at}-{seed}"
    (life / "chunks").mkdir(parents=True)
    disk.cut(life / "state", random.Random(seed) if seed else None)
    return judged(life, known)


def test_a_power_cut_at_any_call_loses_nothing(shim: Path, tmp_path: Path) -> None:
    """Whichever sectors of what was on its way are there: nothing lost, twice, in doubt, and no false alarm."""
    made = recorded(tmp_path, shim, 0)
    for at in range(1, len(made), number(1, 19)):
        for seed in range(number(4, 2)):
            assert cut(tmp_path, made, at, seed) == (0, 0, 0, 0, 0, ""), (at, seed)


@pytest.mark.parametrize("failing", FAILING)
def test_a_sync_that_failed_is_not_trusted_later(failing: int, shim: Path, tmp_path: Path) -> None:
    """The system holds for written what never reached the medium: after a kill, a start and a power cut it is gone."""
    made = recorded(tmp_path, shim, failing)
    begin = next(place for place, call in enumerate(made) if call.kind == "F")
    for at in range(begin, len(made), number(3, 31)):
        found = cut(tmp_path, made, at, at % 3)
        assert found == (0, 0, 0, 0, 0, ""), at


def test_a_card_that_lies_loses_nothing_without_a_word(shim: Path, tmp_path: Path) -> None:
    """From some sync on none reaches the medium: what is lost is missing, refused or told as damage, what may be a
    repeat is in doubt."""
    made = recorded(tmp_path, shim, 0)
    begin = number(60, 150)
    for at in range(begin, len(made), number(5, 31)):
        for seed in range(3):
            found = cut(tmp_path, made, at, seed, lies_from=begin)
            assert found.twice <= found.doubt, (at, seed, found)
            assert not found.lost or found.gap or found.told, (at, seed, found)
