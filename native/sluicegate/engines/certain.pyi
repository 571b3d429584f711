# cdef functions only: nothing for Python
