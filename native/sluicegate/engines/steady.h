/* A long batch through AMTA while one reading leaves for each that comes and the window lies in the batch: what little.h does for a
   window of any size, with nothing copied and no chunk looked at.

   Leaves are read where the caller has them. Of the nodes only those above eight leaves and more are kept, in rings as long as the
   window; pairs and fours are combined again where an R0 needs them, beside the one chain that waits for itself. Which trees there
   are, and when they change, is little.h's; operands and their order are those of single readings. */
#ifndef SLUICEGATE_STEADY
#define SLUICEGATE_STEADY

#include <math.h>
#include "beside.h"

enum {
    SLUICEGATE_LEAST_STEADY_TREE = 3,  /* two to the power of it: leaves of T at least */
    SLUICEGATE_LEVELS_OF_STEADY = 24,
    SLUICEGATE_TILE = 512  /* readings whose R0s stand side by side: a multiple of eight */
};

typedef struct {
    const double *leaves;  /* leaf i is at i, from the eight on in which the window begins to the last that comes */
    double *room;  /* sluicegate_steady_room(top) numbers */
    int64_t head, tail;  /* 2^(top + 1) - 1 to 2^(top + 2) - 2 apart */
    int top;
    double left, right, base;
    int64_t raised[SLUICEGATE_LEVELS_OF_STEADY];  /* nodes of a level before this one are made */
} sluicegate_steady;

typedef struct {
    int64_t at, end;  /* as in little.h */
    int fell, nodes;
    int level[SLUICEGATE_LEVELS_OF_STEADY];
    int64_t node[SLUICEGATE_LEVELS_OF_STEADY];  /* from b >> level on */
} sluicegate_turn;

/* Rings of the levels from the third on, then that of the R0s of every eighth head, then the R0s of a tile and totals nobody wants. */
SLUICEGATE_INLINE int64_t sluicegate_steady_room(int top) { return 3 * ((int64_t) 1 << top) + 2 * SLUICEGATE_TILE + 32; }

/* A level's ring, and how long it is: T nodes of the third level, half as many of each above it. */
SLUICEGATE_INLINE double *sluicegate_ring(const sluicegate_steady *t, int level)
{
    return t->room + (((int64_t) 2 << t->top) - ((int64_t) 2 << t->top >> (level - 3)));
}
SLUICEGATE_INLINE int64_t sluicegate_mask(const sluicegate_steady *t, int level) { return ((int64_t) 1 << t->top >> (level - 3)) - 1; }
SLUICEGATE_INLINE double *sluicegate_eighths(const sluicegate_steady *t) { return t->room + ((int64_t) 2 << t->top); }
SLUICEGATE_INLINE double *sluicegate_tile(const sluicegate_steady *t) { return sluicegate_eighths(t) + ((int64_t) 1 << t->top); }

/* Algorithm 5 as amta.compute_right has it; where that combines a pair its parent is taken, which is the same. */
SLUICEGATE_INLINE void sluicegate_plan_turn(sluicegate_turn *c, int64_t at, int64_t end, int top, int fell)
{
    c->at = at, c->end = end, c->fell = fell, c->nodes = 0;
    if (at & 1) c->level[0] = 0, c->node[0] = at - 3, c->nodes = 1;
    for (int level = 1; level < top; level++, c->nodes++) {
        int odd = (int) (at >> level & 1);
        c->level[c->nodes] = level + odd;
        c->node[c->nodes] = odd ? (at >> level >> 1) - 1 : (at >> level) - 2;
    }
}

/* Of all tails + 1 with which a change comes the last up to this one. */
SLUICEGATE_INLINE int64_t sluicegate_last_turn(int64_t last, int64_t T, int64_t x)
{
    int64_t one = ((last - x) & -2 * T) + x, other = ((last - T) & -2 * T) + T;
    return x < T && other > one ? other : one;
}

