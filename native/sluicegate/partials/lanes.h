/* Loops over a block of readings in which no reading waits for another, so that the compiler takes several at once.

   Where the system can choose a function as it loads, each is there twice: for any x86-64, and for those whose registers
   hold four numbers. There is no fused operation in either (-ffp-contract=off): both give the same bits. */
#ifndef SLUICEGATE_LANES
#define SLUICEGATE_LANES

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "exponential.h"

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define SLUICEGATE_LANES_OF __attribute__((unused, noinline, target_clones("avx2", "default")))
#define SLUICEGATE_CHOSEN_LANES
#else
#define SLUICEGATE_LANES_OF __attribute__((unused, noinline))
#endif

/* Has the memory from `data` on fetched into the caches. The empty statement keeps the compiler from taking the function
   for one without any effect and dropping its calls. */
__attribute__((unused)) static void lanes_fetch(const void *data, int64_t bytes)
{
#ifdef __GNUC__
    for (const char *next = data, *end = next + bytes; next < end; next += 64) {
        __builtin_prefetch(next);
        __asm__ volatile("");
    }
#endif
}

/* a − b = upper + lower: upper exactly on the grid, lower to the rounding of numbers as small as half of it; 1 where there
   is any lower at all: there is none for numbers of few binary digits, such as integers and float32s. 2 more where the
   magnitude of some a exceeds `most`: the grid was too fine then. */
SLUICEGATE_LANES_OF static int lanes_cut(
    const double *restrict a, const double *restrict b, double *restrict upper, double *restrict lower, int64_t n, double grid,
    double most)
{
    int64_t some = 0, beyond = 0;
    for (int64_t j = 0; j < n; j++) {
        double x = (grid + a[j]) - grid, y = (grid + b[j]) - grid, rest = (a[j] - x) - (b[j] - y);
        upper[j] = x - y;
        lower[j] = rest;
        some |= rest != 0.0 ? 1 : 0;
        beyond |= fabs(a[j]) > most ? 2 : 0;
    }
    return (int) (some | beyond);
}

/* Each becomes the sum up to it; four stretches side by side, so that no addition waits for the one before. */
SLUICEGATE_LANES_OF static void lanes_running(double *x, int64_t n)
{
    int64_t q = n >> 2;
    double first = 0.0, second = 0.0, third = 0.0, fourth = 0.0;
    for (int64_t j = 0; j < q; j++) {
        x[j] = first += x[j];
        x[q + j] = second += x[q + j];
        x[2 * q + j] = third += x[2 * q + j];
        x[3 * q + j] = fourth += x[3 * q + j];
    }
    second += first;
    third += second;
    fourth += third;
    for (int64_t j = q; j < 2 * q; j++) x[j] += first;
    for (int64_t j = 2 * q; j < 3 * q; j++) x[j] += second;
    for (int64_t j = 3 * q; j < 4 * q; j++) x[j] += third;
    for (int64_t j = 4 * q; j < n; j++) x[j] = fourth += x[j];
}

/* upper + far, and total = s + it; out = total + (c + lower), all of them one stretch. */
#define SLUICEGATE_TOTALS(from, to, far, rest)         \
    for (int64_t j = from; j < to; j++) {              \
        double total = s + (upper[j] + far);           \
        below |= fabs(total) < least ? 1 : 0;          \
        out[j] = total + rest;                         \
    }

/* The sum of upper up to each, exact, in four stretches side by side, goes to s: out = (s + it) + (c + lower), without
   lower where that is NULL; whether |s + it| falls below `least` anywhere. `last`: the sum of all of upper, which is lost. */
SLUICEGATE_LANES_OF static int lanes_totals(
    double *restrict upper, const double *restrict lower, double *restrict out, int64_t n, double s, double c, double least,
    double *restrict last)
{
    int64_t q = n >> 2, below = 0;
    double first = 0.0, second = 0.0, third = 0.0, fourth = 0.0, far[4] = {0.0};
    for (int64_t j = 0; j < q; j++) {
        upper[j] = first += upper[j];
        upper[q + j] = second += upper[q + j];
        upper[2 * q + j] = third += upper[2 * q + j];
        upper[3 * q + j] = fourth += upper[3 * q + j];
    }
    for (int64_t j = 4 * q; j < n; j++) upper[j] = fourth += upper[j];
    far[1] = first;
    far[2] = far[1] + second;
    far[3] = far[2] + third;
    *last = far[3] + fourth;
    for (int k = 0; k < 4; k++) {
        int64_t from = k * q, to = k < 3 ? from + q : n;
        double away = far[k];
        if (lower == NULL) SLUICEGATE_TOTALS(from, to, away, c)
        else SLUICEGATE_TOTALS(from, to, away, (c + lower[j]))
    }
    return below != 0;
}

