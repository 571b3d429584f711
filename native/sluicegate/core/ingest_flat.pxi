"""A batch in a caller's buffers or lists, found and checked in a fraction of a microsecond. Part of ingest.pyx."""

cdef bint lies_flat(Flat* flat, object values, object times, int dimensions) except -1:
    """Whether it can be read where it lies, or where lists have been copied to."""
    cdef Py_buffer* v = &flat.value_view
    cdef Py_buffer* t = &flat.time_view
    if not view_of(buffer_of(values, "d"), v) or not is_float64(v):
        return False
    if (v.shape[1] if v.ndim == 2 else 1) != dimensions or v.shape[0] == 0:
        return False
    flat.values, flat.count = <const double*> v.buf, v.shape[0]
    if times is None:
        return True
    if not view_of(buffer_of(times, "q"), t) or not is_int64(t):
        return False
    if t.ndim != 1 or t.shape[0] != flat.count:
        return False
    flat.times = <const int64_t*> t.buf
    return True


cdef bint view_of(object given, Py_buffer* view) except -1:
    if not PyObject_CheckBuffer(given):
        return False
    try:
        PyObject_GetBuffer(given, view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)
    except (BufferError, ValueError):
        return False
    return 0 < view.ndim <= 2 and view.format != NULL


cdef inline bint is_float64(const Py_buffer* view) noexcept:
    cdef const char* code = view.format
    return view.itemsize == sizeof(double) and not (strcmp(code, "d") and strcmp(code, "@d") and strcmp(code, "=d"))


cdef inline bint is_int64(const Py_buffer* view) noexcept:
    cdef const char* code = view.format
    if view.itemsize != sizeof(int64_t):
        return False
    if code[0] == b"@":
        code += 1
    return not (strcmp(code, "q") and strcmp(code, "l") and strcmp(code, "=q"))


cdef object buffer_of(object given, str code):
    """A list as a buffer; anything else as it is, and what is no such list: it is looked at closely elsewhere."""
    if not PyList_CheckExact(given):
        return given
    try:
        return array.array(code, given)
    except (TypeError, ValueError, OverflowError):
        return given


cdef bint may_enter_all(Flat* flat) noexcept nogil:
    """Whether all values and times may."""
    if first_not_entering(flat.values, flat.value_view.len // <int64_t> sizeof(double)) >= 0:
        return False
    return flat.times == NULL or first_beyond(flat.times, flat.count) < 0


cdef void let_go_of(Flat* flat) noexcept:
    PyBuffer_Release(&flat.value_view)
    PyBuffer_Release(&flat.time_view)
