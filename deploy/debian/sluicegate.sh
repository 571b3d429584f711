#!/bin/sh
# The command of the environment that the package made. By hand, no systemd hands the secrets over under the names that
# the service's configuration has: who may read them (root) gets them under those names from where they lie.
agent=/opt/sluicegate/venv/bin/sluicegate
secrets=/etc/sluicegate/credentials
if [ -n "${CREDENTIALS_DIRECTORY-}" ] || [ -z "$(ls "$secrets" 2>/dev/null)" ]; then exec "$agent" "$@"; fi
CREDENTIALS_DIRECTORY=$(mktemp -d)
export CREDENTIALS_DIRECTORY
trap 'rm -rf "$CREDENTIALS_DIRECTORY"' EXIT
trap : INT TERM # the agent ends by them; this waits for it
for each in "$secrets"/*; do ln -s "$each" "$CREDENTIALS_DIRECTORY/credentials_${each##*/}"; done
"$agent" "$@"
