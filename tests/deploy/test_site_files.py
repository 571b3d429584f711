"""The files for a site, as far as they can be read without their own tools: their READMEs say what has been tried."""

from __future__ import annotations

import py_compile
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="comes with the extra dev")
jinja2 = pytest.importorskip("jinja2", reason="comes with the extra dev")
DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
#: Made by who sets up the site, as deploy/compose/README.md says.
MADE = "./site/"


def read(name: str) -> Any:
    """A file of deploy/ as YAML."""
    return yaml.safe_load((DEPLOY / name).read_text("utf-8"))


def commands(name: str) -> list[list[str]]:
    """The arguments behind `sluicegate` that a file of deploy/spark runs."""
    text = (DEPLOY / "spark" / name).read_text("utf-8")
    found = re.findall(r"(?:bin/sluicegate|\[sluicegate,|\{SLUICEGATE\}) ([^\"\]\n]*)", text)
    return [re.split(r"[ ,]+", line.strip()) for line in found]


@pytest.mark.parametrize("name", ["sluicegate-merge.service", "cronjob.yaml", "merge_dag.py"])
def test_schedulers_use_options_that_exist(name: str) -> None:
    """What each of them runs is understood by the command line."""
    from sluicegate_cloud.commands import cloud

    ran = commands(name)
    assert ran
    for words in ran:
        assert words[0] == "cloud"
        command = cloud.commands[words[1]]
        command.make_parser(command.context_class(command)).parse_args(words[2:])


def test_the_spark_application_merges_into_a_folder() -> None:
    """Its arguments are those of the merge; what comes out is mounted in driver and executors."""
    from sluicegate_cloud.commands import merge

    spec = read("spark/spark-application.yaml")["spec"]["template"]
    options, _, _ = merge.make_parser(merge.context_class(merge)).parse_args(list(map(str, spec["arguments"])))
    for part in ("driver", "executor"):
        assert options["out"] in [mount["mountPath"] for mount in spec[part]["volumeMounts"]]


def test_pods_are_bounded_and_without_rights() -> None:
    """Not root, nothing writable but its volumes, memory and time limited, one at a time."""
    spec = read("spark/cronjob.yaml")["spec"]
    pod = spec["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert spec["concurrencyPolicy"] == "Forbid"
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert "memory" in container["resources"]["limits"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}


def test_compose_mounts_what_is_there_and_opens_two_ports() -> None:
    """Each file beside the site's own exists; all but the broker's and the gateway's port are this machine's."""
    services = {
        name: of for file in ("compose", "couchbase") for name, of in read(f"{file}/compose.yaml")["services"].items()
    }
    compose = read("compose/compose.yaml")
    assert compose["include"] == ["../couchbase/compose.yaml"]
    for service in compose["services"].values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            if source.startswith(".") and not source.startswith(MADE):
                assert (DEPLOY / "compose" / source).exists(), source
            elif not source.startswith("."):
                assert source in compose["volumes"]
    opened = [port for service in services.values() for port in service.get("ports", ()) if not port.startswith("127.")]
    assert sorted(opened) == ["4984:4984", "8883:8883"]


def test_ansible_writes_a_configuration_that_is_right(tmp_path: Path) -> None:
    """The template with the variables of fleet.yml, as a board would have it."""
    from sluicegate_agent.config.load import load

    text = (DEPLOY / "ansible/templates/agent.toml.j2").read_text("utf-8")
    made = jinja2.Environment(trim_blocks=True, undefined=jinja2.StrictUndefined).from_string(text)
    written = made.render(inventory_hostname="greenhouse-1", **read("ansible/fleet.yml"))
    for name in ("mqtt.password", "ca.pem"):
        shutil.copy(__file__, tmp_path / name)  # any file: what is in it is not looked at
    (tmp_path / "agent.toml").write_text(written.replace("/etc/sluicegate", str(tmp_path)))
    assert load(tmp_path / "agent.toml").device.id == "greenhouse-1"
    assert set(re.findall(r"/etc/sluicegate/([\w.]+)", written)) <= set(
        re.findall(r"/etc/sluicegate/([\w.]+)", (DEPLOY / "ansible/site.yml").read_text("utf-8"))
    )


def test_there_is_one_version() -> None:
    """The package's, the program's, and every file of deploy/ that names one."""
    from sluicegate.version import VERSION

    root = DEPLOY.parent
    assert tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"] == VERSION
    assert f"## {VERSION}" in (root / "CHANGELOG.md").read_text("utf-8")
    files = ("ansible/fleet.yml", "compose/compose.yaml", "spark/cronjob.yaml", "spark/spark-application.yaml")
    named = [
        re.findall(r"(?:sluicegate-\w+:|^version: )(\S+)", (DEPLOY / file).read_text("utf-8"), re.M) for file in files
    ]
    assert {version for found in named for version in found} == {VERSION}
    assert all(named)


def test_the_workflow_builds_what_is_supported() -> None:
    """The forge's workflow is YAML; its Pythons are those that the project says it needs, or newer."""
    jobs = yaml.safe_load((DEPLOY.parent / ".github/workflows/wheels.yml").read_text("utf-8"))["jobs"]
    machines = {each["architecture"] for each in jobs["wheels"]["strategy"]["matrix"]["include"]}
    assert machines == {"x86_64", "aarch64", "armv7l"}
    settings = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text("utf-8"))["tool"]["cibuildwheel"]
    assert settings["build"].split() == [f"cp3{minor}-*" for minor in (11, 12, 13, 14)]


def test_pins_of_an_extra_are_what_it_needs() -> None:
    """The list that the SBOM is made from: all of the agent's, none of the tools'; each with its version."""
    ran = subprocess.run(
        [sys.executable, DEPLOY / "wheels/pins.py", "agent"], capture_output=True, text=True, check=True
    )
    found = dict(line.split("==") for line in ran.stdout.split())
    assert {"click", "msgspec", "paho-mqtt", "structlog"} <= set(found)
    assert not {"pytest", "pyspark", "sluicegate"} & set(found)


def test_scripts_are_read_by_their_shell_and_python(tmp_path: Path) -> None:
    """No error of syntax in what is not run."""
    for script in (DEPLOY / "spark/submit.sh", DEPLOY / "mosquitto/certificates.sh", *(DEPLOY / "wheels").glob("*.sh")):
        subprocess.run(["bash", "-n", script], check=True)
    for module in ("merge.py", "merge_dag.py"):
        py_compile.compile(str(DEPLOY / "spark" / module), cfile=str(tmp_path / "made.pyc"), doraise=True)


def test_the_timer_is_one_for_systemd(tmp_path: Path) -> None:
    """`systemd-analyze verify` says nothing but that the command is not on this machine."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    for name in ("sluicegate-merge.service", "sluicegate-merge.timer"):
        text = (DEPLOY / "spark" / name).read_text().replace("/opt/sluicegate-cloud/bin/sluicegate", "/bin/true")
        (tmp_path / name).write_text(text)
    units = sorted(tmp_path.glob("sluicegate-merge.*"))
    ran = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    assert "sluicegate-merge" not in ran.stderr, ran.stderr
