#!/usr/bin/env bash
# Installs dist/'s package in a fresh Debian root, under qemu for boards, and shows: first bucket, upgrade, failed upgrade, removal.
# trial.sh ARCHITECTURE SUITE, as root (it enters the root by chroot). Needs mmdebstrap, arch-test, mosquitto and its clients.
# UNPACKED=1 spares the minutes of setting up the root's own packages under qemu: they are there, but dpkg does not know of them.
set -euo pipefail
cd "$(dirname "$0")/../.."
PATH=$PATH:/usr/sbin:/sbin
architecture=${1:?amd64, arm64 or armhf}
suite=${2:?bookworm or trixie}
package=$(find "${OUT:-dist}" -name "sluicegate_*_$architecture.deb" | head -n 1)
[ -n "$package" ] || { echo "trial: no package for $architecture: make deb" >&2; exit 3; }
[ "$(id -u)" = 0 ] || { echo "trial: needs root, for chroot" >&2; exit 4; }
for program in mmdebstrap arch-test mosquitto mosquitto_pub; do command -v "$program" >/dev/null || { echo "trial: $program is not here" >&2; exit 3; }; done
case $architecture in
# A Raspberry Pi 4's processor: where trixie's programs can sign pointers (PAC) they do, six times as slow under qemu.
arm64) emulator=qemu-aarch64; export QEMU_CPU=cortex-a72 ;;
armhf) emulator=qemu-arm ;;
*) emulator= ;;
esac
if [ -n "$emulator" ] && [ "$(dpkg --print-architecture)" != "$architecture" ] && [ ! -e "/proc/sys/fs/binfmt_misc/$emulator" ]; then
    echo "trial: this kernel does not start programs of $architecture: apt install qemu-user-static; where no systemd runs then also" >&2
    echo "  mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc; grep -v '^#' /usr/lib/binfmt.d/$emulator.conf >/proc/sys/fs/binfmt_misc/register" >&2
    exit 3
fi
unpacked=${UNPACKED:-}
ESSENTIAL=dpkg,base-files,base-passwd,bash,coreutils,dash,debianutils,diffutils,findutils,grep,gzip,libc-bin,mawk,perl-base,sed,tar,util-linux,libpam-modules,libpam-runtime
root=$PWD/build/roots/trial-$suite-$architecture
port=${PORT:-21883}

