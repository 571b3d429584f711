/* A long batch by time through a window of some readings, whatever the gaps: the rest of one block, whole blocks, the beginning of one.

   Blocks are of 2 to 64 readings, so that next to no window lies in a single one. A reading takes a combination for what follows in its
   block, one for what came before, and two that put its window together; no branch hangs on a time.
   A window that does lie in one block is taken by itself. What is older comes first in every combination: extremes are those of single
   readings to the bit, sums within rounding. */
#ifndef SLUICEGATE_IN_BLOCKS
#define SLUICEGATE_IN_BLOCKS

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif
#include "beginnings.h"
#include "by_masks.h"

enum {
    SLUICEGATE_MOST_DIRECTLY = 160,  /* readings of a window that goes without blocks */
    SLUICEGATE_MOST_IN_BLOCKS = 704,  /* readings of a window: more are taken sooner by trees */
    SLUICEGATE_TILE_OF_BLOCKS = 512,
    SLUICEGATE_LARGEST_BLOCK = 6,  /* two to the power of it */
    SLUICEGATE_KEPT_OF_BLOCKS = SLUICEGATE_MOST_IN_BLOCKS + 2 * 64,  /* before a tile */
    SLUICEGATE_ROOM_OF_ENDS = SLUICEGATE_KEPT_OF_BLOCKS + 4 * SLUICEGATE_TILE_OF_BLOCKS,
    SLUICEGATE_MOST_ALONE = 32,  /* windows of a tile in one block: with more of them blocks become smaller, with fewer in larger ones larger */
    SLUICEGATE_WHOLLY = 3,  /* of blocks that are no larger every place is looked at then, without a branch */
    SLUICEGATE_FEW_MORE = 6,  /* readings by which a tile's windows differ: without blocks they go sooner */
    SLUICEGATE_MUCH_FEWER = 12,  /* than go by masks at most: so do the next, too */
    SLUICEGATE_SOME_AT_MOST = 16  /* readings of windows that do so however much they differ */
};

/* Whether such windows go sooner without blocks, and so may the next. */
SLUICEGATE_INLINE int sluicegate_differ_by_few(int64_t least, int64_t most)
{
    if (most + SLUICEGATE_MUCH_FEWER <= SLUICEGATE_MOST_BY_MASKS && sluicegate_has_masks()) return 1;
    return most + SLUICEGATE_FEW_MORE <= SLUICEGATE_MOST_DIRECTLY && (most - least <= SLUICEGATE_FEW_MORE - 2 || most <= SLUICEGATE_SOME_AT_MOST - 4);
}

/* What sluicegate_held_in_tile says, about, of a whole tile: the first and the last of eight readings say within seven what their windows hold. */
SLUICEGATE_LOOP int64_t sluicegate_held_about(sluicegate_bounds *b, const int64_t *heads, int64_t first, int64_t some)
{
    int64_t least = INT64_MAX, most = 0, few = 0;
    for (int64_t j = 0; j < SLUICEGATE_TILE_OF_BLOCKS; j += SLUICEGATE_EIGHT) {
        const int64_t more = first + SLUICEGATE_EIGHT + j - heads[j], fewer = first + 1 + j - heads[j + SLUICEGATE_EIGHT - 1];
        least = fewer < least ? fewer : least;
        most = more > most ? more : most;
        few += fewer <= some;
    }
    b->least = least, b->most = most;
    return SLUICEGATE_EIGHT * few;
}

/* Two combinations without a branch: of equals that on the left. */
SLUICEGATE_INLINE sluicegate_two sluicegate_both_add(sluicegate_two a, sluicegate_two b) { return a + b; }
#ifdef __SSE2__
SLUICEGATE_INLINE sluicegate_two sluicegate_both_least(sluicegate_two a, sluicegate_two b) { return (sluicegate_two) _mm_min_pd((__m128d) b, (__m128d) a); }
SLUICEGATE_INLINE sluicegate_two sluicegate_both_greatest(sluicegate_two a, sluicegate_two b) { return (sluicegate_two) _mm_max_pd((__m128d) b, (__m128d) a); }
#else
SLUICEGATE_INLINE sluicegate_two sluicegate_both_least(sluicegate_two a, sluicegate_two b) { return sluicegate_two_least(a, b); }
SLUICEGATE_INLINE sluicegate_two sluicegate_both_greatest(sluicegate_two a, sluicegate_two b) { return sluicegate_two_greatest(a, b); }
#endif

