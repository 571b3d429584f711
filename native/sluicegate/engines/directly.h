/* A long batch through a window of few readings while it lies in the batch: each result from the readings themselves, with no forest.

   Windows stand side by side, each one reading further, and so do the partials of their last 1, 2, 4 … readings: a few passes over a tile
   in the first cache, in which no reading waits for another. By time a tile's windows hold `least` readings at least, which is such a
   pass, and `most` at most: each reading between is taken where its time is in the window, without a branch. Those that differ by more go
   by masks where registers are of 512 bits (by_masks.h); larger ones, and elsewhere, are put together from blocks (in_blocks.h). What is
   older comes first in every combination, so extremes are those of single readings to the bit; sums are so within rounding, and only
   ever of what is held. */
#ifndef SLUICEGATE_DIRECTLY
#define SLUICEGATE_DIRECTLY

#include <limits.h>
#include <string.h>
#include "by_masks.h"
#include "in_blocks.h"

enum {
    SLUICEGATE_TILE_DIRECTLY = 256,  /* readings side by side */
    SLUICEGATE_LOOKED_AT = 32,  /* times at once */
    SLUICEGATE_FEW_ARE_LOOKED_AT = 3,
    SLUICEGATE_TILES_BY_MASKS = 8  /* before it is looked again how much windows differ */
};

typedef double sluicegate_four __attribute__((vector_size(32), aligned(8), may_alias));
typedef int64_t sluicegate_four_times __attribute__((vector_size(32), aligned(8), may_alias));
#define SLUICEGATE_FOUR(p) (*(sluicegate_four *) (p))
#define SLUICEGATE_FOUR_TIMES(p) (*(const sluicegate_four_times *) (p))
/* Four of `a` where `in` has ones, four of `b` where it has none. */
#define SLUICEGATE_CHOOSE(in, a, b) \
    ((sluicegate_four) (((in) & (sluicegate_four_times) (a)) | (~(in) & (sluicegate_four_times) (b))))
/* What is older comes first, where it is in the window: equal extremes are the oldest. */
#define SLUICEGATE_WITH_add(in, x, own) (SLUICEGATE_CHOOSE(in, x, ((sluicegate_four) {-0.0, -0.0, -0.0, -0.0})) + (own))
#define SLUICEGATE_WITH_least(in, x, own) SLUICEGATE_CHOOSE((in) & ((x) <= (own)), x, own)
#define SLUICEGATE_WITH_greatest(in, x, own) SLUICEGATE_CHOOSE((in) & ((x) >= (own)), x, own)

/* Whether reading j's window holds more than `back` readings, for each of n; whether it holds at most so many. */
SLUICEGATE_LANES_OF static int sluicegate_all_hold(const uint64_t *t, uint64_t span, int64_t n, int64_t back)
{
    for (int64_t i = 0; i < n; i += SLUICEGATE_LOOKED_AT) {
        const int64_t end = i + SLUICEGATE_LOOKED_AT < n ? i + SLUICEGATE_LOOKED_AT : n;
        uint64_t stays = UINT64_MAX;
        for (int64_t j = i; j < end; j++) stays &= t[j] - span - t[j - back];
        if (!(stays >> 63)) return 0;
    }
    return 1;
}
SLUICEGATE_LANES_OF static int sluicegate_none_holds(const uint64_t *t, uint64_t span, int64_t n, int64_t back)
{
    for (int64_t i = 0; i < n; i += SLUICEGATE_LOOKED_AT) {
        const int64_t end = i + SLUICEGATE_LOOKED_AT < n ? i + SLUICEGATE_LOOKED_AT : n;
        uint64_t stays = 0;
        for (int64_t j = i; j < end; j++) stays |= t[j] - span - t[j - back];
        if (stays >> 63) return 0;
    }
    return 1;
}
/* How many readings the window of reading 0 holds, from what one not far from it does. */
SLUICEGATE_INLINE int64_t sluicegate_held_by(const int64_t *t, int64_t span, int64_t before, int64_t held)
{
    const int64_t cut = t[0] - span;
    while (held > 1 && t[1 - held] <= cut) held--;
    while (held <= before && held <= SLUICEGATE_MOST_IN_BLOCKS && t[-held] > cut) held++;
    return held;
}

/* Whether windows that differ so are put together from blocks. */
SLUICEGATE_INLINE int sluicegate_differ(int64_t least, int64_t most) { return most - least > SLUICEGATE_FEW_MORE && most > SLUICEGATE_SOME_AT_MOST; }

