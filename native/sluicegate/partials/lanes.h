/* Loops over a block of readings in which no reading waits for another, so that the compiler takes several at once.

   Where the system can choose a function as it loads, each is there twice: for any x86-64, and for those whose registers
   hold four numbers. There is no fused operation in either (-ffp-contract=off): both give the same bits. */
#ifndef SLUICEGATE_LANES
#define SLUICEGATE_LANES

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define SLUICEGATE_LANES_OF __attribute__((unused, noinline, target_clones("avx2", "default")))
#define SLUICEGATE_CHOSEN_LANES
#else
#define SLUICEGATE_LANES_OF __attribute__((unused, noinline))
#endif

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

/* An integer up to 2^51 as a number: added to 1.5 · 2^52 it stands in its last bits. */
static inline double sluicegate_number(int64_t i)
{
    union { double f; int64_t i; } bits;
    bits.i = i + INT64_C(0x4338000000000000);
    return bits.f - 0x1.8p52;
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

#endif
