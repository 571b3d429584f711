/* Where a window by time begins after each of many readings, whatever their gaps: eight stretches of them side by side.

   What leaves with a reading hangs on what left before it, and no branch on times is foreseen. So the beginnings of eight stretches are
   looked up first, all together; then each takes a reading in turn, looks at the next few leaves at once and moves on by those that have
   left. A branch is taken only where more leave than were looked at. Times are of 64 bits, as a batch has them, or offsets of 32 from
   one of them; those of readings and those of leaves do not go back. That of leaf i is at kept[i]; what is not after comes[j] − less has
   left after reading j, nothing from leaf `end` on, and SEEN leaves are there behind it. No cut is the greatest number there is. */
#ifndef SLUICEGATE_MERGING
#define SLUICEGATE_MERGING

#include "lanes.h"

enum {
    SLUICEGATE_STRETCHES = 8,  /* more find no registers, fewer wait for what they look at */
    SLUICEGATE_LONG = 64,  /* readings of each, as a rule */
    SLUICEGATE_SEEN = 8  /* leaves in one look, at most */
};

#define SLUICEGATE_WITHIN static inline __attribute__((always_inline, unused))
#define SLUICEGATE_APART static __attribute__((noinline, unused))

/* How many of the next few leaves leave with a reading; less1: `less` − 1. */
#define SLUICEGATE_FOUR_OF(NAME, TYPE) \
SLUICEGATE_WITHIN int64_t sluicegate_##NAME##_by_four(const TYPE *kept, TYPE come, TYPE less1) \
{ \
    const TYPE cut = come - less1; \
    return (kept[0] < cut) + (kept[1] < cut) + (kept[2] < cut) + (kept[3] < cut); \
}
SLUICEGATE_FOUR_OF(offsets, int32_t)
SLUICEGATE_FOUR_OF(times, int64_t)

#ifdef SLUICEGATE_CHOSEN_LANES
#include <immintrin.h>
#define SLUICEGATE_BY_EIGHT __attribute__((target("avx2,popcnt")))
SLUICEGATE_BY_EIGHT SLUICEGATE_WITHIN int64_t sluicegate_offsets_by_eight(const int32_t *kept, int32_t come, int32_t less1)
{
    const __m256i cut = _mm256_sub_epi32(_mm256_set1_epi32(come), _mm256_set1_epi32(less1));
    const __m256i left = _mm256_cmpgt_epi32(cut, _mm256_loadu_si256((const __m256i *) kept));
    return (unsigned) __builtin_popcount((unsigned) _mm256_movemask_ps(_mm256_castsi256_ps(left)));
}
SLUICEGATE_BY_EIGHT SLUICEGATE_WITHIN int64_t sluicegate_times_by_eight(const int64_t *kept, int64_t come, int64_t less1)
{
    const __m256i cut = _mm256_sub_epi64(_mm256_set1_epi64x(come), _mm256_set1_epi64x(less1));
    const __m256i a = _mm256_cmpgt_epi64(cut, _mm256_loadu_si256((const __m256i *) kept));
    const __m256i b = _mm256_cmpgt_epi64(cut, _mm256_loadu_si256((const __m256i *) (kept + 4)));
    return (unsigned) __builtin_popcount((unsigned) _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_blend_epi32(a, b, 0xAA))));
}
#endif

