# Part of wide.pyx: Bloom filters and distinct values, by the hash of a value.

# hashes: sluicegate.monoids.hashing


cdef inline void murmur(double x, uint64_t* first, uint64_t* second) noexcept nogil:
    cdef uint64_t k, a, b
    x += 0.0  # −0.0 is hashed as 0.0
    memcpy(&k, &x, 8)
    k *= <uint64_t> 0x87C37B91114253D5
    k = (k << 31) | (k >> 33)
    a = (9001 ^ (k * <uint64_t> 0x4CF5AD432745937F)) ^ 8
    b = 9001 ^ 8
    a += b
    b += a
    a, b = mixed(a), mixed(b)
    a += b
    first[0], second[0] = a, b + a


cdef inline uint32_t coupon_of(double x) noexcept nogil:
    cdef uint64_t a, b
    cdef int zeros
    murmur(x, &a, &b)
    zeros = SG_CLZ(b)
    return (<uint32_t> ((62 if zeros > 62 else zeros) + 1) << 26) | <uint32_t> (a & 0x3FFFFFF)


cdef void lift_bloom(const Extra* e, Slot* s, double x) noexcept nogil:
    cdef uint64_t a, b, place
    cdef int64_t i
    murmur(x, &a, &b)
    for i in range(e.hashes):
        place = (a + <uint64_t> i * b) % <uint64_t> e.size
        s[place >> 6].i |= <int64_t> (<uint64_t> 1 << (place & 63))


cdef void lift_counts(const Extra* e, Slot* s, double x) noexcept nogil:
    """A count-min sketch of one value: e.hashes rows of e.size counters."""
    cdef uint64_t a, b
    cdef int64_t i
    murmur(x, &a, &b)
    for i in range(e.hashes):
        s[i * e.size + <int64_t> (mixed(a + <uint64_t> i * b) % <uint64_t> e.size)].i = 1


# distinct values: sluicegate.monoids.hll


cdef void combine_distinct(const Extra* e, Slot* o, const Slot* a, const Slot* b) noexcept nogil:
    cdef int64_t i
    cdef uint8_t* out = <uint8_t*> (o + 1)
    cdef const uint8_t* x = <const uint8_t*> (a + 1)
    cdef const uint8_t* y = <const uint8_t*> (b + 1)
    if a[0].i >= 0 and b[0].i >= 0:
        union_coupons(e, o, a, b)
        return
    if a[0].i >= 0:
        a, b = b, a
    if b[0].i >= 0:
        add_coupons(e, o, a, b)
        return
    for i in range(1 << e.size):
        out[i] = x[i] if x[i] > y[i] else y[i]
    o[0].i = REGISTERS


cdef void union_coupons(const Extra* e, Slot* o, const Slot* a, const Slot* b) noexcept nogil:
    """Merge two sorted lists, each coupon once; too many become registers."""
    cdef uint32_t out[2 * MOST_COUPONS]
    cdef const uint32_t* x = <const uint32_t*> (a + 1)
    cdef const uint32_t* y = <const uint32_t*> (b + 1)
    cdef int64_t i = 0, j = 0, n = 0, k, first = held(a, most_coupons(e.size)), second = held(b, most_coupons(e.size))
    cdef uint32_t one
    while i < first or j < second:
        if j == second or (i < first and x[SG_WORD(i)] <= y[SG_WORD(j)]):
            one = x[SG_WORD(i)]
            i += 1
        else:
            one = y[SG_WORD(j)]
            j += 1
        if n == 0 or out[n - 1] != one:
            out[n] = one
            n += 1
    memset(o, 0, e.slots * sizeof(Slot))
    if n > most_coupons(e.size):
        o[0].i = REGISTERS
        for k in range(n):
            register(e, o, out[k])
        return
    o[0].i = n
    for k in range(n):
        (<uint32_t*> (o + 1))[SG_WORD(k)] = out[k]


cdef inline int64_t most_coupons(int64_t lg_k) noexcept nogil:
    return 3 << (lg_k - 5)


cdef inline void register(const Extra* e, Slot* o, uint32_t coupon) noexcept nogil:
    cdef uint8_t* place = (<uint8_t*> (o + 1)) + SG_BYTE(coupon & ((1 << e.size) - 1))
    cdef uint8_t value = <uint8_t> (coupon >> 26)
    if value > place[0]:
        place[0] = value


cdef void add_coupons(const Extra* e, Slot* o, const Slot* a, const Slot* b) noexcept nogil:
    """Registers a and a list b; o may be either."""
    cdef uint32_t list[MOST_COUPONS]
    cdef int64_t n = held(b, most_coupons(e.size)), k
    for k in range(n):
        list[k] = (<const uint32_t*> (b + 1))[SG_WORD(k)]
    if o != a:
        memcpy(o, a, e.slots * sizeof(Slot))
    for k in range(n):
        register(e, o, list[k])


cdef double number_of_distinct(const Extra* e, const Slot* s) noexcept nogil:
    """The estimate, with the bits of sluicegate.monoids.hll.estimate."""
    cdef int64_t counts[4][LARGEST_REGISTER + 1]  # most registers are alike: four tables, so that they need not queue
    cdef const uint8_t* registers = <const uint8_t*> (s + 1)
    cdef int64_t i, k, n = 1 << e.size
    cdef double m = <double> n, z
    if s[0].i >= 0:
        return <double> s[0].i
    memset(counts, 0, sizeof(counts))
    for i in range(0, n, 4):
        for k in range(4):
            counts[k][registers[i + k] & LARGEST_REGISTER] += 1
    for i in range(LARGEST_REGISTER + 1):
        counts[0][i] += counts[1][i] + counts[2][i] + counts[3][i]
    z = m * tau((m - <double> counts[0][LARGEST_REGISTER]) / m)
    for i in range(LARGEST_REGISTER - 1, 0, -1):
        z = 0.5 * (z + <double> counts[0][i])
    z += m * sigma(<double> counts[0][0] / m)
    return 0.5 / log(2.0) * m * m / z


cdef double sigma(double x) noexcept nogil:
    cdef double y = 1.0, z = x, before = -1.0
    if x == 1.0:
        return INFINITY
    while z != before:
        x *= x
        before = z
        z += x * y
        y += y
    return z


cdef double tau(double x) noexcept nogil:
    cdef double y = 1.0, z = 1.0 - x, before = -1.0
    if x == 0.0 or x == 1.0:
        return 0.0
    while z != before:
        x = sqrt(x)
        before = z
        y *= 0.5
        z -= (1.0 - x) * (1.0 - x) * y
    return z / 3.0