/* What no window of n goes beyond, from what none of those before did; 0: one is too large, they differ by too much, or a time goes back. */
SLUICEGATE_LANES_OF static int sluicegate_bounds_of(sluicegate_bounds *b, const uint64_t *t, uint64_t span, int64_t before, int64_t n)
{
    int64_t least = b->least, most = b->most, limit = before < SLUICEGATE_MOST_DIRECTLY ? before : SLUICEGATE_MOST_DIRECTLY;
    if (!sluicegate_in_order(t, n)) return 0;
    if (most - least > 2) {
        for (int64_t j = 0; j < n; j += 16) {
            int64_t held = sluicegate_held_by((const int64_t *) t + j, (int64_t) span, before + j, least);
            if (j == 0) least = most = held;
            least = held < least ? held : least;
            most = held > most ? held : most;
        }
        if (sluicegate_differ(least, most)) return 0;
    }
    if (least < 1) least = 1;
    while (least > 1 && !sluicegate_all_hold(t, span, n, least - 1)) least--;
    if (most < least) most = least;
    if (most > limit || sluicegate_differ(least, most)) return 0;
    while (!sluicegate_none_holds(t, span, n, most))
        if (++most > limit || sluicegate_differ(least, most)) return 0;
    if (least == b->least && most == b->most && most > least) { /* perhaps fewer do */
        while (least < most && sluicegate_all_hold(t, span, n, least)) least++;
        while (most > least && sluicegate_none_holds(t, span, n, most - 1)) most--;
    }
    b->least = least, b->most = most;
    return 1;
}

/* Whether windows go sooner by masks, which look at all their readings: other ways do at those that not all hold, once it is known which. */
SLUICEGATE_INLINE int sluicegate_sooner_by_masks(const sluicegate_bounds *b)
{
    const int64_t more = b->most - b->least;
    return more > SLUICEGATE_FEW_ARE_LOOKED_AT && 9 * b->most < 25 + 16 * more;
}

