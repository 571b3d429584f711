/* A long batch by time through AMTA while the window lies in it, whatever the gaps: steady.h where now none leaves, now several do.

   Where the window begins after each reading is found in the caller's times, a tile of readings at a time (beginnings.h). The leftmost
   tree ends where head and tail say; from one reading with which that changes to the next every R0 is one of steady.h's. Operands and
   their order are those of single readings. */
#ifndef SLUICEGATE_UNEVEN
#define SLUICEGATE_UNEVEN

#include "beginnings.h"
#include "steady.h"

enum {
    SLUICEGATE_LEAST_UNEVEN = 15,  /* readings after each: so the leftmost tree ends at a multiple of eight */
    SLUICEGATE_ROOM_OF_HEADS = SLUICEGATE_TILE + 64
};

typedef struct {
    sluicegate_steady s;
    sluicegate_course c;
    int64_t end;  /* of the leftmost tree */
} sluicegate_uneven;

/* What steady.h needs, R0s of a tile that go somewhat beyond it, heads. */
SLUICEGATE_INLINE int64_t sluicegate_uneven_room(int top)
{
    return 3 * ((int64_t) 1 << top) + 2 * SLUICEGATE_TILE + 2 * SLUICEGATE_ROOM_OF_HEADS;
}
/* Readings before each at most. */
SLUICEGATE_INLINE int64_t sluicegate_most_uneven(int top) { return ((int64_t) 4 << top) - 16; }

/* The highest level of leaves head … u − 2 that has a node, and where its last one begins: the end of the leftmost tree. */
SLUICEGATE_INLINE int sluicegate_top_level(int64_t head, int64_t u)
{
    int level = 63 - __builtin_clzll((uint64_t) (u - head));
    return level - ((u >> level) - (head >> level) < 2);
}
SLUICEGATE_INLINE int64_t sluicegate_end_of_left(int64_t head, int64_t u)
{
    int level = sluicegate_top_level(head, u);
    return ((u >> level) - 1) << level;
}

/* So many leaves leave one by one before all that leave do at once (amta.singles). */
SLUICEGATE_INLINE int64_t sluicegate_singles(int64_t size) { return 65 - __builtin_clzll((uint64_t) size); }

/* Whether so many readings from leaf `tail` on come in order: how many up to a few more, which are looked at behind them; 0: one is late. */
SLUICEGATE_INLINE int64_t sluicegate_seen_in_order(const int64_t *times, int64_t tail, int64_t n, int64_t rest)
{
    const int64_t some = n + SLUICEGATE_SEEN < rest ? n + SLUICEGATE_SEEN : rest;
    return sluicegate_in_order((const uint64_t *) times + tail, some) ? some : 0;
}
/* Whether each of n windows, the newest reading of which is leaf `tail` and those after it, holds LEAST to `most`. */
SLUICEGATE_INLINE int sluicegate_all_fit(const int64_t *heads, int64_t tail, int64_t n, int64_t most)
{
    sluicegate_bounds b = {tail + 1 - heads[n - 1], tail + n - heads[0]};  /* within n: enough for most */
    if (b.least < SLUICEGATE_LEAST_UNEVEN || b.most > most) sluicegate_held_in_tile(&b, heads, tail, n, 0);
    return b.least >= SLUICEGATE_LEAST_UNEVEN && b.most <= most;
}

/* The first of readings `i` … n − 1 with which so many leave that all do at once; `head`: before them, `tail`: after the first of them. */
SLUICEGATE_INLINE int64_t sluicegate_next_leap(const int64_t *heads, int64_t head, int64_t tail, int64_t n)
{
    int64_t i = 0;
    for (; i < n && heads[i] - head <= sluicegate_singles(tail + i - head); i++) head = heads[i];
    return i;
}

/* Whether all may leave at once where `most` do and `held` or more are held. */
SLUICEGATE_INLINE int sluicegate_leaps(int64_t most, int64_t held)
{
    return most > (held > SLUICEGATE_LEAST_UNEVEN ? sluicegate_singles(held) : SLUICEGATE_FEW_AT_ONCE);
}

