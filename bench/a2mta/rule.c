/* The paper's hopping window: at `most` readings the oldest leave, up to the next of the given starts. */
#include <stdint.h>

typedef union { double f; int64_t i; } slot;
enum { COUNT, T_FIRST, T_LAST, O_FIRST };
struct hops { int64_t most, first, next, known; const int64_t *starts; };

int hops_leave(const slot *total, const slot *old, void *context)
{
    struct hops *hops = context;
    if (total[O_FIRST].i + total[COUNT].i - hops->first >= hops->most && hops->next < hops->known)
        hops->first = hops->starts[hops->next++];
    return old[O_FIRST].i + old[COUNT].i <= hops->first;
}

/* Nothing leaves before the reading that fills the window. */
int64_t hops_until(const slot *total, void *context)
{
    const struct hops *hops = context;
    (void)total;
    return hops->first + hops->most - 1;
}
