"""An aggregate to keep, as every constructor of `sluicegate.monoids` returns it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

PLAIN_KINDS = (
    "count", "sum", "mean", "min", "max", "argmin", "argmax", "first", "last",
    "variance", "std", "geometric_mean", "range", "min_count", "max_count",
)  # fmt: skip
"""Those whose result is one number, that need no options, and that buckets answer with a certain interval."""
KINDS = (
    *PLAIN_KINDS, "rate", "frequency", "longest_run", "histogram", "bloom_filter", "top_k", "distinct_count",
    "compiled", "collect", "quantiles", "custom", "time_weighted_mean", "slope", "intercept", "covariance",
    "correlation", "count_min",
)  # fmt: skip
"""All of them; their places are the compiled answers' contract."""
COMPOSITE = ("longest_run", "histogram", "bloom_filter", "top_k", "distinct_count", "count_min")
"""Kinds of fixed width whose result is more than one number."""
OBJECTS = ("collect", "quantiles", "custom")
"""Kinds whose partials are Python objects: their windows run on the readable engines (`reference.object_core`)."""
PAIRED = ("covariance", "correlation")
"""Kinds that read two dimensions."""
SKETCHES = ("bloom_filter", "top_k", "distinct_count", "quantiles", "count_min")
"""Kinds that keep a summary of the values: over buckets each says what is certain, and what its stated error is."""
TOLD = ("histogram", "time_weighted_mean", "slope", "intercept", *PAIRED, *SKETCHES)
"""Kinds that buckets answer through `bounds.told`: their answers are put together in Python."""
OWN = ("compiled", "custom")
"""Kinds of the user's own code, which is kept for no longer than a window that needs it."""
COLUMNLESS = ("histogram", "bloom_filter", "top_k", "collect", "quantiles", "count_min")
"""Kinds that `insert_many` has no column for: their result is no number."""
ROUNDED = ("sum", "mean", "variance", "std", "geometric_mean", "range")
"""Kinds whose result rounding makes uncertain, even where every reading is known."""
CERTAIN = (
    "count", "min", "max", "argmin", "argmax", "first", "last", "min_count", "max_count", "longest_run", "histogram",
    "bloom_filter", "top_k", "collect", "count_min",
)  # fmt: skip
"""Kinds whose result is certain where every reading is known: nothing is rounded."""
DIMENSIONLESS = ("count", "frequency")
"""Kinds that read no value."""


@dataclass(frozen=True, slots=True)
class Monoid:
    """An aggregate to keep: its kind (one of `KINDS`) and the dimension it reads (None: the stream has only one).

    `ddof`: what a variance divides by less than the count: 0, or 1 for a sample's. `options`: what else its
    constructor was told, checked there.
    """

    kind: str
    dimension: str | tuple[str, ...] | None = None
    ddof: int = 0
    options: tuple[Any, ...] = ()

    @property
    def reads(self) -> tuple[str | None, ...]:
        """The dimensions whose values it reads."""
        if self.kind in DIMENSIONLESS:
            return ()
        return self.dimension if isinstance(self.dimension, tuple) else (self.dimension,)

    @property
    def identity(self) -> str:
        """What a stored window is checked against, the same in every process."""
        options = tuple(x for x in self.options if isinstance(x, int | float | str | tuple))
        stored = (options[0], options[1]) if self.kind == "compiled" else options  # label and width, not the addresses
        parts = [self.kind, str(self.dimension)] + ([str(self.ddof)] if self.ddof else [])
        return ":".join(parts + ([repr(stored)] if stored else []))
