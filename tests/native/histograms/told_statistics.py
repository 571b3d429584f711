"""The compiled statistics of histograms for Python: the C functions that `_statistics` gives to compiled modules."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, byref, c_double, c_int
from statistics import NormalDist
from typing import Any

from sluicegate.histograms import _statistics

Triple = tuple[float, float, float]


class _Three(ctypes.Structure):
    """Moments (n, mean, m2), or a GEV fit (location, scale, shape)."""

    _fields_ = [("a", c_double), ("b", c_double), ("c", c_double)]

    @property
    def told(self) -> Triple:
        return self.a, self.b, self.c


def _function(name: str, result: Any, *arguments: Any) -> Any:
    named, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    named.restype, named.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = _statistics.__pyx_capi__[name]
    return ctypes.CFUNCTYPE(result, *arguments)(pointer(capsule, named(capsule)))


_THREE, _OUT = POINTER(_Three), POINTER(c_double)
_student_quantile = _function("c_student_quantile", c_double, c_double, c_double, c_int)
least_magnitude = _function("c_least_magnitude", c_double, c_double, c_double)
_merge = _function("c_merge", None, _THREE, _THREE)
_prediction_interval = _function("c_prediction_interval", None, _THREE, c_double, _OUT, _OUT)
_fit_gev = _function("c_fit_gev", _Three, _OUT, c_int)
_gev_quantile = _function("c_gev_quantile", c_double, _THREE, c_double)
_recommended_range = _function("c_recommended_range", None, _THREE, c_double, _OUT, _OUT)
_paper_range = _function("c_paper_range", None, _THREE, c_double, _OUT, _OUT)


def _between(function: Any, of: Triple, x: float) -> tuple[float, float]:
    low, high = c_double(), c_double()
    function(byref(_Three(*of)), x, byref(low), byref(high))
    return low.value, high.value


def normal_quantile(confidence: float) -> float:
    """How many deviations from its mean a normal variable is within with this probability."""
    return NormalDist().inv_cdf(0.5 + confidence / 2.0)


def student_quantile(confidence: float, freedom: int) -> float:
    """The same for Student's t."""
    return float(_student_quantile(confidence, normal_quantile(confidence), freedom))


def merge(a: Triple, b: Triple) -> Triple:
    """The moments (n, mean, m2) of both samples together."""
    both = _Three(*a)
    _merge(byref(both), byref(_Three(*b)))
    return both.told


def prediction_interval(sample: Triple, t: float) -> tuple[float, float]:
    """Where the next result lies, for n ≥ 2."""
    return _between(_prediction_interval, sample, t)


def fit_gev(maxima: Sequence[float]) -> Triple:
    """(location, scale, shape) of 3 block maxima or more."""
    fit: _Three = _fit_gev((c_double * len(maxima))(*maxima), len(maxima))
    return fit.told


def gev_quantile(fit: Triple, p: float) -> float:
    """The value below which a block's maximum lies with probability 0 < p < 1."""
    return float(_gev_quantile(byref(_Three(*fit)), p))


def recommended_range(fit: Triple, confidence: float) -> tuple[float, float]:
    """Candidates to become the window's result."""
    return _between(_recommended_range, fit, confidence)


def paper_range(fit: Triple, confidence: float) -> tuple[float, float]:
    """The same by the paper's rule."""
    return _between(_paper_range, fit, confidence)
