"""`deploy/couchbase/server.sh` asks of a Couchbase Server what either edition grants, and says when it failed.

The server is a stand-in: programs in the places of curl and couchbase-cli that refuse what the Community Edition does.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "deploy" / "couchbase" / "server.sh"
#: ns_server: a node's name needs a dot; its Community Edition has the roles admin, ro_admin and bucket_full_access.
CURL = """#!/usr/bin/env bash
printf '%s\\n' "$*" >>"$CALLS"
case "$*" in
*hostname=couchbase*) echo 'short names are not allowed' >&2; exit 22 ;;
*bucket_admin*|*mobile_sync_gateway*) [ "$EDITION" = enterprise ] || exit 22 ;;
*query/service*) [ -z "${NO_QUERY:-}" ] || { echo 'query: refused' >&2; exit 7; } ;;
esac
"""
CLI = """#!/usr/bin/env bash
printf '%s\\n' "cli $*" >>"$CALLS"
case $1 in
server-list) [ -e "$STATE/cluster" ] || { touch "$STATE/cluster"; exit 1; } ;;
bucket-list) [ ! -e "$STATE/bucket" ] || { echo telemetry; for _ in $(seq 20000); do echo ' some line'; done; } ;;
bucket-create) [ ! -e "$STATE/bucket" ] || exit 1; touch "$STATE/bucket" ;;
esac
"""


def set_up(folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """The script against the stand-in; what was asked is in `folder`/calls."""
    for name, text in (("curl", CURL), ("couchbase-cli", CLI), ("sleep", "#!/bin/sh\n")):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    told = {"ADMIN_USER": "admin", "ADMIN_PASSWORD": "s3cret-one", "GATEWAY_SERVER_USER": "sync_gateway"}
    told |= {"GATEWAY_SERVER_PASSWORD": "s3cret-two", "CALLS": str(folder / "calls"), "STATE": str(folder)}
    environment = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}", "EDITION": "community"} | told | more
    return subprocess.run(["bash", str(SCRIPT)], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("edition", ["community", "enterprise"])
def test_either_edition_is_set_up_and_again_is_harmless(edition: str, tmp_path: Path) -> None:
    """With the roles that it knows; no password is on a command line."""
    for _ in range(2):
        done = set_up(tmp_path, EDITION=edition)
        assert done.returncode == 0, done.stderr
    calls = (tmp_path / "calls").read_text()
    assert "roles=" + ("mobile_sync_gateway[telemetry]" if edition == "enterprise" else "bucket_full_access") in calls
    assert calls.count("clusterInit") == calls.count("cli bucket-create") == 1
    assert "s3cret" not in calls


def test_an_index_that_was_not_made_is_no_success(tmp_path: Path) -> None:
    """The last refusal is told, and the exit code is one."""
    done = set_up(tmp_path, NO_QUERY="1")
    assert done.returncode != 0
    assert "query: refused" in done.stderr
    assert "index" not in done.stdout
