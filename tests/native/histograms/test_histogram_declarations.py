"""Which histograms may be declared together, and what follows from the aggregates."""

from __future__ import annotations

import math
from typing import Any

import pytest
from test_histogram_rules import NAN

from sluicegate.errors import ConfigurationError
from sluicegate.histograms.composition import compose
from sluicegate.histograms.constrained import Constrained
from sluicegate.histograms.hop import Hop
from sluicegate.histograms.max_like import MaxLike, WatchedExtreme, extremes
from sluicegate.histograms.sum_like import Control, SumLike, controls

# declarations


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: SumLike(error=0.0), "error=0.0.*above 0"),
        (lambda: SumLike(error=-0.1), "error=-0.1"),
        (lambda: SumLike(error=NAN), "error=nan"),
        (lambda: SumLike(error=math.inf), "error=inf"),
        (lambda: SumLike(), "above 0"),
        (lambda: SumLike(error=0.1, atol=-1.0), "atol=-1.0"),
        (lambda: SumLike(error=0.1, atol=NAN), "atol=nan"),
        (lambda: SumLike(error=0.1, confidence=1.0), "confidence=1.0"),
        (lambda: SumLike(error=0.1, confidence=NAN), "confidence=nan"),
        (lambda: SumLike(error=0.1, refresh=0), "refresh=0"),
        (lambda: SumLike(error=True), "error=True"),
        (lambda: MaxLike(block=1), "block=1.*from 2"),
        (lambda: MaxLike(block=0), "block=0"),
        (lambda: MaxLike(block=2.5), "block=2.5"),  # type: ignore[arg-type]
        (lambda: MaxLike(confidence=0.0), "confidence=0.0"),
        (lambda: MaxLike(candidates="none"), "candidates='none'.*recommended, paper"),
        (lambda: Hop(confidence=-1), "confidence=-1"),
        (lambda: Hop(hint=0), "hint=0"),
        (lambda: Hop(hint=(10, -1.0)), "hint=.*deviation"),
        (lambda: Hop(hint=(10, NAN)), "hint=.*deviation"),
        (lambda: Constrained(3), "from 4"),
    ],
)
def test_bad_settings_are_refused_by_name(make: Any, says: str) -> None:
    """The message names the setting, its value and what was expected."""
    with pytest.raises(ConfigurationError, match=says):
        make()


KINDS = [("mean", "mean", 0), ("load", "sum", 1), ("peak", "max", 0), ("n", "count", 0)]


@pytest.mark.parametrize(
    ("histograms", "hops", "says"),
    [
        ([SumLike(0.1), MaxLike()], False, "two windows"),
        ([SumLike(0.1), SumLike(0.2)], False, "at most once"),
        ([Hop()], False, "reading by reading"),
        ([SumLike(0.1), "hop"], False, "'hop'"),
        ([SumLike(0.1, of="speed")], False, "of='speed'.*mean.*load"),
        ([SumLike(0.1, of=())], False, "expected names"),
    ],
)
def test_combinations_without_sense_are_refused_with_the_reason(histograms: list[Any], hops: bool, says: str) -> None:
    """Two deciders of one bucket, a hop where nothing hops, a control of what is not there."""
    with pytest.raises(ConfigurationError, match=says):
        compose(histograms, KINDS, hops)


def test_max_like_needs_an_extreme() -> None:
    """A mean alone gives block maxima nothing to decide."""
    with pytest.raises(ConfigurationError, match="no maximum"):
        compose([MaxLike()], [("mean", "mean", 0)], False)


def test_what_composes() -> None:
    """Sum-like or max-like, with hop, with constrained; the name tells every setting."""
    for first in (SumLike(0.1), MaxLike(block=9)):
        composition = compose([first, Hop(), Constrained(10)], KINDS, True)
        assert composition.limit == 10
        assert composition.rules() is not None
        assert composition.name == compose([Constrained(10), Hop(), first], KINDS, True).name
    assert compose([Constrained(10)], KINDS, False).rules() is None
    assert compose([], KINDS, False).bucketed is False
    assert compose([SumLike(0.1)], KINDS, False).name != compose([SumLike(0.2)], KINDS, False).name


def test_controls_follow_the_aggregates() -> None:
    """A mean controls its sum and the count, a sum itself, anything else the count; each once; `of` chooses."""
    mean = [Control(0, 0.1, 0.0, 0), Control(-1, 0.1, 0.0, 0)]
    assert controls(SumLike(0.1), KINDS) == [*mean, Control(1, 0.1, 0.0, -1), Control(-1, 0.1, 0.0, -1)]
    assert controls(SumLike(0.1, of="count"), KINDS) == [Control(-1, 0.1, 0.0, -1)]
    assert controls(SumLike(0.1, of=["load"]), KINDS) == [Control(1, 0.1, 0.0, -1)]
    assert controls(SumLike(0.1, of="peak"), KINDS) == [Control(-1, 0.1, 0.0, -1)]
    assert controls(SumLike(0.1), [("a", "mean", 0), ("b", "mean", 0)]) == mean


def test_extremes_follow_the_aggregates() -> None:
    """A range keeps both; a place or count of the extreme makes ties count."""
    kinds = [("a", "range", 0), ("b", "argmax", 0), ("c", "min", 1)]
    assert extremes(kinds) == [WatchedExtreme(0, 1, True), WatchedExtreme(0, -1, False), WatchedExtreme(1, -1, False)]
