"""The histograms' rules by themselves: what is refused, what joins, what opens, and the same bits compiled and pure."""

from __future__ import annotations

import math
import random
from itertools import pairwise
from typing import Any

import pytest
from hop_twin import HopRule
from max_like_twin import MaxRule
from rules_together import JOIN, OPEN, OTHER, Together
from sum_like_twin import SumRule
from told_statistics import normal_quantile

import sluicegate as sg
from sluicegate.histograms._rules import Rules
from sluicegate.histograms.composition import Deciding
from sluicegate.histograms.max_like import WatchedExtreme
from sluicegate.histograms.sum_like import Control
from sluicegate.reference.program import Moments

NAN = math.nan


# sum-like


def opened(limit: float, values: list[float]) -> list[bool]:
    """For each reading, whether it opens a bucket under a constant limit."""
    rule = SumRule([Control(0, 1.0, 0.0, -1)], 0.95)
    out = []
    for i, x in enumerate(values):
        rule.results = [limit]
        rule.refresh(i, False)
        joined = i > 0 and rule.joins([x])
        rule.took([x], joined)
        out.append(not joined)
    return out


def cost(bucket: list[float]) -> float:
    """The paper's false positive and false negative errors, and the greatest inner run an interpolated cut may miss."""
    n = len(bucket)
    prefixes = [sum(bucket[:i]) for i in range(1, n)]
    suffixes = [sum(bucket[i:]) for i in range(1, n)]
    inner = [a - b for a in prefixes for b in prefixes]
    return max((abs(x) for x in prefixes + suffixes + inner), default=0.0)


def test_the_papers_example() -> None:
    """[1, 1, −1, −1]: false positive 2, false negative −2: one bucket at a limit of 2, not below."""
    assert cost([1, 1, -1, -1]) == 2
    assert opened(2.0, [1, 1, -1, -1]) == [True, False, False, False]
    assert opened(1.9, [1, 1, -1, -1]) != [True, False, False, False]


@pytest.mark.parametrize("seed", range(20))
def test_buckets_are_as_large_as_the_limit_allows(seed: int) -> None:
    """Every bucket costs at most the limit, and with its next reading would cost more: against the definition."""
    rng = random.Random(seed)
    values = [float(rng.randrange(-3, 6)) for _ in range(200)]
    starts = [i for i, opens in enumerate(opened(7.0, values)) if opens]
    for a, b in zip(starts, [*starts[1:], len(values)], strict=True):
        assert cost(values[a:b]) <= 7.0
        assert b == len(values) or cost(values[a : b + 1]) > 7.0


def limits(control: list[Control], result: list[float], sample: list[Moments], count: int, full: bool) -> Any:
    """The limits a refresh gives."""
    rule = SumRule(control, 0.95)
    rule.results, rule.samples = result, sample
    rule.refresh(count, full)
    return rule.limits


def test_limit_is_taken_from_the_prediction_interval() -> None:
    """error · min(|lo|, |hi|) once the window was full for 30 results; before, error · |current result|."""
    control, sample = [Control(0, 0.1, 0.0, -1)], Moments(30.0, 100.0, 29.0)
    half = 2.0452296421 * math.sqrt(31 / 30)
    assert limits(control, [50.0], [sample], 9, True) == pytest.approx([0.1 * (100 - half)])
    assert limits(control, [50.0], [sample], 9, False) == pytest.approx([5.0])
    assert limits(control, [50.0], [Moments(29.0, 100.0, 1.0)], 9, True) == pytest.approx([5.0])
    assert limits(control, [-50.0], [Moments(30.0, -100.0, 29.0)], 9, True) == pytest.approx([0.1 * (100 - half)])


def test_a_constant_sample_predicts_the_constant() -> None:
    """No deviation: the limit is the share of the result itself."""
    assert limits([Control(0, 0.1, 0.0, -1)], [0.0], [Moments(50.0, 8.0, 0.0)], 9, True) == [0.1 * 8.0]


def test_near_zero_only_the_absolute_floor_remains() -> None:
    """An interval that contains 0 allows no relative error."""
    sample = Moments(30.0, 0.1, 2900.0)
    assert limits([Control(0, 0.1, 0.0, -1)], [5.0], [sample], 9, True) == [0.0]
    assert limits([Control(0, 0.1, 2.5, -1)], [5.0], [sample], 9, True) == [2.5]


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (sg.Bounded(10.0, 9.5, 10.4, False), True),
        (sg.Bounded(10.0, 8.6, 10.4, False), True),  # 1.4 ≤ 0.1 · 8.6 + 0.6
        (sg.Bounded(10.0, 8.5, 10.4, False), False),
        (sg.Bounded(10.0, 9.5, 11.9, False), False),
        (sg.Bounded(-10.0, -11.6, -9.0, False), True),
        (sg.Bounded(0.0, -0.6, 0.6, False), True),
        (sg.Bounded(0.65, -0.01, 0.7, False), False),  # the exact one may be 0
        (sg.Bounded(5.0, 5.0, 5.0, True), True),
        (sg.Bounded(None, None, None, True), True),
    ],
)
def test_which_answers_surely_keep_the_limit(answer: Any, kept: bool) -> None:
    """Wherever in its interval the exact result lies: the value is within a tenth of it and 0.6."""
    assert sg.SumLike(0.1, atol=0.6).keeps(answer) is kept


