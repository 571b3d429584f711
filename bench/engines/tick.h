/* A clock for single operations: the processor's cycle counter where it can be read cheaply, else nanoseconds. */
#ifndef SLUICEGATE_BENCH_TICK_H
#define SLUICEGATE_BENCH_TICK_H
#include <stdint.h>
#include <time.h>

static inline double bench_thread_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static inline uint64_t bench_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

#if defined(__x86_64__)
#define BENCH_CYCLES 1
static inline uint64_t bench_tick(void) {
    uint32_t low, high, core;
    __asm__ volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(core) : : "memory");
    return (uint64_t) high << 32 | low;
}
#else
#define BENCH_CYCLES 0
static inline uint64_t bench_tick(void) { return bench_ns(); }
#endif
#endif
