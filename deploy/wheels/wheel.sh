#!/usr/bin/env bash
# Builds one wheel for a board: wheel.sh SUITE ARCHITECTURE [PACKAGE] puts it, tagged for manylinux, into dist/.
# The suite decides the Python (bookworm 3.11, trixie 3.13, forky 3.14). The compiler is this machine's, Debian's cross
# compiler.
# No suite has 3.12: the suite "3.12" is the Python 3.12 of this machine (PYTHON312, else python3.12) with its headers.
# PACKAGE is one of PyPI's that has no wheel for the board, built from its source; without it the checkout is built.
set -euo pipefail
cd "$(dirname "$0")/../.."
suite=${1:?a Debian suite, or 3.12}
architecture=${2:?amd64, arm64 or armhf}
package=${3:-}
venv=$(realpath "${VENV:-.venv}")
out=$(realpath -m "${OUT:-dist}")

stop() { echo "wheels: $1" >&2; exit "$2"; }

case $architecture in
amd64) triplet=x86_64-linux-gnu platform=linux-x86_64 ;;
arm64) triplet=aarch64-linux-gnu platform=linux-aarch64 ;;
armhf) triplet=arm-linux-gnueabihf platform=linux-armv7l ;;
*) stop "$architecture is none of amd64, arm64, armhf" 2 ;;
esac
command -v "$triplet-gcc" >/dev/null || stop "$triplet-gcc is not here; on Debian: apt install gcc-${triplet//_/-}" 3
"$venv/bin/python" -c 'import auditwheel' 2>/dev/null || stop "auditwheel is not installed: make $venv/wheels.stamp" 3

release=$suite
[ "$suite" != 3.12 ] || release=bookworm
root=$(deploy/wheels/root.sh "$release" "$architecture")
builder=$(deploy/wheels/root.sh "$release" amd64)
has=$(basename "$(readlink "$root/usr/bin/python3")") # the Python that the release has
python=$has
work=$PWD/build/wheels/$suite-$architecture${package:+-$package}
# Of its own: Cython's cache looks at the sources alone, and C made for other compiler options has other line numbers in it.
cache=${CYTHON_CACHE-$PWD/build/wheels/cython}
tools=$("$venv/bin/python" -c 'import setuptools, pathlib; print(pathlib.Path(setuptools.__file__).parents[1])')
rm -rf "$work"
mkdir -p "$work/source" "$work/sysconfig" "$work/include/$triplet" "$out"

if [ -n "$package" ]; then
    pin=$(grep "^$package==" deploy/make/constraints.txt) || stop "$package has no pin in deploy/make/constraints.txt" 2
    sources=$PWD/build/wheels/sources # one for all Pythons; what pip would fetch to look into it is installed
    [ -e "$sources/$package-${pin#*==}.tar.gz" ] || "$venv/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps \
        --no-build-isolation --no-binary :all: --dest "$sources" "$pin"
    tar --extract --directory "$work/source" --strip-components 1 --file "$sources/$package-${pin#*==}.tar.gz"
else
    git ls-files -z -- native agent cloud deploy setup.py pyproject.toml README.md LICENSE CHANGELOG.md MANIFEST.in |
        tar --create --null --files-from - | tar --extract --directory "$work/source"
fi

# Only Python's headers come from the suite: the C library's are the cross compiler's own.
cp "$root/usr/lib/$has/_sysconfigdata__$triplet.py" "$work/sysconfig/"
if [ "$suite" = 3.12 ]; then
    python=python3.12
    runs=${PYTHON312:-$python}
    headers=$("$runs" -c 'import sys, sysconfig; sys.version_info[:2] == (3, 12) and print(sysconfig.get_path("include"))' || true)
    [ -e "$headers/Python.h" ] || stop "no Python 3.12 with its headers ($runs): uv python install 3.12, or name one by PYTHON312" 3
    # Python's headers are the same on every board but for pyconfig.h, which says how wide C's types are: the release's.
    cp -RL "$headers" "$work/include/$python"
    cp "$root/usr/include/$triplet/$has/pyconfig.h" "$work/include/$python/"
    sed -i "s/${has#python}/3.12/g; s/-${has/python3./3}-/-312-/g" "$work/sysconfig/_sysconfigdata__$triplet.py"
    loader=("$runs") home=
else
    ln -s "$root/usr/include/$python" "$work/include/$python"
    ln -s "$root/usr/include/$triplet/$python" "$work/include/$triplet/$python"
    # The suite's own Python builds, since a wheel is tagged with the version that builds it; its loader finds its libc.
    libraries=$builder/usr/lib/x86_64-linux-gnu:$builder/lib/x86_64-linux-gnu
    loader=("$(find "$builder" -name ld-linux-x86-64.so.2 -print -quit)" --library-path "$libraries" "$builder/usr/bin/$python")
    home=$builder/usr
fi
echo "wheels: compiling ${package:-sluicegate} for $architecture, $python" >&2
# Equal sources give equal bytes: the dates in the wheel are the commit's.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
(
    cd "$work/source"
    [ -z "$home" ] || export PYTHONHOME=$home
    export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$work/sysconfig:$tools
    export _PYTHON_HOST_PLATFORM=$platform _PYTHON_SYSCONFIGDATA_NAME=_sysconfigdata__$triplet
    export CC="$triplet-gcc -I$work/include/$python -I$work/include" LDSHARED="$triplet-gcc -shared -Wl,-s"
    [ -z "$package" ] || export SETUPTOOLS_SCM_PRETEND_VERSION=${pin#*==}
    export CFLAGS="-O3 -g0 -fwrapv -DNDEBUG -ffile-prefix-map=$work=." SLUICEGATE_BUILD_CACHE=$cache
    [ -e setup.py ] || echo 'from setuptools import setup; setup()' >setup.py
    "${loader[@]}" setup.py --quiet bdist_wheel --dist-dir "$work/wheel" >"$work/log" 2>&1 ||
        { tail -n 30 "$work/log" >&2; stop "not built; all that the compiler said is in $work/log" 1; }
)
PATH=$venv/bin:$PATH "$venv/bin/python" -m auditwheel repair --only-plat --zip-compression-level 9 --wheel-dir "$out" "$work"/wheel/*.whl >"$work/auditwheel.log" 2>&1 ||
    { tail -n 20 "$work/auditwheel.log" >&2; stop "the wheel has no manylinux tag" 1; }
made=$(sed -n 's/^Fixed-up wheel written to //p' "$work/auditwheel.log")
size=$(stat -c %s "$made")
[ "$size" -le $((3 << 20)) ] || echo "wheels: $made has $size bytes: more than 3 MiB" >&2
echo "$made"