/* heads[j] after reading j of eight stretches of `part`, which begin at the leaves `first`. */
#define SLUICEGATE_STRETCHES_OF(NAME, TYPE, HOW, LOOKED, LEFT) \
HOW SLUICEGATE_WITHIN void sluicegate_stretches_of_##NAME( \
    const TYPE *kept, const TYPE *comes, TYPE less, const int64_t part, const int64_t *first, int64_t *heads) \
{ \
    int64_t at[SLUICEGATE_STRETCHES]; \
    for (int q = 0; q < SLUICEGATE_STRETCHES; q++) at[q] = first[q]; \
    for (int64_t j = 0; j < part; j++) \
        _Pragma("GCC unroll 8") \
        for (int q = 0; q < SLUICEGATE_STRETCHES; q++) { \
            int64_t left; \
            while (__builtin_expect((left = LEFT(kept + at[q], comes[q * part + j], less - 1)) == LOOKED, 0)) at[q] += LOOKED; \
            heads[q * part + j] = at[q] += left; \
        } \
} \
HOW SLUICEGATE_APART void sluicegate_long_##NAME(const TYPE *kept, const TYPE *comes, TYPE less, const int64_t *first, int64_t *heads) \
{ \
    sluicegate_stretches_of_##NAME(kept, comes, less, SLUICEGATE_LONG, first, heads); \
} \
HOW SLUICEGATE_APART void sluicegate_any_##NAME( \
    const TYPE *kept, const TYPE *comes, TYPE less, int64_t part, const int64_t *first, int64_t *heads) \
{ \
    sluicegate_stretches_of_##NAME(kept, comes, less, part, first, heads); \
}
SLUICEGATE_STRETCHES_OF(offsets, int32_t, , 4, sluicegate_offsets_by_four)
SLUICEGATE_STRETCHES_OF(times, int64_t, , 4, sluicegate_times_by_four)
#ifdef SLUICEGATE_CHOSEN_LANES
SLUICEGATE_STRETCHES_OF(offsets_by_eight, int32_t, SLUICEGATE_BY_EIGHT, SLUICEGATE_SEEN, sluicegate_offsets_by_eight)
SLUICEGATE_STRETCHES_OF(times_by_eight, int64_t, SLUICEGATE_BY_EIGHT, SLUICEGATE_SEEN, sluicegate_times_by_eight)
#define SLUICEGATE_CHOSEN(WHAT) (__builtin_cpu_supports("avx2") ? sluicegate_##WHAT##_by_eight : sluicegate_##WHAT)
#else
#define SLUICEGATE_CHOSEN(WHAT) sluicegate_##WHAT
#endif

#define SLUICEGATE_MERGING_OF(NAME, TYPE) \
/* The first leaf that stays with the last reading before each stretch; the first stretch: with its own first. */ \
SLUICEGATE_APART void sluicegate_begin_##NAME( \
    const TYPE *kept, int64_t head, int64_t end, const TYPE *comes, TYPE less, int64_t part, int64_t *first) \
{ \
    const int64_t near = head + 2 * SLUICEGATE_STRETCHES * part; \
    TYPE cut[SLUICEGATE_STRETCHES]; \
    if (end > near && kept[near] > comes[SLUICEGATE_STRETCHES * part - 1] - less) end = near; \
    for (int q = 0; q < SLUICEGATE_STRETCHES; q++) cut[q] = comes[q ? q * part - 1 : 0] - less, first[q] = head; \
    for (int64_t n = end - head, half; n > 0; n -= half) { \
        half = (n + 1) >> 1; \
        for (int q = 0; q < SLUICEGATE_STRETCHES; q++) first[q] += half & -(int64_t) (kept[first[q] + half - 1] <= cut[q]); \
    } \
} \
/* heads[j] after reading j, one by one. */ \
SLUICEGATE_WITHIN void sluicegate_follow_##NAME(const TYPE *kept, int64_t head, const TYPE *comes, TYPE less, int64_t *heads, int64_t n) \
{ \
    for (int64_t j = 0; j < n; j++) { \
        while (kept[head] <= comes[j] - less) head++; \
        heads[j] = head; \
    } \
} \
/* The same side by side, of any number. */ \
SLUICEGATE_APART void sluicegate_merge_##NAME( \
    const TYPE *kept, int64_t head, int64_t end, const TYPE *comes, TYPE less, int64_t *heads, int64_t n) \
{ \
    int64_t first[SLUICEGATE_STRETCHES], part, some; \
    for (; n >= 2 * SLUICEGATE_STRETCHES; comes += some, heads += some, n -= some, head = heads[-1]) { \
        part = n / SLUICEGATE_STRETCHES < SLUICEGATE_LONG ? n / SLUICEGATE_STRETCHES : SLUICEGATE_LONG; \
        some = part * SLUICEGATE_STRETCHES; \
        sluicegate_begin_##NAME(kept, head, end, comes, less, part, first); \
        if (part == SLUICEGATE_LONG) SLUICEGATE_CHOSEN(long_##NAME)(kept, comes, less, first, heads); \
        else SLUICEGATE_CHOSEN(any_##NAME)(kept, comes, less, part, first, heads); \
    } \
    sluicegate_follow_##NAME(kept, head, comes, less, heads, n); \
}
SLUICEGATE_MERGING_OF(offsets, int32_t)
SLUICEGATE_MERGING_OF(times, int64_t)

/* The most that leave with one of n readings after `head`. */
SLUICEGATE_LANES_OF static int64_t sluicegate_most_leaving(const int64_t *heads, int64_t head, int64_t n)
{
    int64_t most = heads[0] - head;
    for (int64_t j = 0; j + 1 < n; j++) most = heads[j + 1] - heads[j] > most ? heads[j + 1] - heads[j] : most;
    return most;
}

#endif
