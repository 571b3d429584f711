"""A user's compiled aggregate runs as the built-in ones do: from a C library, or from callbacks that take the GIL."""

from __future__ import annotations

import ctypes
import random
import struct
import subprocess
import sysconfig
import threading
import time
from array import array
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sluicegate as sg
from sluicegate.monoids.layout import Op
from sluicegate.reference import wide

pytestmark = pytest.mark.usefixtures("implementation_of_window")
Addresses = dict[str, int]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C functions beside this file, compiled."""
    target = tmp_path_factory.mktemp("own") / "own.so"
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    source = Path(__file__).with_name("own_aggregates.c")
    # Without fused multiply-adds, which aarch64 has: else the last bit is not that of the formula in Python.
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-ffp-contract=off", "-o", target, source], check=True)
    return target


def by_ctypes(library: Path) -> tuple[Addresses, Any]:
    """Addresses of a library that ctypes loaded."""
    loaded = ctypes.CDLL(str(library))
    names = ("covariance_lift", "covariance_combine", "covariance_lower", "covariance_deduct")
    return {n: ctypes.cast(getattr(loaded, n), ctypes.c_void_p).value or 0 for n in names}, loaded


def by_cffi(library: Path) -> tuple[Addresses, Any]:
    """Addresses of a library that cffi loaded."""
    cffi = pytest.importorskip("cffi", reason="cffi is not installed: pip install 'sluicegate[dev]'")
    ffi = cffi.FFI()
    ffi.cdef(
        "void covariance_lift(const double *, int64_t, int64_t, void *);"
        "void covariance_combine(void *, const void *, const void *);"
        "void covariance_deduct(void *, const void *, const void *); double covariance_lower(const void *);"
    )
    loaded = ffi.dlopen(str(library))
    names = ("covariance_lift", "covariance_combine", "covariance_lower", "covariance_deduct")
    return {n: int(ffi.cast("intptr_t", getattr(loaded, n))) for n in names}, (ffi, loaded)


def by_numba(library: Path) -> tuple[Addresses, Any]:
    """Addresses of Python functions that numba compiled; they need no GIL."""
    numba = pytest.importorskip("numba", reason="numba is not installed: pip install numba")
    types = numba.types
    slots, number = types.CPointer(types.float64), types.int64
    three = types.void(slots, slots, slots)

    @numba.cfunc(types.void(slots, number, number, slots))
    def lift(values: Any, when: int, ordinal: int, out: Any) -> None:
        out[0], out[1], out[2], out[3] = 1.0, values[0], values[1], values[0] * values[1]

    @numba.cfunc(three)
    def add(out: Any, a: Any, b: Any) -> None:
        for i in range(4):
            out[i] = a[i] + b[i]

    @numba.cfunc(three)
    def less(out: Any, a: Any, b: Any) -> None:
        for i in range(4):
            out[i] = a[i] - b[i]

    @numba.cfunc(types.float64(slots))
    def lower(partial: Any) -> Any:
        n = partial[0]
        return partial[3] / n - (partial[1] / n) * (partial[2] / n) if n >= 2 else float("nan")

    made = {"lift": lift, "combine": add, "deduct": less, "lower": lower}
    return {f"covariance_{name}": int(function.address) for name, function in made.items()}, made


def by_callbacks(library: Path) -> tuple[Addresses, Any]:
    """Python functions as ctypes callbacks, which take the GIL by themselves."""

    def doubles(address: int) -> Any:
        return (ctypes.c_double * 4).from_address(address)

    def lift(values: int, when: int, ordinal: int, out: int) -> None:
        x, y = (ctypes.c_double * 2).from_address(values)
        doubles(out)[:] = [1.0, x, y, x * y]

    def add(out: int, a: int, b: int) -> None:
        doubles(out)[:] = [x + y for x, y in zip(doubles(a), doubles(b), strict=True)]

    def less(out: int, a: int, b: int) -> None:
        doubles(out)[:] = [x - y for x, y in zip(doubles(a), doubles(b), strict=True)]

    def lower(partial: int) -> float:
        n, x, y, xy = doubles(partial)
        return xy / n - (x / n) * (y / n) if n >= 2 else float("nan")

    pointer, number = ctypes.c_void_p, ctypes.c_int64
    three = ctypes.CFUNCTYPE(None, pointer, pointer, pointer)
    made = {
        "covariance_lift": ctypes.CFUNCTYPE(None, pointer, number, number, pointer)(lift),
        "covariance_combine": three(add), "covariance_deduct": three(less),
        "covariance_lower": ctypes.CFUNCTYPE(ctypes.c_double, pointer)(lower),
    }  # fmt: skip
    return {n: ctypes.cast(f, ctypes.c_void_p).value or 0 for n, f in made.items()}, made


def covariance(how: Callable[[Path], tuple[Addresses, Any]], library: Path) -> sg.Monoid:
    """The aggregate, over the dimensions b and a."""
    found, owner = how(library)
    return sg.compiled(
        "covariance", lift=found["covariance_lift"], combine=found["covariance_combine"],
        lower=found["covariance_lower"], deduct=found["covariance_deduct"], width=4, dimension=("b", "a"), owner=owner,
    )  # fmt: skip


def gap(library: Path) -> sg.Monoid:
    """The longest time between two readings; counts the ordinals it is given, too."""
    loaded = ctypes.CDLL(str(library))
    lift, combine, lower = (
        ctypes.cast(getattr(loaded, f"gap_{what}"), ctypes.c_void_p).value or 0 for what in ("lift", "combine", "lower")
    )
    return sg.compiled("gap", lift=lift, combine=combine, lower=lower, width=4, owner=loaded)


def expected(rows: list[tuple[float, float]]) -> float | None:
    """The covariance of whole numbers, by the same formula."""
    n = len(rows)
    if n < 2:
        return None
    return sum(x * y for x, y in rows) / n - (sum(x for x, _ in rows) / n) * (sum(y for _, y in rows) / n)


@pytest.mark.parametrize("how", [by_ctypes, by_cffi, by_numba, by_callbacks])
def test_two_dimensions(how: Any, library: Path) -> None:
    """Beside built-in aggregates, one by one and in a batch, as the plain list says; None where it says NaN."""
    aggregates = {"max": sg.max("a"), "cov": covariance(how, library), "run": sg.longest_run("b")}
    one, many = (sg.Window(aggregates, policy=sg.policies.count(7)) for _ in range(2))
    assert one.query()["cov"] is None
    rng = random.Random(1)
    rows = [(float(rng.randrange(-9, 9)), float(rng.randrange(-9, 9))) for _ in range(60)]
    for i, (x, y) in enumerate(rows):
        one.insert({"a": y, "b": x})
        inside = rows[max(0, i - 6) : i + 1]
        assert one.query()["cov"] == expected(inside)
        assert one.query()["max"] == max(y for _, y in inside)
        one.verify()
    at = 8 * one._layout.exact_slots(aggregates["cov"])[0]
    sums = struct.unpack("=4d", one._core.total()[at : at + 32])
    assert sums[:3] == (7.0, sum(x for x, _ in rows[-7:]), sum(y for _, y in rows[-7:]))
    columns = many.insert_many(
        memoryview(array("d", [x for row in rows for x in reversed(row)])).cast("B").cast("d", (60, 2))
    )
    assert list(columns["cov"])[1:] == [expected(rows[max(0, i - 6) : i + 1]) for i in range(1, 60)]
    assert one.query() == many.query()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 40), max_size=80), st.integers(1, 60))
def test_times_reach_it(library: Path, ticks: list[int], span: int) -> None:
    """`lift` gets time and ordinal; under a time policy, at any window length."""
    window, times, now = sg.Window({"gap": gap(library)}, policy=sg.policies.time(span)), list[int](), 100
    for tick in ticks:
        now += tick
        times.append(now)
        window.insert(0.0, now)
        times = [one for one in times if one > now - span]
        assert window.query()["gap"] == max((b - a for a, b in pairwise(times)), default=0)


def test_every_window_size_to_99(library: Path) -> None:
    """Each size, growing and sliding, of the default engine: the longest gap and the ordinals of what is inside."""
    for size in range(1, 100):
        window = sg.Window({"gap": gap(library)}, policy=sg.policies.count(size))
        times = [i * i * 37 % 101 + 120 * i for i in range(size + 9)]
        for i, now in enumerate(times):
            window.insert(1.0, now)
            if i in (0, size // 2) or i >= size - 1:
                inside = times[max(0, i + 1 - size) : i + 1]
                assert window.query()["gap"] == max((b - a for a, b in pairwise(inside)), default=0)
        slots = struct.unpack("=4q", window._core.total()[:32])
        assert slots == (times[-size], times[-1], slots[2], sum(range(9, size + 9)))


@given(st.lists(st.tuples(st.integers(-99, 99), st.integers(-99, 99)), min_size=2, max_size=30), st.integers(1, 29))
def test_its_laws_hold(library: Path, rows: list[tuple[int, int]], at: int) -> None:
    """Associative."""
    monoid, at = covariance(by_ctypes, library), at % (len(rows) - 1) + 1
    window = sg.Window({"cov": monoid}, policy=sg.policies.count(9))
    component = next(each for each in window._layout.components if each.op == Op.COMPILED)
    lifted = [wide.lift(component, [float(x), float(y)], 0, 0) for x, y in rows]

    def fold(parts: list[Any]) -> Any:
        total = parts[0]
        for part in parts[1:]:
            total = wide.combine(component, total, part)
        return total

    old, rest = fold(lifted[:at]), fold(lifted[at:])
    total = wide.combine(component, old, rest)
    assert total == fold(lifted)


def test_a_batch_runs_without_the_gil(library: Path, implementation_of_window: str) -> None:
    """While a batch of a C aggregate runs, another thread of Python goes on."""
    if implementation_of_window == "pure":
        pytest.skip("the readable twin holds the GIL")
    window = sg.Window({"gap": gap(library)}, policy=sg.policies.count(1 << 12))
    values, times = array("d", bytes(8 << 18)), array("q", range(1 << 18))
    seen, end = threading.Event(), time.monotonic() + 120

    def insert() -> None:
        while not seen.is_set() and time.monotonic() < end:
            window.insert_many(values, times, results=False)

    thread = threading.Thread(target=insert)
    refused = 0
    thread.start()
    while thread.is_alive():
        try:
            window.query()
        except sg.errors.BusyError:  # said in the midst of a batch: so this thread runs there
            refused += 1
        if refused > 3:
            seen.set()
        time.sleep(0.0005)
    thread.join()
    assert refused > 3


def test_stored_by_its_name(library: Path) -> None:
    """A snapshot is taken over by the same name and width, wherever the functions are now; by no other."""
    monoid = covariance(by_ctypes, library)
    window = sg.Window({"cov": monoid}, policy=sg.policies.count(5))
    for i in range(12):
        window.insert((float(i * i % 7), float(i)))
    again = sg.Window.restore(
        window.snapshot(), {"cov": covariance(by_callbacks, library)}, policy=sg.policies.count(5)
    )
    for each in (window, again):
        each.insert((3.0, 4.0))
    assert window.query() == again.query()
    with pytest.raises(sg.errors.ForeignSnapshotError):
        sg.Window.restore(window.snapshot(), {"cov": gap(library)}, policy=sg.policies.count(5))


@pytest.mark.parametrize("wrong", [
    {"lift": 0}, {"combine": "x"}, {"lower": True}, {"deduct": -1.5}, {"width": 0}, {"width": 129}, {"name": ""},
    {"dimension": ()}, {"dimension": ("a", "a")},
])  # fmt: skip
def test_what_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    """Addresses, widths and names are checked as far as they can be."""
    right: dict[str, Any] = {"name": "x", "lift": 8, "combine": 8, "lower": 8, "width": 1}
    with pytest.raises(sg.errors.ConfigurationError, match="expected"):
        sg.compiled(**{**right, **wrong})
    with pytest.raises(sg.errors.ConfigurationError, match="without histograms"):
        sg.Window(sg.compiled(**right), policy=sg.policies.count(3), histograms=[sg.Constrained(8)])
