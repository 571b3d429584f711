#!/bin/sh
# Starts Mosquitto in its container: hands it the site's files, which are root's, and the folder where it keeps its queue.
# The broker gives up root before it reads its key or writes: with another owner it would not start, and forget all queues.
set -e
install -d -o mosquitto -m 700 /etc/mosquitto/sluicegate /var/lib/mosquitto
for file in ca.pem server.pem server.key acl passwords; do
    install -o mosquitto -m 400 "/site/$file" /etc/mosquitto/sluicegate/
done
exec mosquitto -c /mosquitto/config/mosquitto.conf
