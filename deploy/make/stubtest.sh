#!/usr/bin/env bash
# Compares every compiled module that Python code uses with its stub: what the .pyi promises is what the module has.
set -euo pipefail
cd "$(dirname "$0")/../.."
venv=${VENV:-.venv}
modules=$(find native -name '*.pyi' | sed -E 's#^native/##; s#\.pyi$##; s#/#.#g' | sort)
[ -n "$modules" ] || { echo "stubtest: no stubs found below native/" >&2; exit 1; }
# shellcheck disable=SC2086  # one module a word
MYPYPATH=native:agent:cloud:deploy/demo exec "$venv/bin/python" -m mypy.stubtest --mypy-config-file pyproject.toml --concise $modules
