#!/usr/bin/env bash
# The main job: shows the edge part's windows while the Spark part installs, then merges, checks and reports.
set -euo pipefail
cd "$(dirname "$0")/../.."
venv=${VENV:-.venv} out=${OUT:-build/demo} target=${TARGET:-directory}
log=build/cloud-install.log
mkdir -p build

if [ "$target" != directory ] && ! "$venv/bin/sluicegate" doctor --for "$target"; then
    echo "The demo's target $target runs through the real parts above; install what is missing, or leave out TARGET." >&2
    exit 3
fi

install=
if [ ! -e "$venv/cloud.stamp" ]; then
    echo "The Spark part installs in the background (about 551 MB to download, 949 MB on disk; log: $log)."
    "${MAKE:-make}" --no-print-directory cloud VENV="$venv" >"$log" 2>&1 &
    install=$!
    trap '[ -z "$install" ] || kill "$install" 2>/dev/null || true' EXIT
fi

"$venv/bin/sluicegate" demo --edge-only --out "$out" --target "$target"

if [ -n "$install" ]; then
    echo "Waiting for the Spark part …"
    if ! wait "$install"; then
        install=
        echo "The Spark part did not install; the end of $log:" >&2
        tail -n 15 "$log" >&2
        exit 4
    fi
    install=
fi
exec "$venv/bin/sluicegate" demo --cloud-only --out "$out"
