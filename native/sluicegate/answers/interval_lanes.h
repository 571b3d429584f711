/* Loops over the readings of a stretch in which no reading's interval waits for another's; see lanes.h and certain.pyx.

   A stretch: consecutive readings that all join the newest bucket, between which the edge keeps as many of the cut bucket's
   readings, or one less with each. Operands and their order are those of sluicegate.bounds.sums for one reading, so are the bits. */
#ifndef SLUICEGATE_CERTAIN_LANES
#define SLUICEGATE_CERTAIN_LANES

#include "../partials/lanes.h"

typedef struct {
    double at[3], slope[3];  /* three straight lines: each its value at c = 0 and its slope */
} certain_lines;

typedef struct {
    double total, least, greatest;  /* of what is beside the newest bucket: the sum of x - center in two parts, */
    double base_total, base_least, base_greatest;  /* the base standing next to the newest; the cut bucket is in neither */
    double readings;  /* of all but the cut bucket, after the first reading of the stretch */
    double size;  /* readings of the cut bucket */
    double magnitude;  /* the greatest of the cut bucket's and the center's */
    double center;
    double low, high;  /* what the cut may add lies within */
} certain_beside;

static inline double certain_lesser(double a, double b) { return b < a ? b : a; }
static inline double certain_larger(double a, double b) { return b > a ? b : a; }

/* The next number above, infinite for what is none: nextafter, without a call. Neighbours' bits are neighbouring integers. */
static inline double certain_above(double x)
{
    sluicegate_bits b;
    b.f = x + 0.0;  /* 0.0 for -0.0 */
    b.i += b.f < 0.0 ? -1 : 1;
    return x < INFINITY ? b.f : INFINITY;
}

static inline double certain_below(double x) { return -certain_above(-x); }

static inline double certain_highest(const certain_lines *l, double c)
{
    return certain_larger(certain_larger(l->at[0] + l->slope[0] * c, l->at[1] + l->slope[1] * c), l->at[2] + l->slope[2] * c);
}

/* What rounding may have done to a sum over every reading touched: bounds._slack. */
static inline double certain_slack(const certain_beside *b, double readings, double low, double high)
{
    double all = readings + b->size;
    return 4.0 * all * 0x1p-52 * all * certain_larger(certain_larger(b->magnitude, fabs(low)), fabs(high));
}

static inline double certain_total(const certain_beside *b, double newest) { return b->total + (b->base_total + newest); }

/* The least and greatest reading of the newest bucket become those of all that is inside. */
SLUICEGATE_LANES_OF static void certain_inside(const certain_beside *b, int n, double *restrict lows, double *restrict highs)
{
    double least = b->least, base_least = b->base_least, greatest = b->greatest, base_greatest = b->base_greatest;
    for (int j = 0; j < n; j++) {
        lows[j] = certain_lesser(least, certain_lesser(base_least, lows[j]));
        highs[j] = certain_larger(greatest, certain_larger(base_greatest, highs[j]));
    }
}

/* The sums inside, less what rounding may have done: as they are, and upside down. */
SLUICEGATE_LANES_OF static void certain_reach(
    const certain_beside *beside, int n, const double *restrict newest, const double *restrict lows, const double *restrict highs,
    double *restrict below, double *restrict above)
{
    const certain_beside b = *beside;
    for (int j = 0; j < n; j++) {
        double total = certain_total(&b, newest[j]), wide = certain_slack(&b, b.readings + j, lows[j], highs[j]);
        below[j] = total - wide;
        above[j] = -total - wide;
    }
}

/* The least mean there is with c readings of the cut bucket, `falls` less with each reading; with `again` if that is less. */
SLUICEGATE_LANES_OF static void certain_means(
    const certain_lines *of, int n, const double *restrict sums, double readings, double c, double falls, int again, double *restrict out)
{
    const certain_lines l = *of;
    for (int j = 0; j < n; j++) {
        double counted = c - falls * j, mean = (sums[j] + certain_highest(&l, counted)) / (readings + j + counted);
        out[j] = again ? certain_lesser(out[j], mean) : mean;
    }
}

/* Least means, and greatest ones upside down, become intervals: no further than the readings reach, rounded outward. */
SLUICEGATE_LANES_OF static void certain_mean_intervals(
    const certain_beside *beside, int n, const double *restrict lows, const double *restrict highs, double *restrict value,
    double *restrict low, double *restrict high)
{
    const certain_beside b = *beside;
    for (int j = 0; j < n; j++) {
        double least = certain_lesser(lows[j], b.low), greatest = certain_larger(highs[j], b.high);
        double ulps = 4.0 * 0x1p-52 * certain_larger(certain_larger(fabs(least), fabs(greatest)), fabs(b.center));
        low[j] = certain_below(certain_larger(b.center + low[j], least) - ulps);
        high[j] = certain_above(certain_lesser(b.center - high[j], greatest) + ulps);
        value[j] = certain_lesser(certain_larger(value[j], low[j]), high[j]);
    }
}

