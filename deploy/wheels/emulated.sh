#!/usr/bin/env bash
# Runs tests over a board's wheel under qemu: emulated.sh ARCHITECTURE [PYTEST ARGUMENTS]; tests/native and tests/agent by default.
# All of them take hours there: EACH=40 runs every fortieth test of each file. No root rights needed.
# What a test starts by sys.executable is emulated too, by a wrapper: binfmt_misc need not know qemu.
set -euo pipefail
cd "$(dirname "$0")/../.."
architecture=${1:?arm64 or armhf}
shift
suite=${SUITE:-bookworm}
python=${VENV:-.venv}/bin/python

case $architecture in
arm64) machine=aarch64 emulator=qemu-aarch64-static; export QEMU_CPU=cortex-a72 ;; # see deploy/debian/trial.sh
armhf) machine=armv7l emulator=qemu-arm-static ;;
*) echo "emulated: $architecture is none of arm64, armhf" >&2; exit 2 ;;
esac
command -v "$emulator" >/dev/null || { echo "emulated: $emulator is not here; on Debian: apt install qemu-user-static" >&2; exit 3; }
root=$(deploy/wheels/root.sh "$suite" "$architecture")
[ -e "$root/lib" ] || ln -s usr/lib "$root/lib" # since trixie only a package's script makes it; qemu looks for the loader there
name=$(basename "$(readlink "$root/usr/bin/python3")")
tag=cp${name#python}
tag=${tag/./}
wheel=$(find "${OUT:-dist}" -name "sluicegate-*-$tag-*_$machine.whl" | head -n 1)
[ -n "$wheel" ] || { echo "emulated: no wheel for $machine and $name in ${OUT:-dist}: deploy/wheels/wheel.sh $suite $architecture" >&2; exit 3; }

site=$PWD/build/emulated/$suite-$architecture
if [ ! -e "$site/.complete" ] || [ "$wheel" -nt "$site/.complete" ]; then
    rm -rf "$site"
    mkdir -p "$site"
    "$python" -m pip install --quiet --disable-pip-version-check --target "$site" --only-binary :all: --implementation cp \
        --python-version "${name#python}" --abi "$tag" --abi none --platform "manylinux2014_$machine" --platform "manylinux_2_31_$machine" \
        --find-links "${OUT:-dist}" --constraint deploy/make/constraints.txt "${wheel}[agent]" pytest pytest-timeout hypothesis jsonschema
    touch "$site/.complete"
fi
printf '#!/bin/sh\nexec %s %s "$@"\n' "$(command -v "$emulator")" "$root/usr/bin/$name" >"$site/python"
chmod +x "$site/python"
echo "import sys; sys.executable = '$site/python'" >"$site/sitecustomize.py"
export QEMU_LD_PREFIX=$root PYTHONPATH=$site:$PWD/deploy/wheels PYTHONDONTWRITEBYTECODE=1
[ $# -gt 0 ] || set -- tests/native tests/agent
exec "$site/python" -m pytest -p no:cacheprovider -p each "$@"
