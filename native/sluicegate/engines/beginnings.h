/* Where a window by time begins after each reading of a batch in order, found in the caller's times, a tile of readings at a time.

   One leaves for each that comes, give or take a few: all are guessed so, and put right by the times around the guess. Where that does
   not do, as with independent gaps, what comes is merged with what leaves. That hangs on one comparison after another, and no branch on
   them is foreseen: so the beginnings of eight stretches are looked up first, all together; then each takes a reading in turn, and how
   many leave with it is counted from eight comparisons. */
#ifndef SLUICEGATE_BEGINNINGS
#define SLUICEGATE_BEGINNINGS

#include "beside.h"
#include "lanes.h"

enum {
    SLUICEGATE_GUESSED = 32,  /* readings whose heads are guessed together */
    SLUICEGATE_GUESSED_AT_MOST = 128,  /* where that does: none waits for another's head */
    SLUICEGATE_FEW_AT_ONCE = 5,  /* leave one by one, however small the window: so many, or fewer, do where guesses are narrow */
    SLUICEGATE_NARROW = 2,  /* times looked at before and after a guess at first */
    SLUICEGATE_BROAD = 4,
    SLUICEGATE_MOST_WAITS = 31  /* tiles without guesses after some that failed */
};

typedef struct {
    const int64_t *times;  /* that of reading i is at i */
    int64_t span;  /* what is not after a reading's time less this has left */
    int64_t last;  /* the reading after the last that comes */
    int missed, waits;  /* tiles without guesses after the last that failed, and how many of them are to come */
} sluicegate_course;

#ifdef SLUICEGATE_CHOSEN_LANES
#include <immintrin.h>

enum {
    SLUICEGATE_PARTS_ABREAST = 8,  /* more find no registers, fewer wait for loads */
    SLUICEGATE_TIMES_AT_ONCE = 8  /* times in one look */
};

