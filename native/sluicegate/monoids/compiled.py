"""The user's own aggregate in compiled code, given as addresses of C functions; it runs without the GIL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sluicegate.checks import is_whole
from sluicegate.errors import ConfigurationError
from sluicegate.monoids.monoid import Monoid

MOST_SLOTS = 128


def compiled(
    name: str,
    *,
    lift: int,
    combine: int,
    lower: int,
    width: int,
    deduct: int | None = None,
    dimension: str | Sequence[str] | None = None,
    owner: Any = None,
) -> Monoid:
    """An aggregate of the user's own, as C functions that the compiled engines call.

    ```c
    void   lift(const double* values, int64_t time, int64_t ordinal, void* out);   // one reading → out
    void   combine(void* out, const void* a, const void* b);                       // a's readings precede b's
    void   deduct(void* out, const void* total, const void* oldest);   // optional: total less its oldest
    double lower(const void* partial);                                             // NaN: no result (None)
    ```
    A partial is `width` slots of 8 bytes (1 to 128), aligned to 8 and all zero when `lift` gets it; `out` never
    overlaps the others. `values`: the values of `dimension`, in its order. `combine` must be associative; `deduct`,
    where given, must undo it. The functions must not raise, block or keep a pointer, and may be called from any
    thread. Addresses as int: `int(ffi.cast("intptr_t", lib.lift))` of cffi, `.address` of a numba cfunc,
    `ctypes.cast(f, ctypes.c_void_p).value` (a ctypes callback takes the GIL by itself). `owner`: what keeps the
    functions alive, held as long as the aggregate. `name`: what a stored window is checked against; its bytes are
    stored as they are, in 8-byte units little-endian, so use 8-byte fields. An empty window: None. Raises
    ConfigurationError; a wrong address or a wrong width cannot be told and crashes the process.
    """
    addresses = {"lift": lift, "combine": combine, "lower": lower, "deduct": 0 if deduct is None else deduct}
    for what, address in addresses.items():
        if not is_whole(address, 0 if what == "deduct" else 1, 2**63 - 1):
            raise ConfigurationError(f"compiled({name!r}): {what} is {address!r}, expected the address of a function")
    if not is_whole(width, 1, MOST_SLOTS):
        raise ConfigurationError(f"compiled({name!r}): width {width!r}, expected 1 to {MOST_SLOTS} slots of 8 bytes")
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"compiled({name!r}): expected a name, which stored windows are checked against")
    return Monoid("compiled", as_dimension(dimension), options=(name, width, *addresses.values(), owner))


def as_dimension(dimension: str | Sequence[str] | None) -> str | tuple[str, ...] | None:
    """One dimension, or several as a tuple. Raises ConfigurationError for none of several, or one twice."""
    if dimension is None or isinstance(dimension, str):
        return dimension
    several = tuple(dimension)
    if not several or len(set(several)) < len(several) or not all(isinstance(each, str) for each in several):
        raise ConfigurationError(f"dimension: {dimension!r}, expected a name, or different names")
    return several
