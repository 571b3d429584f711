#!/usr/bin/env bash
# Gets the jars of Delta Lake for `sluicegate cloud publish --delta`: delta.sh FOLDER. By Maven, each by its SHA-256; those that are there stay.
set -euo pipefail
folder=${1:?usage: delta.sh FOLDER}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
cd "$folder"
while read -r _ jar; do
    [ -e "$jar" ] && continue
    command -v mvn >/dev/null || { echo "delta: $jar is not in $folder, and there is no Maven (mvn) to get it" >&2; exit 3; }
    name=${jar%.jar}
    mvn -q -B dependency:copy -Dartifact="io.delta:${name%-*}:${name##*-}" -DoutputDirectory="$PWD"
done <"$here/delta.sha256"
sha256sum --quiet -c "$here/delta.sha256"