/* The greatest magnitude. */
SLUICEGATE_LANES_OF static double lanes_largest(const double *x, int64_t n)
{
    double most[8] = {0.0};
    for (int64_t j = 0; j + 8 <= n; j += 8)
        for (int k = 0; k < 8; k++) most[k] = fabs(x[j + k]) > most[k] ? fabs(x[j + k]) : most[k];
    for (int64_t j = n & ~(int64_t)7; j < n; j++) most[0] = fabs(x[j]) > most[0] ? fabs(x[j]) : most[0];
    for (int k = 1; k < 8; k++) most[0] = most[k] > most[0] ? most[k] : most[0];
    return most[0];
}

/* Variances or their roots from counts and squared deviations, NaN where less than ddof readings are left over. */
SLUICEGATE_LANES_OF static void lanes_spread(
    const double *restrict n_of, const double *restrict squares, double *restrict out, int64_t n, int w, double ddof, int root)
{
    if (w == 3 && root)
        for (int64_t i = 0; i < n; i++) {
            double less = n_of[3 * i] - ddof, spread = sqrt(squares[3 * i] / less);
            out[i] = less > 0.0 ? spread : NAN;
        }
    else
        for (int64_t i = 0; i < n; i++) {
            double less = n_of[i * w] - ddof, spread = squares[i * w] / less;
            if (root) spread = sqrt(spread);
            out[i] = less > 0.0 ? spread : NAN;
        }
}

/* The answers of means: totals shared out among the readings from heads[i] up to the end, which is one further each time. */
SLUICEGATE_LANES_OF static void lanes_means(
    const double *restrict totals, const int64_t *restrict heads, double *restrict out, int64_t n, int w, int64_t end)
{
    if (w == 1)
        for (int64_t i = 0; i < n; i++) out[i] = totals[i] / sluicegate_number(end + i - heads[i]);
    else
        for (int64_t i = 0; i < n; i++) out[i] = totals[i * w] / sluicegate_number(end + i - heads[i]);
}

/* Each becomes e to the power of it. */
SLUICEGATE_LANES_OF static void lanes_exponentials(double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) x[i] = sluicegate_exponential(x[i]);
}

/* One reading for another in means of as many: what the mean changes by. */
SLUICEGATE_LANES_OF static void lanes_shares(
    const double *restrict a, const double *restrict b, double *restrict out, int64_t n, double share)
{
    for (int64_t j = 0; j < n; j++) out[j] = (a[j] - b[j]) * share;
}

/* And what the squared deviations change by; mean + shift[j - 1] was the mean before reading j. */
SLUICEGATE_LANES_OF static void lanes_squares(
    const double *restrict a, const double *restrict b, const double *restrict shift, double *restrict out, int64_t n, double mean)
{
    for (int64_t j = 0; j < n; j++)
        out[j] = (a[j] - b[j]) * ((a[j] - (mean + shift[j])) + (b[j] - (mean + shift[j - 1])));
}

/* Whether all of s + x lie from `least` to a finite number. */
SLUICEGATE_LANES_OF static int lanes_sound(const double *x, int64_t n, double s, double least)
{
    int64_t bad = 0;
    for (int64_t j = 0; j < n; j++) bad |= s + x[j] >= least && s + x[j] < INFINITY ? 0 : 1;
    return bad == 0;
}

/* Whether a magnitude exceeds the one of the bits `most` or is none: as whole numbers, the bits of magnitudes stand in their order. */
SLUICEGATE_LANES_OF static int lanes_refused(const uint64_t *bits, int64_t n, uint64_t most)
{
    uint64_t found = 0;
    for (int64_t j = 0; j < n; j++) found |= most - (bits[j] & (UINT64_MAX >> 1));
    return (int) (found >> 63);
}

/* Whether any of n times is not from -2^61 to 2^61 - 1. */
SLUICEGATE_LANES_OF static int lanes_far(const uint64_t *times, int64_t n)
{
    uint64_t found = 0;
    for (int64_t j = 0; j < n; j++) found |= times[j] + ((uint64_t) 1 << 61);
    return found >> 62 != 0;
}

