#!/usr/bin/env bash
# Merges on a cluster with a packed environment: submit.sh SOURCE… --table PLACE [options of `sluicegate cloud merge`].
# Proves a table: submit.sh reconcile PLACE, which ends with 1 where a window is not what its documents say.
# SLUICEGATE_MASTER: yarn (default), spark://HOST:7077, local[*]. ENVIRONMENT: the archive; made once by venv-pack where it is not there.
# Workers unpack it, so they need nothing but the same CPU, C library and Python version as this machine.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
archive=${ENVIRONMENT:-sluicegate-environment.tar.gz}
export SLUICEGATE_MASTER=${SLUICEGATE_MASTER:-yarn}
[ "$#" -gt 0 ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
command -v spark-submit >/dev/null || { echo "submit: spark-submit is not on PATH; it comes with Spark, or in an environment with pyspark" >&2; exit 3; }

case $SLUICEGATE_MASTER in
local*) exec spark-submit --master "$SLUICEGATE_MASTER" "$here/merge.py" "$@" ;;
esac
if [ ! -e "$archive" ]; then
    command -v venv-pack >/dev/null || { echo "submit: no $archive, and venv-pack is not here to make it: pip install venv-pack" >&2; exit 3; }
    [ -n "${VIRTUAL_ENV:-}" ] || { echo "submit: activate the environment that has sluicegate[cloud] first" >&2; exit 2; }
    venv-pack --quiet --prefix "$VIRTUAL_ENV" --output "$archive.new.tar.gz"
    mv "$archive.new.tar.gz" "$archive"  # one that was not finished would be taken for a whole one the next time
fi
PYSPARK_DRIVER_PYTHON=$(command -v python3)  # the driver's, by which spark-submit also finds Spark; workers have the archive's
export PYSPARK_DRIVER_PYTHON PYSPARK_PYTHON=./environment/bin/python
exec spark-submit --master "$SLUICEGATE_MASTER" --deploy-mode client --archives "$archive#environment" \
    --conf spark.executorEnv.PYSPARK_PYTHON=./environment/bin/python "$here/merge.py" "$@"
