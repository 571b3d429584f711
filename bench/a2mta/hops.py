"""A window that reaches its size and then loses a random third: the paper's policy as a compiled rule."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shlex
import subprocess
import sysconfig
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from bench.a2mta.paper import DEVIATION, HOP, Setting
from bench.traces.counted import bell, key
from numpy.typing import NDArray

import sluicegate as sg

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build" / "bench"


class _Hops(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("most", "first", "next", "known")] + [("starts", ctypes.c_void_p)]


def starts(setting: Setting, seed: int = 4) -> NDArray[np.int64]:
    """Where the window begins after each hop: N(864,000, 100) readings on, the deviation scaled with the window.

    The normal is twelve uniforms, summed (integers, so the same on every machine).
    """
    hops = np.arange(2 + (setting.readings // (HOP // setting.scale)), dtype=np.int64)
    spread = sum(bell(key(seed, f"hop {part}"), hops) for part in range(3))
    deviation = DEVIATION if setting.scale == 1 else max(DEVIATION // setting.scale, 10)
    return np.cumsum(HOP // setting.scale + spread * deviation // 4096)


def begins(setting: Setting, first: NDArray[np.int64]) -> NDArray[np.int64]:
    """The ordinals of the readings at which the window hops: each fills it."""
    return np.concatenate([[0], first[:-1]]) + setting.window - 1


def policy(setting: Setting, first: NDArray[np.int64]) -> Any:
    """The rule for a window of its own: it remembers how far it has hopped."""
    context = _Hops(setting.window, 0, 0, len(first), first.ctypes.data)
    address, until = (
        ctypes.cast(f, ctypes.c_void_p).value or 0 for f in (_library().hops_leave, _library().hops_until)
    )
    keep = (context, first)
    return sg.policies.compiled(
        address,
        label="a2mta hops",
        context=ctypes.addressof(context),
        monotone=True,
        remaining=True,
        keep=keep,
        until=until,
    )


@cache
def _library() -> ctypes.CDLL:
    """The rule, compiled once for each state of its source."""
    source = HERE / "rule.c"
    target = BUILD / f"a2mta-rule-{hashlib.sha256(source.read_bytes()).hexdigest()[:16]}.so"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        new = target.with_suffix(f".{os.getpid()}")
        compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
        subprocess.run([*compiler, "-O3", "-shared", "-fPIC", "-o", str(new), str(source)], check=True)
        new.replace(target)
    return ctypes.CDLL(str(target))
