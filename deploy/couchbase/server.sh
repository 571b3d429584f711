#!/usr/bin/env bash
# Sets up a new Couchbase Server for Sluicegate: the cluster, the bucket, the gateway's user, a query index. Again is harmless.
set -euo pipefail
: "${COUCHBASE_HOST:=couchbase}" "${ADMIN_USER:?}" "${ADMIN_PASSWORD:?}" "${GATEWAY_SERVER_USER:?}" "${GATEWAY_SERVER_PASSWORD:?}"
: "${BUCKET_MIB:=1024}" "${REPLICAS:=0}"
cluster=http://$COUCHBASE_HOST:8091
# Passwords go by the environment and by files that curl reads: on a command line every user here would see them.
export CB_REST_USERNAME=$ADMIN_USER CB_REST_PASSWORD=$ADMIN_PASSWORD
umask 077
secrets=$(mktemp -d)
trap 'rm -rf "$secrets"' EXIT
quoted() { local text=${1//\\/\\\\}; printf '"%s"' "${text//\"/\\\"}"; }
printf 'user = %s\n' "$(quoted "$ADMIN_USER:$ADMIN_PASSWORD")" >"$secrets/login"
printf %s "$ADMIN_PASSWORD" >"$secrets/admin"
printf %s "$GATEWAY_SERVER_PASSWORD" >"$secrets/gateway"
cli() { local command=$1; shift; couchbase-cli "$command" -c "$COUCHBASE_HOST" "$@"; }
ask() { curl --silent --show-error --fail --output /dev/null "$@"; }

patiently() {  # try so many times, a second apart; what was said the last time goes to stderr
    local left=$1
    shift
    until "$@" 2>"$secrets/why"; do
        left=$((left - 1))
        [ "$left" -gt 0 ] || { cat "$secrets/why" >&2; return 1; }
        sleep 1
    done
}

patiently 120 ask "$cluster/ui/index.html"
if ! cli server-list >/dev/null 2>&1; then
    # No hostname: the server refuses one without a dot, and a single node needs none.
    ask "$cluster/clusterInit" --data-urlencode "username=$ADMIN_USER" \
        --data-urlencode "password@$secrets/admin" --data services=kv,index,n1ql --data "memoryQuota=$BUCKET_MIB" \
        --data indexMemoryQuota=512 --data port=SAME
fi
buckets=$(cli bucket-list)
if ! grep --quiet --line-regexp telemetry <<<"$buckets"; then
    # No --max-ttl: it would expire the gateway's own documents, too. How long a chunk stays is said in sync.js.
    cli bucket-create --bucket telemetry --bucket-type couchbase --bucket-ramsize "$BUCKET_MIB" \
        --bucket-replica "$REPLICAS" --durability-min-level none --wait
fi
gateway_user() {
    ask --config "$secrets/login" --request PUT "$cluster/settings/rbac/users/local/$GATEWAY_SERVER_USER" \
        --data-urlencode "password@$secrets/gateway" --data-urlencode "roles=$1"
}
# The Enterprise Edition has a role for gateways; the Community Edition knows three roles in all and refuses any other.
gateway_user 'mobile_sync_gateway[telemetry],bucket_full_access[telemetry],bucket_admin[telemetry]' 2>/dev/null ||
    gateway_user 'bucket_full_access[telemetry],ro_admin'

# For SQL++ by people: which chunks cover a time. The gateway makes the indexes that it needs itself.
patiently 60 ask --config "$secrets/login" "http://$COUCHBASE_HOST:8093/query/service" \
    --data-urlencode "statement=CREATE INDEX chunks_by_time IF NOT EXISTS ON telemetry(device, stream, t_first, t_last)
        WHERE type = 'sluicegate.chunk'"
echo "The server has the bucket telemetry, its index, and the user $GATEWAY_SERVER_USER."
