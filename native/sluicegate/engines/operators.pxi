# What the engines have in common whose loops are written once over the operator: the operators' names and tags (kernels.pxd).

from sluicegate.partials.kernels cimport (
    ADD, ANY, GREATEST, LEAST, MERGE, Add, Any, Greatest, Least, Merge, Op, apart, combine_by, copy_by, keep_by, kernel_of, put_by, renew_by, width_of,
)

cdef Any any_op
cdef Add add_op
cdef Least least_op
cdef Greatest greatest_op
cdef Merge merge_op
