#!/bin/sh
# Installs the agent on a board without a Debian package: install.sh [--wheels FOLDER] [--prefix FOLDER].
# As root it does what the package does: /opt/sluicegate, a user, a service, /etc/sluicegate; run again it upgrades, and
# goes back where the new version does not start. With --prefix it needs no root rights and installs the program alone.
# The folder of wheels (dist/ of this checkout by default) has sluicegate's; what else is needed is taken from there too,
# else from PyPI. Ends with 2 for a wrong call, 3 where something is missing, 4 without rights or room, 1 for all else.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
wheels=$here/../dist
prefix=
root=/
python=${PYTHON:-python3}
room=150 # MiB of an environment, with room to spare

say() { printf 'install: %s\n' "$*"; }
refuse() { code=$1; shift; printf 'install: %s\n' "$*" >&2; exit "$code"; }

while [ $# -gt 0 ]; do
    case $1 in
    --wheels | --prefix | --root) [ $# -ge 2 ] || refuse 2 "$1 needs a folder" ;;
    *) refuse 2 "unknown: $1. usage: install.sh [--wheels FOLDER] [--prefix FOLDER]" ;;
    esac
    case $1 in
    --wheels) wheels=$2 ;;
    --prefix) prefix=$2 ;;
    --root) root=${2%/} ;; # for tests: the folder to take for /
    esac
    shift 2
done

command -v "$python" >/dev/null || refuse 3 "python3 is not here: sudo apt install python3 python3-venv"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    refuse 3 "$("$python" --version) is too old, 3.11 or newer is needed: Debian 12 (bookworm) and its Raspberry Pi OS have it"
"$python" -c 'import ensurepip, venv' 2>/dev/null || refuse 3 "Python's venv is not complete: sudo apt install python3-venv"
if [ -z "$prefix" ] && [ "$root" = / ] && [ "$(id -u)" != 0 ]; then
    refuse 4 "needs root rights for /opt, /etc and the service: sudo sh $0 (or the program alone, without them: sh $0 --prefix ~/sluicegate)"
fi
[ -d "$wheels" ] || refuse 3 "$wheels is no folder: --wheels FOLDER names the one that holds sluicegate-*.whl (make wheels)"
ls "$wheels"/sluicegate-*.whl >/dev/null 2>&1 || refuse 3 "$wheels holds no sluicegate-*.whl: --wheels FOLDER names the one that does (make wheels)"

# The nearest folder that is there says how much room there is.
target=${prefix:-$root/opt}
there=$target
while [ ! -d "$there" ]; do there=$(dirname "$there"); done
[ -w "$there" ] || refuse 4 "$there cannot be written: choose another folder, or sudo sh $0"
free=$(df -Pk "$there" | awk 'NR == 2 { print int($4 / 1024) }')
[ "$free" -ge "$room" ] || refuse 4 "$there has $free MiB free and $room are needed: make room (sudo apt clean, old logs), then try again"

missing() {
    refuse 3 "pip could not find a wheel (above) in $wheels, nor on PyPI. Without a network, get them elsewhere and bring them here:
  python3 -m pip download --dest wheels --find-links wheels --only-binary :all: 'sluicegate[agent]'
The wheel of sluicegate has to be for $("$python" --version) on $(uname -m); there is: $(cd "$wheels" && ls sluicegate-*.whl | tr '\n' ' ')"
}

if [ -n "$prefix" ]; then
    "$python" -m venv "$prefix"
    "$prefix/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: --find-links "$wheels" 'sluicegate[agent]' || missing
    say "installed $("$prefix/bin/sluicegate" --version): $prefix/bin/sluicegate init makes a configuration"
    exit 0
fi

home=$root/opt/sluicegate
got=$(mktemp -d)
trap 'rm -rf "$got"' EXIT
"$python" -m venv "$got/venv"
"$got/venv/bin/python" -m pip download --quiet --disable-pip-version-check --only-binary :all: --dest "$got/wheels" \
    --find-links "$wheels" 'sluicegate[agent]' || missing
mkdir -p "$home"
rm -rf "$home/wheels"
cp -r "$got/wheels" "$home/wheels"
install -m 0755 "$here/debian/switch.py" "$home/switch.py"
install -D -m 0755 "$here/debian/sluicegate.sh" "$root/usr/local/bin/sluicegate"
install -D -m 0644 "$here/systemd/sluicegate.service" "$root/etc/systemd/system/sluicegate.service"
install -D -m 0755 "$here/systemd/sluicegate-limits" "$root/etc/systemd/system-generators/sluicegate-limits"
if [ "$root" = / ]; then
    getent group sluicegate >/dev/null || groupadd --system sluicegate
    getent passwd sluicegate >/dev/null ||
        useradd --system --gid sluicegate --home-dir /var/lib/sluicegate --shell /usr/sbin/nologin sluicegate
    install -d -o root -g sluicegate -m 0750 /etc/sluicegate
    install -d -o root -g root -m 0700 /etc/sluicegate/credentials
    install -d -o sluicegate -g sluicegate -m 0700 /var/lib/sluicegate
    if [ -d /run/systemd/system ]; then systemctl daemon-reload; systemctl --quiet enable sluicegate.service; fi
    "$python" "$home/switch.py"
else
    "$python" "$home/switch.py" --root "$root"
fi
say "installed. Next: sluicegate check --sample | sudo tee /etc/sluicegate/agent.toml, say your device and topics there, then sudo systemctl start sluicegate"
