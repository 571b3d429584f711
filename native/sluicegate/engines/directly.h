/* A long batch through a window of few readings while it lies in the batch: each result from the readings themselves, with no forest.

   Windows stand side by side, each one reading further, and so do the partials of their last 1, 2, 4 … readings: a few passes over a tile
   in the first cache, in which no reading waits for another. By time a tile's windows hold `least` readings at least, which is such a
   pass, and `most` at most: each reading between is taken where its time is in the window, without a branch, or, if these are many, they are
   counted and the window put together from blocks. What is older comes first in every combination, so extremes are those of single readings
   to the bit; sums are so within rounding, and only ever of what is held. */
#ifndef SLUICEGATE_DIRECTLY
#define SLUICEGATE_DIRECTLY

#include <limits.h>
#include <string.h>
#include "beside.h"
#include "lanes.h"

enum {
    SLUICEGATE_MOST_DIRECTLY = 160,  /* readings of a window: more are taken sooner by trees */
    SLUICEGATE_TILE_DIRECTLY = 256,  /* readings side by side */
    SLUICEGATE_LOOKED_AT = 32,  /* times at once */
    SLUICEGATE_FEW_MORE = 6,  /* readings between `least` and `most` that are taken one by one */
    SLUICEGATE_ROOM_BY_TIME = SLUICEGATE_TILE_DIRECTLY + SLUICEGATE_MOST_DIRECTLY + 16,
    SLUICEGATE_ROOM_OF_BLOCKS = 1024
};

typedef double sluicegate_four __attribute__((vector_size(32), aligned(8), may_alias));
typedef int64_t sluicegate_four_times __attribute__((vector_size(32), aligned(8), may_alias));
#define SLUICEGATE_FOUR(p) (*(sluicegate_four *) (p))
#define SLUICEGATE_FOUR_TIMES(p) (*(const sluicegate_four_times *) (p))
typedef int32_t sluicegate_eight_short __attribute__((vector_size(32), aligned(4), may_alias));
#define SLUICEGATE_EIGHT_SHORT(p) (*(sluicegate_eight_short *) (p))
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
SLUICEGATE_LANES_OF static int sluicegate_in_order(const uint64_t *t, int64_t n)
{
    uint64_t late = 0;
    for (int64_t j = 0; j < n; j++) late |= t[j] - t[j - 1];
    return !(late >> 63);
}

typedef struct {
    int64_t least, most;  /* readings of a tile's windows */
} sluicegate_bounds;

/* How many readings the window of reading 0 holds, from what one not far from it does. */
SLUICEGATE_INLINE int64_t sluicegate_held_by(const int64_t *t, int64_t span, int64_t before, int64_t held)
{
    const int64_t cut = t[0] - span;
    while (held > 1 && t[1 - held] <= cut) held--;
    while (held <= before && held <= SLUICEGATE_MOST_DIRECTLY && t[-held] > cut) held++;
    return held;
}

/* What no window of n goes beyond, from what none of those before did; 0: one is too large, or a time goes back. */
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
    }
    if (least < 1) least = 1;
    while (least > 1 && !sluicegate_all_hold(t, span, n, least - 1)) least--;
    if (most < least) most = least;
    if (most > limit) return 0;
    while (!sluicegate_none_holds(t, span, n, most))
        if (++most > limit) return 0;
    if (least == b->least && most == b->most && most > least) { /* perhaps fewer do */
        while (least < most && sluicegate_all_hold(t, span, n, least)) least++;
        while (most > least && sluicegate_none_holds(t, span, n, most - 1)) most--;
    }
    b->least = least, b->most = most;
    return 1;
}

typedef struct {
    int32_t heads[SLUICEGATE_TILE_DIRECTLY], between[SLUICEGATE_TILE_DIRECTLY];  /* of each reading: its window's first; which of the blocks between */
} sluicegate_beginnings;

