"""A wheel of a made-up agent that says its version, for tests of what installs it."""

from __future__ import annotations

import zipfile
from pathlib import Path

AGENT = """
import os, sys
VERSION = {version!r}
def main():
    if sys.argv[1] in ("version", "--version"):
        print(VERSION)
    elif VERSION == "strict":
        sys.exit("agent.toml: state.disk: not known any more")
    elif VERSION == "secretive":
        print(open(os.environ["CREDENTIALS_DIRECTORY"] + "/credentials_mqtt").read())
"""


def bring(folder: Path, version: str, needs: str = "") -> Path:
    """The only wheel of sluicegate in this folder: of that version, with one requirement of its extra `agent`."""
    for old in folder.glob("sluicegate-*.whl"):
        old.unlink()
    number = f"{len(version)}.0"
    about, made = f"sluicegate-{number}.dist-info", folder / f"sluicegate-{number}-py3-none-any.whl"
    told = f"Metadata-Version: 2.1\nName: sluicegate\nVersion: {number}\nProvides-Extra: agent\n"
    with zipfile.ZipFile(made, "w") as wheel:
        wheel.writestr("agent_of_a_test.py", AGENT.format(version=version))
        wheel.writestr(f"{about}/METADATA", told + (f'Requires-Dist: {needs}; extra == "agent"\n' if needs else ""))
        tags = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        wheel.writestr(f"{about}/WHEEL", tags)
        wheel.writestr(f"{about}/entry_points.txt", "[console_scripts]\nsluicegate = agent_of_a_test:main\n")
        wheel.writestr(f"{about}/RECORD", "")
    return made
