/* Eight readings of a block at a time: their nodes, the R0s of eight heads, and the one chain that waits for itself.

   Partials are single numbers here: sums, minima or maxima. The operands and their order are those of eights.pxd, so are the bits.
   Two numbers at a time are what the registers of every x86-64 and AArch64 hold; elsewhere the compiler takes them singly. */
#ifndef SLUICEGATE_BESIDE
#define SLUICEGATE_BESIDE

#include <stdint.h>

#define SLUICEGATE_INLINE static inline __attribute__((always_inline, unused))
#define SLUICEGATE_LOOP static __attribute__((noinline, unused))

typedef double sluicegate_two __attribute__((vector_size(16)));
typedef double sluicegate_any_two __attribute__((vector_size(16), aligned(8), may_alias));

#if defined(__clang__)
#define SLUICEGATE_FIRSTS(a, b) __builtin_shufflevector(a, b, 0, 2)
#define SLUICEGATE_SECONDS(a, b) __builtin_shufflevector(a, b, 1, 3)
#else
typedef int64_t sluicegate_places __attribute__((vector_size(16)));
#define SLUICEGATE_FIRSTS(a, b) __builtin_shuffle(a, b, (sluicegate_places) {0, 2})
#define SLUICEGATE_SECONDS(a, b) __builtin_shuffle(a, b, (sluicegate_places) {1, 3})
#endif

enum {
    SLUICEGATE_EIGHT = 8,
    SLUICEGATE_AHEAD = 32,
    SLUICEGATE_LEFTS_AHEAD = 32  /* heads whose R0s stand before they are looked up */
};

typedef struct {
    const double *from;  /* new leaves, eight from a multiple of eight on */
    double *leaves;  /* where they go */
    double *pairs, *fours, *eight;  /* where the nodes above them go */
    const double *old_leaves;  /* eight old leaves */
    double *lefts;  /* R0 for the heads at them; lefts[8] is there */
    int64_t head;  /* the first of these heads */
    int64_t whole;  /* R0s from this head on are there */
    int64_t left;  /* so many eights of old nodes lie side by side */
} sluicegate_beside;

/* A pointer as it is, loaded by itself: two loaded at once wait until both have left the processor's stores, one is passed on at once. */
SLUICEGATE_INLINE void *sluicegate_alone(const void *p)
{
    __asm__("" : "+r"(p));
    return (void *) p;
}

SLUICEGATE_INLINE sluicegate_two sluicegate_get(const double *p) { return *(const sluicegate_any_two *) p; }
SLUICEGATE_INLINE void sluicegate_put(double *p, sluicegate_two x) { *(sluicegate_any_two *) p = x; }

SLUICEGATE_INLINE double sluicegate_add(double a, double b) { return a + b; }
SLUICEGATE_INLINE double sluicegate_least(double a, double b) { return b < a ? b : a; }
SLUICEGATE_INLINE double sluicegate_greatest(double a, double b) { return b > a ? b : a; }
SLUICEGATE_INLINE sluicegate_two sluicegate_two_add(sluicegate_two a, sluicegate_two b) { return a + b; }
SLUICEGATE_INLINE sluicegate_two sluicegate_two_least(sluicegate_two a, sluicegate_two b)
{
    return (sluicegate_two) {sluicegate_least(a[0], b[0]), sluicegate_least(a[1], b[1])};
}
SLUICEGATE_INLINE sluicegate_two sluicegate_two_greatest(sluicegate_two a, sluicegate_two b)
{
    return (sluicegate_two) {sluicegate_greatest(a[0], b[0]), sluicegate_greatest(a[1], b[1])};
}

SLUICEGATE_INLINE void sluicegate_next_nodes(sluicegate_beside *b)
{
    b->from += SLUICEGATE_EIGHT, b->leaves += SLUICEGATE_EIGHT, b->pairs += 4, b->fours += 2, b->eight += 1;
    __builtin_prefetch(b->leaves + 8 * SLUICEGATE_AHEAD);
    __builtin_prefetch(b->pairs + 4 * SLUICEGATE_AHEAD);
    __builtin_prefetch(b->fours + 2 * SLUICEGATE_AHEAD);
}

SLUICEGATE_INLINE void sluicegate_next_lefts(sluicegate_beside *b)
{
    b->old_leaves += SLUICEGATE_EIGHT, b->lefts += SLUICEGATE_EIGHT;
    b->head += SLUICEGATE_EIGHT, b->left -= 1;
    __builtin_prefetch(b->old_leaves + 8 * SLUICEGATE_AHEAD);
}

