/* Where a window by time begins after each reading of a batch in order, found in the caller's times, a tile of readings at a time.

   One leaves for each that comes, give or take a few: all are guessed so, and put right by the times around the guess. Where that does
   not do, as with independent gaps, what comes is merged with what leaves (merging.h). */
#ifndef SLUICEGATE_BEGINNINGS
#define SLUICEGATE_BEGINNINGS

#include "beside.h"
#include "../partials/lanes.h"
#include "merging.h"

enum {
    SLUICEGATE_GUESSED = 32,  /* readings whose heads are guessed together */
    SLUICEGATE_GUESSED_AT_MOST = 128,  /* where that does: none waits for another's head */
    SLUICEGATE_FEW_AT_ONCE = 5,  /* leave one by one, however small the window: so many, or fewer, do where guesses are narrow */
    SLUICEGATE_NARROW = 2,  /* times looked at before and after a guess */
    SLUICEGATE_MOST_WAITS = 31  /* tiles without guesses after some that failed */
};

typedef struct {
    int64_t least, most;  /* readings of a tile's windows */
} sluicegate_bounds;

typedef struct {
    const int64_t *times;  /* that of reading i is at i */
    int64_t span;  /* what is not after a reading's time less this has left */
    int64_t last;  /* the reading after the last that comes */
    int missed, waits;  /* tiles without guesses after the last that failed, and how many of them are to come */
} sluicegate_course;

/* Heads of n readings, a multiple of GUESSED: `head` + j for the reading of cuts[j], and so many more or fewer as the times around it say; whether these were enough. */
SLUICEGATE_LANES_OF static int sluicegate_guess(
    const int64_t *restrict kept, const int64_t *restrict cuts, int64_t span, int64_t head, int64_t *restrict heads, int64_t n)
{
    int64_t off = 0;
    n &= -SLUICEGATE_GUESSED;
    for (int64_t j = 0; j < n; j++) {
        int64_t stay = 0, cut = cuts[j] - span;
        for (int k = -SLUICEGATE_NARROW; k < SLUICEGATE_NARROW; k++) stay += kept[j + k] > cut;
        off |= (stay - 1) | (2 * SLUICEGATE_NARROW - 1 - stay);
        heads[j] = head + j + SLUICEGATE_NARROW - stay;
    }
    return off >= 0;
}

/* Heads after n readings, merged; the most that leave with one. After the last few of the batch no times come that could be looked at. */
SLUICEGATE_INLINE int64_t sluicegate_merge_heads(const sluicegate_course *t, int64_t head, int64_t tail, int64_t n, int64_t *heads)
{
    const int64_t *times = t->times, *comes = times + tail, end = t->last - SLUICEGATE_SEEN, most = end - tail;
    const int64_t some = most < 0 ? 0 : most < n ? most : n;
    const int64_t merged = sluicegate_merge_times(times, head, end, comes, t->span, heads, some);
    const int64_t rest = sluicegate_follow_times(times, some ? heads[some - 1] : head, comes + some, t->span, heads + some, n - some);
    return rest > merged ? rest : merged;
}

/* Heads after n readings; no less than the most that leave with one. Where guesses fail, so they will in the next tiles. */
SLUICEGATE_INLINE int64_t sluicegate_find_heads(sluicegate_course *t, int64_t head, int64_t tail, int64_t n, int64_t *heads)
{
    const int64_t *times = t->times;
    int64_t i = 0, width = SLUICEGATE_GUESSED_AT_MOST, most = SLUICEGATE_FEW_AT_ONCE, leave = 0;
    if (t->waits) t->waits--;
    else {
        while (i + SLUICEGATE_GUESSED <= n) {
            const int64_t *cuts = times + tail + i;
            const int64_t before = head;
            while (times[head] <= cuts[0] - t->span) head++;
            most = head - before > most ? head - before : most;
            if (head + 2 * SLUICEGATE_GUESSED > t->last) break;  /* a guess looks at times behind the heads */
            const int64_t m = i + width <= n && head + width + SLUICEGATE_GUESSED <= t->last ? width : SLUICEGATE_GUESSED;
            if (sluicegate_guess(times + head, cuts, t->span, head, heads + i, m)) {
                i += m;
                head = heads[i - 1];
            } else if (m > SLUICEGATE_GUESSED) width = SLUICEGATE_GUESSED;
            else break;
        }
        t->missed = i + SLUICEGATE_GUESSED > n ? 0 : t->missed < SLUICEGATE_MOST_WAITS ? 2 * t->missed + 1 : t->missed;
        t->waits = t->missed;
    }
    if (i < n) leave = sluicegate_merge_heads(t, head, tail + i, n - i, heads + i);
    return leave > most ? leave : most;
}

SLUICEGATE_LANES_OF static int sluicegate_in_order(const uint64_t *t, int64_t n)
{
    uint64_t late = 0;
    for (int64_t j = 0; j < n; j++) late |= t[j] - t[j - 1];
    return !(late >> 63);
}

/* Of n windows, the newest readings of which are `first` and those after it; how many hold no more than `some`. */
SLUICEGATE_LANES_OF static int64_t sluicegate_held_in_tile(sluicegate_bounds *b, const int64_t *heads, int64_t first, int64_t n, int64_t some)
{
    int64_t least = INT64_MAX, most = 0, few = 0;
    for (int64_t j = 0; j < n; j++) {
        const int64_t held = first + 1 + j - heads[j];
        least = held < least ? held : least;
        most = held > most ? held : most;
        few += held <= some;
    }
    b->least = least, b->most = most;
    return few;
}

#endif
