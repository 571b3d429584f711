"""An S3 server of its own process on the loopback: moto's, which keeps objects in memory."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE = 60
BUCKET = "plant"


@contextmanager
def s3_server(log: Path) -> Iterator[dict[str, str]]:
    """What the environment says of it; it has an empty BUCKET."""
    command = [sys.executable, "-c", "from moto.server import main; main(['-H', '127.0.0.1', '-p', '0'])"]
    with log.open("w") as said:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    try:
        at = {"AWS_ENDPOINT_URL": _address(process, log), "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
        told = at | {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
        client(told).create_bucket(Bucket=BUCKET)
        yield told
    finally:
        process.kill()
        process.wait(PATIENCE)


def client(told: dict[str, str]) -> Any:
    """A client that is not the one under test."""
    import boto3

    return boto3.client(
        "s3", endpoint_url=told["AWS_ENDPOINT_URL"], region_name=told["AWS_REGION"],
        aws_access_key_id=told["AWS_ACCESS_KEY_ID"], aws_secret_access_key=told["AWS_SECRET_ACCESS_KEY"],
    )  # fmt: skip


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    end = time.monotonic() + PATIENCE
    while not (said := re.search(r"http://127\.0\.0\.1:\d+", log.read_text())):
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.05)
    return said[0]
