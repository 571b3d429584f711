/* Where a window by time begins after each of many readings, whatever their gaps: many readings, or many leaves, in one look.

   What leaves with a reading hangs on what left before it, and no branch on times is foreseen. Where registers are of 512 bits sixteen
   readings go at once, and thirty-two leaves lie beside them: how many leave with the last of the sixteen is all that the next ones wait
   for; how many with each is looked up in the registers, by halves. A branch is taken only where all thirty-two leave.
   Elsewhere, and where these lie too far apart for 32 bits, the beginnings of eight stretches are looked up first, all together; then
   each takes a reading in turn, looks at the next few leaves at once and moves on by those that have left. Times are of 64 bits, as a batch has them, or offsets of 32 from
   one of them; those of readings and those of leaves do not go back. That of leaf i is at kept[i]; what is not after comes[j] − less has
   left after reading j, nothing from leaf `end` on, and SEEN leaves are there behind it. No cut is the greatest number there is. */
#ifndef SLUICEGATE_MERGING
#define SLUICEGATE_MERGING

#include "../partials/lanes.h"

enum {
    SLUICEGATE_STRETCHES = 8,  /* more find no registers, fewer wait for what they look at */
    SLUICEGATE_LONG = 64,  /* readings of each, as a rule */
    SLUICEGATE_SEEN = 8,  /* leaves in one look */
    SLUICEGATE_SIXTEEN = 16  /* readings in one look, at twice as many leaves */
};

#define SLUICEGATE_WITHIN static inline __attribute__((always_inline, unused))
#define SLUICEGATE_APART static __attribute__((noinline, unused))

#define SLUICEGATE_FOLLOW_OF(NAME, TYPE) \
/* heads[j] after reading j, one by one; the most that leave with one. */ \
SLUICEGATE_WITHIN int64_t sluicegate_follow_##NAME(const TYPE *kept, int64_t head, const TYPE *comes, TYPE less, int64_t *heads, int64_t n) \
{ \
    int64_t most = 0; \
    for (int64_t j = 0; j < n; j++) { \
        const int64_t before = head; \
        while (kept[head] <= comes[j] - less) head++; \
        most = head - before > most ? head - before : most; \
        heads[j] = head; \
    } \
    return most; \
}
SLUICEGATE_FOLLOW_OF(offsets, int32_t)
SLUICEGATE_FOLLOW_OF(times, int64_t)

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

#ifdef SLUICEGATE_CHOSEN_LANES
#define SLUICEGATE_BY_SIXTEEN __attribute__((target("avx512f,popcnt")))
typedef struct {
    __m512i near, far, cuts;  /* offsets of thirty-two leaves, and before which of them have left with sixteen readings */
} sluicegate_look;

/* Whether they fit. */
SLUICEGATE_BY_SIXTEEN SLUICEGATE_WITHIN int sluicegate_look_at_offsets(sluicegate_look *x, const int32_t *kept, const int32_t *comes, int32_t less1)
{
    x->near = _mm512_loadu_si512(kept), x->far = _mm512_loadu_si512(kept + SLUICEGATE_SIXTEEN);
    x->cuts = _mm512_sub_epi32(_mm512_loadu_si512(comes), _mm512_set1_epi32(less1));
    return 1;
}
SLUICEGATE_BY_SIXTEEN SLUICEGATE_WITHIN __m512i sluicegate_sixteen_offsets(const int64_t *times, int64_t since)
{
    const __m512i lower = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i all = _mm512_permutex2var_epi32(_mm512_loadu_si512(times), lower, _mm512_loadu_si512(times + 8));
    return _mm512_sub_epi32(all, _mm512_set1_epi32((int32_t) since));
}
SLUICEGATE_BY_SIXTEEN SLUICEGATE_WITHIN int sluicegate_look_at_times(sluicegate_look *x, const int64_t *kept, const int64_t *comes, int64_t less1)
{
    const int64_t since = comes[0] - less1, least = (int64_t) 1 << 31;
    x->near = sluicegate_sixteen_offsets(kept, since), x->far = sluicegate_sixteen_offsets(kept + SLUICEGATE_SIXTEEN, since);
    x->cuts = sluicegate_sixteen_offsets(comes, comes[0]);
    return !((uint64_t) ((kept[0] - since + least) | (kept[31] - since + least) | (comes[15] - comes[0]) << 1) >> 32);
}

/* How many of the leaves are before each cut: of up to `half` more, then `half` less than that. */
SLUICEGATE_BY_SIXTEEN SLUICEGATE_WITHIN __m512i sluicegate_halve(const sluicegate_look *x, __m512i at, int half)
{
    const __mmask16 more = _mm512_cmpgt_epi32_mask(x->cuts, _mm512_permutex2var_epi32(x->near, at, x->far));
    return _mm512_mask_add_epi32(_mm512_sub_epi32(at, _mm512_set1_epi32(half)), more, at, _mm512_set1_epi32(half));
}
SLUICEGATE_BY_SIXTEEN SLUICEGATE_WITHIN __m512i sluicegate_leave_with_each(const sluicegate_look *x)
{
    const __mmask16 more = _mm512_cmpgt_epi32_mask(x->cuts, _mm512_permutexvar_epi32(_mm512_set1_epi32(15), x->near));
    const __m512i at = sluicegate_halve(x, sluicegate_halve(x, sluicegate_halve(
        x, _mm512_mask_mov_epi32(_mm512_set1_epi32(7), more, _mm512_set1_epi32(23)), 4), 2), 1);
    return _mm512_mask_add_epi32(
        at, _mm512_cmpgt_epi32_mask(x->cuts, _mm512_permutex2var_epi32(x->near, at, x->far)), at, _mm512_set1_epi32(1));
}
SLUICEGATE_BY_SIXTEEN SLUICEGATE_WITHIN int64_t sluicegate_leave_with_last(const sluicegate_look *x)
{
    const __m512i last = _mm512_permutexvar_epi32(_mm512_set1_epi32(15), x->cuts);
    return (unsigned) __builtin_popcount(_mm512_cmpgt_epi32_mask(last, x->near)) + (unsigned) __builtin_popcount(_mm512_cmpgt_epi32_mask(last, x->far));
}

