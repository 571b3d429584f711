/* Windows of a few dozen readings and less by time, whatever the gaps: readings further and further back, as long as one is in a window.

   Sixteen windows stand side by side in registers of 512 bits; a reading is combined where its time is in the window, for which a mask
   does. So no window is looked for. What is older comes first in every combination: extremes are those of single readings to the bit,
   sums within rounding. */
#ifndef SLUICEGATE_BY_MASKS
#define SLUICEGATE_BY_MASKS

#include "beside.h"
#include "../partials/lanes.h"

enum {
    SLUICEGATE_MOST_BY_MASKS = 48,  /* readings of a window: more are taken sooner from blocks */
    SLUICEGATE_BEFORE_MASKS = 52,  /* readings before the first that are looked at, at most */
    SLUICEGATE_FEW_BY_MASKS = 8,  /* readings of windows, of which two are looked at at once, else four */
    SLUICEGATE_SIXTEEN_WINDOWS = 16
};

#ifdef SLUICEGATE_CHOSEN_LANES
#include <immintrin.h>
#define SLUICEGATE_MASKED __attribute__((target("avx512f")))
#define sluicegate_masked_add(own, in, x) _mm512_mask_add_pd(own, in, x, own)
#define sluicegate_masked_least(own, in, x) _mm512_mask_min_pd(own, in, own, x)  /* of equals the second */
#define sluicegate_masked_greatest(own, in, x) _mm512_mask_max_pd(own, in, own, x)

#define SLUICEGATE_BY_MASKS_OF(OP) \
/* Of n windows, a multiple of sixteen, `at_once` readings back each time: so many none holds more than; 0: one holds too many. */ \
SLUICEGATE_MASKED SLUICEGATE_INLINE int64_t sluicegate_back_##OP( \
    const double *x, const int64_t *t, int64_t span, int64_t n, const int at_once, double *out) \
{ \
    const __m512i length = _mm512_set1_epi64(span); \
    int64_t most = 0; \
    for (int64_t j = 0, k; j < n; j += SLUICEGATE_SIXTEEN_WINDOWS) { \
        const __m512i begins = _mm512_sub_epi64(_mm512_loadu_si512(t + j), length); \
        const __m512i later = _mm512_sub_epi64(_mm512_loadu_si512(t + j + 8), length); \
        __m512d a = _mm512_loadu_pd(x + j), b = _mm512_loadu_pd(x + j + 8); \
        int some = 1; \
        for (k = 1; some; k += at_once) { \
            if (k > SLUICEGATE_MOST_BY_MASKS) return 0; \
            _Pragma("GCC unroll 4") \
            for (int u = 0; u < at_once; u++) { \
                const int64_t *back = t + j - k - u; \
                const double *older = x + j - k - u; \
                const __mmask8 in_a = _mm512_cmpgt_epi64_mask(_mm512_loadu_si512(back), begins); \
                const __mmask8 in_b = _mm512_cmpgt_epi64_mask(_mm512_loadu_si512(back + 8), later); \
                a = sluicegate_masked_##OP(a, in_a, _mm512_loadu_pd(older)); \
                b = sluicegate_masked_##OP(b, in_b, _mm512_loadu_pd(older + 8)); \
                some = in_a | in_b; \
            } \
        } \
        most = k > most ? k : most; \
        _mm512_storeu_pd(out + j, a), _mm512_storeu_pd(out + j + 8, b); \
    } \
    return most; \
} \
SLUICEGATE_MASKED SLUICEGATE_LOOP int64_t sluicegate_two_back_##OP(const double *x, const int64_t *t, int64_t span, int64_t n, double *out) \
{ \
    return sluicegate_back_##OP(x, t, span, n, 2, out); \
} \
SLUICEGATE_MASKED SLUICEGATE_LOOP int64_t sluicegate_four_back_##OP(const double *x, const int64_t *t, int64_t span, int64_t n, double *out) \
{ \
    return sluicegate_back_##OP(x, t, span, n, 4, out); \
} \
/* The same of sixteen and more, where windows hold about `held`. */ \
SLUICEGATE_INLINE int64_t sluicegate_by_masks_##OP(const double *x, const int64_t *t, int64_t span, int64_t n, int64_t held, double *out) \
{ \
    const int64_t last = n - SLUICEGATE_SIXTEEN_WINDOWS, whole = n & -SLUICEGATE_SIXTEEN_WINDOWS; \
    int64_t (*const back)(const double *, const int64_t *, int64_t, int64_t, double *) = \
        held > SLUICEGATE_FEW_BY_MASKS ? sluicegate_four_back_##OP : sluicegate_two_back_##OP; \
    int64_t most = back(x, t, span, whole, out), rest = whole < n && most ? back(x + last, t + last, span, n - last, out + last) : most; \
    return !rest ? 0 : rest > most ? rest : most; \
}
SLUICEGATE_BY_MASKS_OF(add)
SLUICEGATE_BY_MASKS_OF(least)
SLUICEGATE_BY_MASKS_OF(greatest)
#define SLUICEGATE_MASKS_OF(OP, ...) sluicegate_by_masks_##OP(__VA_ARGS__)
SLUICEGATE_INLINE int sluicegate_has_masks(void) { return __builtin_cpu_supports("avx512f"); }
#else
SLUICEGATE_INLINE int sluicegate_has_masks(void) { return 0; }
#define SLUICEGATE_MASKS_OF(OP, ...) 0
#endif

/* Whether this processor does so with n readings, before which so many are there. */
SLUICEGATE_INLINE int sluicegate_may_go_by_masks(int64_t before, int64_t n)
{
    return n >= SLUICEGATE_SIXTEEN_WINDOWS && before >= SLUICEGATE_BEFORE_MASKS && sluicegate_has_masks();
}

#endif
