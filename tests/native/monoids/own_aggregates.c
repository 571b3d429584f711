/* A user's aggregates for tests/native/monoids/test_compiled.py: covariance of two dimensions, and the longest gap in time. */
#include <math.h>
#include <stdint.h>

typedef struct { double n, x, y, xy; } sums;

void covariance_lift(const double *values, int64_t time, int64_t ordinal, void *out) {
    sums *s = out;
    s->n = 1; s->x = values[0]; s->y = values[1]; s->xy = values[0] * values[1];
}
void covariance_combine(void *out, const void *a, const void *b) {
    const sums *p = a, *q = b;
    sums *s = out;
    s->n = p->n + q->n; s->x = p->x + q->x; s->y = p->y + q->y; s->xy = p->xy + q->xy;
}
void covariance_deduct(void *out, const void *total, const void *oldest) {
    const sums *p = total, *q = oldest;
    sums *s = out;
    s->n = p->n - q->n; s->x = p->x - q->x; s->y = p->y - q->y; s->xy = p->xy - q->xy;
}
double covariance_lower(const void *partial) {
    const sums *s = partial;
    return s->n < 2 ? NAN : s->xy / s->n - (s->x / s->n) * (s->y / s->n);
}

typedef struct { int64_t first, last, gap, ordinals; } gaps;

void gap_lift(const double *values, int64_t time, int64_t ordinal, void *out) {
    gaps *g = out;
    g->first = g->last = time; g->gap = 0; g->ordinals = ordinal;
}
void gap_combine(void *out, const void *a, const void *b) {
    const gaps *p = a, *q = b;
    gaps *g = out;
    int64_t across = q->first - p->last;
    g->first = p->first; g->last = q->last;
    g->gap = p->gap > q->gap ? p->gap : q->gap;
    if (across > g->gap) g->gap = across;
    g->ordinals = p->ordinals + q->ordinals;
}
double gap_lower(const void *partial) { return (double)((const gaps *)partial)->gap; }
