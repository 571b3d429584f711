/* A small window through AMTA while one reading leaves for each that comes: little.pxd for partials of one number.

   Such a window of m readings, m + 1 = 2T + x for a power of two T > x / 2, goes through the same changes every 2T readings. Let u be the
   tail + 1, b the multiple of 2T before it. The leftmost tree ends at b − 2T while u − b < x; then, if x < T, at b − T; from u = b + T, or
   b + x, on at b. Where that changes, R0 and R1 are taken anew, R1 from nodes that stand at the same places from b every time.
   Where nothing is behind the leftmost tree, an R0 is combined with what changes nothing, to the bit: −0.0, ∞ or −∞. */
#ifndef SLUICEGATE_LITTLE
#define SLUICEGATE_LITTLE

#include <math.h>
#include "beside.h"

enum { SLUICEGATE_LEVELS_OF_LITTLE = 12 };

typedef struct {
    double *level[SLUICEGATE_LEVELS_OF_LITTLE];  /* node i of a level is at i; all whose leaves are there are */
    double *lefts;  /* R0 for head i is at i, as far as the leftmost tree goes */
    int64_t head, tail;  /* at least 15 apart, so T is at least 8 */
    double left, right, base;
} sluicegate_little;

typedef struct {
    int64_t at;  /* from b on, the tail + 1 at which it comes */
    int64_t end;  /* and where the leftmost tree ends from then on */
    int fell;  /* the one before it has left: R0 is the oldest leaf and what follows it (Algorithm 4) */
    int nodes;  /* of which R1 consists but for the newest leaf, the newest first: node b >> level at `node` */
    int level[SLUICEGATE_LEVELS_OF_LITTLE];
    const double *node[SLUICEGATE_LEVELS_OF_LITTLE];
} sluicegate_change;

/* Algorithm 5 as little.restart_right has it; where that combines a pair its parent is taken, which is the same. */
SLUICEGATE_INLINE void sluicegate_plan(sluicegate_change *c, const sluicegate_little *t, int64_t at, int64_t end, int top, int fell)
{
    c->at = at, c->end = end, c->fell = fell, c->nodes = 0;
    if (at & 1) c->level[0] = 0, c->node[0] = t->level[0] + at - 3, c->nodes = 1;
    for (int level = 1; level < top; level++, c->nodes++) {
        int odd = (int) (at >> level & 1);
        c->level[c->nodes] = level + odd;
        c->node[c->nodes] = t->level[level + odd] + (odd ? (at >> level >> 1) - 1 : (at >> level) - 2);
    }
}

/* OP: the operator; NOTHING: what it leaves every partial as it is. */
#define SLUICEGATE_LITTLE_OF(OP, NOTHING) \
/* R0 for the heads after `head` up to `end`; of its own eight for those before it too, which nobody reads. */ \
SLUICEGATE_INLINE void sluicegate_little_lefts_##OP(const sluicegate_little *t, int64_t head, int64_t end) \
{ \
    double *lefts = t->lefts; \
    lefts[end] = NOTHING; \
    for (int64_t h = end - SLUICEGATE_EIGHT; h > head; h -= SLUICEGATE_EIGHT) { \
        int level = __builtin_ctzll((uint64_t) h); \
        lefts[h] = sluicegate_##OP(t->level[level][h >> level], lefts[h + ((int64_t) 1 << level)]); \
    } \
    for (int64_t h = head & -SLUICEGATE_EIGHT; h < end; h += SLUICEGATE_EIGHT) \
        sluicegate_lefts_##OP(t->level[0] + h, t->level[1] + (h >> 1), t->level[2] + (h >> 2), lefts + h); \
} \
/* R0s and R1, but for the newest leaf, for the reading with which a change comes. */ \
SLUICEGATE_INLINE double sluicegate_little_change_##OP( \
    const sluicegate_little *t, const sluicegate_change *c, int64_t b, int64_t head) \
{ \
    double right = NOTHING; \
    sluicegate_little_lefts_##OP(t, head, b + c->end); \
    if (c->fell) t->lefts[head] = sluicegate_##OP(t->level[0][head], t->lefts[head + 1]); \
    else if (!(head & (SLUICEGATE_EIGHT - 1))) { \
        int level = __builtin_ctzll((uint64_t) head); \
        t->lefts[head] = sluicegate_##OP(t->level[level][head >> level], t->lefts[head + ((int64_t) 1 << level)]); \
    } \
    for (int i = 0; i < c->nodes; i++) right = sluicegate_##OP(c->node[i][b >> c->level[i]], right); \
    return right; \
} \
/* n readings, and the totals after them; u is the tail + 1, so leaves[u] the newest leaf and lefts[u] the R0. */ \
SLUICEGATE_LOOP void sluicegate_little_##OP(sluicegate_little *t, int64_t n, double *totals) \
{ \
    const int64_t m = t->tail - t->head; \
    const int top = 62 - __builtin_clzll((uint64_t) m + 1); \
    const int64_t T = (int64_t) 1 << top, x = m + 1 - 2 * T, last = t->tail + 1 + n; \
    const double *leaves = t->level[0] - 2, *lefts = t->lefts - m - 1; \
    int64_t u = t->tail + 1, b = u & -2 * T, end; \
    double right = t->right, base = t->base; \
    sluicegate_change changes[2]; \
    int second = x < T && u - b >= x && u - b < T; /* the next change */ \
    end = u - b < x ? b - 2 * T : second ? b - T : b; \
    if (end == b) b += 2 * T; \
    sluicegate_plan(changes, t, x, x < T ? -T : 0, top, 1); \
    sluicegate_plan(changes + 1, t, T, 0, top, 0); \
    sluicegate_little_lefts_##OP(t, t->head, end); \
    totals -= u + 1; \
    for (;;) { \
        int64_t until = b + changes[second].at - 1; \
        if (until > last) until = last; \
        while (u < until) { \
            u++; \
            base = right; \
            right = sluicegate_##OP(right, leaves[u]); \
            totals[u] = sluicegate_##OP(lefts[u], right); \
        } \
        if (u == last) break; \
        right = sluicegate_little_change_##OP(t, &changes[second], b, u - m); \
        if (second || x >= T) second = 0, b += 2 * T; \
        else second = 1; \
    } \
    t->head += n, t->tail += n; \
    t->left = lefts[u], t->right = right, t->base = base; \
}

SLUICEGATE_LITTLE_OF(add, -0.0)
SLUICEGATE_LITTLE_OF(least, INFINITY)
SLUICEGATE_LITTLE_OF(greatest, -INFINITY)

#endif
