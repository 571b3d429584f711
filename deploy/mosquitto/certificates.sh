#!/usr/bin/env bash
# An authority of your own and a certificate for the broker: certificates.sh FOLDER HOST [HOST…]. Keys are readable by you alone.
# Whoever has ca.key can pretend to be your broker: keep it off the machine. Run again with the same folder it renews the broker's.
set -euo pipefail
folder=${1:?a folder for the files}
shift
[ "$#" -gt 0 ] || { echo "certificates: name the broker as its clients do: certificates.sh $folder broker.example 192.0.2.7" >&2; exit 2; }
command -v openssl >/dev/null || { echo "certificates: openssl is not here; on Debian: apt install openssl" >&2; exit 3; }
umask 077
mkdir -p "$folder"
names=
for host in "$@"; do
    if [[ $host =~ ^[0-9.]+$ || $host == *:* ]]; then names+=,IP:$host; else names+=,DNS:$host; fi
done
if [ ! -e "$folder/ca.key" ]; then
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 -subj "/CN=Sluicegate authority" \
        -keyout "$folder/ca.key" -out "$folder/ca.pem" 2>/dev/null
fi
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$1" -keyout "$folder/server.key" \
    -out "$folder/server.csr" 2>/dev/null
openssl x509 -req -in "$folder/server.csr" -CA "$folder/ca.pem" -CAkey "$folder/ca.key" -CAcreateserial -days 825 \
    -extfile <(echo "subjectAltName=${names#,}") -out "$folder/server.pem" 2>/dev/null
rm -f "$folder/server.csr"
chmod 644 "$folder/ca.pem" "$folder/server.pem"
echo "$folder: ca.pem for clients ([mqtt.tls] ca_file), server.pem and server.key for the broker, ca.key for a safe place"