/* heads[j] of how many readings, and the most that leave with one; leaves before `there` can be looked at. */
#define SLUICEGATE_SIXTEENS_OF(NAME, TYPE) \
SLUICEGATE_BY_SIXTEEN SLUICEGATE_APART int64_t sluicegate_sixteens_of_##NAME( \
    const TYPE *kept, int64_t head, int64_t there, const TYPE *comes, TYPE less, int64_t *heads, int64_t n, int64_t *most) \
{ \
    const __m512i none = _mm512_setzero_si512(); \
    __m512i steps = none; \
    int64_t j = 0, many = 0; \
    for (sluicegate_look x; j + SLUICEGATE_SIXTEEN <= n && head + 2 * SLUICEGATE_SIXTEEN <= there; j += SLUICEGATE_SIXTEEN) { \
        if (!sluicegate_look_at_##NAME(&x, kept + head, comes + j, less - 1)) break; \
        const int64_t left = sluicegate_leave_with_last(&x); \
        if (__builtin_expect(left == 2 * SLUICEGATE_SIXTEEN, 0)) { \
            const int64_t at_once = sluicegate_follow_##NAME(kept, head, comes + j, less, heads + j, SLUICEGATE_SIXTEEN); \
            many = at_once > many ? at_once : many; \
            head = heads[j + SLUICEGATE_SIXTEEN - 1]; \
        } else { \
            const __m512i each = sluicegate_leave_with_each(&x), before = _mm512_set1_epi64(head); \
            _mm512_storeu_si512(heads + j, _mm512_add_epi64(before, _mm512_cvtepi32_epi64(_mm512_castsi512_si256(each)))); \
            _mm512_storeu_si512(heads + j + 8, _mm512_add_epi64(before, _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(each, 1)))); \
            steps = _mm512_max_epi32(steps, _mm512_sub_epi32(each, _mm512_alignr_epi32(each, none, 15))); \
            head += left; \
        } \
    } \
    *most = _mm512_reduce_max_epi32(steps); \
    *most = many > *most ? many : *most; \
    return j; \
}
SLUICEGATE_SIXTEENS_OF(offsets, int32_t)
SLUICEGATE_SIXTEENS_OF(times, int64_t)
#define SLUICEGATE_AT_ONCE(NAME, ...) (__builtin_cpu_supports("avx512f") ? sluicegate_sixteens_of_##NAME(__VA_ARGS__) : 0)
#else
#define SLUICEGATE_AT_ONCE(NAME, ...) 0
#endif

/* The most that leave with one of n readings after `head`. */
SLUICEGATE_LANES_OF static int64_t sluicegate_most_leaving(const int64_t *heads, int64_t head, int64_t n)
{
    int64_t most = heads[0] - head;
    for (int64_t j = 0; j + 1 < n; j++) most = heads[j + 1] - heads[j] > most ? heads[j + 1] - heads[j] : most;
    return most;
}

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
/* The same of any number, in the quickest way there is. */ \
SLUICEGATE_APART int64_t sluicegate_merge_##NAME( \
    const TYPE *kept, int64_t head, int64_t end, const TYPE *comes, TYPE less, int64_t *heads, int64_t n) \
{ \
    int64_t first[SLUICEGATE_STRETCHES], part, most = 0, leave, some = SLUICEGATE_AT_ONCE( \
        NAME, kept, head, end + SLUICEGATE_SEEN, comes, less, heads, n, &most); \
    if (some) head = heads[some - 1], comes += some, heads += some, n -= some; \
    for (; n >= 2 * SLUICEGATE_STRETCHES; comes += some, heads += some, n -= some, head = heads[-1]) { \
        part = n / SLUICEGATE_STRETCHES < SLUICEGATE_LONG ? n / SLUICEGATE_STRETCHES : SLUICEGATE_LONG; \
        some = part * SLUICEGATE_STRETCHES; \
        sluicegate_begin_##NAME(kept, head, end, comes, less, part, first); \
        if (part == SLUICEGATE_LONG) SLUICEGATE_CHOSEN(long_##NAME)(kept, comes, less, first, heads); \
        else SLUICEGATE_CHOSEN(any_##NAME)(kept, comes, less, part, first, heads); \
        leave = sluicegate_most_leaving(heads, head, some); \
        most = leave > most ? leave : most; \
    } \
    leave = sluicegate_follow_##NAME(kept, head, comes, less, heads, n); \
    return leave > most ? leave : most; \
}
SLUICEGATE_MERGING_OF(offsets, int32_t)
SLUICEGATE_MERGING_OF(times, int64_t)

#endif
