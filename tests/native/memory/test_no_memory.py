"""Where the heap refuses `amta` a piece: MemoryError and nothing has changed, or it goes on without; buckets, too."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from sluicegate import core as engines

# Refuses one request of the engine's: the one after which so many more would have been granted.
HEAP = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stddef.h>
#include <string.h>
int refuse = 0, refused = 0;
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
static int refuses(void *caller, const char *also) {
    Dl_info from;
    if (!refuse || !dladdr(caller, &from) || !from.dli_fname) return 0;
    if (!strstr(from.dli_fname, "engines/amta") && !strstr(from.dli_fname, also)) return 0;
    if (!*also && !strstr(from.dli_fname, "amta_buckets.")) return 0; /* `amta` goes on with the longer piece */
    return --refuse == 0 && ++refused;
}
void *malloc(size_t n) { return refuses(__builtin_return_address(0), "memory/chunks.") ? NULL : __libc_malloc(n); }
void *realloc(void *p, size_t n) {
    if (p && n <= malloc_usable_size(p)) return __libc_realloc(p, n); /* it stays where it is: nothing is asked for */
    return refuses(__builtin_return_address(0), "") ? NULL : __libc_realloc(p, n);
}
void *calloc(size_t n, size_t size) {
    return refuses(__builtin_return_address(0), "memory/chunks.") ? NULL : __libc_calloc(n, size);
}
"""
RUN = """
import ctypes, random
from array import array
import sluicegate as sg, sluicegate.window.configure
from sluicegate.core import core as compiled
from twins import core as pure

refuse, refused = (ctypes.c_int.in_dll(ctypes.CDLL(None), name) for name in ("refuse", "refused"))
rng, errors = random.Random(63), 0
for question in (sg.sum, sg.std):
    for size in (3, 16, 64, 100, 300, 351, 600, 703, 720):
        one, two = [], []
        for module, made in ((compiled, one), (pure, two)):
            sluicegate.window.configure.Core = module.Core
            made.append(sg.Window(question(), policy=sg.policies.count(size), engine="amta"))
        (one,), (two,) = one, two
        assert one.accepted == two.accepted == 0  # their cores are made before anything is refused
        for _ in range(20):
            for _ in range(rng.choice((1, 3, 10, 50, 200))):
                value, refuse.value = rng.uniform(1, 9), rng.choice((0, 0, 1, 2))
                before = one.accepted
                try:
                    result = one.slide(value)
                except MemoryError:
                    refuse.value, errors = 0, errors + 1
                    one.verify()
                    assert one.accepted == before
                    result = one.slide(value)
                refuse.value = 0
                assert result == two.slide(value)
            evicted = min(len(one), rng.choice((0, 1, 5, 20, 100)))
            refuse.value = 1
            one.evict(evicted)
            assert one._core.rest() == (two.evict(evicted), two._core.rest())[1]
            batch = array("d", (rng.uniform(1, 9) for _ in range(rng.choice((1, 3, 30)))))
            before, refuse.value = (one.accepted, one._core.save()), rng.choice((1, 2, 3))
            try:
                result = one.insert_many(batch)
            except MemoryError:
                refuse.value, errors = 0, errors + 1
                taken = one.accepted - before[0]
                assert taken or one._core.save() == before[1]
                result = one.insert_many(batch[taken:])
            refuse.value = 0
            expected = two.insert_many(batch)
            assert all(x[len(x) - len(y) :] == y for x, y in zip(expected.values(), result.values(), strict=True))
            one.verify()
            assert one._core.save() == two._core.save()
print(errors > 20, refused.value == errors)
"""


BUCKETS = """
import ctypes, random
import sluicegate as sg, sluicegate.window.configure
from sluicegate.core import core as compiled
from twins import core as pure

refuse, refused = (ctypes.c_int.in_dll(ctypes.CDLL(None), name) for name in ("refuse", "refused"))
rng, errors = random.Random(67), 0
for limit, size in ((4, 9), (16, 40), (64, 300), (100, 90), (300, 1_000)):
    for histograms in ([sg.Constrained(limit)], [sg.SumLike(error=0.01), sg.Constrained(limit)]):
        made = []
        for module in (compiled, pure):
            sluicegate.window.configure.Core = module.Core
            made.append(sg.Window(
                {"sum": sg.sum(), "max": sg.max()}, policy=sg.policies.count(size), histograms=histograms
            ))
        one, two = made
        assert one.accepted == two.accepted == 0
        for i in range(900):
            value, before = rng.choice((rng.uniform(-9, 9), 1.0)), one.accepted
            refuse.value = rng.choice((0, 1, 2, 3))
            try:
                one.insert(value)
            except MemoryError:
                refuse.value, errors = 0, errors + 1
                one.verify()
                assert one.accepted == before
                one.insert(value)
            refuse.value = 0
            two.insert(value)
            assert one.query(bounds=True) == two.query(bounds=True)
        one.verify()
        assert one._core.save() == two._core.save()
print(errors > 20, refused.value == errors)
"""


LONG = """
import ctypes, random
from array import array
import sluicegate as sg

refuse, refused = (ctypes.c_int.in_dll(ctypes.CDLL(None), name) for name in ("refuse", "refused"))
rng, errors = random.Random(65), 0
for size in (800, 3_000, 20_000):
    one, two = (sg.Window(sg.sum(), policy=sg.policies.time(1_000 * size), engine="amta") for _ in range(2))
    now = 0
    for places in range(1, 40, 4 if size > 9_000 else 1):  # long ones ask for the same pieces
        values, times = array("d"), array("q")
        step = rng.choice((1_000, 1_000, 600, 1_400))
        for _ in range(3 * size + 400):
            now += rng.randrange(step)
            values.append(rng.uniform(1, 9))
            times.append(now)
        before, refuse.value = one.accepted, places
        try:
            one.insert_many(values, times)
        except MemoryError:
            refuse.value, errors = 0, errors + 1
            taken = one.accepted - before
            one.insert_many(values[taken:], times[taken:])
        refuse.value = 0
        two.insert_many(values, times)
        one.verify()
        assert one._core.save() == two._core.save()
print(errors > 20, refused.value == errors)
"""


@pytest.mark.skipif(engines.Core.__module__ != "sluicegate.core.core", reason="of the compiled core")
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="stands before glibc's heap")
@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the address sanitizer has a heap of its own")
@pytest.mark.parametrize(
    "run", [RUN, LONG, BUCKETS], ids=["singles and batches", "long batches where they lie", "buckets"]
)
def test_a_refused_piece_changes_nothing(tmp_path: Path, run: str) -> None:
    """Singles, evictions by hand and batches, bit for bit the twin's, whichever piece is refused."""
    source, target = tmp_path / "heap.c", tmp_path / "heap.so"
    source.write_text(HEAP)
    compiler = (sysconfig.get_config_var("CC") or "cc").split()
    subprocess.run([*compiler, "-shared", "-fPIC", "-O1", "-o", target, source, "-ldl"], check=True)
    native = Path(__file__).parents[1]
    twins = [str(native), *(str(native / folder) for folder in ("bounds", "histograms"))]
    paths = [*twins, os.environ.get("PYTHONPATH", "")]  # that of an emulated site
    surroundings = {"LD_PRELOAD": str(target), "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run([sys.executable, "-c", run], env=os.environ | surroundings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "True"]
