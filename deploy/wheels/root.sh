#!/usr/bin/env bash
# Prints the folder of a Debian root with Python for another board: root.sh SUITE ARCHITECTURE. Made once, without root rights.
# Packages come from the mirror that this machine's apt already uses. Nothing of the root is run to make it.
# APTOPT is one more option for apt, such as 'Acquire::Check-Valid-Until "false"' for a mirror that stands still.
set -euo pipefail
cd "$(dirname "$0")/../.."
suite=${1:?a Debian suite, such as bookworm}
architecture=${2:?a Debian architecture: amd64, arm64, armhf}
roots=${ROOTS:-build/roots}
root=$roots/$suite-$architecture
mkdir -p "$roots"
exec 9>"$root.lock" # another wheel may need the same root now
flock 9

if [ ! -e "$root/.complete" ]; then
    command -v mmdebstrap >/dev/null || { echo "wheels: mmdebstrap is not here; on Debian: apt install mmdebstrap" >&2; exit 3; }
    mirror=$(apt-get indextargets --format '$(SITE)|$(RELEASE)' | grep -m 1 -E '/debian\|' | cut -d '|' -f 1) ||
        { echo "wheels: apt names no Debian mirror on this machine; run apt update once" >&2; exit 4; }
    rm -rf --one-file-system "$root"
    echo "wheels: fetching $suite for $architecture into $root" >&2
    mmdebstrap --quiet --variant=extract --architectures="$architecture" --aptopt='Acquire::Languages "none"' ${APTOPT:+--aptopt="$APTOPT"} \
        --include=python3-dev,python3-venv,ca-certificates "$suite" "$root" "deb $mirror $suite main" >&2 || {
        echo "wheels: $suite was not fetched from $mirror. If apt calls its Release file expired, that mirror stands still:" >&2
        echo "  APTOPT='Acquire::Check-Valid-Until \"false\"' make wheels RELEASES=$suite" >&2
        exit 4
    }
    touch "$root/.complete"
fi
realpath "$root"