# Seconds since the last step on the clock, and of processor time of what has ended since then: other work may slow the one.
used=0
say() {
    times >"$root.times" # of this shell: in a pipe or $(…) it would be another's
    local now
    now=$(awk 'NR == 2 { for (i = 1; i < 3; i++) { split($i, part, "[ms]"); sum += 60 * part[1] + part[2] } } END { printf "%d", sum }' "$root.times")
    printf '%4d s, %4d s of processor  %s\n' "$SECONDS" $((now - used)) "$*"
    used=$now SECONDS=0
}
inside() {
    chroot "$root" /usr/bin/env -i ${QEMU_CPU:+QEMU_CPU=$QEMU_CPU} PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "$@"
}
as_agent() { inside runuser -u sluicegate -- "$@"; }
dpkg_there() { inside dpkg ${unpacked:+--force-depends} "$@"; }
# What the scripts of the root's own packages would have made, as far as the agent's package needs it.
set_up() {
    cat "$root"/usr/share/ca-certificates/mozilla/*.crt >"$root/etc/ssl/certs/ca-certificates.crt"
    for name in passwd group; do cp "$root/usr/share/base-passwd/$name.master" "$root/etc/$name"; done
    for name in auth account password session; do touch "$root/etc/pam.d/common-$name"; done
}
documents() { find "$root/var/lib/sluicegate/out" -name '*.json' ! -name '.*' 2>/dev/null | wc -l; }

if [ ! -e "$root/.complete" ]; then
    mirror=$(apt-get indextargets --format '$(SITE)|$(RELEASE)' | grep -m 1 -E '/debian\|' | cut -d '|' -f 1)
    # A trial that was ended in the middle may have /proc and /sys mounted in there still.
    if grep -q " $root/" /proc/mounts; then echo "trial: $root has file systems mounted: unmount them first" >&2; exit 4; fi
    rm -rf --one-file-system "$root"
    made=(--architectures="$architecture" --aptopt='Acquire::Languages "none"' --dpkgopt=force-unsafe-io
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*')
    if [ -n "$unpacked" ]; then
        made+=(--variant=extract --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr --include="$ESSENTIAL,python3-venv,passwd")
    else
        made+=(--variant=essential --include="python3-venv,passwd")
    fi
    mkdir -p "$(dirname "$root")"
    mmdebstrap --quiet "${made[@]}" "$suite" "$root" "deb $mirror $suite main" >&2
    [ -z "$unpacked" ] || set_up
    echo '127.0.0.1 localhost' >"$root/etc/hosts" # an installed system has it; a root that is only unpacked does not
    touch "$root/.complete"
fi
say "a bare $suite of $architecture is there"

cp "$package" "$root/tmp/new.deb"
dpkg_there --install /tmp/new.deb >/dev/null
say "installed: $(inside sluicegate --version)"

mosquitto -p "$port" >/dev/null 2>&1 &
broker=$!
trap 'kill $broker' EXIT
cat >"$root/etc/sluicegate/agent.toml" <<TOML
[device]
id = "trial"
[state]
path = "/var/lib/sluicegate"
[mqtt]
port = $port
[bucket]
readings = 4
[outbox]
chunk_buckets = 2
[sync]
target = "directory"
path = "/var/lib/sluicegate/out"
every = "1s"
[[source]]
topic = "trial"
sequence = "seq"
streams = { x = "x" }
TOML
mkdir -p "$root/var/lib/sluicegate/out"
inside chown sluicegate: /var/lib/sluicegate/out
as_agent sluicegate check /etc/sluicegate/agent.toml
as_agent sluicegate run /etc/sluicegate/agent.toml --idle 20 --drain >/dev/null 2>"$root/tmp/agent.log" &
agent=$!
for _ in $(seq 120); do grep -q -i 'connected' "$root/tmp/agent.log" && break; sleep 1; done
for number in $(seq 40); do mosquitto_pub -p "$port" -q 1 -t trial -m "{\"seq\": $number, \"x\": $number.5}"; done
for _ in $(seq 120); do [ "$(documents)" -gt 0 ] && break; sleep 1; done
[ "$(documents)" -gt 0 ] || { cat "$root/tmp/agent.log" >&2; exit 1; }
say "first bucket on disk"
wait "$agent"
say "$(documents) documents after the agent has ended; $(as_agent sluicegate status /etc/sluicegate/agent.toml | grep -m 1 -i 'accepted' || true)"

# The same wheels under another name are a new version; without one of them it cannot be installed.
repack() {
    rm -rf "$root/tmp/repacked"
    dpkg-deb --raw-extract "$package" "$root/tmp/repacked"
    sed -i "s/^Version: .*/Version: $1/" "$root/tmp/repacked/DEBIAN/control"
    cp "$(find "$root/tmp/repacked/opt/sluicegate/wheels" -name 'click-*')" "$root/tmp/repacked/opt/sluicegate/wheels/again-$1-py3-none-any.whl"
    [ "$1" = 0.1.1 ] || find "$root/tmp/repacked/opt/sluicegate/wheels" -name 'paho*' -delete
    dpkg-deb --root-owner-group --build "$root/tmp/repacked" "$root/tmp/$1.deb" >/dev/null
}
before=$(inside readlink /opt/sluicegate/venv)
repack 0.1.1
dpkg_there --install /tmp/0.1.1.deb >/dev/null 2>&1
[ "$(inside readlink /opt/sluicegate/venv)" != "$before" ]
as_agent sluicegate status /etc/sluicegate/agent.toml >/dev/null
say "upgraded: $(inside dpkg-query --show --showformat '${Version} ${Status}' sluicegate)"
before=$(inside readlink /opt/sluicegate/venv)
repack 0.1.2
if dpkg_there --install /tmp/0.1.2.deb >"$root/tmp/failed.log" 2>&1; then echo "trial: a broken package was installed" >&2; exit 1; fi
[ "$(inside readlink /opt/sluicegate/venv)" = "$before" ]
as_agent sluicegate status /etc/sluicegate/agent.toml >/dev/null
say "a broken upgrade was refused and the version before still works: $(grep -m 1 '^sluicegate: ' "$root/tmp/failed.log")"

dpkg_there --remove sluicegate >/dev/null 2>&1
[ -e "$root/var/lib/sluicegate/agent.db" ] || [ -n "$(ls -A "$root/var/lib/sluicegate")" ]
[ ! -e "$root/opt/sluicegate/venv" ]
say "removed: $(documents) documents and the state are still there"
dpkg_there --purge sluicegate >/dev/null 2>&1
[ ! -e "$root/var/lib/sluicegate" ]
say "purged: nothing is left"
