/* Loops over a block of readings that go into small buckets, in which no reading waits for another; see lanes.h. */
#ifndef SLUICEGATE_BUCKET_LANES
#define SLUICEGATE_BUCKET_LANES

#include "lanes.h"

#define BUCKET_LANES_TOLD 4

static inline double bucket_larger(double a, double b) { return b > a ? b : a; }

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

#endif