#define SLUICEGATE_IN_BLOCKS_OF(OP, NOTHING) \
/* What follows in its block of every reading from `from` to `to`, the end of a block. */ \
SLUICEGATE_INLINE void sluicegate_rests_##OP(const double *x, int64_t from, int64_t to, double *ends, int bits) \
{ \
    const int64_t last = ((int64_t) 1 << bits) - 1; \
    for (int64_t j = to - 1; j >= from; j--) ends[j] = (j & last) == last ? x[j] : sluicegate_##OP(x[j], ends[j + 1]); \
} \
/* The same of whole blocks. */ \
SLUICEGATE_INLINE void sluicegate_ends_##OP(const double *x, double *ends, int64_t n, const int64_t size) \
{ \
    for (; n >= size; n -= size, x += size, ends += size) { \
        sluicegate_two back = {NOTHING, NOTHING}; \
        for (int64_t k = size - 2; k >= 0; k -= 2) { \
            const sluicegate_two own = sluicegate_get(x + k), all = sluicegate_both_##OP(own, SLUICEGATE_SECONDS(own, own)); \
            const sluicegate_two rest = sluicegate_both_##OP((sluicegate_two) {all[0], own[1]}, back); \
            sluicegate_put(ends + k, rest); \
            back = SLUICEGATE_FIRSTS(rest, rest); \
        } \
    } \
} \
/* n windows whose newest readings lie in block `own` and begin with it; their oldest lie in one of `rows` blocks before it. */ \
SLUICEGATE_INLINE void sluicegate_windows_##OP( \
    const double *x, const double *ends, const int64_t *heads, int64_t own, const int64_t n, const int bits, int64_t rows, double *out) \
{ \
    double some[(SLUICEGATE_MOST_IN_BLOCKS >> 1) + 4], *between = some + rows - own; \
    sluicegate_two whole = {NOTHING, NOTHING}, right = whole; \
    int64_t k = 0; \
    between[own] = between[own - 1] = NOTHING; \
    for (int64_t b = own - 1; b > own - rows; b--) { \
        whole = sluicegate_both_##OP((sluicegate_two) {ends[b << bits], 0.0}, whole); \
        between[b - 1] = whole[0]; \
    } \
    for (; k + 2 <= n; k += 2) { \
        const int64_t a = heads[k], b = heads[k + 1]; \
        const sluicegate_two next = sluicegate_get(x + k), both = sluicegate_both_##OP(SLUICEGATE_FIRSTS(next, next), next); \
        const sluicegate_two left = sluicegate_both_##OP( \
            ((sluicegate_two) {ends[a], ends[b]}), ((sluicegate_two) {between[a >> bits], between[b >> bits]})); \
        right = sluicegate_both_##OP(right, (sluicegate_two) {next[0], both[1]}); \
        sluicegate_put(out + k, sluicegate_both_##OP(left, right)); \
        right = SLUICEGATE_SECONDS(right, right); \
    } \
    if (k < n) out[k] = sluicegate_##OP(sluicegate_##OP(ends[heads[k]], between[heads[k] >> bits]), sluicegate_##OP(right[0], x[k])); \
} \
/* Those that lie in one block; how many these are. */ \
SLUICEGATE_INLINE int64_t sluicegate_alone_##OP(const double *x, const int64_t *heads, int64_t first, int64_t n, int bits, double *out) \
{ \
    const double nothing = NOTHING; \
    int64_t some = 0; \
    int16_t which[SLUICEGATE_TILE_OF_BLOCKS]; \
    for (int64_t j = 0; j < n; j++) which[some] = (int16_t) j, some += heads[j] >> bits == (first + j) >> bits; \
    for (int64_t i = 0; i < some; i++) { \
        const int64_t j = which[i]; \
        const double *oldest = x + (heads[j] - first), *newest = x + j; \
        double all = *oldest; \
        if (bits > SLUICEGATE_WHOLLY) while (oldest < newest) all = sluicegate_##OP(all, *++oldest); \
        else for (int64_t k = 1; k < (int64_t) 1 << bits; k++) { \
            const double *next[2] = {&nothing, oldest + k}; \
            all = sluicegate_##OP(all, *next[oldest + k <= newest]); \
        } \
        out[j] = all; \
    } \
    return some; \
} \
SLUICEGATE_INLINE void sluicegate_tile_in_blocks_##OP( \
    const double *x, double *ends, const int64_t *heads, int64_t first, int64_t n, const int bits, int64_t most, double *out) \
{ \
    sluicegate_ends_##OP(x, ends + first, n, (int64_t) 1 << bits); \
    const int64_t size = (int64_t) 1 << bits, rows = (most >> bits) + 2; \
    int64_t j = 0; \
    for (; j + size <= n; j += size) sluicegate_windows_##OP(x + j, ends, heads + j, (first + j) >> bits, size, bits, rows, out + j); \
    if (j < n) sluicegate_windows_##OP(x + j, ends, heads + j, (first + j) >> bits, n - j, bits, rows, out + j); \
} \
/* How many of n readings are taken, up to where a time goes back, windows hold too many or, as `b` then says, about as many. The first \
   window is found among the `held` readings before it; of those before these eight may be looked at. */ \