/* The first readings that stay with the last of each stretch before; the first stretch: with reading 0. */
SLUICEGATE_INLINE void sluicegate_find_stretches(const int64_t *times, const int64_t *comes, int64_t span, int64_t head, int64_t part, int64_t *first)
{
    int64_t cut[SLUICEGATE_PARTS_ABREAST], n = comes + (SLUICEGATE_PARTS_ABREAST - 1) * part - (times + head), near = 2 * SLUICEGATE_PARTS_ABREAST * part;
    for (int q = 0; q < SLUICEGATE_PARTS_ABREAST; q++) cut[q] = comes[q ? q * part - 1 : 0] - span, first[q] = head;
    if (n > near && times[head + near - 1] > cut[SLUICEGATE_PARTS_ABREAST - 1]) n = near;
    for (int64_t half; n > 0; n -= half) {
        half = (n + 1) >> 1;
        for (int q = 0; q < SLUICEGATE_PARTS_ABREAST; q++) first[q] += half & -(int64_t) (times[first[q] + half - 1] <= cut[q]);
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
    int64_t at[SLUICEGATE_PARTS_ABREAST];
    for (int q = 0; q < SLUICEGATE_PARTS_ABREAST; q++) at[q] = first[q];
    for (int64_t i = 0; i < part; i++)
#pragma GCC unroll 8
        for (int q = 0; q < SLUICEGATE_PARTS_ABREAST; q++) {
            const __m256i cut = _mm256_sub_epi64(_mm256_set1_epi64x(comes[q * part + i]), less);
            int64_t leave;
            while (__builtin_expect((leave = sluicegate_leaving(times + at[q], cut)) == SLUICEGATE_TIMES_AT_ONCE, 0)) at[q] += leave;
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

/* Heads of how many of n readings from reading `tail` on; times are there up to `last`. */
SLUICEGATE_INLINE int64_t sluicegate_merge_together(
    const int64_t *times, int64_t span, int64_t head, int64_t tail, int64_t n, int64_t last, int64_t *heads)
{
    const int64_t part = n / SLUICEGATE_PARTS_ABREAST;
    int64_t first[SLUICEGATE_PARTS_ABREAST];
    if (part < 2 || tail + n + SLUICEGATE_TIMES_AT_ONCE > last || !sluicegate_merges_together()) return 0;
    sluicegate_find_stretches(times, times + tail, span, head, part, first);
    if (part == 64) sluicegate_merge_a_tile(times, times + tail, span, first, heads);
    else sluicegate_merge_some(times, times + tail, span, first, part, heads);
    return part * SLUICEGATE_PARTS_ABREAST;
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


/* Heads of n readings, a multiple of GUESSED: `head` + j for the reading of cuts[j], and so many more or fewer as the times around it say; whether these were enough. */
#define SLUICEGATE_GUESS(NAME, AROUND) \
SLUICEGATE_LANES_OF static int sluicegate_guess_##NAME( \
    const int64_t *restrict kept, const int64_t *restrict cuts, int64_t span, int64_t head, int64_t *restrict heads, int64_t n) \
{ \
    int64_t off = 0; \
    n &= -SLUICEGATE_GUESSED; \
    for (int64_t j = 0; j < n; j++) { \
        int64_t stay = 0, cut = cuts[j] - span; \
        for (int k = -AROUND; k < AROUND; k++) stay += kept[j + k] > cut; \
        off |= (stay - 1) | (2 * AROUND - 1 - stay); \
        heads[j] = head + j + AROUND - stay; \
    } \
    return off >= 0; \
}
SLUICEGATE_GUESS(narrow, SLUICEGATE_NARROW)
SLUICEGATE_GUESS(broad, SLUICEGATE_BROAD)

/* The first from `head` on that is after `cut`: one is, at most a few further. */
SLUICEGATE_INLINE int64_t sluicegate_go_on(const int64_t *times, int64_t head, int64_t cut)
{
    head += (times[head] <= cut) + (times[head + 1] <= cut) + (times[head + 2] <= cut) + (times[head + 3] <= cut);
    while (times[head] <= cut) head++;
    return head;
}

/* The first after `cut` from `head` to `end`, the time there is. */
SLUICEGATE_INLINE int64_t sluicegate_first_after(const int64_t *times, int64_t head, int64_t end, int64_t cut)
{
    int64_t n = end - head;
    while (n > 0) {
        int64_t half = (n + 1) >> 1;
        head += half & -(int64_t) (times[head + half - 1] <= cut);
        n -= half;
    }
    return head;
}

/* The same of n readings by a merge, of four stretches of them side by side: none waits for another's loads. */
SLUICEGATE_LOOP void sluicegate_merge_heads(const sluicegate_course *t, int64_t head, int64_t tail, int64_t n, int64_t *heads)
{
    const int64_t *times = t->times, *cuts = t->times + tail, span = t->span, part = n >> 2;
    int64_t a = head, b, c, d = head, i = sluicegate_merge_together(times, span, head, tail, n, t->last, heads);
    if (i) d = heads[i - 1];
    else if (part && tail + n + 4 <= t->last) {
        b = sluicegate_first_after(times, a, tail + part, cuts[part - 1] - span);
        c = sluicegate_first_after(times, b, tail + 2 * part, cuts[2 * part - 1] - span);
        d = sluicegate_first_after(times, c, tail + 3 * part, cuts[3 * part - 1] - span);
        for (; i < part; i++) {
            heads[i] = a = sluicegate_go_on(times, a, cuts[i] - span);
            heads[part + i] = b = sluicegate_go_on(times, b, cuts[part + i] - span);
            heads[2 * part + i] = c = sluicegate_go_on(times, c, cuts[2 * part + i] - span);
            heads[3 * part + i] = d = sluicegate_go_on(times, d, cuts[3 * part + i] - span);
        }
        i = 4 * part;
    }
    for (; i < n; i++) {
        while (times[d] <= cuts[i] - span) d++;
        heads[i] = d;
    }
}

/* Heads after n readings; whether more than a few may leave at once. Where guesses fail, so they will in the next tiles. */
SLUICEGATE_INLINE int sluicegate_find_heads(sluicegate_course *t, int64_t head, int64_t tail, int64_t n, int64_t *heads)
{
    const int64_t *times = t->times;
    int64_t i = 0, width = SLUICEGATE_GUESSED_AT_MOST;
    int broad = 0, wild = 0;
    if (t->waits) t->waits--;
    else {
        while (i + SLUICEGATE_GUESSED <= n && head + 2 * SLUICEGATE_GUESSED <= t->last) {
            const int64_t *cuts = times + tail + i;
            const int64_t before = head, m = i + width <= n && head + width + SLUICEGATE_GUESSED <= t->last ? width : SLUICEGATE_GUESSED;
            while (times[head] <= cuts[0] - t->span) head++;
            wild = wild || head - before > SLUICEGATE_FEW_AT_ONCE;
            if (broad || !sluicegate_guess_narrow(times + head, cuts, t->span, head, heads + i, m)) {
                if (m > SLUICEGATE_GUESSED) {
                    width = SLUICEGATE_GUESSED;
                    continue;
                }
                if (sluicegate_merges_together()) break;
                broad = 1;
                if (!sluicegate_guess_broad(times + head, cuts, t->span, head, heads + i, m)) break;
            }
            i += m;
            head = heads[i - 1];
        }
        t->missed = i + SLUICEGATE_GUESSED > n ? 0 : t->missed < SLUICEGATE_MOST_WAITS ? 2 * t->missed + 1 : t->missed;
        t->waits = t->missed;
    }
    if (i < n) sluicegate_merge_heads(t, head, tail + i, n - i, heads + i);
    return wild || broad || i < n;
}

#endif
