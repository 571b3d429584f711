#!/usr/bin/env bash
# Gets the jars of `sluicegate cloud publish`: jars.sh delta|kafka FOLDER.
# By Maven, each checked by its SHA-256; those that are there stay.
set -euo pipefail
usage="usage: jars.sh delta|kafka FOLDER"
what=${1:?$usage} folder=${2:?$usage}
sums=$(cd "$(dirname "$0")" && pwd)/$what.sha256
[ -e "$sums" ] || { echo "$usage" >&2; exit 2; }
mkdir -p "$folder"
cd "$folder"
while read -r _ jar; do
    [ -e "$jar" ] && continue
    command -v mvn >/dev/null ||
        { echo "jars: $jar is not in $folder, and there is no Maven (mvn) to get it" >&2; exit 3; }
    case $jar in
    delta-*) group=io.delta ;;
    spark-*) group=org.apache.spark ;;
    kafka-*) group=org.apache.kafka ;;
    commons-*) group=org.apache.commons ;;
    esac
    name=${jar%.jar}
    mvn -q -B dependency:copy -Dartifact="$group:${name%-*}:${name##*-}" -DoutputDirectory="$PWD"
done <"$sums"
sha256sum --quiet -c "$sums"
