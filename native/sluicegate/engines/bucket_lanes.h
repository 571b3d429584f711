/* Loops over a block of readings that go into small buckets, in which no reading waits for another; see lanes.h. */
#ifndef SLUICEGATE_BUCKET_LANES
#define SLUICEGATE_BUCKET_LANES

#include "lanes.h"

#define BUCKET_LANES_TOLD 4

static inline double bucket_larger(double a, double b) { return b > a ? b : a; }

static inline double bucket_smaller(double a, double b) { return b < a ? b : a; }

/* For each reading, if it opened a bucket, how many that would take, up to four: as `sum_run` decides of finite readings, with a
   finite limit. Of low <= high the larger magnitude is that of -low or of high, and so with what they are away from the sum;
   how far they are apart was looked at when the later of them was the sum that followed. Readings are at most 2^960, so no
   sum is infinite.
   Of x n + 3 are there. */
SLUICEGATE_LANES_OF static void bucket_lengths(const double *restrict x, int64_t n, double allowed, int64_t *restrict lengths)
{
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
        lengths[i] = length;
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