SLUICEGATE_LOOP int64_t sluicegate_in_blocks_##OP( \
    const double *x, const int64_t *t, int64_t span, int64_t held, int64_t n, double *out, sluicegate_bounds *b) \
{ \
    double ends[SLUICEGATE_ROOM_OF_ENDS]; \
    int64_t heads[SLUICEGATE_TILE_OF_BLOCKS], origin = -SLUICEGATE_KEPT_OF_BLOCKS, head = -held, i = 0, k, few, alone; \
    sluicegate_course c = {t, span, n, 0, 0}; \
    int bits = held < 4 ? 1 : 62 - __builtin_clzll((uint64_t) held), was = 0, roughly = 0; \
    if (held > SLUICEGATE_MOST_IN_BLOCKS) return 0; \
    if (bits > SLUICEGATE_LARGEST_BLOCK) bits = SLUICEGATE_LARGEST_BLOCK; \
    for (int64_t j = 0; j < SLUICEGATE_KEPT_OF_BLOCKS; j++) ends[j] = NOTHING; \
    for (; i < n; i += k) { \
        k = n - i < SLUICEGATE_TILE_OF_BLOCKS ? n - i : SLUICEGATE_TILE_OF_BLOCKS; \
        if (!sluicegate_in_order((const uint64_t *) t + i, k)) break; \
        if (i + k - origin > SLUICEGATE_ROOM_OF_ENDS) { \
            memmove(ends, ends + (i - SLUICEGATE_KEPT_OF_BLOCKS - origin), SLUICEGATE_KEPT_OF_BLOCKS * sizeof(double)); \
            origin = i - SLUICEGATE_KEPT_OF_BLOCKS; \
        } \
        c.times = t + origin, c.last = n - origin; \
        sluicegate_find_heads(&c, head - origin, i - origin, k, heads); \
        roughly = roughly && k == SLUICEGATE_TILE_OF_BLOCKS; \
        few = roughly ? sluicegate_held_about(b, heads, i - origin, (int64_t) 2 << bits) : 0; \
        if (!roughly || b->least <= (int64_t) 1 << bits) few = sluicegate_held_in_tile(b, heads, i - origin, k, (int64_t) 2 << bits); \
        roughly = bits > SLUICEGATE_WHOLLY && b->least > ((int64_t) 1 << bits) + SLUICEGATE_EIGHT; \
        if (b->most > SLUICEGATE_MOST_IN_BLOCKS) break; \
        if (bits != was) sluicegate_rests_##OP(x + origin, head - origin, i - origin, ends, bits), was = bits; \
        if (bits == 1) sluicegate_tile_in_blocks_##OP(x + i, ends, heads, i - origin, k, 1, b->most, out + i); \
        else if (bits == 2) sluicegate_tile_in_blocks_##OP(x + i, ends, heads, i - origin, k, 2, b->most, out + i); \
        else if (bits == 3) sluicegate_tile_in_blocks_##OP(x + i, ends, heads, i - origin, k, 3, b->most, out + i); \
        else if (bits == 4) sluicegate_tile_in_blocks_##OP(x + i, ends, heads, i - origin, k, 4, b->most, out + i); \
        else if (bits == 5) sluicegate_tile_in_blocks_##OP(x + i, ends, heads, i - origin, k, 5, b->most, out + i); \
        else sluicegate_tile_in_blocks_##OP(x + i, ends, heads, i - origin, k, 6, b->most, out + i); \
        alone = b->least <= (int64_t) 1 << bits ? sluicegate_alone_##OP(x + i, heads, i - origin, k, bits, out + i) : 0; \
        head = heads[k - 1] + origin; \
        if (alone > SLUICEGATE_MOST_ALONE && bits > 1) bits--; \
        else if (few < SLUICEGATE_MOST_ALONE && bits < SLUICEGATE_LARGEST_BLOCK) bits++; \
        if (sluicegate_differ_by_few(b->least, b->most)) return i + k; \
    } \
    return i; \
}

SLUICEGATE_IN_BLOCKS_OF(add, -0.0)
SLUICEGATE_IN_BLOCKS_OF(least, INFINITY)
SLUICEGATE_IN_BLOCKS_OF(greatest, -INFINITY)

#endif