/* OP: the operator; NOTHING: what it leaves every partial as it is; AGAIN: a reading may be in both of its operands. */
#define SLUICEGATE_DIRECTLY_OF(OP, NOTHING, AGAIN) \
/* Of n windows of `size` readings each, the newest of which are x[0 … n − 1]. */ \
SLUICEGATE_LANES_OF static void sluicegate_side_by_side_##OP( \
    const double *restrict x, int64_t n, int64_t size, double *restrict room, double *restrict out) \
{ \
    const double *oldest = x - (size - 1), *nodes = oldest; \
    int64_t k = 1, done = 0; \
    for (; 2 * k <= size; k *= 2) { \
        const int64_t end = n + size - 2 * k; \
        if (!AGAIN && size & k) { \
            if (done) for (int64_t j = 0; j < n; j++) out[j] = sluicegate_##OP(out[j], nodes[done + j]); \
            else memcpy(out, nodes, n * sizeof(double)); \
            done += k; \
        } \
        if (2 * k == size) { \
            for (int64_t j = 0; j < n; j++) out[j] = sluicegate_##OP(nodes[j], nodes[j + k]); \
            return; \
        } \
        if (k == 1) for (int64_t j = 0; j < end; j++) room[j] = sluicegate_##OP(oldest[j], oldest[j + 1]); \
        else \
            _Pragma("GCC ivdep") for (int64_t j = 0; j < end; j++) room[j] = sluicegate_##OP(room[j], room[j + k]); \
        nodes = room; \
    } \
    if (AGAIN && size > k) for (int64_t j = 0; j < n; j++) out[j] = sluicegate_##OP(nodes[j], nodes[j + size - k]); \
    else if (done) for (int64_t j = 0; j < n; j++) out[j] = sluicegate_##OP(out[j], nodes[done + j]); \
    else memcpy(out, nodes, n * sizeof(double)); \
} \
/* Before each of n partials the readings `back` … `back` + some − 1 before its newest that are in its window. */ \
SLUICEGATE_LANES_OF static void sluicegate_with_older_##OP( \
    const double *x, const int64_t *t, int64_t span, int64_t n, int64_t back, int64_t some, double *out) \
{ \
    int64_t j = 0; \
    for (; j + 16 <= n; j += 16) { /* several chains: none waits for itself */ \
        sluicegate_four own[4]; \
        sluicegate_four_times cut[4]; \
        for (int q = 0; q < 4; q++) own[q] = SLUICEGATE_FOUR(out + j + 4 * q), cut[q] = SLUICEGATE_FOUR_TIMES(t + j + 4 * q) - span; \
        for (int64_t k = j - back; k > j - back - some; k--) \
            for (int q = 0; q < 4; q++) \
                own[q] = SLUICEGATE_WITH_##OP(SLUICEGATE_FOUR_TIMES(t + k + 4 * q) > cut[q], SLUICEGATE_FOUR(x + k + 4 * q), own[q]); \
        for (int q = 0; q < 4; q++) SLUICEGATE_FOUR(out + j + 4 * q) = own[q]; \
    } \
    for (; j < n; j++) \
        for (int64_t k = j - back; k > j - back - some; k--) out[j] = sluicegate_##OP(t[k] > t[j] - span ? x[k] : NOTHING, out[j]); \
} \
SLUICEGATE_LOOP void sluicegate_directly_##OP(const double *x, int64_t n, int64_t size, double *out) \
{ \
    double room[SLUICEGATE_TILE_DIRECTLY + SLUICEGATE_MOST_DIRECTLY]; \
    for (int64_t i = 0, k; i < n; i += k) { \
        k = n - i < SLUICEGATE_TILE_DIRECTLY ? n - i : SLUICEGATE_TILE_DIRECTLY; \
        sluicegate_side_by_side_##OP(x + i, k, size, room, out + i); \
    } \
} \
/* The same while none leaves: of `held` readings before the first. */ \
SLUICEGATE_LOOP void sluicegate_growing_##OP(const double *x, int64_t held, int64_t n, double *out) \
{ \
    double all = NOTHING; \
    for (int64_t j = -held; j < 0; j++) all = sluicegate_##OP(all, x[j]); \
    for (int64_t j = 0; j < n; j++) out[j] = all = sluicegate_##OP(all, x[j]); \
} \
/* By time, of `held` readings before the first and `before` that may be looked at: how many readings were taken. */ \
SLUICEGATE_LOOP int64_t sluicegate_directly_by_time_##OP( \
    const double *x, const int64_t *t, int64_t span, int64_t held, int64_t before, int64_t n, double *out) \
{ \
    double room[SLUICEGATE_TILE_DIRECTLY + SLUICEGATE_MOST_DIRECTLY]; \
    sluicegate_bounds b = {held, held}; \
    int64_t i = 0, k, most, refused = -1; \
    int by_masks = 0, bounded; \
    for (; i < n; i += k) { \
        k = n - i < SLUICEGATE_TILE_DIRECTLY ? n - i : SLUICEGATE_TILE_DIRECTLY; \
        if (by_masks-- > 0) { \
            most = sluicegate_in_order((const uint64_t *) t + i, k) ? SLUICEGATE_MASKS_OF(OP, x + i, t + i, span, k, b.most, out + i) : 0; \
            if (most) { \
                b.most = most; \
                continue; \
            } \
            refused = i; \
        } \
        bounded = sluicegate_bounds_of(&b, (const uint64_t *) t + i, (uint64_t) span, before + i, k); \
        if (refused < i && sluicegate_may_go_by_masks(before + i, k) && (!bounded || sluicegate_sooner_by_masks(&b))) { \
            by_masks = SLUICEGATE_TILES_BY_MASKS; \
            k = 0; \
        } else if (bounded) { \
            by_masks = 0; \
            sluicegate_side_by_side_##OP(x + i, k, b.least, room, out + i); \
            if (b.most > b.least) sluicegate_with_older_##OP(x + i, t + i, span, k, b.least, b.most - b.least, out + i); \
        } else { \
            by_masks = 0; \
            k = sluicegate_in_blocks_##OP(x + i, t + i, span, sluicegate_held_by(t + i - 1, span, before + i - 1, b.least), n - i, out + i, &b); \
            if (!k) break; \
        } \
    } \
    return i; \
}

/* How many of n times none is before the one before it. */
SLUICEGATE_INLINE int64_t sluicegate_ordered(const int64_t *t, int64_t n)
{
    int64_t i = 0, k;
    for (; i < n; i += k) {
        k = n - i < SLUICEGATE_TILE_DIRECTLY ? n - i : SLUICEGATE_TILE_DIRECTLY;
        if (!sluicegate_in_order((const uint64_t *) t + i, k)) break;
    }
    return i;
}

SLUICEGATE_DIRECTLY_OF(add, -0.0, 0)
SLUICEGATE_DIRECTLY_OF(least, INFINITY, 1)
SLUICEGATE_DIRECTLY_OF(greatest, -INFINITY, 1)

#endif
