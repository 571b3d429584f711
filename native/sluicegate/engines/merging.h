/* Where windows by time begin after each of many readings, whatever the gaps: eight stretches of a tile side by side, eight times in one look.

   A merge of what comes with what leaves hangs on one comparison after another, and with independent gaps no branch on them is foreseen.
   So the beginnings of eight stretches are looked up first, all together; then each takes a reading in turn, and how many leave with it
   is counted from eight comparisons, of times as they lie. Only where eight and more leave at once there is a branch. */
#ifndef SLUICEGATE_MERGING
#define SLUICEGATE_MERGING

#include "beside.h"
#include "lanes.h"

#ifdef SLUICEGATE_CHOSEN_LANES
#include <immintrin.h>

enum {
    SLUICEGATE_STRETCHES = 8,  /* more find no registers, fewer wait for loads */
    SLUICEGATE_AT_ONCE = 8  /* times in one look */
};

/* The first readings that stay with the last of each stretch before; the first stretch: with reading 0. */
SLUICEGATE_INLINE void sluicegate_find_stretches(const int64_t *times, const int64_t *comes, int64_t span, int64_t head, int64_t part, int64_t *first)
{
    int64_t cut[SLUICEGATE_STRETCHES], n = comes + (SLUICEGATE_STRETCHES - 1) * part - (times + head), near = 2 * SLUICEGATE_STRETCHES * part;
    for (int q = 0; q < SLUICEGATE_STRETCHES; q++) cut[q] = comes[q ? q * part - 1 : 0] - span, first[q] = head;
    if (n > near && times[head + near - 1] > cut[SLUICEGATE_STRETCHES - 1]) n = near;
    for (int64_t half; n > 0; n -= half) {
        half = (n + 1) >> 1;
        for (int q = 0; q < SLUICEGATE_STRETCHES; q++) first[q] += half & -(int64_t) (times[first[q] + half - 1] <= cut[q]);
    }
}

/* How many of the eight from `times` on come before `cut`, four times. */
__attribute__((target("avx2,popcnt"), always_inline)) static inline int64_t sluicegate_leaving(const int64_t *times, __m256i cut)
{
    const __m256i a = _mm256_cmpgt_epi64(cut, _mm256_loadu_si256((const __m256i *) times));
    const __m256i b = _mm256_cmpgt_epi64(cut, _mm256_loadu_si256((const __m256i *) (times + 4)));
    return __builtin_popcount((unsigned) _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_blend_epi32(a, b, 0xAA))));
}

__attribute__((target("avx2,popcnt"), always_inline)) static inline void sluicegate_merge_stretches(
    const int64_t *times, const int64_t *comes, int64_t span, const int64_t *first, int64_t part, int64_t *heads)
{
    const __m256i less = _mm256_set1_epi64x(span - 1);
    int64_t at[SLUICEGATE_STRETCHES];
    for (int q = 0; q < SLUICEGATE_STRETCHES; q++) at[q] = first[q];
    for (int64_t i = 0; i < part; i++)
#pragma GCC unroll 8
        for (int q = 0; q < SLUICEGATE_STRETCHES; q++) {
            const __m256i cut = _mm256_sub_epi64(_mm256_set1_epi64x(comes[q * part + i]), less);
            int64_t leave;
            while (__builtin_expect((leave = sluicegate_leaving(times + at[q], cut)) == SLUICEGATE_AT_ONCE, 0)) at[q] += leave;
            heads[q * part + i] = at[q] += leave;
        }
}
__attribute__((target("avx2,popcnt"), noinline, unused)) static void sluicegate_merge_a_tile(
    const int64_t *times, const int64_t *comes, int64_t span, const int64_t *first, int64_t *heads)
{
    sluicegate_merge_stretches(times, comes, span, first, 64, heads);
}
__attribute__((target("avx2,popcnt"), noinline, unused)) static void sluicegate_merge_some(
    const int64_t *times, const int64_t *comes, int64_t span, const int64_t *first, int64_t part, int64_t *heads)
{
    sluicegate_merge_stretches(times, comes, span, first, part, heads);
}

/* Whether this processor does. */
SLUICEGATE_INLINE int sluicegate_merges_together(void) { return __builtin_cpu_supports("avx2"); }

/* Heads of how many of n readings from leaf `tail` on; times are there up to leaf `last`. */
SLUICEGATE_INLINE int64_t sluicegate_merge_together(
    const int64_t *times, int64_t span, int64_t head, int64_t tail, int64_t n, int64_t last, int64_t *heads)
{
    const int64_t part = n / SLUICEGATE_STRETCHES;
    int64_t first[SLUICEGATE_STRETCHES];
    if (part < 2 || tail + n + SLUICEGATE_AT_ONCE > last || !sluicegate_merges_together()) return 0;
    sluicegate_find_stretches(times, times + tail, span, head, part, first);
    if (part == 64) sluicegate_merge_a_tile(times, times + tail, span, first, heads);
    else sluicegate_merge_some(times, times + tail, span, first, part, heads);
    return part * SLUICEGATE_STRETCHES;
}
#else
SLUICEGATE_INLINE int sluicegate_merges_together(void) { return 0; }
SLUICEGATE_INLINE int64_t sluicegate_merge_together(
    const int64_t *times, int64_t span, int64_t head, int64_t tail, int64_t n, int64_t last, int64_t *heads)
{
    (void) times, (void) span, (void) head, (void) tail, (void) n, (void) last, (void) heads;
    return 0;
}
#endif

#endif
