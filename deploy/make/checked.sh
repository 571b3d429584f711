#!/usr/bin/env bash
# Builds the compiled modules once more, below build/, with checks in them, and runs tests over that copy:
# "bounds" (Cython's bounds checks, all of tests/native) or "address" (the compiler's address sanitizer, the engines' tests).
set -euo pipefail
cd "$(dirname "$0")/../.."
kind=${1:?bounds or address}
python=$(realpath "${VENV:-.venv}")/bin/python
copy=$PWD/build/checked/$kind
mkdir -p "$copy"
git ls-files -z | tar --create --null --files-from=- | tar --extract --directory="$copy"
cd "$copy"
export PYTHONPATH=$copy/native:$copy/agent:$copy/cloud:$copy/deploy/demo
# An environment that puts another tree first would have its unchecked modules tested instead.
ours() {
    "$python" -c 'import sys, sluicegate.core.core as core; sys.exit(not core.__file__.startswith(sys.argv[1]))' "$copy/" && return
    echo "checked: $python does not import the build below $copy; run it with an environment of this tree alone" >&2
    exit 2
}
export SLUICEGATE_TESTS=combined  # what a test's values lead to together is what the checks are there for
case $kind in
bounds)
    SLUICEGATE_BUILD_CHECKED=1 "$python" setup.py -q build_ext --inplace
    ours
    exec "$python" -m pytest -q -m 'not slow' tests/native
    ;;
address)
    CFLAGS="-fsanitize=address -fno-omit-frame-pointer -g1" LDFLAGS=-fsanitize=address "$python" setup.py -q build_ext --inplace
    # The C++ library too: where an extension throws, the sanitizer must have found it when it began.
    LD_PRELOAD="$("${CC:-cc}" -print-file-name=libasan.so) $("${CC:-cc}" -print-file-name=libstdc++.so.6)"
    ASAN_OPTIONS=detect_leaks=0
    export LD_PRELOAD ASAN_OPTIONS PYTHONMALLOC=malloc  # Python's own allocator hides small overruns
    ours
    # Benchmarks bound their children's memory, in which the sanitizer cannot begin.
    exec "$python" -m pytest -q --capture=sys -m 'not slow' --ignore tests/native/engines/test_engine_benchmarks.py \
        tests/native/engines tests/native/rolling tests/native/joining tests/native/answers tests/native/memory tests/native/format tests/native/stores \
        tests/native/window tests/native/policies/test_policies.py tests/native/monoids/test_aggregates.py \
        tests/native/bounds/test_withheld_answers.py tests/native/histograms/test_maxima_in_a_budget.py
    ;;
*) echo "checked: $kind, expected bounds or address" >&2; exit 2 ;;
esac
