/* Loops over the times of a block of readings, in which none waits for another. Times are within ±2^61; differences wrap. */
#ifndef SLUICEGATE_TIMES
#define SLUICEGATE_TIMES

#include <stdint.h>
#include "lanes.h"

enum {
    SLUICEGATE_NEAR = 32,  /* readings whose heads are guessed together */
    SLUICEGATE_CLOSE = 2,  /* times looked at before and after a guess there, at first */
    SLUICEGATE_AROUND = 3  /* and elsewhere: right where fewer readings too many or too few have left */
};

/* Whether each of n times is `step` after the one before it. */
SLUICEGATE_LANES_OF static int times_even(const uint64_t *times, int64_t n, uint64_t step)
{
    uint64_t odd = 0;
    for (int64_t j = 0; j < n - 1 && j < 4; j++) odd |= (times[j + 1] - times[j]) ^ step;
    if (odd) return 0;
    for (int64_t j = 4; j < n - 1; j++) odd |= (times[j + 1] - times[j]) ^ step;
    return odd == 0;
}

/* out[j] = the greatest of times[0 … j]: many at a time where they are in order, as most are. */
SLUICEGATE_LANES_OF static void times_risen(const int64_t *restrict times, int64_t *restrict out, int64_t n)
{
    int64_t greatest = INT64_MIN, j = 0;
    while (j < n) {
        const int64_t k = n - j < SLUICEGATE_NEAR ? n - j : SLUICEGATE_NEAR;
        uint64_t late = greatest > times[j] ? UINT64_MAX : 0;
        for (int64_t q = 1; q < k; q++) late |= (uint64_t) times[j + q] - (uint64_t) times[j + q - 1];
        if (late >> 63)
            for (int64_t q = 0; q < k; q++) out[j + q] = greatest = times[j + q] > greatest ? times[j + q] : greatest;
        else {
            for (int64_t q = 0; q < k; q++) out[j + q] = times[j + q];
            greatest = times[j + k - 1];
        }
        j += k;
    }
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

/* Offsets from another time: `by` is what to add. */
SLUICEGATE_LANES_OF static void times_move(const int32_t *restrict offsets, int32_t *restrict out, int64_t n, uint32_t by)
{
    for (int64_t j = 0; j < n; j++) out[j] = (int32_t) ((uint32_t) offsets[j] + by);
}

/* out[j] = first + j · step, as offsets. */
SLUICEGATE_LANES_OF static void times_offsets_from_step(int32_t *out, int64_t n, uint32_t first, uint32_t step)
{
    for (int64_t j = 0; j < n; j++) out[j] = (int32_t) (first + (uint32_t) j * step);
}

/* Whether one of n offsets, a multiple of NEAR, is before the one before it. */
SLUICEGATE_LANES_OF static int times_go_back(const int32_t *restrict offsets, int n)
{
    const int32_t *last = offsets + n - 9;  /* eight pairs of which one was seen: no loop has a rest */
    int32_t back = 0;
    n &= -SLUICEGATE_NEAR;
    for (int j = 0; j < n - 8; j++) back |= offsets[j + 1] < offsets[j] ? -1 : 0;
    for (int j = 0; j < 8; j++) back |= last[j + 1] < last[j] ? -1 : 0;
    return back != 0;
}

/* The same of n readings whose times are offsets, too: less `less` they are the cuts. */
#define SLUICEGATE_TIMES_ALONG(NAME, AROUND) \
SLUICEGATE_LANES_OF static int64_t times_along_##NAME( \
    const int32_t *restrict kept, const int32_t *restrict comes, uint32_t less, int64_t head, int64_t *restrict heads, int n) \
{ \
    int32_t least = 0, most = -2 * AROUND; \
    n &= -SLUICEGATE_NEAR; \
    for (int j = 0; j < n; j++) { \
        int32_t stay = 0, cut = (int32_t) ((uint32_t) comes[j] - less);  /* `stay` as masks give it: less than 0 */ \
        for (int k = -AROUND; k < AROUND; k++) stay += kept[j + k] > cut ? -1 : 0; \
        least = stay < least ? stay : least; \
        most = stay > most ? stay : most; \
        heads[j] = head + (j + AROUND + stay); \
    } \
    if (times_go_back(comes, n)) return -1; \
    return most == 0 || least == -2 * AROUND ? 0 : most != -AROUND || least != -AROUND ? 2 * AROUND - 1 : 1; \
}
SLUICEGATE_TIMES_ALONG(close, SLUICEGATE_CLOSE)
SLUICEGATE_TIMES_ALONG(around, SLUICEGATE_AROUND)

#endif
