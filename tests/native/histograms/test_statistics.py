"""The histograms' statistics: quantiles as tabulated and integrated, moments, GEV fits."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from statistics import mean, variance

import pytest
import told_statistics as told

# two-tailed 95 % and 99 % points of Student's t, from printed tables
POINTS = {
    (0.95, 1): 12.7062047, (0.95, 2): 4.3026527, (0.95, 3): 3.1824463, (0.95, 5): 2.5705818, (0.95, 10): 2.2281389,
    (0.95, 29): 2.0452296, (0.95, 30): 2.0422725, (0.95, 100): 1.9839715, (0.95, 1000): 1.9623391,
    (0.99, 4): 4.6040949, (0.99, 29): 2.7563859, (0.99, 60): 2.6602830, (0.9999, 2): 99.9924998,
}  # fmt: skip


def simpson(f: Callable[[float], float], a: float, b: float, n: int = 4_000) -> float:
    """∫ f over a … b."""
    h = (b - a) / n
    inner = sum(f(a + i * h) * (4 if i % 2 else 2) for i in range(1, n))
    return (f(a) + inner + f(b)) * h / 3


@pytest.mark.parametrize(("key", "expected"), POINTS.items())
def test_student_quantile_agrees_with_printed_tables(key: tuple[float, int], expected: float) -> None:
    """Two-tailed percentage points are those of the tables, to 1e-6."""
    assert told.student_quantile(*key) == pytest.approx(expected, rel=0, abs=1e-6 * max(1.0, expected / 10))


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.9999])
@pytest.mark.parametrize("freedom", [3, 4, 17, 126, 127, 128, 129, 5000])
def test_student_quantile_encloses_its_confidence(confidence: float, freedom: int) -> None:
    """The density integrated over ±t gives the confidence back, also where the sum hands over to the expansion."""
    t = told.student_quantile(confidence, freedom)
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    inside = 2 * simpson(lambda x: scale * (1 + x * x / freedom) ** (-(freedom + 1) / 2), 0.0, t)
    assert inside == pytest.approx(confidence, abs=1e-9)


def test_merge_gives_the_moments_of_both_samples_together() -> None:
    """Chan's formula over any split is the moments of the whole, far from 0 too; an empty sample changes nothing."""
    rng = random.Random(5)
    values = [1e9 + rng.gauss(0, 1) for _ in range(200)]
    total = (0.0, 0.0, 0.0)
    for x in values:
        total = told.merge(total, (1.0, x, 0.0))
    assert total[0] == 200
    assert total[1] == pytest.approx(mean(values), rel=1e-15)
    assert total[2] / 199 == pytest.approx(variance(values), rel=1e-6)
    assert told.merge(total, (0.0, 0.0, 0.0)) == total
    assert told.merge((0.0, 0.0, 0.0), total) == total


def test_prediction_interval_is_the_papers() -> None:
    """mean ± t·s·√(1 + 1/n); a constant sample gives the constant."""
    low, high = told.prediction_interval((30.0, 10.0, 29 * 4.0), 2.0)
    assert (low, high) == pytest.approx((10 - 4 * math.sqrt(31 / 30), 10 + 4 * math.sqrt(31 / 30)))
    assert told.prediction_interval((30.0, 10.0, 0.0), 2.0) == (10.0, 10.0)


def test_least_magnitude_is_zero_where_the_interval_holds_zero() -> None:
    """The tolerance's base: min(|lo|, |hi|), 0 inside, ends included."""
    assert [told.least_magnitude(*pair) for pair in [(2, 3), (-3, -2), (-1, 5), (0, 5), (-5, 0)]] == [
        2,
        2,
        0,
        0,
        0,
    ]


@pytest.mark.parametrize(("shape", "p"), [(0.0, 0.05), (0.2, 0.05), (-0.2, 0.95), (0.5, 0.5), (-0.4, 0.01)])
def test_fit_recovers_a_generalized_extreme_value_distribution(shape: float, p: float) -> None:
    """The mean of 400 fits of 60 draws is near the distribution drawn from: its quantile, within the standard error."""
    rng = random.Random(17)
    truth = (100.0, 3.0, shape)
    drawn = [[told.gev_quantile(truth, rng.uniform(1e-9, 1 - 1e-9)) for _ in range(60)] for _ in range(400)]
    fits = [told.fit_gev(sample) for sample in drawn]
    assert mean(fit[2] for fit in fits) == pytest.approx(shape, abs=0.05)
    assert mean(told.gev_quantile(fit, p) for fit in fits) == pytest.approx(told.gev_quantile(truth, p), abs=0.4)


def test_fit_uses_the_unbiased_moments() -> None:
    """For a Gumbel-shaped sample small enough to check by hand: λ₁ and λ₂ by their definition over all subsets."""
    sample = [4.0, 1.0, 7.0, 2.0, 11.0, 5.0]
    location, scale, k = told.fit_gev(sample)
    pairs = [max(a, b) for i, a in enumerate(sample) for b in sample[i + 1 :]]
    l1, l2 = mean(sample), mean(pairs) - mean(sample)
    gamma = math.gamma(1 + k)
    assert location + scale * (1 - gamma) / k == pytest.approx(l1, rel=1e-12)
    assert scale * (1 - 2**-k) * gamma / k == pytest.approx(l2, rel=1e-12)


@pytest.mark.parametrize("value", [0.0, 0.1, -7.3, 1e12, -1e-12, 1e300])
def test_a_plateau_is_told_and_keeps_its_value(value: float) -> None:
    """Thirty equal maxima: scale 0, the lower bound is that value exactly: the plateau stays a candidate."""
    fit = told.fit_gev([value] * 30)
    assert tuple(fit) == (value, 0.0, 0.0)
    assert told.recommended_range(fit, 0.95) == (value, math.inf)
    assert told.paper_range(fit, 0.95) == (value, math.inf)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_ranges_stand_where_the_paper_puts_them(scale: float) -> None:
    """Recommended: from the lower quantile to infinity. The paper's: an end point on the side where there is one."""
    heavy, bounded, gumbel = ((0.0, scale, k) for k in (-0.5, 0.5, 0.0))
    for fit in (heavy, bounded, gumbel):
        assert told.recommended_range(fit, 0.95) == (told.gev_quantile(fit, 1.0 - 0.95), math.inf)
    assert told.paper_range(heavy, 0.95) == (-2 * scale, told.gev_quantile(heavy, 0.95))
    assert told.paper_range(bounded, 0.95) == (told.gev_quantile(bounded, 1.0 - 0.95), 2 * scale)
    assert told.paper_range(gumbel, 0.95) == (-math.inf, told.gev_quantile(gumbel, 0.95))
