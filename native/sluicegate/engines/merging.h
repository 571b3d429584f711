/* Where a window by time begins after each of many readings, whatever their gaps: eight stretches of them side by side.

   Each reading waits for the one before it, looks at the next few leaves at once and moves on by those that have left. A branch is
   taken only where more leave than were looked at. Offsets are as in heads.pxd: what is not after comes[i] − less has left. */
#ifndef SLUICEGATE_MERGING
#define SLUICEGATE_MERGING

#include <stdint.h>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define SLUICEGATE_MERGES_EIGHT 1
#include <immintrin.h>
#else
#define SLUICEGATE_MERGES_EIGHT 0
#endif

enum {
    SLUICEGATE_STRETCHES = 8,  /* side by side */
    SLUICEGATE_LONG = 128,  /* readings of each */
    SLUICEGATE_SHORT = 16,
    SLUICEGATE_SEEN = 8  /* leaves that are looked at behind the last that may leave */
};

/* How many of the first LOOKED leaves have left by `come`; `less1`: less − 1. No cut is the greatest offset. */
static inline __attribute__((always_inline, unused)) uint64_t merging_of_four(const int32_t *kept, const int32_t *come, uint32_t less1)
{
    int32_t cut = (int32_t) ((uint32_t) *come - less1);
    return (uint64_t) ((kept[0] < cut) + (kept[1] < cut) + (kept[2] < cut) + (kept[3] < cut));
}

#if SLUICEGATE_MERGES_EIGHT
__attribute__((target("avx2"))) static inline __attribute__((always_inline, unused)) uint64_t merging_of_eight(
    const int32_t *kept, const int32_t *come, uint32_t less1)
{
    __m256i cut = _mm256_sub_epi32(_mm256_set1_epi32(*come), _mm256_set1_epi32((int32_t) less1));
    __m256i left = _mm256_cmpgt_epi32(cut, _mm256_loadu_si256((const __m256i *) kept));
    return (uint64_t) __builtin_ctzll(~(uint64_t) (uint32_t) _mm256_movemask_ps(_mm256_castsi256_ps(left)));
}
#endif

/* The first leaf from `head` on that stays, where many leave; kept[head] is its offset. */
__attribute__((noinline, unused)) static int64_t merging_on(const int32_t *kept, int64_t head, int32_t cut)
{
    while (kept[head] <= cut) head++;
    return head;
}

/* heads[i], and the bits of how many leave at a time, of a tile of STRETCHES stretches; of kept[0 … end + SEEN − 1], which count from
   leaf `head`, those before `end` may leave. The stretches' beginnings are found first. */
#define SLUICEGATE_MERGING_OF(NAME, HOW, PART, LOOKED, LEFT) \
HOW static uint64_t merging_##NAME( \
    const int32_t *kept, int64_t end, const int32_t *comes, uint32_t less, int64_t head, int64_t *heads) \
{ \
    int64_t at[SLUICEGATE_STRETCHES]; \
    uint64_t jump = 0; \
    for (int q = 0; q < SLUICEGATE_STRETCHES; q++) at[q] = head; \
    kept -= head; \
    for (int64_t n = end, half; n > 0; n -= half) { \
        half = (n + 1) >> 1; \
        for (int q = 1; q < SLUICEGATE_STRETCHES; q++) \
            at[q] += half & -(int64_t) (kept[at[q] + half - 1] <= (int32_t) ((uint32_t) comes[q * PART - 1] - less)); \
    } \
    for (int i = 0; i < PART; i++) \
        _Pragma("GCC unroll 8") \
        for (int q = 0; q < SLUICEGATE_STRETCHES; q++) { \
            uint64_t left = LEFT(kept + at[q], comes + q * PART + i, less - 1); \
            at[q] += (int64_t) left; \
            if (__builtin_expect(left == LOOKED, 0)) { \
                int64_t on = merging_on(kept, at[q], (int32_t) ((uint32_t) comes[q * PART + i] - less)); \
                left += (uint64_t) (on - at[q]); \
                at[q] = on; \
            } \
            jump |= left; \
            heads[q * PART + i] = at[q]; \
        } \
    return jump; \
}

#define SLUICEGATE_PLAINLY __attribute__((noinline, unused))
SLUICEGATE_MERGING_OF(long_by_four, SLUICEGATE_PLAINLY, SLUICEGATE_LONG, 4, merging_of_four)
SLUICEGATE_MERGING_OF(short_by_four, SLUICEGATE_PLAINLY, SLUICEGATE_SHORT, 4, merging_of_four)
#if SLUICEGATE_MERGES_EIGHT
SLUICEGATE_MERGING_OF(long_by_eight, SLUICEGATE_PLAINLY __attribute__((target("avx2"))), SLUICEGATE_LONG, 8, merging_of_eight)
SLUICEGATE_MERGING_OF(short_by_eight, SLUICEGATE_PLAINLY __attribute__((target("avx2"))), SLUICEGATE_SHORT, 8, merging_of_eight)
#endif

/* heads[0 … n − 1]: the same of any number of readings in order; gives no less than the most that leave at once. */
__attribute__((noinline, unused)) static int64_t merging_heads(
    const int32_t *kept, int64_t end, const int32_t *comes, uint32_t less, int64_t head, int64_t *heads, int64_t n)
{
    uint64_t (*of_long)(const int32_t *, int64_t, const int32_t *, uint32_t, int64_t, int64_t *) = merging_long_by_four;
    uint64_t (*of_short)(const int32_t *, int64_t, const int32_t *, uint32_t, int64_t, int64_t *) = merging_short_by_four;
    uint64_t jump = 0;
#if SLUICEGATE_MERGES_EIGHT
    if (__builtin_cpu_supports("avx2")) of_long = merging_long_by_eight, of_short = merging_short_by_eight;
#endif
    while (n > 0) {
        int64_t before = head, some = n >= SLUICEGATE_STRETCHES * SLUICEGATE_LONG ? SLUICEGATE_STRETCHES * SLUICEGATE_LONG
            : n >= SLUICEGATE_STRETCHES * SLUICEGATE_SHORT ? SLUICEGATE_STRETCHES * SLUICEGATE_SHORT : 1;
        if (some == 1) {
            int64_t on = (int64_t) merging_of_four(kept, comes, less - 1);
            heads[0] = head + (on < 4 ? on : merging_on(kept, 4, (int32_t) ((uint32_t) comes[0] - less)));
            jump |= (uint64_t) (heads[0] - head);
        }
        else jump |= (some == SLUICEGATE_STRETCHES * SLUICEGATE_LONG ? of_long : of_short)(kept, end, comes, less, head, heads);
        head = heads[some - 1];
        kept += head - before, end -= head - before, comes += some, heads += some, n -= some;
    }
    return (int64_t) jump;
}

#endif
