"""The files for a site are read without complaint by the tools they are for; a skip names the tool that is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
#: Tools of this environment before those of the machine.
PATHS = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


def accepts(where_from: str, tool: str, *words: str | Path, folder: Path = DEPLOY) -> None:
    """Run a tool, and fail with what it said where it complains. Skips where it is not here."""
    if (found := shutil.which(tool, path=PATHS)) is None:
        pytest.skip(f"{tool} is not on PATH: {where_from}")
    environment = os.environ | {"PATH": PATHS}
    ran = subprocess.run([found, *words], capture_output=True, text=True, cwd=folder, env=environment, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_shellcheck_finds_nothing_in_the_scripts() -> None:
    """Those that are run from a checkout, and those in the package."""
    scripts = [*DEPLOY.glob("*/*.sh"), *(DEPLOY / "debian" / name for name in ("postinst", "postrm", "prerm"))]
    accepts("apt install shellcheck", "shellcheck", "--severity=warning", *scripts)


def test_prometheus_takes_its_configuration(tmp_path: Path) -> None:
    """With the rules and the token beside it, where the container has them."""
    for file in ("compose/prometheus.yaml", "grafana/alerts.yaml"):
        shutil.copy(DEPLOY / file, tmp_path)
    (tmp_path / "token").touch()
    text = (tmp_path / "prometheus.yaml").read_text()
    (tmp_path / "prometheus.yaml").write_text(text.replace("/etc/prometheus", str(tmp_path)))
    accepts("apt install prometheus", "promtool", "check", "config", tmp_path / "prometheus.yaml")


def test_kubernetes_knows_every_field_of_the_job() -> None:
    """By the schemas of its API; an unknown field is refused."""
    for name in ("cronjob.yaml", "reconcile-cronjob.yaml"):
        accepts("pip install kubernetes-validate", "kubernetes-validate", "--strict", f"spark/{name}")


@pytest.mark.parametrize("name", ["compose/compose.yaml", "couchbase/compose.yaml"])
def test_the_compositions_are_as_the_specification_says(name: str) -> None:
    """By the schema of the Compose Specification."""
    accepts("pip install check-jsonschema", "check-jsonschema", "--builtin-schema", "vendor.compose-spec", name)


def test_the_workflow_is_one_for_the_forge() -> None:
    """By the schema of GitHub's workflows."""
    file = DEPLOY.parent / ".github/workflows/wheels.yml"
    accepts("pip install check-jsonschema", "check-jsonschema", "--builtin-schema", "vendor.github-workflows", file)


@pytest.mark.slow
def test_ansible_lint_passes_the_playbook_for_production() -> None:
    """Its strictest profile; Ansible itself reads the playbook with the fleet's variables."""
    folder = DEPLOY / "ansible"
    words = ("-i", "inventory.ini", "-e", "@fleet.yml", "--syntax-check", "site.yml")
    accepts("pip install ansible-core", "ansible-playbook", *words, folder=folder)
    asked = ("--offline", "-q", "--profile", "production", "site.yml")
    accepts("pip install ansible-lint", "ansible-lint", *asked, folder=folder)
