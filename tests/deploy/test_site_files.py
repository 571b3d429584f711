"""The files for a site, as far as they can be read without their own tools: their READMEs say what has been tried."""

from __future__ import annotations

import py_compile
import re
import runpy
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


#: What each form runs: the merge into a table, and the proof of it.
SCHEDULED = ("sluicegate-merge.service", "sluicegate-reconcile.service", "cronjob.yaml", "reconcile-cronjob.yaml",
             "merge_dag.py")  # fmt: skip


@pytest.mark.parametrize("name", SCHEDULED)
def test_schedulers_use_options_that_exist(name: str) -> None:
    """What each of them runs is understood by the command line."""
    from sluicegate_cloud.commands import cloud

    ran = commands(name)
    assert ran
    for words in ran:
        assert words[0] == "cloud"
        command = cloud.commands[words[1]]
        command.make_parser(command.context_class(command)).parse_args(words[2:])


def test_each_form_proves_the_table_that_it_fills() -> None:
    """One table a form, and as it is spelled there; a proof is not tried again, so its exit code is seen."""
    forms = (SCHEDULED[:2], SCHEDULED[2:4], SCHEDULED[4:])
    for names in forms:
        ran = [words for name in names for words in commands(name)]
        filled = [words[words.index("--table") + 1] for words in ran if words[1] == "merge"]
        assert filled == [words[2] for words in ran if words[1] == "reconcile"], names
    assert read("spark/reconcile-cronjob.yaml")["spec"]["jobTemplate"]["spec"]["backoffLimit"] == 0
    dag = (DEPLOY / "spark/merge_dag.py").read_text("utf-8")
    assert re.search(r"cloud reconcile \{TABLE\}\", retries=0", dag)
    unit = (DEPLOY / "spark/sluicegate-reconcile.service").read_text("utf-8")
    assert "OnFailure=sluicegate-alert@%n.service" in unit


def test_the_spark_applications_share_a_table() -> None:
    """Their arguments are those of the commands; the table is mounted in driver and executors."""
    from sluicegate_cloud.commands import merge
    from sluicegate_cloud.table.commands import reconcile

    text = (DEPLOY / "spark/spark-application.yaml").read_text("utf-8")
    merging, proving = (each["spec"]["template"] for each in yaml.safe_load_all(text))
    options, _, _ = merge.make_parser(merge.context_class(merge)).parse_args(list(map(str, merging["arguments"])))
    word, *words = proving["arguments"]
    proved, _, _ = reconcile.make_parser(reconcile.context_class(reconcile)).parse_args(words)
    assert (word, proved["table"]) == ("reconcile", options["table"])
    for part in ("driver", "executor"):
        for spec in (merging, proving):
            assert str(Path(options["table"]).parent) in [mount["mountPath"] for mount in spec[part]["volumeMounts"]]
    assert proving["restartPolicy"] == {"type": "Never"}


@pytest.mark.parametrize(("given", "wanted"), [
    (["chunks", "--table", "t"], ["cloud", "merge", "chunks", "--table", "t", "--master", "local[1]"]),
    (["reconcile", "t"], ["cloud", "reconcile", "t", "--master", "local[1]"]),
])  # fmt: skip
def test_what_spark_submit_runs(given: list[str], wanted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The command that is asked for, on the master of the environment."""
    import sluicegate.cli

    ran: list[list[str]] = []
    monkeypatch.setattr(sluicegate.cli, "main", ran.append)
    monkeypatch.setattr(sys, "argv", ["merge.py", *given])
    monkeypatch.setenv("SLUICEGATE_MASTER", "local[1]")
    runpy.run_path(str(DEPLOY / "spark/merge.py"), run_name="__main__")
    assert ran == [wanted]


def test_the_alert_says_which_unit_failed(tmp_path: Path) -> None:
    """In the journal at priority 2, and to the address where there is one."""
    unit = (DEPLOY / "spark/sluicegate-alert@.service").read_text("utf-8")
    (script,) = re.findall(r"ExecStart=/bin/sh -c '(.*)'$", unit, re.M)
    (tmp_path / "curl").write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/sent\n')
    (tmp_path / "curl").chmod(0o755)
    (tmp_path / "hostname").write_text("#!/bin/sh\necho gate\n")
    (tmp_path / "hostname").chmod(0o755)
    text = script.replace("$$", "$").replace("%i", "sluicegate-reconcile.service")
    for address, sent in (("", False), ("https://ntfy.example/x", True)):
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "ALERT_URL": address}
        ran = subprocess.run(["/bin/sh", "-c", text], env=environment, capture_output=True, text=True, check=True)
        assert ran.stdout.startswith("<2>gate: sluicegate-reconcile.service has failed")
        assert (tmp_path / "sent").exists() == sent
    assert "https://ntfy.example/x" in (tmp_path / "sent").read_text()


@pytest.mark.parametrize("name", ["cronjob.yaml", "reconcile-cronjob.yaml"])
def test_pods_are_bounded_and_without_rights(name: str) -> None:
    """Not root, nothing writable but its volumes, memory and time limited, one at a time."""
    spec = read(f"spark/{name}")["spec"]
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
    files = ("ansible/fleet.yml", "compose/compose.yaml", "spark/cronjob.yaml", "spark/reconcile-cronjob.yaml",
             "spark/spark-application.yaml")  # fmt: skip
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
    names = [f"sluicegate-{of}" for of in ("merge.service", "merge.timer", "reconcile.service", "reconcile.timer",
                                           "alert@.service")]  # fmt: skip
    for name in names:
        text = (DEPLOY / "spark" / name).read_text().replace("/opt/sluicegate-cloud/bin/sluicegate", "/bin/true")
        (tmp_path / name).write_text(text)
    units = sorted(path for path in tmp_path.glob("sluicegate-*") if "@" not in path.name)
    units.append(tmp_path / "sluicegate-alert@sluicegate-reconcile.service")
    (tmp_path / "sluicegate-alert@.service").rename(units[-1])
    ran = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    assert "sluicegate-" not in ran.stderr, ran.stderr
