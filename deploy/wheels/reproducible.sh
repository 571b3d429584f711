#!/usr/bin/env bash
# Builds the wheel of one board twice, from nothing, and compares the bytes: reproducible.sh SUITE ARCHITECTURE.
# The dates in a wheel are the commit's (SOURCE_DATE_EPOCH), its paths are mapped away; compiler and Python are Debian's of SUITE.
set -euo pipefail
cd "$(dirname "$0")/../.."
suite=${1:?a Debian suite}
architecture=${2:?amd64, arm64 or armhf}
out=$PWD/build/reproducible/$suite-$architecture
rm -rf --one-file-system "$out"
# No cache of Cython's or of the compiler's: the second would be the first again.
export CYTHON_CACHE='' CCACHE_DISABLE=1
for time in first second; do OUT=$out/$time deploy/wheels/wheel.sh "$suite" "$architecture" >/dev/null; done
cd "$out"
sha256sum first/*.whl second/*.whl
cmp first/*.whl second/*.whl && echo "reproducible: equal to the byte, $(stat -c %s first/*.whl) bytes"
