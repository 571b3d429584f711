"""Quantiles, prediction intervals and extreme values for the histograms.

They neither allocate nor need the GIL. tests/native/histograms/told_statistics.py calls them from Python.
"""
from libc.math cimport INFINITY, atan, exp, expm1, fabs, isfinite, log, pow, sqrt, tgamma

cdef int _MOST_SUMMED = 128
cdef double _PI = 3.141592653589793
cdef double _EULER = 0.5772156649015329
cdef double _LOG2 = log(2.0)
cdef double _LOG3 = log(3.0)


cdef double _student_probability(double t, int freedom) noexcept nogil:
    cdef double cos2 = freedom / (freedom + t * t), sin = t / sqrt(freedom + t * t), total = 0.0
    cdef int odd = freedom & 1, i
    cdef double term = sqrt(cos2) if odd else 1.0
    for i in range(1, freedom >> 1):
        total += term
        term *= cos2 * (2 * i - 1 + odd) / (2 * i + odd)
    if freedom > 1:
        total += term
    return (atan(t / sqrt(<double>freedom)) + sin * total) * 2.0 / _PI if odd else sin * total


cdef double _student_density(double t, int freedom) noexcept nogil:
    cdef double ratio = 1.0 / sqrt(_PI) if freedom & 1 else sqrt(_PI) / 2.0
    cdef int i
    for i in range(2 - (freedom & 1), freedom, 2):
        ratio *= (i + 1.0) / i
    return ratio / sqrt(freedom * _PI) * pow(1.0 + t * t / freedom, -(freedom + 1.0) / 2.0)


cdef double c_student_quantile(double confidence, double z, int freedom) noexcept nogil:
    cdef double t = z, step
    cdef int i
    if freedom >= _MOST_SUMMED:
        return _fisher(z, <double>freedom)
    for i in range(200):
        step = (confidence - _student_probability(t, freedom)) / (2.0 * _student_density(t, freedom))
        t += step
        if step <= 1e-14 * t:
            break
    return t


cdef double _fisher(double z, double v) noexcept nogil:
    cdef double z2 = z * z
    cdef double g1 = (z2 + 1.0) * z / 4.0
    cdef double g2 = ((5.0 * z2 + 16.0) * z2 + 3.0) * z / 96.0
    cdef double g3 = (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) * z / 384.0
    cdef double g4 = ((((79.0 * z2 + 776.0) * z2 + 1482.0) * z2 - 1920.0) * z2 - 945.0) * z / 92160.0
    return z + (g1 + (g2 + (g3 + g4 / v) / v) / v) / v


cdef void c_merge(Moments* a, const Moments* b) noexcept nogil:
    cdef double n, delta, share
    if b.n == 0.0:
        return
    if a.n == 0.0:
        a[0] = b[0]
        return
    n = a.n + b.n
    delta = b.mean - a.mean
    share = b.n / n
    a.mean = a.mean + delta * share
    a.m2 = a.m2 + b.m2 + delta * delta * a.n * share
    a.n = n


cdef void c_prediction_interval(const Moments* sample, double t, double* low, double* high) noexcept nogil:
    cdef double half = t * sqrt(sample.m2 / (sample.n - 1.0)) * sqrt(1.0 + 1.0 / sample.n)
    low[0] = sample.mean - half
    high[0] = sample.mean + half


cdef double c_least_magnitude(double low, double high) noexcept nogil:
    if low <= 0.0 and 0.0 <= high:
        return 0.0
    return min(fabs(low), fabs(high))


cdef void _sort(double* x, int n) noexcept nogil:
    """Insertion sort, of 30 maxima."""
    cdef int i, j
    cdef double held
    for i in range(1, n):
        held = x[i]
        j = i
        while j > 0 and x[j - 1] > held:
            x[j] = x[j - 1]
            j -= 1
        x[j] = held


cdef Gev c_fit_gev(double* maxima, int n) noexcept nogil:
    cdef double least, b0 = 0.0, b1 = 0.0, b2 = 0.0, x, l2, l3
    cdef Gev plateau
    cdef int i
    _sort(maxima, n)
    least = maxima[0]
    for i in range(n):
        x = maxima[i] - least
        b0 += x
        b1 += x * i
        b2 += x * i * (i - 1.0)
    b0 = b0 / n
    b1 = b1 / (n * (n - 1.0))
    b2 = b2 / (n * (n - 1.0) * (n - 2.0))
    l2 = 2.0 * b1 - b0
    l3 = 6.0 * b2 - 6.0 * b1 + b0
    if not l2 > 1e-13 * max(fabs(least), fabs(maxima[n - 1])):
        plateau.location, plateau.scale, plateau.shape = least + b0, 0.0, 0.0
        return plateau
    return _of_moments(least + b0, l2, l3 / l2)


cdef Gev _of_moments(double l1, double l2, double skew) noexcept nogil:
    cdef double c = 2.0 / (3.0 + skew) - _LOG2 / _LOG3, gamma
    cdef double k = 7.8590 * c + 2.9554 * c * c
    cdef Gev fit
    if fabs(k) < 1e-7:
        fit.scale = l2 / _LOG2
        fit.location = l1 - _EULER * fit.scale
        fit.shape = 0.0
        return fit
    gamma = tgamma(1.0 + k)
    fit.scale = l2 * k / (-expm1(-k * _LOG2) * gamma)
    fit.location = l1 - fit.scale * (1.0 - gamma) / k
    fit.shape = k
    return fit


cdef double c_gev_quantile(const Gev* fit, double p) noexcept nogil:
    cdef double y = -log(-log(p))
    return fit.location + fit.scale * (y if fit.shape == 0.0 else -expm1(-fit.shape * y) / fit.shape)


cdef void c_recommended_range(const Gev* fit, double confidence, double* low, double* high) noexcept nogil:
    cdef double quantile = c_gev_quantile(fit, 1.0 - confidence)
    low[0] = quantile if isfinite(quantile) else fit.location
    high[0] = INFINITY


cdef void c_paper_range(const Gev* fit, double confidence, double* low, double* high) noexcept nogil:
    if fit.scale == 0.0:
        low[0], high[0] = fit.location, INFINITY
    elif fit.shape > 0.0:
        low[0] = c_gev_quantile(fit, 1.0 - confidence)
        high[0] = fit.location + fit.scale / fit.shape
    else:
        low[0] = -INFINITY if fit.shape == 0.0 else fit.location + fit.scale / fit.shape
        high[0] = c_gev_quantile(fit, confidence)
