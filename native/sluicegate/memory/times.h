/* Loops over the times of a block of readings, in which none waits for another. Times are within ±2^61; differences wrap. */
#ifndef SLUICEGATE_TIMES
#define SLUICEGATE_TIMES

#include <stdint.h>
#include <string.h>
#include "../partials/lanes.h"

/* Whether each of n times is `step` after the one before it. */
SLUICEGATE_LANES_OF static int times_even(const uint64_t *times, int64_t n, uint64_t step)
{
    uint64_t odd = 0;
    for (int64_t j = 0; j < n - 1 && j < 4; j++) odd |= (times[j + 1] - times[j]) ^ step;
    if (odd) return 0;
    for (int64_t j = 4; j < n - 1; j++) odd |= (times[j + 1] - times[j]) ^ step;
    return odd == 0;
}

/* Whether each of n times is no earlier than the one before it. */
SLUICEGATE_LANES_OF static int times_in_order(const uint64_t *times, int64_t n)
{
    uint64_t late = 0;
    for (int64_t j = 1; j < n; j++) late |= times[j] - times[j - 1];
    return !(late >> 63);
}

/* out[j] = times[j] − first; whether all of them fit. */
SLUICEGATE_LANES_OF static int times_to_offsets(const uint64_t *restrict times, int32_t *restrict out, int64_t n, uint64_t first)
{
    uint64_t beyond = 0;
    for (int64_t j = 0; j < n; j++) {
        uint64_t offset = times[j] - first;
        out[j] = (int32_t) (uint32_t) offset;
        beyond |= offset + ((uint64_t) 1 << 31);
    }
    return !(beyond >> 32);
}

/* And back. */
SLUICEGATE_LANES_OF static void times_from_offsets(const int32_t *restrict offsets, uint64_t *restrict out, int64_t n, uint64_t first)
{
    for (int64_t j = 0; j < n; j++) out[j] = first + (uint64_t) (int64_t) offsets[j];
}

/* out[j] = first + j · step. */
SLUICEGATE_LANES_OF static void times_from_step(uint64_t *out, int64_t n, uint64_t first, uint64_t step)
{
    for (int64_t j = 0; j < n; j++) out[j] = first + (uint64_t) j * step;
}

#endif
