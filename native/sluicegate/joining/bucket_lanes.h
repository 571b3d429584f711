/* Loops over a block of readings that go into small buckets, in which no reading waits for another; see lanes.h. */
#ifndef SLUICEGATE_BUCKET_LANES
#define SLUICEGATE_BUCKET_LANES

#include "../partials/lanes.h"
#include <string.h>

#define BUCKET_LANES_TOLD 4

static inline double bucket_larger(double a, double b) { return b > a ? b : a; }

static inline double bucket_smaller(double a, double b) { return b < a ? b : a; }

/* For each reading, if it opened a bucket, how many that would take, `most` and four at most: as `sum_run` decides of finite readings, with a
   finite limit. Of low <= high the larger magnitude is that of -low or of high, and so with what they are away from the sum;
   how far they are apart was looked at when the later of them was the sum that followed. Readings are at most 2^960, so no
   sum is infinite.
   Where none is negative the first sum is the least, the one before the last the greatest, and each is farther from the first
   than the one before. Of x n + 3 are there. */
SLUICEGATE_LANES_OF static void bucket_lengths(const double *restrict x, int64_t n, double allowed, int64_t most, signed char *restrict lengths)
{
    int64_t signs = 0;
    for (int64_t i = 0; i < n + BUCKET_LANES_TOLD - 1; i++) {
        int64_t bits;
        memcpy(&bits, x + i, sizeof bits);
        signs |= bits;
    }
    if (signs >= 0) {
        for (int64_t i = 0; i < n; i++) {
            double sum = x[i];
            int64_t length = 1;
            for (int k = 1; k < BUCKET_LANES_TOLD; k++) {
                double following = sum + x[i + k];
                length += bucket_larger(sum, following - x[i]) <= allowed ? 1 : 0;
                sum = following;
            }
            lengths[i] = (signed char) (length < most ? length : most);
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        double low = x[i], high = x[i], sum = x[i], farthest = 0.0;
        int64_t length = 1;
        for (int k = 1; k < BUCKET_LANES_TOLD; k++) {
            double following = sum + x[i + k];
            low = sum < low ? sum : low;
            high = bucket_larger(high, sum);
            farthest = bucket_larger(farthest, -low);
            farthest = bucket_larger(farthest, high);
            farthest = bucket_larger(farthest, following - low);
            farthest = bucket_larger(farthest, high - following);
            length += farthest <= allowed ? 1 : 0;
            sum = following;
        }
        lengths[i] = (signed char) (length < most ? length : most);
    }
}

/* What is known of a bucket that is cut: its sum; of the sums of its newest readings the least and the greatest; its least and
   greatest value, its last, and the sum of all but its first. All of it beside the center. */
typedef struct { double total, low, high, least, most, last, others; } bucket_cutting;

/* What its newest c, c - 1 ... of `size` readings give, n times; see bucket_answers.given. */
SLUICEGATE_LANES_OF static void bucket_taken(const bucket_cutting *k, double c, double size, int64_t n, double *restrict out)
{
    const double total = k->total, low = k->low, high = k->high, least = k->least, most = k->most, last = k->last, others = k->others;
    for (int64_t i = 0; i < n; i++) {
        double left = c - (double) (int32_t) i, before = left - 1.0, after = size - 1.0 - left, x = total * left / size;
        double bottom = bucket_larger(bucket_larger(low, last + before * least), others - after * most);
        double ceiling = bucket_smaller(bucket_smaller(high, last + before * most), others - after * least);
        out[i] = bucket_smaller(bucket_larger(x, bottom), ceiling);
    }
}

#define BUCKET_LANES_GROUP 64

/* The same of buckets of up to three readings, many at once: what the newest readings give where all but the first and all
   but two have left. What comes out of shorter or longer ones is of no use, and no trap. `prefix_low`, `prefix_high`: of the
   sums of their first readings. The values are not beside the center yet. */
typedef struct {
    double total[BUCKET_LANES_GROUP], prefix_low[BUCKET_LANES_GROUP], prefix_high[BUCKET_LANES_GROUP];
    double least[BUCKET_LANES_GROUP], most[BUCKET_LANES_GROUP], first[BUCKET_LANES_GROUP], last[BUCKET_LANES_GROUP];
    int64_t size[BUCKET_LANES_GROUP];
} bucket_group;

static inline double bucket_given(
    double total, double low, double high, double least, double most, double last, double others, double size, double c, double after)
{
    double before = c - 1.0;
    double bottom = bucket_larger(bucket_larger(low, last + before * least), others - after * most);
    double ceiling = bucket_smaller(bucket_smaller(high, last + before * most), others - after * least);
    return bucket_smaller(bucket_larger(total * c / size, bottom), ceiling);
}

SLUICEGATE_LANES_OF static void bucket_few(
    const bucket_group *g, int64_t n, double center, double *restrict but_one, double *restrict but_two)
{
    for (int64_t i = 0; i < n; i++) {
        double total = g->total[i], low = total - g->prefix_high[i], high = total - g->prefix_low[i];
        double least = g->least[i] - center, most = g->most[i] - center, last = g->last[i] - center;
        double others = total - (g->first[i] - center), size = (double) (int32_t) g->size[i];
        but_one[i] = bucket_given(total, low, high, least, most, last, others, size, size - 1.0, 0.0);
        but_two[i] = bucket_given(total, low, high, least, most, last, others, size, size - 2.0, 1.0);
    }
}

/* Where n buckets of three readings each leave one after the other: what is outside of them, and what the cut one gives. */
SLUICEGATE_LANES_OF static void bucket_threes(
    const double *restrict sums, const double *restrict but_one, const double *restrict but_two, int64_t n, double *restrict outer,
    double *restrict taken)
{
    for (int64_t i = 0; i < n; i++) {
        outer[3 * i] = sums[i];
        outer[3 * i + 1] = sums[i + 1];
        outer[3 * i + 2] = sums[i + 1];
    }
    for (int64_t i = 0; i < n; i++) {
        taken[3 * i] = -0.0;
        taken[3 * i + 1] = but_one[i];
        taken[3 * i + 2] = but_two[i];
    }
}

/* The answers: what is outside the newest bucket and the cut one, the rest of R1, the newest bucket, and what the cut one gives. */
SLUICEGATE_LANES_OF static void bucket_means(
    const double *restrict outer, const double *restrict base, const double *restrict newest, const double *restrict taken,
    int64_t n, double center, double readings, double *restrict out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = center + ((outer[i] + (base[i] + newest[i])) + taken[i]) / readings;
}

SLUICEGATE_LANES_OF static void bucket_sums(
    const double *restrict outer, const double *restrict base, const double *restrict newest, const double *restrict taken,
    int64_t n, double center, double readings, double *restrict out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = center * readings + ((outer[i] + (base[i] + newest[i])) + taken[i]);
}

/* The same where nothing leaves: what is outside and what the cut bucket gives stay, and a reading comes each time. */
SLUICEGATE_LANES_OF static void bucket_standing_means(
    double outer, const double *restrict base, const double *restrict newest, double taken, int64_t n, double center,
    double readings, double *restrict out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = center + ((outer + (base[i] + newest[i])) + taken) / (readings + (double) (int32_t) (i + 1));
}

SLUICEGATE_LANES_OF static void bucket_standing_sums(
    double outer, const double *restrict base, const double *restrict newest, double taken, int64_t n, double center,
    double readings, double *restrict out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = center * (readings + (double) (int32_t) (i + 1)) + ((outer + (base[i] + newest[i])) + taken);
}

#endif
