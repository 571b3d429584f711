/* e to the power x within one unit in the last place, the same bits one at a time, several at once, and in the twin,
   sluicegate.reference.exponential, which tells how; on every machine, which libm's are not. */
#ifndef SLUICEGATE_EXPONENTIAL
#define SLUICEGATE_EXPONENTIAL

#include <stdint.h>

#define SLUICEGATE_WHOLE 0x1.8p52 /* a number up to 2^51 added to it stands, rounded, in its last bits */
#define SLUICEGATE_WHOLE_BITS INT64_C(0x4338000000000000)

typedef union {
    double f;
    int64_t i;
} sluicegate_bits;

/* An integer up to 2^51 as a number. */
static inline double sluicegate_number(int64_t i)
{
    sluicegate_bits b;
    b.i = i + SLUICEGATE_WHOLE_BITS;
    return b.f - SLUICEGATE_WHOLE;
}

/* 2^k for a whole k from -1022 to 1023. */
static inline double sluicegate_power_of_two(double k)
{
    sluicegate_bits b;
    b.f = k + SLUICEGATE_WHOLE;
    b.i = (int64_t) ((uint64_t) (b.i + 1023) << 52);
    return b.f;
}

/* e^x less 2^k, for the whole k nearest to x / ln 2. */
static inline double sluicegate_mantissa(double x, double k)
{
    double upper, lower, r, lost, r2, r4, first, second, third, fourth, fifth, rest;
    upper = x - k * 0x1.62e42feep-1;
    lower = k * 0x1.a39ef35793c76p-33;
    r = upper - lower;
    lost = (upper - r) - lower;
    r2 = r * r;
    r4 = r2 * r2;
    first = 0x1.0000000000001p-1 + 0x1.5555555555556p-3 * r;
    second = 0x1.5555555553d68p-5 + 0x1.11111111109b5p-7 * r;
    third = 0x1.6c16c17889f3cp-10 + 0x1.a01a01a7c2f2cp-13 * r;
    fourth = 0x1.a019b914881bap-16 + 0x1.71de0db2eb873p-19 * r;
    fifth = 0x1.28917c9f3a495p-22 + 0x1.af389eea54156p-26 * r;
    rest = (first + second * r2) + r4 * ((third + fourth * r2) + r4 * fifth);
    return 1.0 + (r + (r2 * rest + lost));
}

static inline double sluicegate_exponential(double x)
{
    double k, half;
    x = x < -746.0 ? -746.0 : x;
    x = x > 710.0 ? 710.0 : x;
    k = (x * 0x1.71547652b82fep+0 + SLUICEGATE_WHOLE) - SLUICEGATE_WHOLE;
    half = (k * 0.5 + SLUICEGATE_WHOLE) - SLUICEGATE_WHOLE;
    return sluicegate_mantissa(x, k) * sluicegate_power_of_two(half) * sluicegate_power_of_two(k - half);
}

/* The same with a branch, where nobody waits for several: 2^k is one factor unless it comes near the ends of the exponents. */
static inline double sluicegate_exponential_alone(double x)
{
    sluicegate_bits b;
    double k;
    if (!(x > -708.0 && x < 708.0)) return sluicegate_exponential(x);
    b.f = x * 0x1.71547652b82fep+0 + SLUICEGATE_WHOLE;
    k = b.f - SLUICEGATE_WHOLE;
    b.i = (int64_t) ((uint64_t) (b.i + 1023) << 52);
    return sluicegate_mantissa(x, k) * b.f;
}

#endif