/* Where windows of `least` to `most` readings begin, by counting those between that stay, in times of 32 bits from the first on; 0: they do not fit. */
SLUICEGATE_LANES_OF static int sluicegate_find_beginnings(
    sluicegate_beginnings *p, const int64_t *t, int64_t span, int64_t n, int64_t least, int64_t most, int64_t from, int bits, int64_t blocks)
{
    int32_t since[SLUICEGATE_ROOM_BY_TIME], *newest = since + most;
    const int64_t first = t[-most], wide = most - least;
    if (t[n - 1] - first > INT32_MAX || span > INT32_MAX) return 0;
    for (int64_t j = -most; j < n; j++) newest[j] = (int32_t) (t[j] - first);
    for (int64_t j = n; j & 31; j++) newest[j] = 0;
    int64_t j = 0;
    for (; j < n; j += 32) {
        sluicegate_eight_short count[4], cut[4];
        for (int q = 0; q < 4; q++) cut[q] = SLUICEGATE_EIGHT_SHORT(newest + j + 8 * q) - (int32_t) span, count[q] = cut[q] ^ cut[q];
        for (int64_t k = j - least; k > j - least - wide; k--)
            for (int q = 0; q < 4; q++) count[q] -= SLUICEGATE_EIGHT_SHORT(newest + k + 8 * q) > cut[q];
        for (int q = 0; q < 4; q++) SLUICEGATE_EIGHT_SHORT(p->heads + j + 8 * q) = count[q];
    }
    for (j = 0; j < n; j++) {
        const int32_t end = (int32_t) (from + j), head = end - (int32_t) least + 1 - p->heads[j], block = head >> bits;
        p->heads[j] = head;
        p->between[j] = ((end >> bits) - block - 1) * (int32_t) blocks + block + 1;
    }
    return 1;
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
/* What follows in its block, or comes before, of every reading of a block of `size`. */ \
SLUICEGATE_INLINE void sluicegate_blocks_##OP(const double *x, double *after, double *before, double *whole, int64_t blocks, int size) \
{ \
    for (int64_t b = 0; b < blocks; b++, x += size, after += size, before += size) { \
        double run = before[0] = x[0], back = after[size - 1] = x[size - 1]; \
        for (int k = 1; k < size; k++) { \
            before[k] = run = sluicegate_##OP(run, x[k]); \
            after[size - 1 - k] = back = sluicegate_##OP(x[size - 1 - k], back); \
        } \
        whole[b] = run; \
    } \
} \
/* Windows of `least` to `most` readings, as the rest of one block, whole blocks, and the beginning of one; 0: not so. */ \
SLUICEGATE_LANES_OF static int sluicegate_by_blocks_##OP( \
    const double *x, const int64_t *t, int64_t span, int64_t before, int64_t n, int64_t least, int64_t most, double *out) \
{ \
    const int bits = least > 16 ? 4 : least > 8 ? 3 : least > 4 ? 2 : 1; \
    const int64_t size = 1 << bits, from = (most + size - 1) & -size, blocks = (from + n + size - 1) >> bits, rows = (most >> bits) + 1; \
    double all[SLUICEGATE_ROOM_BY_TIME], to_end[SLUICEGATE_ROOM_BY_TIME], to_here[SLUICEGATE_ROOM_BY_TIME], nodes[SLUICEGATE_ROOM_OF_BLOCKS]; \
    sluicegate_beginnings places; \
    if (rows * blocks > SLUICEGATE_ROOM_OF_BLOCKS || !sluicegate_find_beginnings(&places, t, span, n, least, most, from, bits, blocks)) return 0; \
    const int64_t some = from < before ? from : before; \
    for (int64_t j = 0; j < from - some; j++) all[j] = NOTHING; \
    memcpy(all + from - some, x - some, (some + n) * sizeof(double)); \
    for (int64_t j = from + n; j < blocks << bits; j++) all[j] = NOTHING; \
    if (bits == 4) sluicegate_blocks_##OP(all, to_end, to_here, nodes + blocks, blocks, 16); \
    else if (bits == 3) sluicegate_blocks_##OP(all, to_end, to_here, nodes + blocks, blocks, 8); \
    else if (bits == 2) sluicegate_blocks_##OP(all, to_end, to_here, nodes + blocks, blocks, 4); \
    else sluicegate_blocks_##OP(all, to_end, to_here, nodes + blocks, blocks, 2); \
    for (int64_t b = 0; b < blocks; b++) nodes[b] = NOTHING; \
    for (int64_t c = 2; c < rows; c++) \
        for (int64_t b = 0; b + c <= blocks; b++) \
            nodes[c * blocks + b] = sluicegate_##OP(nodes[(c - 1) * blocks + b], nodes[blocks + b + c - 1]); \
    for (int64_t j = 0; j < n; j++) \
        out[j] = sluicegate_##OP(sluicegate_##OP(to_end[places.heads[j]], nodes[places.between[j]]), to_here[from + j]); \
    return 1; \
} \
SLUICEGATE_LOOP void sluicegate_directly_##OP(const double *x, int64_t n, int64_t size, double *out) \
{ \
    double room[SLUICEGATE_TILE_DIRECTLY + SLUICEGATE_MOST_DIRECTLY]; \
    for (int64_t i = 0, k; i < n; i += k) { \
        k = n - i < SLUICEGATE_TILE_DIRECTLY ? n - i : SLUICEGATE_TILE_DIRECTLY; \
        sluicegate_side_by_side_##OP(x + i, k, size, room, out + i); \
    } \
} \
/* The same by time, of `held` readings before the first and `before` that may be looked at: how many readings were taken. */ \
SLUICEGATE_LOOP int64_t sluicegate_directly_by_time_##OP( \
    const double *x, const int64_t *t, int64_t span, int64_t held, int64_t before, int64_t n, double *out) \
{ \
    double room[SLUICEGATE_TILE_DIRECTLY + SLUICEGATE_MOST_DIRECTLY]; \
    sluicegate_bounds b = {held, held}; \
    int64_t i = 0, k; \
    for (; i < n; i += k) { \
        k = n - i < SLUICEGATE_TILE_DIRECTLY ? n - i : SLUICEGATE_TILE_DIRECTLY; \
        if (!sluicegate_bounds_of(&b, (const uint64_t *) t + i, (uint64_t) span, before + i, k)) break; \
        if (b.most - b.least > SLUICEGATE_FEW_MORE && b.least > 2 && \
            sluicegate_by_blocks_##OP(x + i, t + i, span, before + i, k, b.least, b.most, out + i)) continue; \
        sluicegate_side_by_side_##OP(x + i, k, b.least, room, out + i); \
        if (b.most > b.least) sluicegate_with_older_##OP(x + i, t + i, span, k, b.least, b.most - b.least, out + i); \
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
