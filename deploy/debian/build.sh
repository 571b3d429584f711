#!/usr/bin/env bash
# Builds dist/sluicegate_VERSION_ARCHITECTURE.deb from the wheels in dist/: build.sh amd64|arm64|armhf. No root rights needed.
# It holds the wheels of every Python that they were built for, and those of all dependencies, so it installs offline.
set -euo pipefail
cd "$(dirname "$0")/../.."
architecture=${1:?amd64, arm64 or armhf}
python=${VENV:-.venv}/bin/python
out=${OUT:-dist}

case $architecture in
amd64) machine=x86_64 ;;
arm64) machine=aarch64 ;;
armhf) machine=armv7l ;;
*) echo "deb: $architecture is none of amd64, arm64, armhf" >&2; exit 2 ;;
esac
mapfile -t wheels < <(find "$out" -name "sluicegate-*_$machine.whl" | sort)
[ "${#wheels[@]}" -gt 0 ] || { echo "deb: no wheel for $machine in $out: deploy/wheels/wheel.sh bookworm $architecture" >&2; exit 3; }
version=$(basename "${wheels[0]}" | cut -d - -f 2)
stage=$PWD/build/deb/$architecture
home=$stage/opt/sluicegate
rm -rf "$stage"
mkdir -p "$home/wheels" "$stage/DEBIAN"
chmod 0755 "$stage"

for wheel in "${wheels[@]}"; do
    number=$(basename "$wheel" | sed -E 's/.*-cp3([0-9]+)-.*/3.\1/')
    cp "$wheel" "$home/wheels/"
    find "$out" -name "*-cp${number/./}-*_$machine.whl" ! -name 'sluicegate-*' -exec cp {} "$home/wheels/" \;
    "$python" -m pip download --quiet --disable-pip-version-check --only-binary :all: --python-version "$number" \
        --implementation cp --abi "cp${number/./}" --abi none --platform "manylinux2014_$machine" --platform "manylinux_2_28_$machine" \
        --platform "manylinux_2_31_$machine" --find-links "$out" --constraint deploy/make/constraints.txt --dest "$home/wheels" "${wheel}[agent]"
done

install -m 0755 deploy/debian/switch.py "$home/switch.py"
install -D -m 0755 deploy/debian/sluicegate.sh "$stage/usr/bin/sluicegate"
install -D -m 0644 deploy/systemd/sluicegate.service "$stage/usr/lib/systemd/system/sluicegate.service"
install -D -m 0755 deploy/systemd/sluicegate-limits "$stage/usr/lib/systemd/system-generators/sluicegate-limits"
install -D -m 0644 deploy/systemd/sluicegate.sysusers "$stage/usr/lib/sysusers.d/sluicegate.conf"
install -D -m 0644 deploy/systemd/sluicegate.tmpfiles "$stage/usr/lib/tmpfiles.d/sluicegate.conf"
install -D -m 0644 deploy/debian/overrides "$stage/usr/share/lintian/overrides/sluicegate"
install -D -m 0644 deploy/debian/copyright "$stage/usr/share/doc/sluicegate/copyright"
install -D -m 0644 docs/how-to/install.md "$stage/usr/share/doc/sluicegate/README.md"
"$python" -m sluicegate check --sample >"$stage/usr/share/doc/sluicegate/agent.toml"
printf 'sluicegate (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md of the project.\n\n -- Sluicegate developers <sluicegate@sluicegate.invalid>  %s\n' \
    "$version" "$(git log -1 --format=%cD)" | gzip -9n >"$stage/usr/share/doc/sluicegate/changelog.gz"
for script in postinst prerm postrm; do install -m 0755 "deploy/debian/$script" "$stage/DEBIAN/$script"; done
size=$(du -sk --apparent-size "$stage" | cut -f 1)
sed "s/@VERSION@/$version/; s/@ARCHITECTURE@/$architecture/; s/@SIZE@/$size/" deploy/debian/control.in >"$stage/DEBIAN/control"
find "$stage" -exec touch --no-dereference --date "@$(git log -1 --format=%ct)" {} +
dpkg-deb --root-owner-group --build "$stage" "$out" >/dev/null
echo "$out/sluicegate_${version}_$architecture.deb"
