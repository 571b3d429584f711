/* Loops over the times of a block of readings, in which none waits for another. Times are within ±2^61; differences wrap. */
#ifndef SLUICEGATE_TIMES
#define SLUICEGATE_TIMES

#include <stdint.h>
#include <string.h>
#include "../partials/lanes.h"

enum {
    SLUICEGATE_RISEN = 256,  /* times among which a late one is looked for */
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

/* Whether each of n times is no earlier than the one before it. */
SLUICEGATE_LANES_OF static int times_in_order(const uint64_t *times, int64_t n)
{
    uint64_t late = 0;
    for (int64_t j = 1; j < n; j++) late |= times[j] - times[j - 1];
    return !(late >> 63);
}

/* Each time becomes the greatest up to it: most are. */
__attribute__((unused)) static void times_raised(int64_t *times, int64_t n)
{
    if (times_in_order((const uint64_t *) times, n)) return;
    for (int64_t j = 1; j < n; j++) times[j] = times[j] > times[j - 1] ? times[j] : times[j - 1];
}

/* The same of times that stand elsewhere, some at a time. */
__attribute__((unused)) static void times_risen(const int64_t *times, int64_t *out, int64_t n)
{
    for (int64_t j = 0, k; j < n; j += k) {
        k = n - j < SLUICEGATE_RISEN ? n - j : SLUICEGATE_RISEN;
        memcpy(out + j, times + j, k * sizeof(int64_t));
        if (j && out[j] < out[j - 1]) out[j] = out[j - 1];
        times_raised(out + j, k);
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
