#!/usr/bin/env bash
# Says which parts of the fault campaign are not on this machine and how to install them; always goes on with what is there.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

say() { printf 'faults: %s\n' "$*" >&2; }
want() { command -v "$1" >/dev/null || say "$2 is not here, so $3; on Debian: apt install $4"; }

want mosquitto Mosquitto "its runs are left out" mosquitto
want rabbitmq-server RabbitMQ "its runs are left out" rabbitmq-server
want mkfs.ext4 mkfs.ext4 "no power is cut and no share hangs in the kernel" e2fsprogs
[ -n "$(find /usr/lib -name 'libfaketimeMT.so.1' -print -quit 2>/dev/null)" ] ||
    say "libfaketime is not here, so no clock is stepped; on Debian: apt install faketime"
[ "$(id -u)" = 0 ] ||
    say "not root: no small or read-only disk, no power cut and no frozen share; disks are full by RLIMIT_FSIZE instead"
say "EMQX, NanoMQ and VerneMQ are in no package registry: they are not part of the campaign"
