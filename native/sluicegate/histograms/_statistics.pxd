# The contract of the compiled statistics: no allocation, no GIL.


cdef struct Moments:
    double n  # size; 0 is neutral
    double mean
    double m2  # sum of squared deviations


cdef struct Gev:
    double location
    double scale  # 0: a plateau, all of it at `location`
    double shape  # Hosking's k = −ξ


cdef double c_student_quantile(double confidence, double z, int freedom) noexcept nogil  # z: of a normal variable
cdef void c_merge(Moments* a, const Moments* b) noexcept nogil  # a ← a then b
cdef void c_prediction_interval(const Moments* sample, double t, double* low, double* high) noexcept nogil
cdef double c_least_magnitude(double low, double high) noexcept nogil
cdef Gev c_fit_gev(double* maxima, int n) noexcept nogil  # sorts `maxima`
cdef double c_gev_quantile(const Gev* fit, double p) noexcept nogil
cdef void c_recommended_range(const Gev* fit, double confidence, double* low, double* high) noexcept nogil
cdef void c_paper_range(const Gev* fit, double confidence, double* low, double* high) noexcept nogil
