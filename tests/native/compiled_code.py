"""C code of a user's own, compiled once a session: a rule that keeps so many readings, a hash that sees their order."""

from __future__ import annotations

import ctypes
import functools
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import sluicegate as sg

MODULUS, FACTOR = 2**31 - 1, 48271
SOURCE = """
#include <stdint.h>
typedef union { double f; int64_t i; } slot;
enum { P = 2147483647, FACTOR = 48271 };

/* All but the newest so many readings leave; slot 0 is the count. */
int keep(const slot *total, const slot *old, void *context) {
    return total[0].i - old[0].i >= *(const int64_t *)context;
}
/* A polynomial over a prime: any reading lost, doubled or out of order changes it. */
void lift(const double *values, int64_t time, int64_t ordinal, void *out) {
    slot *o = out;
    (void)ordinal;
    o[0].i = FACTOR;
    o[1].i = ((int64_t)(values[0] * 64.0) % P + time % P + 3 * (int64_t)P) % P;
}
void combine(void *out, const void *a, const void *b) {
    slot *o = out;
    const slot *x = a, *y = b;
    o[0].i = x[0].i * y[0].i % P;
    o[1].i = (x[1].i * y[0].i + y[1].i) % P;
}
static int64_t inverse(int64_t x) {
    int64_t result = 1, power = P - 2;
    for (; power; power >>= 1, x = x * x % P)
        if (power & 1) result = result * x % P;
    return result;
}
void deduct(void *out, const void *total, const void *oldest) {
    slot *o = out;
    const slot *t = total, *old = oldest;
    o[0].i = t[0].i * inverse(old[0].i) % P;
    o[1].i = ((t[1].i - old[1].i * o[0].i) % P + P) % P;
}
double lower(const void *partial) { return (double)((const slot *)partial)[1].i; }
"""


def compiled(source: str, *flags: str) -> Any:
    """A library of this C code; its folder goes with it."""
    folder = tempfile.TemporaryDirectory(prefix="sluicegate-")
    code, target = Path(folder.name) / "code.c", Path(folder.name) / "code.so"
    code.write_text(source)
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", *flags, "-o", target, code, "-lm"], check=True)
    loaded = ctypes.CDLL(str(target))
    loaded.folder = folder
    return loaded


@functools.cache
def library() -> Any:
    """The code above."""
    return compiled(SOURCE)


def address(name: str) -> int:
    """Where a function is."""
    found = ctypes.cast(getattr(library(), name), ctypes.c_void_p).value
    assert found is not None
    return found


def order(*, deducts: bool = True) -> sg.Monoid:
    """The hash as an aggregate."""
    return sg.compiled(
        "order", lift=address("lift"), combine=address("combine"), lower=address("lower"), width=2,
        deduct=address("deduct") if deducts else None, owner=library(),
    )  # fmt: skip


def order_of(column: Iterable[tuple[float, int]]) -> float | None:
    """The hash of readings (value in 64ths, time), reckoned in Python; None of nothing."""
    found = None
    for x, time in column:
        found = ((found or 0) * FACTOR + int(x * 64.0) + time) % MODULUS
    return None if found is None else float(found)


class Keep:
    """How many readings the compiled rule keeps; may be changed at any time."""

    def __init__(self, count: int) -> None:
        self.context = ctypes.c_int64(count)

    def policy(self, *, monotone: bool) -> Any:
        """The rule as a policy."""
        return sg.policies.compiled(
            address("keep"), label="keep", context=ctypes.addressof(self.context), monotone=monotone, remaining=True,
            keep=(library(), self.context),
        )  # fmt: skip