/* out[j] = first + j. */
SLUICEGATE_LANES_OF static void lanes_count(int64_t *out, int64_t n, int64_t first)
{
    for (int64_t j = 0; j < n; j++) out[j] = first + j;
}

/* Moments (count, mean, squared deviations): out = front then out, as kernels.merge_moments. */
SLUICEGATE_LANES_OF static void lanes_merge(const double *restrict front, double *restrict out, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        double count = front[3 * j] + out[3 * j], delta = out[3 * j + 1] - front[3 * j + 1], share = out[3 * j] / count;
        double mean = front[3 * j + 1] + delta * share;
        double squares = front[3 * j + 2] + out[3 * j + 2] + delta * delta * front[3 * j] * share;
        out[3 * j] = count;
        out[3 * j + 1] = mean;
        out[3 * j + 2] = squares;
    }
}

/* Each of n moments then the same ones. */
SLUICEGATE_LANES_OF static void lanes_merge_with(double *restrict each, const double *restrict after, int64_t n)
{
    double more = after[0], middle = after[1], around = after[2];
    for (int64_t j = 0; j < n; j++) {
        double count = each[3 * j] + more, delta = middle - each[3 * j + 1], share = more / count;
        double mean = each[3 * j + 1] + delta * share;
        double squares = each[3 * j + 2] + around + delta * delta * each[3 * j] * share;
        each[3 * j] = count;
        each[3 * j + 1] = mean;
        each[3 * j + 2] = squares;
    }
}

/* Windows of as many readings, each one reading further: x[j + k] is the next of window k. The order in each is that of
   one window after the other, and so are the bits. */
#define SLUICEGATE_ABREAST 8

SLUICEGATE_LANES_OF static void lanes_add_on(const double *restrict x, double *restrict held, int64_t n)
{
    double own[SLUICEGATE_ABREAST];
    for (int k = 0; k < SLUICEGATE_ABREAST; k++) own[k] = held[k];
    for (int64_t j = 0; j < n; j++)
        for (int k = 0; k < SLUICEGATE_ABREAST; k++) own[k] += x[j + k];
    for (int k = 0; k < SLUICEGATE_ABREAST; k++) held[k] = own[k];
}

SLUICEGATE_LANES_OF static void lanes_least_on(const double *restrict x, double *restrict held, int64_t n)
{
    double own[SLUICEGATE_ABREAST];
    for (int k = 0; k < SLUICEGATE_ABREAST; k++) own[k] = held[k];
    for (int64_t j = 0; j < n; j++)
        for (int k = 0; k < SLUICEGATE_ABREAST; k++) own[k] = x[j + k] < own[k] ? x[j + k] : own[k];
    for (int k = 0; k < SLUICEGATE_ABREAST; k++) held[k] = own[k];
}

SLUICEGATE_LANES_OF static void lanes_greatest_on(const double *restrict x, double *restrict held, int64_t n)
{
    double own[SLUICEGATE_ABREAST];
    for (int k = 0; k < SLUICEGATE_ABREAST; k++) own[k] = held[k];
    for (int64_t j = 0; j < n; j++)
        for (int k = 0; k < SLUICEGATE_ABREAST; k++) own[k] = x[j + k] > own[k] ? x[j + k] : own[k];
    for (int k = 0; k < SLUICEGATE_ABREAST; k++) held[k] = own[k];
}

/* Single readings joined to moments of `count` of them, as kernels.merge_moments. */
SLUICEGATE_LANES_OF static void lanes_merge_on(
    const double *restrict x, double *restrict means, double *restrict squares, int64_t n, double count)
{
    double mean[SLUICEGATE_ABREAST], m2[SLUICEGATE_ABREAST];
    for (int k = 0; k < SLUICEGATE_ABREAST; k++) mean[k] = means[k], m2[k] = squares[k];
    for (int64_t j = 0; j < n; j++) {
        double before = count, share = 1.0 / (count += 1.0);
        for (int k = 0; k < SLUICEGATE_ABREAST; k++) {
            double delta = x[j + k] - mean[k];
            mean[k] += delta * share;
            m2[k] += delta * delta * before * share;
        }
    }
    for (int k = 0; k < SLUICEGATE_ABREAST; k++) means[k] = mean[k], squares[k] = m2[k];
}

#endif
