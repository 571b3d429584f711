"""Certificates for tests, made by openssl: an authority, two that it signed, and a stranger's."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest


class Certificates(NamedTuple):
    """An authority; two certificates that it signed, one for this machine, one for another host; a stranger's."""

    authority: Path
    here: Path
    elsewhere: Path
    stranger: Path


def make(folder: Path) -> Certificates:
    """All four below `folder`; each key lies beside its certificate. Skips where there is no openssl."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make certificates")
    made = Certificates(*(folder / f"{name}.pem" for name in Certificates._fields))
    for path in (made.authority, made.stranger):
        _run("req", "-x509", *_new(path), "-subj", f"/CN={path.stem}", "-days", "2", "-out", path)
    for path, name in ((made.here, "IP:127.0.0.1"), (made.elsewhere, "DNS:gateway.example")):
        request, extra = path.with_suffix(".csr"), path.with_suffix(".ext")
        extra.write_text(f"subjectAltName={name}\n")
        _run("req", *_new(path), "-subj", f"/CN={path.stem}", "-out", request)
        signed = ("-CA", made.authority, "-CAkey", made.authority.with_suffix(".key"), "-CAcreateserial")
        _run("x509", "-req", "-in", request, *signed, "-days", "2", "-extfile", extra, "-out", path)
    return made


def _new(path: Path) -> tuple[object, ...]:
    return "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path.with_suffix(".key")


def _run(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=120)
