"""Quantiles, prediction intervals and extreme values for the histograms.

They neither allocate nor need the GIL. tests/native/histograms/told_statistics.py calls them from Python.
"""
from libc.math cimport INFINITY, atan, exp, expm1, fabs, isfinite, log, pow, sqrt

cdef int _MOST_SUMMED = 128
cdef double _PI = 3.141592653589793
cdef double _EULER = 0.5772156649015329
cdef double _LOG2 = log(2.0)
cdef double _LOG3 = log(3.0)
cdef double[9] _LANCZOS = [
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
]
cdef double[8] _CENTRAL_A = [
    2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457, 13731.693765509461125,
    1971.5909503065514427, 133.14166789178437745, 3.387132872796366608,
]
cdef double[8] _CENTRAL_B = [
    5226.495278852545925, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867, 5394.1960214247511077,
    687.1870074920579083, 42.313330701600911252, 1.0,
]
cdef double[8] _MIDDLE_A = [
    7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
    3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734,
]
cdef double[8] _MIDDLE_B = [
    1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
    0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0,
]
cdef double[8] _TAIL_A = [
    2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
    0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772,
]
cdef double[8] _TAIL_B = [
    2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
    0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0,
]


cdef double _ratio(double r, const double* a, const double* b) noexcept nogil:
    cdef double above = 0.0, below = 0.0
    cdef int i
    for i in range(8):
        above = above * r + a[i]
        below = below * r + b[i]
    return above / below


cdef double c_normal_quantile(double p) noexcept nogil:
    cdef double q = p - 0.5, r, x
    if fabs(q) <= 0.425:
        return q * _ratio(0.180625 - q * q, _CENTRAL_A, _CENTRAL_B)
    r = sqrt(-log(p if q < 0 else 1.0 - p))
    x = _ratio(r - 1.6, _MIDDLE_A, _MIDDLE_B) if r <= 5.0 else _ratio(r - 5.0, _TAIL_A, _TAIL_B)
    return -x if q < 0 else x


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


cdef double c_student_quantile(double confidence, int freedom) noexcept nogil:
    cdef double z = c_normal_quantile(0.5 + confidence / 2.0), t = z, step
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


cdef double _gamma(double z) noexcept nogil:
    cdef double total = _LANCZOS[0], base
    cdef int i
    if z < 1.0:
        return _gamma(z + 1.0) / z
    z -= 1.0
    base = z + 7.5
    for i in range(1, 9):
        total += _LANCZOS[i] / (z + i)
    return sqrt(2.0 * _PI) * pow(base, z + 0.5) * exp(-base) * total


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
    gamma = _gamma(1.0 + k)
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
