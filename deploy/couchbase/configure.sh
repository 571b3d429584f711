#!/usr/bin/env bash
# Gives a Sync Gateway its database, the sync function and the readers' role, over the admin interface. Again is harmless.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
: "${GATEWAY_ADMIN_URL:=http://127.0.0.1:4985}" "${KEEP_DAYS:=0}" "${DATABASE:=$here/database.json}"
database=$GATEWAY_ADMIN_URL/telemetry
case $GATEWAY_ADMIN_URL in
https://* | http://127.0.0.1:* | http://localhost:* | 'http://[::1]:'*) ;;
*) [ -n "${PLAIN_HTTP:-}" ] || { echo "configure: $GATEWAY_ADMIN_URL: the password would cross the network unencrypted: use https, or a tunnel to 127.0.0.1; where the network is trusted, PLAIN_HTTP=1" >&2; exit 2; } ;;
esac

# Name and password by a file that curl reads: on the command line every user of this machine would see them.
login=$(mktemp)
trap 'rm -f "$login"' EXIT
if [ -n "${SLUICEGATE_GATEWAY_ADMIN_USER:-}" ]; then
    printf 'user = "%s:%s"\n' "$SLUICEGATE_GATEWAY_ADMIN_USER" "${SLUICEGATE_GATEWAY_ADMIN_PASSWORD:-}" >"$login"
fi
[ -z "${GATEWAY_CA:-}" ] || printf 'cacert = "%s"\n' "$GATEWAY_CA" >>"$login"
ask() { curl --silent --show-error --config "$login" --output /dev/stderr --write-out '%{http_code}' "$@"; }
need() {
    local what=$1 status
    shift
    status=$(ask "$@" 2>"$login.answer") || true
    case $status in
    2??) rm -f "$login.answer" ;;
    *) echo "configure: $what: status $status: $(head -c 500 "$login.answer")" >&2; rm -f "$login.answer"; exit 4 ;;
    esac
}

for _ in $(seq 60); do
    [ "$(ask "$GATEWAY_ADMIN_URL/" 2>/dev/null)" != 000 ] && break
    sleep 1
done
if [ "$(ask "$database/" 2>/dev/null)" = 404 ]; then
    need 'the database' --request PUT "$database/" --header 'Content-Type: application/json' --data-binary "@$DATABASE"
fi
sed "s/var KEEP_DAYS = 0;/var KEEP_DAYS = $KEEP_DAYS;/" "$here/sync.js" |
    need 'the sync function' --request PUT "$database/_config/sync" --header 'Content-Type: application/javascript' --data-binary @-
count=$(sed -n 's/^  var SHARDS = \([0-9]*\);.*/\1/p' "$here/sync.js")
shards=$(printf '"shard-%02d",' $(seq 0 $((count - 1))))
need 'the role reader' --request PUT "$database/_role/reader" --header 'Content-Type: application/json' \
    --data "{\"admin_channels\": [${shards%,}]}"
echo "The gateway has the database telemetry. Next: sluicegate cloud provision $database DEVICE --url https://HOST:4984/telemetry"