#define SLUICEGATE_STEADY_OF(OP, NOTHING) \
/* A node of any level that is complete. */ \
SLUICEGATE_INLINE double sluicegate_steady_node_##OP(const sluicegate_steady *t, int level, int64_t i) \
{ \
    const double *leaves = t->leaves + (i << level); \
    if (level > 2) return sluicegate_ring(t, level)[i & sluicegate_mask(t, level)]; \
    if (level == 0) return leaves[0]; \
    if (level == 1) return sluicegate_##OP(leaves[0], leaves[1]); \
    return sluicegate_##OP(sluicegate_##OP(leaves[0], leaves[1]), sluicegate_##OP(leaves[2], leaves[3])); \
} \
SLUICEGATE_INLINE double sluicegate_node_of_eight_##OP(const double *a) \
{ \
    sluicegate_two x = sluicegate_get(a), y = sluicegate_get(a + 2), z = sluicegate_get(a + 4), u = sluicegate_get(a + 6); \
    sluicegate_two p = sluicegate_two_##OP(SLUICEGATE_FIRSTS(x, y), SLUICEGATE_SECONDS(x, y)); \
    sluicegate_two q = sluicegate_two_##OP(SLUICEGATE_FIRSTS(z, u), SLUICEGATE_SECONDS(z, u)); \
    sluicegate_two f = sluicegate_two_##OP(SLUICEGATE_FIRSTS(p, q), SLUICEGATE_SECONDS(p, q)); \
    return sluicegate_##OP(f[0], f[1]); \
} \
/* R0 for eight heads, of which the first has its own; `end`: R0 for the head after them. */ \
SLUICEGATE_INLINE void sluicegate_steady_lefts_##OP(const double *a, double first, double end, double *lefts) \
{ \
    double six = sluicegate_##OP(sluicegate_##OP(a[6], a[7]), end), seven = sluicegate_##OP(a[7], end); \
    double four = sluicegate_##OP(sluicegate_##OP(sluicegate_##OP(a[4], a[5]), sluicegate_##OP(a[6], a[7])), end); \
    double two = sluicegate_##OP(sluicegate_##OP(a[2], a[3]), four); \
    lefts[0] = first, lefts[1] = sluicegate_##OP(a[1], two), lefts[2] = two, lefts[3] = sluicegate_##OP(a[3], four); \
    lefts[4] = four, lefts[5] = sluicegate_##OP(a[5], six), lefts[6] = six, lefts[7] = seven; \
} \
/* The nodes of the third level up to leaf `end`, and above them all that they complete. */ \
SLUICEGATE_INLINE void sluicegate_steady_raise_##OP(sluicegate_steady *t, int64_t end) \
{ \
    for (; 8 * t->raised[3] + 8 <= end; t->raised[3]++) \
        sluicegate_ring(t, 3)[t->raised[3] & sluicegate_mask(t, 3)] = sluicegate_node_of_eight_##OP(t->leaves + 8 * t->raised[3]); \
    for (int level = 4; level <= t->top; level++) { \
        int64_t i = t->raised[level], until = t->raised[level - 1] >> 1, mask = sluicegate_mask(t, level), n; \
        for (; i < until; i += n) { \
            n = mask + 1 - (i & mask); \
            if (n > until - i) n = until - i; \
            sluicegate_pairs_##OP( \
                sluicegate_ring(t, level - 1) + (2 * i & (2 * mask + 1)), sluicegate_ring(t, level) + (i & mask), n); \
        } \
        t->raised[level] = until > t->raised[level] ? until : t->raised[level]; \
    } \
} \
/* R0 for head 8j, which has a level's node and what follows it. */ \
SLUICEGATE_INLINE void sluicegate_eighth_##OP(const sluicegate_steady *t, int64_t j) \
{ \
    int level = __builtin_ctzll((uint64_t) j); \
    double *eighths = sluicegate_eighths(t); \
    const int64_t mask = sluicegate_mask(t, 3); \
    eighths[j & mask] = sluicegate_##OP( \
        sluicegate_ring(t, level + 3)[j >> level & mask >> level], eighths[(j + ((int64_t) 1 << level)) & mask]); \
} \
/* R0 for every eighth head after `head` up to `end`. */ \
SLUICEGATE_INLINE void sluicegate_eighths_##OP(const sluicegate_steady *t, int64_t head, int64_t end) \
{ \
    double *eighths = sluicegate_eighths(t); \
    const int64_t mask = sluicegate_mask(t, 3), first = head >> 3, last = end >> 3; \
    eighths[last & mask] = NOTHING; \
    if (last & 7) { \
        for (int64_t j = last - 1; j > first; j--) sluicegate_eighth_##OP(t, j); \
        return; \
    } \
    for (int64_t j = last - 8; j > first; j -= 8) sluicegate_eighth_##OP(t, j); \
    for (int64_t j = first & -8; j < last; j += 8) \
        sluicegate_lefts_with_##OP( \
            sluicegate_ring(t, 3) + (j & mask), sluicegate_ring(t, 4) + ((j & mask) >> 1), sluicegate_ring(t, 5) + ((j & mask) >> 2), \
            eighths[(j + 8) & mask], eighths + (j & mask)); \
} \
/* R0 for the heads of eight from g on, at `lefts`, as far as the leftmost tree goes. */ \
SLUICEGATE_INLINE void sluicegate_group_##OP(const sluicegate_steady *t, int64_t g, int64_t end, double *lefts) \
{ \
    const double *eighths = sluicegate_eighths(t); \
    const int64_t mask = sluicegate_mask(t, 3); \
    if (g < end) sluicegate_steady_lefts_##OP(t->leaves + g, eighths[g >> 3 & mask], eighths[((g >> 3) + 1) & mask], lefts); \
    else lefts[0] = NOTHING; \
} \
/* n readings, at most a tile, during which the leftmost tree stays; `first`: R0 for the head after the first, where that is known. */ \
SLUICEGATE_INLINE void sluicegate_tile_##OP(sluicegate_steady *t, int64_t end, int64_t n, const double *first, double *totals) \
{ \
    const int64_t head = t->head + 1, g = head & -SLUICEGATE_EIGHT, limit = (t->tail + n) >> 3, mask = sluicegate_mask(t, 3); \
    const double *leaves = t->leaves + t->tail, *a = t->leaves + g, *newest = t->leaves + 8 * t->raised[3]; \
    const double *eighths = sluicegate_eighths(t); \
    double *lefts = sluicegate_tile(t), *at = lefts + (head - g), *eight = sluicegate_ring(t, 3), right = t->right, base = t->base; \
    int64_t i = 0, j = g >> 3, raised = t->raised[3]; \
    for (int k = 0; k < 3; k++) sluicegate_group_##OP(t, g + 8 * k, end, lefts + 8 * k); \
    if (first) at[0] = *first; \
    a += 24, j += 3; \
    for (; i + 8 < n; i += 8, leaves += 8, at += 8, totals += 8, lefts += 8, a += 8, j++) { \
        if (8 * j < end) sluicegate_steady_lefts_##OP(a, eighths[j & mask], eighths[(j + 1) & mask], lefts + 24); \
        else lefts[24] = NOTHING; \
        if (raised < limit) eight[raised++ & mask] = sluicegate_node_of_eight_##OP(newest), newest += 8; \
        for (int k = 0; k < SLUICEGATE_EIGHT; k += 2) \
            right = sluicegate_two_on_##OP(right, leaves + k, sluicegate_get(at + k), totals + k); \
    } \
    for (; i < n; i++) { \
        base = right; \
        right = sluicegate_##OP(right, *leaves++); \
        *totals++ = sluicegate_##OP(*at++, right); \
    } \
    t->raised[3] = raised; \
    t->head += n, t->tail += n, t->left = at[-1], t->right = right, t->base = base; \
} \
/* R0s and R1, but for the newest leaf, for the reading with which a change comes; gives R0 for its head where eighths have it not. */ \
SLUICEGATE_INLINE int sluicegate_turn_##OP(sluicegate_steady *t, const sluicegate_turn *c, int64_t b, double *first) \
{ \
    const int64_t head = t->head + 1, end = b + c->end; \
    double right = NOTHING; \
    sluicegate_steady_raise_##OP(t, t->tail + 1); \
    sluicegate_eighths_##OP(t, head, end); \
    if (!c->fell && !(head & 7)) sluicegate_eighth_##OP(t, head >> 3); \
    if (c->fell) { \
        double lefts[16]; \
        const int64_t g = (head + 1) & -SLUICEGATE_EIGHT; \
        sluicegate_group_##OP(t, g, end, lefts); \
        *first = sluicegate_##OP(t->leaves[head], lefts[head + 1 - g]); \
    } \
    for (int i = 0; i < c->nodes; i++) \
        right = sluicegate_##OP(sluicegate_steady_node_##OP(t, c->level[i], (b >> c->level[i]) + c->node[i]), right); \
    t->right = right; \
    return c->fell; \
} \
/* n readings, and the totals after them where they are wanted. */ \
SLUICEGATE_LOOP void sluicegate_steady_##OP(sluicegate_steady *to, int64_t n, double *totals) \
{ \
    sluicegate_steady own = *to, *t = &own; \
    const int64_t m = t->tail - t->head, T = (int64_t) 1 << t->top, x = m + 1 - 2 * T, last = t->tail + 1 + n; \
    int64_t u = t->tail + 1, b = u & -2 * T, end, k; \
    int second = x < T && u - b >= x && u - b < T, known = 0; \
    double first = 0.0, *nobody = sluicegate_tile(t) + SLUICEGATE_TILE + 32; \
    sluicegate_turn turns[2]; \
    end = u - b < x ? b - 2 * T : second ? b - T : b; \
    if (end == b) b += 2 * T; \
    sluicegate_plan_turn(turns, x, x < T ? -T : 0, t->top, 1); \
    sluicegate_plan_turn(turns + 1, T, 0, t->top, 0); \
    if (!totals) { /* what was before the last change is in no bit */ \
        int64_t c = sluicegate_last_turn(last, T, x); \
        if (c > u) { \
            second = (c & (2 * T - 1)) == T && x < T, b = c - (second ? T : x); \
            t->head += c - 1 - u, t->tail += c - 1 - u, u = c - 1, end = t->head; \
        } \
    } \
    for (int level = 3; level <= t->top; level++) t->raised[level] = (t->head >> level) + (level > 3); \
    sluicegate_steady_raise_##OP(t, t->tail); \
    sluicegate_eighths_##OP(t, t->head, end); \
    for (;;) { \
        int64_t until = b + turns[second].at - 1; \
        if (until > last) until = last; \
        for (; u < until; u += k, known = 0) { \
            k = until - u < SLUICEGATE_TILE ? until - u : SLUICEGATE_TILE; \
            sluicegate_tile_##OP(t, end, k, known ? &first : NULL, totals ? totals : nobody); \
            if (totals) totals += k; \
        } \
        if (u == last) break; \
        known = sluicegate_turn_##OP(t, &turns[second], b, &first); \
        end = b + turns[second].end; \
        if (second || x >= T) second = 0, b += 2 * T; \
        else second = 1; \
    } \
    *to = own; \
}

#define SLUICEGATE_LEFTS_WITH_OF(OP) \
SLUICEGATE_INLINE void sluicegate_lefts_with_##OP( \
    const double *leaves, const double *pairs, const double *fours, double end, double *lefts) \
{ \
    double on4 = sluicegate_##OP(fours[1], end), on6 = sluicegate_##OP(pairs[3], end); \
    double on2 = sluicegate_##OP(pairs[1], on4), on7 = sluicegate_##OP(leaves[7], end); \
    double on3 = sluicegate_##OP(leaves[3], on4), on5 = sluicegate_##OP(leaves[5], on6); \
    lefts[1] = sluicegate_##OP(leaves[1], on2); \
    lefts[2] = on2, lefts[3] = on3, lefts[4] = on4, lefts[5] = on5, lefts[6] = on6, lefts[7] = on7; \
}

SLUICEGATE_LEFTS_WITH_OF(add)
SLUICEGATE_LEFTS_WITH_OF(least)
SLUICEGATE_LEFTS_WITH_OF(greatest)
SLUICEGATE_STEADY_OF(add, -0.0)
SLUICEGATE_STEADY_OF(least, INFINITY)
SLUICEGATE_STEADY_OF(greatest, -INFINITY)

#endif
