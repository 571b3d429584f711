"""Which histograms go together and what they ask of a window; what makes no sense is refused with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from sluicegate.errors import ConfigurationError
from sluicegate.histograms.constrained import Constrained
from sluicegate.histograms.hop import Hop
from sluicegate.histograms.max_like import MaxLike, WatchedExtreme, extremes
from sluicegate.histograms.sum_like import Control, SumLike, controls

Histogram = SumLike | MaxLike | Hop | Constrained
_NONE_DUE = 1
One = TypeVar("One", SumLike, MaxLike, Hop, Constrained)


class Deciding(NamedTuple):
    """What a core makes its rules of: the arguments of each rule, None where it is absent, and when sums are due."""

    sums: tuple[Any, ...] | None
    most: tuple[Any, ...] | None
    hop: tuple[Any, ...] | None
    refresh: int


class Composition(NamedTuple):
    """The histograms of one window, checked; each kind at most once."""

    histograms: tuple[Histogram, ...]
    limit: int  # of a constrained footprint, 0: none
    pairs: bool  # over the limit the pair that adds least is merged, not a level
    sum_like: SumLike | None
    max_like: MaxLike | None
    hop: Hop | None
    controls: tuple[Control, ...]  # of the sum-like histogram
    extremes: tuple[WatchedExtreme, ...]  # of the max-like histogram

    @property
    def name(self) -> str:
        """What a stored window is checked against."""
        return "+".join(sorted(histogram.name for histogram in self.histograms)) or "none"

    @property
    def deciding(self) -> tuple[Histogram, ...]:
        """Those that decide by rule, always in one order; all but the constrained footprint."""
        return tuple(each for each in (self.sum_like, self.max_like, self.hop) if each is not None)

    @property
    def staging(self) -> int:
        """The most buckets of the staging tail, 0: there is none."""
        return self.max_like.tail if self.max_like else 0

    @property
    def chained(self) -> bool:
        """Whether any neighbours may be merged, so that a row is known by the ordinal of its first reading."""
        return self.pairs or self.staging > 0

    @property
    def bucketed(self) -> bool:
        """Whether leaves are buckets of many readings."""
        return bool(self.histograms)

    def rules(self) -> Deciding | None:
        """What decides for each reading, None where at most the constrained footprint does."""
        most, hop = self.max_like if self.max_like and not self.max_like.staircase else None, self.hop
        if not (self.sum_like or most or hop):
            return None
        return Deciding(
            (self.controls, self.sum_like.confidence, _quantile(self.sum_like.confidence)) if self.sum_like else None,
            (self.extremes, most.block or 0, most.confidence, most.candidates == "paper") if most else None,
            (hop.confidence, _quantile(hop.confidence), *hop.expected) if hop else None,
            self.sum_like.refresh if self.sum_like else _NONE_DUE,
        )


def _quantile(confidence: float) -> float:
    """z: a normal variable is within z deviations of its mean with this probability."""
    from statistics import NormalDist  # few windows ask for it: 1 MiB

    return NormalDist().inv_cdf(0.5 + confidence / 2.0)


def compose(histograms: Sequence[Histogram], kinds: Sequence[tuple[str, str, int]], hops: bool) -> Composition:
    """Check the histograms of a window against each other, its aggregates (name, kind, dimension) and its policy.

    `hops`: the policy may evict many readings at once. Raises ConfigurationError with the reason.
    """
    kind = (SumLike, MaxLike, Hop, Constrained)
    if not isinstance(histograms, Sequence) or isinstance(histograms, str):
        raise ConfigurationError(f"histograms: {histograms!r}, expected a list of them")
    strangers = [histogram for histogram in histograms if not isinstance(histogram, kind)]
    if strangers:
        raise ConfigurationError(f"histograms: {strangers[0]!r}, expected SumLike, MaxLike, Hop or Constrained")
    names = tuple(histogram.name for histogram in histograms)  # they tell 1 from 1.0
    return _composed(names, tuple(histograms), tuple(kinds), hops)


@lru_cache(maxsize=64)
def _composed(
    names: tuple[str, ...], histograms: tuple[Histogram, ...], kinds: tuple[tuple[str, str, int], ...], hops: bool
) -> Composition:
    """Windows of one configuration share it."""
    if len({type(histogram) for histogram in histograms}) < len(histograms):
        raise ConfigurationError(f"histograms: {list(histograms)}, expected each kind at most once; two contradict")
    sum_like, max_like = _find(histograms, SumLike), _find(histograms, MaxLike)
    hop, constrained = _find(histograms, Hop), _find(histograms, Constrained)
    if sum_like and max_like:
        raise ConfigurationError(
            "histograms: SumLike and MaxLike each decide alone where a bucket ends; take two windows"
        )
    if hop and not hops:
        raise ConfigurationError(
            "histograms: Hop, but the policy evicts reading by reading; give it a hop, or use SumLike or MaxLike"
        )
    if max_like and max_like.tail and (hop or (constrained and constrained.merge != "pairs")):
        raise ConfigurationError(
            f"histograms: {max_like.name} decides when a bucket leaves its staging tail: it goes with "
            "Constrained(n, merge='pairs') and no other; leave the other out, or set staging=0"
        )
    return Composition(
        histograms, constrained.limit if constrained else 0,
        constrained is not None and constrained.merge == "pairs", sum_like, max_like, hop,
        tuple(controls(sum_like, kinds)) if sum_like else (), tuple(extremes(kinds)) if max_like else (),
    )  # fmt: skip


def _find(histograms: Sequence[Histogram], kind: type[One]) -> One | None:
    return next((histogram for histogram in histograms if isinstance(histogram, kind)), None)
