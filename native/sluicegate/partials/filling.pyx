"""What a layout is in compiled code, made once for all windows that have it: a gateway keeps thousands."""

from libc.stdlib cimport calloc, free

from sluicegate.partials.program cimport Program, Step
from sluicegate.partials.wide cimport free_extra, make_extra

from sluicegate.monoids import KINDS as _KINDS
from sluicegate.monoids.layout import Op


cdef class Blueprint:
    """A partial's program and a window's answers; never changed."""

    def __cinit__(self, layout):
        self.layout = layout
        self.p.width, self.p.steps = layout.width, len(layout.components)
        self.p.dimensions = len(layout.dimensions)
        self.p.step = <Step*> calloc(self.p.steps, sizeof(Step))
        self.outputs = <Output*> calloc(len(layout.monoids), sizeof(Output))
        if self.p.step == NULL or self.outputs == NULL:
            raise MemoryError(f"window: no memory for partials of {self.p.width} slots")
        self.p.extra = make_extra(layout)
        fill_program(&self.p, layout)
        fill_outputs(self.outputs, &self.p, layout)

    def __dealloc__(self):
        free_extra(self.p.extra, self.p.steps)
        free(self.p.step)
        free(self.outputs)


cdef Blueprint blueprint_of(layout, bint timed):
    found = layout.compiled.get(timed)
    if found is None:
        found = layout.compiled[timed] = Blueprint(layout.untimed if timed else layout)
    return found


cdef int fill_program(Program* p, layout) except -1:
    cdef int k
    for k, component in enumerate(layout.components):
        p.step[k].op, p.step[k].dimension, p.step[k].slot = component.op, component.dimension, component.slot
    p.alone = p.step[0].op if p.width == 1 else -1
    return 0


cdef int fill_outputs(Output* outputs, const Program* p, layout) except -1:
    cdef int k, d, step
    for k, monoid in enumerate(layout.monoids):
        d = layout.dimension_of(monoid)
        outputs[k].kind, outputs[k].dimension = _KINDS.index(monoid.kind), d
        outputs[k].ddof = monoid.ddof
        outputs[k].per = monoid.options[0] if monoid.kind in ("rate", "frequency", "slope") else 0.0
        outputs[k].at_last = monoid.options == ("last",)
        exact = () if layout.bucketed else layout.exact_slots(monoid)
        outputs[k].slot, outputs[k].second = (exact[0], exact[len(exact) - 1]) if exact else (-1, -1)
        for step in range(p.steps if p.extra != NULL else 0):
            if p.step[step].slot == outputs[k].slot:
                outputs[k].extra = p.extra + step
        outputs[k].moments = layout.slot(Op.MOMENTS, d)
        outputs[k].low_count, outputs[k].high_count = layout.slot(Op.LOW_COUNT, d), layout.slot(Op.HIGH_COUNT, d)
        outputs[k].low_ends, outputs[k].high_ends = layout.slot(Op.LOW_ENDS, d), layout.slot(Op.HIGH_ENDS, d)
        outputs[k].prefix = layout.slot(Op.LOG_PREFIX if monoid.kind == "geometric_mean" else Op.PREFIX, d)
        outputs[k].low = layout.slot(Op.LOW, d)
        outputs[k].high = layout.slot(Op.HIGH, d)
        outputs[k].first, outputs[k].last = layout.slot(Op.FIRST, d), layout.slot(Op.LAST, d)
    return 0