def test_a_means_floor_is_in_units_of_the_mean() -> None:
    """atol 0.5 on a mean of 100 readings with sum 400: 50 in the sum, 12.5 readings too many or too few."""
    control = [Control(0, 0.0, 0.5, 0), Control(-1, 0.0, 0.5, 0)]
    assert limits(control, [400.0, 100.0], [Moments()] * 2, 100, False) == [50.0, 12.5]
    assert limits(control, [0.0, 100.0], [Moments()] * 2, 100, False) == [50.0, math.inf]


def test_a_merged_bucket_closes() -> None:
    """After a level eviction the open bucket's prefixes are unknown: nothing joins it, whatever the limit."""
    rule = SumRule([Control(0, 1.0, 0.0, -1), Control(-1, 1.0, 0.0, -1)], 0.95)
    rule.results = [1e300, 1e15]
    rule.refresh(10, False)
    rule.took([1.0], False)
    assert rule.joins([1.0])
    rule.coarsened()
    assert not rule.joins([1.0])
    rule.took([1.0], False)
    assert rule.joins([1.0])


# max-like


def feed(rule: Any, values: list[float]) -> list[bool]:
    """For each reading, whether it opens a bucket."""
    out = []
    for i, x in enumerate(values):
        joined = i > 0 and rule.joins([x])
        rule.took([x], joined, i + 1)
        out.append(not joined)
    return out


def test_before_five_maxima_every_falling_reading_opens() -> None:
    """Nothing is known yet; a reading that is not below the open bucket's greatest value joins at no loss."""
    rule = MaxRule([WatchedExtreme(0, 1, False)], 100, 0.95, False)
    assert feed(rule, [5.0, 4.0, 4.0, 6.0, 3.0]) == [True, True, False, False, True]
    strict = MaxRule([WatchedExtreme(0, 1, True)], 100, 0.95, False)
    assert feed(strict, [5.0, 4.0, 4.0, 6.0, 3.0]) == [True, True, True, False, True]
    paper = MaxRule([WatchedExtreme(0, 1, False)], 100, 0.95, True)
    assert all(feed(paper, [5.0, 4.0, 4.0, 6.0, 3.0]))


def test_after_the_fit_only_candidates_open() -> None:
    """A thousand normal readings in blocks of 50: below the lower quantile joins, above it and falling opens."""
    rng = random.Random(8)
    rule = MaxRule([WatchedExtreme(0, 1, False)], 50, 0.95, False)
    feed(rule, [rng.gauss(0, 1) for _ in range(1000)])
    low, high = rule.ranges[0]
    assert 1.2 < low < 2.0
    assert high == math.inf
    assert rule.fits == 1000 // 50 - 4
    assert feed(rule, [9.0, low - 0.1, low + 0.1, low, -5.0, low])[1:] == [False, True, True, False, False]


def test_a_minimum_is_the_mirror() -> None:
    """The same decisions for −x."""
    rng = random.Random(4)
    values = [rng.gauss(0, 1) for _ in range(3000)]
    rules_ = [MaxRule([WatchedExtreme(0, sign, False)], 64, 0.95, False) for sign in (1, -1)]
    assert feed(rules_[0], values) == feed(rules_[1], [-x for x in values])


def test_a_plateau_stays_a_candidate_and_costs_no_buckets() -> None:
    """Constant readings share one bucket, whose value stays the bound; a drop joins too."""
    rule = MaxRule([WatchedExtreme(0, 1, False)], 10, 0.95, False)
    assert sum(feed(rule, [7.0] * 400)) == 1
    assert rule.ranges == [(7.0, math.inf)]
    assert not feed(rule, [7.0, 1.0])[1]


@pytest.mark.parametrize("block", [0, 40])
def test_the_papers_ranges_are_an_option(block: int) -> None:
    """With an upper end: a reading above it joins."""
    rng = random.Random(2)
    rule = MaxRule([WatchedExtreme(0, 1, False)], block, 0.95, True)
    feed(rule, [rng.gauss(0, 1) for _ in range(4000)])
    low, high = rule.ranges[0]
    assert low < high < math.inf
    assert rule.joins([high + 1.0])
    assert not rule.joins([high])