/* The first of n heads that is `end` or after it, n where none is. */
SLUICEGATE_INLINE int64_t sluicegate_reading_at(const int64_t *heads, int64_t n, int64_t end)
{
    int64_t i = end - heads[0];
    if (heads[n - 1] < end) return n;
    if (i >= n) i = n - 1;
    if (i < 0) i = 0;
    while (heads[i] < end) i++;
    while (i > 0 && heads[i - 1] >= end) i--;
    return i;
}

#define SLUICEGATE_UNEVEN_OF(OP, NOTHING) \
/* n readings during which the leftmost tree stays. */ \
SLUICEGATE_INLINE void sluicegate_uneven_tile_##OP(sluicegate_uneven *to, const int64_t *heads, int64_t n, double *totals) \
{ \
    sluicegate_steady *t = &to->s; \
    const int64_t head = t->head, g = head & -SLUICEGATE_EIGHT, limit = (t->tail + n) >> 3, mask = sluicegate_mask(t, 3), end = to->end; \
    const double *leaves = t->leaves + t->tail, *newest = t->leaves + 8 * t->raised[3], *eighths = sluicegate_eighths(t); \
    double *lefts = sluicegate_tile(t), *at = lefts - g, *eight = sluicegate_ring(t, 3), right = t->right, base = t->base; \
    const int groups = t->top < 5 ? 2 : 3; \
    int64_t i = 0, next = g + groups * SLUICEGATE_EIGHT, raised = t->raised[3]; \
    for (int k = 0; k < groups; k++) sluicegate_group_##OP(t, g + 8 * k, end, lefts + 8 * k); \
    lefts[head - g] = t->left; \
    for (; i + 8 < n; i += 8, leaves += 8, heads += 8, totals += 8) { \
        while (next <= heads[7]) sluicegate_group_##OP(t, next, end, at + next), next += 8; \
        if (next < end && next < heads[7] + SLUICEGATE_LEFTS_AHEAD) { \
            sluicegate_steady_lefts_##OP(t->leaves + next, eighths[next >> 3 & mask], eighths[((next >> 3) + 1) & mask], at + next); \
            next += 8; \
        } \
        if (raised < limit) eight[raised++ & mask] = sluicegate_node_of_eight_##OP(newest), newest += 8; \
        for (int k = 0; k < SLUICEGATE_EIGHT; k += 2) \
            right = sluicegate_two_on_##OP(right, leaves + k, (sluicegate_two) {at[heads[k]], at[heads[k + 1]]}, totals + k); \
    } \
    while (next <= heads[n - i - 1]) sluicegate_group_##OP(t, next, end, at + next), next += 8; \
    for (; i < n; i++) { \
        base = right; \
        right = sluicegate_##OP(right, *leaves++); \
        *totals++ = sluicegate_##OP(at[*heads++], right); \
    } \
    t->raised[3] = raised; \
    t->head = heads[-1], t->tail += n, t->left = at[heads[-1]], t->right = right, t->base = base; \
} \
/* R0 and R1, but for the newest leaf, for a reading with which the leftmost tree becomes another; `restarts`: R0, too, is taken anew (Algorithm 4). */ \
SLUICEGATE_INLINE void sluicegate_uneven_turn_##OP(sluicegate_uneven *to, int64_t head, int64_t u, int restarts) \
{ \
    sluicegate_steady *t = &to->s; \
    const int64_t end = to->end, from = head + restarts, g = from & -SLUICEGATE_EIGHT; \
    const double newest[2] = {NOTHING, t->leaves[u - 3]}; \
    double right = newest[u & 1], lefts[16]; \
    const int top = sluicegate_top_level(head, u); \
    sluicegate_steady_raise_##OP(t, u - 1); \
    sluicegate_eighths_##OP(t, from - 1, end); \
    sluicegate_group_##OP(t, g, end, lefts); \
    t->left = restarts ? sluicegate_##OP(t->leaves[head], lefts[from - g]) : lefts[head - g]; \
    for (int level = 1; level < top; level++) { \
        const int64_t last = (u >> level) - 2; \
        const double node = sluicegate_steady_node_##OP(t, level, last); \
        const double some[2] = {node, sluicegate_##OP(sluicegate_steady_node_##OP(t, level, last - 1), node)}; \
        right = sluicegate_##OP(some[last & 1], right); \
    } \
    t->head = head, t->right = right; \
} \
/* What the reading that leaf u − 2 is does to the leftmost tree: it grows first, then falls, perhaps more than once. */ \
SLUICEGATE_INLINE void sluicegate_uneven_change_##OP(sluicegate_uneven *to, int64_t head, int64_t u) \
{ \
    const int64_t old = to->s.head, end = to->end; \
    int restarts = head == old; \
    to->end = sluicegate_end_of_left(old, u); \
    if (head - old > sluicegate_singles(u - 1 - old)) { \
        to->end = sluicegate_end_of_left(head, u); \
        sluicegate_uneven_turn_##OP(to, head, u, 1); \
        return; \
    } \
    if (to->end == end && head < end) return; \
    while (head >= to->end) { \
        restarts = head == to->end; \
        to->end = sluicegate_end_of_left(to->end, u); \
    } \
    sluicegate_uneven_turn_##OP(to, head, u, restarts); \
} \
/* How many of n readings are taken: up to a tile in which one is late, or finds too many or too few. The totals after them go where they are wanted. */ \
SLUICEGATE_LOOP int64_t sluicegate_uneven_##OP(sluicegate_uneven *to, int64_t n, double *totals) \
{ \
    sluicegate_uneven own = *to; \
    sluicegate_steady *t = &own.s; \
    double *nobody = sluicegate_tile(t) + SLUICEGATE_ROOM_OF_HEADS; \
    int64_t *heads = (int64_t *) (nobody + SLUICEGATE_TILE), rest = n, k, i, m; \
    own.end = sluicegate_end_of_left(t->head, t->tail + 1); \
    for (int level = 3; level <= t->top; level++) t->raised[level] = (t->head >> level) + (level > 3); \
    sluicegate_steady_raise_##OP(t, t->tail); \
    sluicegate_eighths_##OP(t, t->head, own.end); \
    for (; rest > 0; rest -= k) { \
        k = rest < SLUICEGATE_TILE ? rest : SLUICEGATE_TILE; \
        const int64_t seen = sluicegate_seen_in_order(own.c.times, t->tail, k, rest); \
        if (!seen) break; \
        own.c.last = t->tail + seen; \
        const int64_t most = sluicegate_find_heads(&own.c, t->head, t->tail, k, heads); \
        if (!sluicegate_all_fit(heads, t->tail, k, sluicegate_most_uneven(t->top))) break; \
        const int leaps = sluicegate_leaps(most, t->tail + 1 - heads[k - 1]); \
        for (i = 0; i < k; i += m) { \
            int64_t u = t->tail + 2, level, grows; \
            sluicegate_uneven_change_##OP(&own, heads[i], u); \
            level = sluicegate_top_level(heads[i], u); \
            grows = (((u >> level) + 1) << level) - u; \
            m = k - i < grows ? k - i : grows; \
            m = sluicegate_reading_at(heads + i, m, own.end); \
            if (leaps) m = 1 + sluicegate_next_leap(heads + i + 1, heads[i], t->tail + 2, m - 1); \
            m = sluicegate_reading_at(heads + i, m, t->head + SLUICEGATE_TILE); \
            sluicegate_uneven_tile_##OP(&own, heads + i, m, totals ? totals : nobody); \
            if (totals) totals += m; \
        } \
    } \
    *to = own; \
    return n - rest; \
}

SLUICEGATE_UNEVEN_OF(add, -0.0)
SLUICEGATE_UNEVEN_OF(least, INFINITY)
SLUICEGATE_UNEVEN_OF(greatest, -INFINITY)

#endif