/* Intervals of sums with c readings of the cut bucket, `falls` less with each reading. */
SLUICEGATE_LANES_OF static void certain_sums(
    const certain_beside *beside, const certain_lines *lines, int n, double c, double falls, const double *restrict newest,
    const double *restrict lows, const double *restrict highs, double *restrict value, double *restrict low, double *restrict high)
{
    const certain_beside b = *beside;
    const certain_lines below = lines[0], above = lines[1];
    for (int j = 0; j < n; j++) {
        double readings = b.readings + j, counted = c - falls * j, wide = certain_slack(&b, readings, lows[j], highs[j]);
        double base = certain_total(&b, newest[j]) + readings * b.center;
        double least = certain_highest(&below, counted) + b.center * counted;
        double greatest = -(certain_highest(&above, counted) + -b.center * counted);
        low[j] = certain_below(base + least - wide);
        high[j] = certain_above(base + greatest + wide);
        value[j] = certain_lesser(certain_larger(value[j], low[j]), high[j]);
    }
}

/* Of extremes that lie in `within` as far as the cut bucket goes: minima, and maxima. */
SLUICEGATE_LANES_OF static void certain_minima(
    const double *within, int n, const double *restrict lows, double *restrict value, double *restrict low, double *restrict high)
{
    double least = within[0], most = within[1];
    for (int j = 0; j < n; j++) {
        low[j] = certain_lesser(lows[j], least);
        high[j] = certain_lesser(lows[j], most);
        value[j] = certain_lesser(certain_larger(value[j], low[j]), high[j]);
    }
}

SLUICEGATE_LANES_OF static void certain_maxima(
    const double *within, int n, const double *restrict highs, double *restrict value, double *restrict low, double *restrict high)
{
    double least = within[0], most = within[1];
    for (int j = 0; j < n; j++) {
        low[j] = certain_larger(highs[j], least);
        high[j] = certain_larger(highs[j], most);
        value[j] = certain_lesser(certain_larger(value[j], low[j]), high[j]);
    }
}

/* a - b in one float, and what rounding left out of it: Knuth's TwoSum. */
static inline double certain_lost(double a, double b, double d)
{
    double back = d - a;
    return (a - (d - back)) - (b + back);
}

/* The float next to a - b, below it unless it is one itself, and no less than 0; and above. */
static inline double certain_apart_least(double a, double b)
{
    double d = a - b;
    return certain_larger(0.0, certain_lost(a, b, d) < 0.0 ? certain_below(d) : d);
}

static inline double certain_apart_most(double a, double b)
{
    double d = a - b;
    return certain_lost(a, b, d) > 0.0 ? certain_above(d) : d;
}

/* Of ranges: minima and maxima lie in `within`, two and two, as far as the cut bucket goes. */
SLUICEGATE_LANES_OF static void certain_ranges(
    const double *within, int n, const double *restrict lows, const double *restrict highs, double *restrict value,
    double *restrict low, double *restrict high)
{
    double least = within[0], next_least = within[1], next_most = within[2], most = within[3];
    for (int j = 0; j < n; j++) {
        low[j] = certain_apart_least(certain_larger(highs[j], next_most), certain_lesser(lows[j], next_least));
        high[j] = certain_apart_most(certain_larger(highs[j], most), certain_lesser(lows[j], least));
        value[j] = certain_lesser(certain_larger(value[j], low[j]), high[j]);
    }
}

/* What lies between the same two numbers, which grow by `rises` with each reading. */
SLUICEGATE_LANES_OF static void certain_even(
    const double *within, int n, double rises, double *restrict value, double *restrict low, double *restrict high)
{
    double least = within[0], most = within[1];
    for (int j = 0; j < n; j++) {
        low[j] = least + rises * j;
        high[j] = most + rises * j;
        value[j] = certain_lesser(certain_larger(value[j], low[j]), high[j]);
    }
}

/* NaN in place of each value that is not certainly within error * |exact| + atol of an exact one in low ... high. */
SLUICEGATE_LANES_OF static void certain_withhold(
    double *restrict value, const double *restrict low, const double *restrict high, int64_t n, double error, double atol)
{
    for (int64_t j = 0; j < n; j++) {
        double x = value[j], least = low[j], most = high[j];
        int far = fabs(x - least) > error * fabs(least) + atol;
        far |= fabs(x - most) > error * fabs(most) + atol;
        far |= (least < 0.0) & (most > 0.0) & (fabs(x) > atol);
        value[j] = far ? NAN : x;
    }
}

#endif