def test_a_merged_bucket_takes_no_candidate() -> None:
    """After a level eviction the open bucket's greatest value is unknown."""
    rule = MaxRule([WatchedExtreme(0, 1, False)], 10, 0.95, False)
    feed(rule, [7.0] * 20)
    assert rule.joins([7.0])
    rule.coarsened()
    assert not rule.joins([7.0])


# hop


def test_figure_1() -> None:
    """Predicted eviction 6: the last reading of the hop and the first of the next stay out of the block."""
    rule = HopRule(0.9999, 6.0, 0.0)
    rule.load(rule.state())
    verdicts = []
    for ordinal in range(6):
        verdicts.append(rule.verdict(ordinal))
        rule.took(ordinal)
    assert verdicts == [JOIN, JOIN, JOIN, JOIN, JOIN, OPEN]  # hint without deviation: the last of the hop is single
    assert [rule.verdict(6), rule.first, rule.last] == [OTHER, 5, 6]


def test_zone_widens_with_the_hops_still_to_come() -> None:
    """Half-width t·s·√(k + k²/n) around b + k·mean, checked against the formula."""
    rng = random.Random(6)
    rule, start, sizes = HopRule(0.9999, 0.0, 0.0), 0, []
    for _ in range(40):
        sizes.append(rng.randrange(980, 1021))
        start += sizes[-1]
        rule.took(start + 2500)
        rule.evicted(start, 0)
    sample = sizes[-30:]
    mean = sum(sample) / 30
    s = math.sqrt(sum((x - mean) ** 2 for x in sample) / 29)
    half = 4.5305 * s * math.sqrt(3 + 9 / 30)  # Student's t for 99.99 % and 29 degrees of freedom
    assert rule.boundary == start
    assert rule.first == pytest.approx(start + 3 * mean - half, abs=2)
    assert rule.last == pytest.approx(start + 3 * mean + half, abs=2)


def test_three_evictions_make_a_prediction() -> None:
    """Before, without a hint, another histogram decides; equal sizes then give zones of the least width."""
    rule = HopRule(0.9999, 0.0, 0.0)
    for k in range(1, 4):
        assert rule.verdict(10 * k + 1) == OTHER
        rule.took(10 * k)
        rule.evicted(10 * k, 0)
    assert (rule.first, rule.last) == (39, 40)
    assert [rule.verdict(o) for o in (31, 38, 39, 40, 41)] == [JOIN, JOIN, OPEN, OTHER, OPEN]


def test_a_failure_enters_the_sample_at_its_worst() -> None:
    """Where the policy does not tell, the possible size farther from the mean is taken, and counted as a failure."""
    rule = HopRule(0.9999, 0.0, 0.0)
    for k in range(1, 6):
        rule.evicted(100 * k, 0)
    rule.evicted(590, 30)  # 90 … 120: 120 is farther
    assert (rule.boundary, rule.failures) == (620, 1)
    rule.evicted(700, 15)  # 80 … 95
    assert (rule.boundary, rule.failures) == (700, 2)


def test_a_miss_is_resolved_at_the_next_certain_boundary() -> None:
    """What was taken at its worst becomes what it must have been, so one miss does not spoil thirty predictions."""
    rule = HopRule(0.9999, 0.0, 0.0)
    for k in range(1, 32):
        rule.took(100 * k)
        rule.evicted(100 * k, 0)
    assert rule.last - rule.first == 1
    rule.took(3205)
    rule.evicted(3101, 97)  # 1 … 98 readings: the miss
    assert rule.last - rule.first > 60
    rule.took(3405)
    rule.evicted(3405, 0)  # 305 readings left since 3100: three times the usual hundred
    assert rule.boundary == 3405
    assert 1 < rule.last - rule.first <= 12
    again = HopRule(0.9999, 0.0, 0.0)
    again.load(rule.state())
    assert again.state() == rule.state()


def test_a_state_without_doubt_is_read() -> None:
    """A state of 40 bytes less, as it was stored before, goes on with nothing in doubt; compiled and by definition."""
    rules = [build("h") for _ in range(2)]
    for rule in rules:
        for k in range(1, 9):
            rule.took([1.0], 10 * k, True)
            rule.settled(10 * k, 0)
    older, compiled = build("h"), Rules(*PARTS["h"], 50)
    for rule in (older, compiled):
        rule.load(rules[0].state()[:-40])
    assert compiled.state() == older.state() == rules[1].state()
    for rule in (rules[1], older):
        rule.took([1.0], 90, True)
        rule.settled(85, 3)
        rule.settled(100, 0)
    assert older.state() == rules[1].state()


