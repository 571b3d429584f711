#!/usr/bin/env bash
# A Sync Gateway to try things out with: on this machine only, over TLS, no Couchbase Server; runs until Ctrl-C.
#   deploy/couchbase/trial.sh FOLDER      keeps certificates, configuration and documents in FOLDER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:?usage: trial.sh FOLDER} program=${SLUICEGATE_SYNC_GATEWAY:-sync_gateway} port=${PORT:-4984}
command -v "$program" >/dev/null || { echo "trial: there is no $program: see \`sluicegate doctor --for sync-gateway\`" >&2; exit 3; }
umask 077
mkdir -p "$folder/buckets"
cd "$folder"

if [ ! -e gateway.pem ]; then
    key() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$1" "${@:2}" 2>/dev/null; }
    key ca.key -x509 -days 90 -out ca.pem -subj '/CN=Sluicegate trial' -addext 'keyUsage=critical,keyCertSign,cRLSign'
    key gateway.key -out gateway.csr -subj '/CN=localhost'
    openssl x509 -req -in gateway.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 90 -out gateway.pem \
        -extfile <(echo 'subjectAltName=DNS:localhost,IP:127.0.0.1') 2>/dev/null
fi
python3 - "$here/sync.js" "$PWD" "$port" >gateway.json <<'END'
import json, sys
sync, folder, port = open(sys.argv[1]).read(), sys.argv[2], int(sys.argv[3])
names = "interface", "adminInterface", "metricsInterface"
config = {name: f"127.0.0.1:{port + at}" for at, name in enumerate(names)}
config |= {"admin_interface_authentication": False, "metrics_interface_authentication": False}
config |= {"SSLCert": f"{folder}/gateway.pem", "SSLKey": f"{folder}/gateway.key", "logging": {"console": {"log_level": "warn"}}}
database = {"server": f"rosmar://{folder}/buckets", "bucket": "telemetry", "sync": sync}
database |= {"use_views": True, "enable_shared_bucket_access": True}
print(json.dumps(config | {"databases": {"telemetry": database}}, indent=1))
END
echo "https://localhost:$port/telemetry for devices and readers, https://localhost:$((port + 1))/telemetry for administrators; trust $PWD/ca.pem"
exec "$program" -disable_persistent_config gateway.json
