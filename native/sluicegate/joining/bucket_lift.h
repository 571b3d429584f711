/* Buckets of two or three readings whose times are their ordinals, of the layout SUM_BUCKET: as `lift_bucket`, without a loop. */
#ifndef SLUICEGATE_BUCKET_LIFT
#define SLUICEGATE_BUCKET_LIFT

#include "bucket_lanes.h"

typedef union { double f; int64_t i; } bucket_slot;
typedef int64_t bucket_four __attribute__((vector_size(32), aligned(8), may_alias));

/* Which reading is the first, and which the last, that reaches an extreme, for its times and its ordinals. By four bits: whether
   the second is beyond the first, or level with it at least; the same of the third and what those two have. */
#define BUCKET_REACHED(first, last) { first, last, first, last }
static const bucket_four bucket_reached[16] = {
    BUCKET_REACHED(0, 0), BUCKET_REACHED(1, 0), BUCKET_REACHED(0, 1), BUCKET_REACHED(1, 1),
    BUCKET_REACHED(2, 0), BUCKET_REACHED(2, 0), BUCKET_REACHED(2, 1), BUCKET_REACHED(2, 1),
    BUCKET_REACHED(0, 2), BUCKET_REACHED(1, 2), BUCKET_REACHED(0, 2), BUCKET_REACHED(1, 2),
    BUCKET_REACHED(2, 2), BUCKET_REACHED(2, 2), BUCKET_REACHED(2, 2), BUCKET_REACHED(2, 2),
};

static inline __attribute__((always_inline)) void bucket_lift(
    bucket_slot *o, int w, const double *x, int64_t ordinal, double center, double *totals, int n)
{
    const bucket_four at = { ordinal, ordinal, ordinal, ordinal }, counted = { 0, -1, -1, -1 }, ends = { n, 0, n - 1, 0 };
    double total = x[0] - center, before = total, above = total;
    double low = bucket_smaller(x[0], x[1]), high = bucket_larger(x[0], x[1]);
    int lows = (x[1] < x[0]) | (x[1] <= x[0]) << 1, highs = (x[1] > x[0]) | (x[1] >= x[0]) << 1;
    totals[0] = total;
    total = total + (x[1] - center);
    totals[1] = total;
    if (n == 3) {
        lows |= (x[2] < low) << 2 | (x[2] <= low) << 3;
        highs |= (x[2] > high) << 2 | (x[2] >= high) << 3;
        low = bucket_smaller(low, x[2]);
        high = bucket_larger(high, x[2]);
        before = bucket_smaller(before, total);
        above = bucket_larger(above, total);
        total = total + (x[2] - center);
        totals[2] = total;
    }
    *(bucket_four *) o = (at & counted) + ends;
    o[4].i = 1;
    o[5].f = total;
    o[6].f = before;
    o[7].f = above;
    o[8].f = low;
    *(bucket_four *) (o + 9) = at + bucket_reached[lows];
    o[13].f = high;
    *(bucket_four *) (o + 14) = at + bucket_reached[highs];
    o[18].f = x[0];
    o[19].f = x[n - 1];
    for (int s = 20; s < w; s++) o[s].f = 0.0;
}

/* Those of `many` buckets, `which` of them: the k-th goes to place + k w, and its readings begin at start[k]. */
#define BUCKET_LIFT_ALL(n)                                                                                            \
    for (int j = 0; j < many; j++) {                                                                                  \
        int64_t k = which[j], i = start[k];                                                                           \
        bucket_slot *o = (bucket_slot *) place + k * w;                                                               \
        if (w == 26) bucket_lift(o, 26, x + i, ordinal + i, center, totals + i, n);                                   \
        else bucket_lift(o, w, x + i, ordinal + i, center, totals + i, n);                                            \
    }

SLUICEGATE_LANES_OF static void bucket_lift_twos(
    void *place, int w, const short *which, int many, const short *start, const double *x, int64_t ordinal, double center, double *totals)
{
    BUCKET_LIFT_ALL(2)
}

SLUICEGATE_LANES_OF static void bucket_lift_threes(
    void *place, int w, const short *which, int many, const short *start, const double *x, int64_t ordinal, double center, double *totals)
{
    BUCKET_LIFT_ALL(3)
}

#endif