def test_singles_on_both_sides_of_every_likely_cut() -> None:
    """Seventy hops of N(8640, 10): a bucket ends at each true boundary, but for two of 2,000."""
    missed = 0
    for seed in range(5):
        rng, rule, start, verdicts = random.Random(seed), HopRule(0.9999, 8640, 10.0), 0, {}
        boundaries = [0]
        for _ in range(70):
            boundaries.append(boundaries[-1] + round(rng.gauss(8640, 10)))
        for ordinal in range(0, boundaries[-1]):
            if rule.first - 1 <= ordinal <= rule.last + 2 or ordinal + 1 - start >= 25920:
                verdicts[ordinal] = rule.verdict(ordinal)
                rule.took(ordinal)
            if ordinal + 1 - start >= 25920:
                start = boundaries[boundaries.index(start) + 1]
                rule.evicted(start, 0)
        missed += sum(verdicts.get(b - 1, JOIN) == JOIN or verdicts.get(b, JOIN) == JOIN for b in boundaries[1:-3])
    assert missed <= 2


# together


def test_hop_decides_the_blocks_and_the_other_histogram_the_boundaries() -> None:
    """A block takes all, whatever the sum says; in the zone the sum decides; zone and block start afresh."""
    sums = SumRule([Control(0, 1.0, 0.0, -1)], 0.95)
    together = Together(sums, None, HopRule(0.9999, 100.0, 2.0), 64)
    sums.results = [5.0]
    opens = []
    for ordinal in range(250):
        if together.due(ordinal):
            together.refresh(ordinal)
        joined = ordinal > 0 and together.joins([1.0], ordinal)
        together.took([1.0], ordinal, joined)
        if not joined:
            opens.append(ordinal)
    zone = [ordinal for ordinal in opens if 80 < ordinal < 120]
    assert opens[1] == zone[0] == 91  # nothing opened inside the block
    assert [b - a for a, b in pairwise(zone)] == [
        6,
        6,
        6,
    ]  # five ones each side of a cut at a limit of 5
    assert all(ordinal < 120 or ordinal > 180 for ordinal in opens)


SUMS = (Control(0, 0.02, 0.1, 0), Control(-1, 0.02, 0.1, 0), Control(1, 0.1, 0.0, -1)), 0.95, normal_quantile(0.95)
HOP = 0.999, normal_quantile(0.999), 0.0, 0.0
MOST = (WatchedExtreme(0, 1, False), WatchedExtreme(1, -1, True)), 20, 0.9, False
PARTS: dict[str, tuple[Any, Any, Any]] = {
    "h": (None, None, HOP), "mh": (None, MOST, HOP), "s": (SUMS, None, None),
}  # fmt: skip
"""Compositions by their letters: sum-like, max-like, hop."""


def build(which: str) -> Together:
    """A composition by its letters."""
    return Together.of(Deciding(*PARTS[which], 50))


@pytest.mark.parametrize("which", PARTS)
def test_a_state_is_the_same_bytes_compiled_and_by_definition(which: str) -> None:
    """A rule that has taken readings, by its definition; the compiled one takes its state over and gives it out."""
    rng, rule = random.Random(8), build(which)
    for ordinal in range(900):
        values = [rng.gauss(2, 1), rng.gauss(-1, 5)]
        if rule.due(ordinal):
            rule.refresh(ordinal)
        rule.took(values, ordinal, ordinal > 0 and rule.joins(values, ordinal))
        rule.settled(max(0, ordinal - 200) // 50 * 50, 0)
    compiled = Rules(*PARTS[which], 50)
    compiled.load(rule.state())
    assert compiled.state() == rule.state()
    assert compiled.size == rule.size == len(rule.state())


def test_damaged_states_are_refused() -> None:
    """Another length, or more maxima or sizes than there can be."""
    rule = Rules(*PARTS["mh"], 50)
    state = bytearray(rule.state())
    assert len(state) == rule.size
    with pytest.raises(ValueError, match="expected"):
        rule.load(bytes(state[:-1]))
    at = 26 + 32 + 32  # the head, the block counters, the first extreme's four numbers: then how many maxima are held
    damaged = bytes(state[:at]) + (99).to_bytes(8, "little") + bytes(state[at + 8 :])
    with pytest.raises(ValueError, match="99 block maxima"):
        rule.load(damaged)
    at = 26 + most_size() + 56  # the hop's eighth number: how many sizes are held
    damaged = bytes(state[:at]) + (9999).to_bytes(8, "little") + bytes(state[at + 8 :])
    with pytest.raises(ValueError, match="9999 eviction sizes"):
        rule.load(damaged)


def most_size() -> int:
    """Bytes of a max-like state of two extremes."""
    return 32 + 280 * 2
