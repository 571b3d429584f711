#!/usr/bin/env bash
# Sets up a new Couchbase Server for Sluicegate: the cluster, the bucket, the gateway's user, a query index. Again is harmless.
set -euo pipefail
: "${COUCHBASE_HOST:=couchbase}" "${ADMIN_USER:?}" "${ADMIN_PASSWORD:?}" "${GATEWAY_SERVER_USER:?}" "${GATEWAY_SERVER_PASSWORD:?}"
: "${BUCKET_MIB:=1024}" "${REPLICAS:=0}"
cluster=http://$COUCHBASE_HOST:8091
cli() { local command=$1; shift; couchbase-cli "$command" -c "$COUCHBASE_HOST" -u "$ADMIN_USER" -p "$ADMIN_PASSWORD" "$@"; }

for _ in $(seq 120); do
    curl --silent --fail --output /dev/null "$cluster/ui/index.html" && break
    sleep 1
done
if ! cli server-list >/dev/null 2>&1; then
    couchbase-cli cluster-init -c "$COUCHBASE_HOST" --cluster-username "$ADMIN_USER" --cluster-password "$ADMIN_PASSWORD" \
        --services data,index,query --cluster-ramsize "$BUCKET_MIB" --cluster-index-ramsize 512 --index-storage-setting default
fi
if ! cli bucket-list | grep --quiet --line-regexp telemetry; then
    # No --max-ttl: it would expire the gateway's own documents, too. How long a chunk stays is said in sync.js.
    cli bucket-create --bucket telemetry --bucket-type couchbase --bucket-ramsize "$BUCKET_MIB" \
        --bucket-replica "$REPLICAS" --durability-min-level none --wait
fi
cli user-manage --set --auth-domain local --rbac-username "$GATEWAY_SERVER_USER" --rbac-password "$GATEWAY_SERVER_PASSWORD" \
    --roles 'bucket_full_access[telemetry],bucket_admin[telemetry],mobile_sync_gateway[telemetry]' >/dev/null ||
    cli user-manage --set --auth-domain local --rbac-username "$GATEWAY_SERVER_USER" \
        --rbac-password "$GATEWAY_SERVER_PASSWORD" --roles 'bucket_full_access[telemetry],bucket_admin[telemetry]'

# For SQL++ by people: which chunks cover a time. The gateway makes the indexes that it needs itself.
for _ in $(seq 60); do
    curl --silent --fail --output /dev/null -u "$ADMIN_USER:$ADMIN_PASSWORD" "http://$COUCHBASE_HOST:8093/query/service" \
        --data-urlencode "statement=CREATE INDEX chunks_by_time IF NOT EXISTS ON telemetry(device, stream, t_first, t_last)
            WHERE type = 'sluicegate.chunk'" && break
    sleep 1
done
echo "The server has the bucket telemetry, its index, and the user $GATEWAY_SERVER_USER."