/* OP: the operator; see eights.raise_eight, eights.lefts_of_eight and eights.extend. */
#define SLUICEGATE_BESIDE_OF(OP) \
SLUICEGATE_INLINE void sluicegate_raise_##OP(const double *a, double *leaves, double *pairs, double *fours, double *eight) \
{ \
    sluicegate_two x = sluicegate_get(a), y = sluicegate_get(a + 2), z = sluicegate_get(a + 4), u = sluicegate_get(a + 6); \
    sluicegate_two p = sluicegate_two_##OP(SLUICEGATE_FIRSTS(x, y), SLUICEGATE_SECONDS(x, y)); \
    sluicegate_two q = sluicegate_two_##OP(SLUICEGATE_FIRSTS(z, u), SLUICEGATE_SECONDS(z, u)); \
    sluicegate_two f = sluicegate_two_##OP(SLUICEGATE_FIRSTS(p, q), SLUICEGATE_SECONDS(p, q)); \
    sluicegate_put(leaves, x), sluicegate_put(leaves + 2, y), sluicegate_put(leaves + 4, z), sluicegate_put(leaves + 6, u); \
    sluicegate_put(pairs, p); \
    sluicegate_put(pairs + 2, q); \
    sluicegate_put(fours, f); \
    eight[0] = sluicegate_##OP(f[0], f[1]); \
} \
/* n nodes above 2n. */ \
SLUICEGATE_LOOP void sluicegate_pairs_##OP(const double *below, double *nodes, int64_t n) \
{ \
    int64_t i = 0; \
    for (; i + 2 <= n; i += 2) { \
        sluicegate_two x = sluicegate_get(below + 2 * i), y = sluicegate_get(below + 2 * i + 2); \
        sluicegate_put(nodes + i, sluicegate_two_##OP(SLUICEGATE_FIRSTS(x, y), SLUICEGATE_SECONDS(x, y))); \
    } \
    if (i < n) nodes[i] = sluicegate_##OP(below[2 * i], below[2 * i + 1]); \
} \
SLUICEGATE_INLINE void sluicegate_lefts_##OP(const double *leaves, const double *pairs, const double *fours, double *lefts) \
{ \
    double end = lefts[8], on4 = sluicegate_##OP(fours[1], end), on6 = sluicegate_##OP(pairs[3], end); \
    double on2 = sluicegate_##OP(pairs[1], on4), on7 = sluicegate_##OP(leaves[7], end); \
    double on3 = sluicegate_##OP(leaves[3], on4), on5 = sluicegate_##OP(leaves[5], on6); \
    lefts[1] = sluicegate_##OP(leaves[1], on2); \
    lefts[2] = on2, lefts[3] = on3, lefts[4] = on4, lefts[5] = on5, lefts[6] = on6, lefts[7] = on7; \
} \
/* The same from the leaves alone: three combinations more, and their nodes are not fetched. */ \
SLUICEGATE_INLINE void sluicegate_lefts_alone_##OP(const double *leaves, double *lefts) \
{ \
    double pair = sluicegate_##OP(leaves[6], leaves[7]), end = lefts[8], on6 = sluicegate_##OP(pair, end); \
    double on4 = sluicegate_##OP(sluicegate_##OP(sluicegate_##OP(leaves[4], leaves[5]), pair), end); \
    double on2 = sluicegate_##OP(sluicegate_##OP(leaves[2], leaves[3]), on4), on7 = sluicegate_##OP(leaves[7], end); \
    double on3 = sluicegate_##OP(leaves[3], on4), on5 = sluicegate_##OP(leaves[5], on6); \
    lefts[1] = sluicegate_##OP(leaves[1], on2); \
    lefts[2] = on2, lefts[3] = on3, lefts[4] = on4, lefts[5] = on5, lefts[6] = on6, lefts[7] = on7; \
} \
SLUICEGATE_INLINE double sluicegate_two_on_##OP(double right, const double *leaves, sluicegate_two left, double *totals) \
{ \
    double first = sluicegate_##OP(right, leaves[0]), second = sluicegate_##OP(first, leaves[1]); \
    sluicegate_put(totals, sluicegate_two_##OP(left, (sluicegate_two) {first, second})); \
    return second; \
} \
/* n eights during which one leaves for each that comes: `at` has R0 for the head after the first. */ \
SLUICEGATE_LOOP double sluicegate_beside_##OP( \
    double right, int64_t n, const double *leaves, const double *at, double *totals, sluicegate_beside *to) \
{ \
    sluicegate_beside b = *to; \
    for (int64_t i = 0; i < n; i++, leaves += 8, at += 8, totals += 8) { \
        sluicegate_raise_##OP(b.from, b.leaves, b.pairs, b.fours, b.eight); \
        sluicegate_next_nodes(&b); \
        sluicegate_lefts_alone_##OP(b.old_leaves, b.lefts); \
        sluicegate_next_lefts(&b); \
        for (int k = 0; k < SLUICEGATE_EIGHT; k += 2) \
            right = sluicegate_two_on_##OP(right, leaves + k, sluicegate_get(at + k), totals + k); \
    } \
    *to = b; \
    return right; \
} \
/* The same wherever the heads are; `lefts` + head: R0 for it. Gives how many eights it was, which old nodes end. */ \
SLUICEGATE_LOOP int64_t sluicegate_beside_any_##OP( \
    double *right, int64_t n, const double *leaves, const double *lefts, const int64_t *heads, double *totals, sluicegate_beside *to) \
{ \
    sluicegate_beside b = *to; \
    double r = *right; \
    int64_t i; \
    for (i = 0; i < n; i++, leaves += 8, heads += 8, totals += 8) { \
        if (b.left && b.head < b.whole && b.head < heads[7] + SLUICEGATE_LEFTS_AHEAD) { /* an eight for an eight: nearly always */ \
            sluicegate_lefts_alone_##OP(b.old_leaves, b.lefts); \
            sluicegate_next_lefts(&b); \
        } \
        while (b.left && b.head < b.whole && b.head <= heads[7]) { \
            sluicegate_lefts_alone_##OP(b.old_leaves, b.lefts); \
            sluicegate_next_lefts(&b); \
        } \
        if (b.head < b.whole && b.head <= heads[7]) break; \
        sluicegate_raise_##OP(b.from, b.leaves, b.pairs, b.fours, b.eight); \
        sluicegate_next_nodes(&b); \
        for (int k = 0; k < SLUICEGATE_EIGHT; k += 2) \
            r = sluicegate_two_on_##OP(r, leaves + k, (sluicegate_two) {lefts[heads[k]], lefts[heads[k + 1]]}, totals + k); \
    } \
    *right = r; \
    *to = b; \
    return i; \
}

SLUICEGATE_BESIDE_OF(add)
SLUICEGATE_BESIDE_OF(least)
SLUICEGATE_BESIDE_OF(greatest)

#endif
