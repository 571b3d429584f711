/* What a C programmer writes for one count window by hand: the peer of the committed comparison.
 *
 * A ring of the newest `size` readings. Sum: add the new, subtract the old. Max: a ring of candidates in falling order.
 * Standard deviation: running sums of x - c and its square around the first reading. Geometric mean: a ring of logarithms.
 * Each keeps its state in `Loop`, so that batches follow one another; one result a reading.
 */
#ifndef SLUICEGATE_BENCH_LOOPS_H
#define SLUICEGATE_BENCH_LOOPS_H
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct {
    double *ring;    /* the readings, or their logarithms */
    int64_t *place;  /* max: the candidates' ordinals */
    int64_t size, seen, first, last;
    double total, squares, center;
} Loop;

static int loop_open(Loop *w, int64_t size) {
    *w = (Loop) {.size = size};
    w->ring = malloc(sizeof(double) * (size_t) size);
    w->place = malloc(sizeof(int64_t) * (size_t) size);
    return w->ring != NULL && w->place != NULL;
}

static void loop_close(Loop *w) {
    free(w->ring);
    free(w->place);
}

static void loop_sum(Loop *w, const double *x, double *out, int64_t n) {
    int64_t at = w->seen % w->size;
    double total = w->total;
    for (int64_t i = 0; i < n; i++) {
        if (w->seen + i >= w->size)
            total -= w->ring[at];
        w->ring[at] = x[i];
        total += x[i];
        out[i] = total;
        if (++at == w->size)
            at = 0;
    }
    w->seen += n;
    w->total = total;
}

static void loop_max(Loop *w, const double *x, double *out, int64_t n) {
    int64_t held = w->last - w->first, first = w->first, back = (w->first + held) % w->size;
    for (int64_t i = 0; i < n; i++) {
        int64_t now = w->seen + i;
        if (held && w->place[first] <= now - w->size) {
            first = first + 1 == w->size ? 0 : first + 1;
            held--;
        }
        while (held) {
            int64_t newest = back == 0 ? w->size - 1 : back - 1;
            if (w->ring[newest] > x[i])
                break;
            back = newest;
            held--;
        }
        w->ring[back] = x[i];
        w->place[back] = now;
        back = back + 1 == w->size ? 0 : back + 1;
        held++;
        out[i] = w->ring[first];
    }
    w->seen += n;
    w->first = first;
    w->last = first + held;
}

static void loop_std(Loop *w, const double *x, double *out, int64_t n) {
    int64_t at = w->seen % w->size;
    if (w->seen == 0 && n)
        w->center = x[0];
    for (int64_t i = 0; i < n; i++) {
        double in = x[i] - w->center, count, mean, spread;
        if (w->seen + i >= w->size) {
            double old = w->ring[at];
            w->total -= old;
            w->squares -= old * old;
        }
        w->ring[at] = in;
        w->total += in;
        w->squares += in * in;
        count = (double) (w->seen + i < w->size ? w->seen + i + 1 : w->size);
        mean = w->total / count;
        spread = w->squares / count - mean * mean;
        out[i] = sqrt(spread > 0 ? spread : 0);
        if (++at == w->size)
            at = 0;
    }
    w->seen += n;
}

static void loop_geometric_mean(Loop *w, const double *x, double *out, int64_t n) {
    int64_t at = w->seen % w->size;
    for (int64_t i = 0; i < n; i++) {
        double in = log(x[i]);
        if (w->seen + i >= w->size)
            w->total -= w->ring[at];
        w->ring[at] = in;
        w->total += in;
        out[i] = exp(w->total / (double) (w->seen + i < w->size ? w->seen + i + 1 : w->size));
        if (++at == w->size)
            at = 0;
    }
    w->seen += n;
}
#endif
