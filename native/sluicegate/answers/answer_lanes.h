/* The answers after each reading of a run that joins the newest bucket; see answering.pyx and lanes.h. */
#ifndef SLUICEGATE_ANSWER_LANES
#define SLUICEGATE_ANSWER_LANES

#include "../partials/lanes.h"

static inline double answer_larger(double a, double b) { return b > a ? b : a; }

static inline double answer_smaller(double a, double b) { return b < a ? b : a; }

/* What stands around the newest bucket, and how many readings that are, with the first of the run. */
typedef struct { double top, base, center, inside; } answer_around;

/* The oldest bucket is whole, or its cut stands still and gives s. */
#define ANSWER_STANDING(name, from, to)                                                                              \
    SLUICEGATE_LANES_OF static void name(const answer_around *a, const double *restrict totals, double s, int64_t n, \
        double *restrict out)                                                                                        \
    {                                                                                                                \
        const double top = a->top, base = a->base, center = a->center, inside = a->inside;                           \
        for (int64_t i = 0; i < n; i++) {                                                                            \
            double count = inside + (double) (int32_t) i, sum = from;                                                \
            out[i] = to;                                                                                             \
        }                                                                                                            \
    }

#define ANSWER_MEAN center + sum / count
#define ANSWER_SUM center * count + sum

ANSWER_STANDING(answer_whole_means, ((void) s, top + (base + totals[i])), ANSWER_MEAN)
ANSWER_STANDING(answer_whole_sums, ((void) s, top + (base + totals[i])), ANSWER_SUM)
ANSWER_STANDING(answer_standing_means, (top + (base + totals[i])) + s, ANSWER_MEAN)
ANSWER_STANDING(answer_standing_sums, (top + (base + totals[i])) + s, ANSWER_SUM)

/* A bucket whose cut gives up a reading for each that comes: what is known of it, as `Sums`; `most` of its readings are inside
   at most, and the first reading of the run leaves `first`. */
typedef struct { double total, low, high, least, most_value, last, others, size, most, first; } answer_cut;

#define ANSWER_SLIDING(name, to)                                                                                        \
    SLUICEGATE_LANES_OF static void name(const answer_around *a, const answer_cut *k, const double *restrict totals,    \
        int64_t n, double *restrict out)                                                                                \
    {                                                                                                                   \
        const double top = a->top, base = a->base, center = a->center, inside = a->inside;                              \
        const double total = k->total, low = k->low, high = k->high, least = k->least, most_value = k->most_value;      \
        const double last = k->last, others = k->others, size = k->size, most = k->most, first = k->first;              \
        for (int64_t i = 0; i < n; i++) {                                                                               \
            double c = answer_smaller(first - (double) (int32_t) i, most), before = c - 1.0, after = size - 1.0 - c;    \
            double bottom = answer_larger(answer_larger(low, last + before * least), others - after * most_value);      \
            double ceiling = answer_smaller(answer_smaller(high, last + before * most_value), others - after * least);  \
            double taken = answer_smaller(answer_larger(total * c / size, bottom), ceiling);                            \
            double count = inside + (double) (int32_t) i + c, sum = (top + (base + totals[i])) + taken;                 \
            out[i] = to;                                                                                                \
        }                                                                                                               \
    }

ANSWER_SLIDING(answer_sliding_means, ANSWER_MEAN)
ANSWER_SLIDING(answer_sliding_sums, ANSWER_SUM)

#endif
