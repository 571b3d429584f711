"""deploy/couchbase/sync.js run by Node, with what a gateway gives a sync function: what it refuses, where it puts."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gateway import databases

_AROUND = """
const fs = require("fs");
const sync = eval("(" + fs.readFileSync(process.argv[1], "utf8").replace(/^\\/\\/.*\\n/gm, "") + ")");
const inside = (list, one) => { if (!list.includes(one)) throw {forbidden: "sg: " + one}; };
let asked = "";
process.stdin.on("data", (some) => { asked += some; });
process.stdin.on("end", () => {
  const answers = asked.split("\\n").filter(Boolean).map((line) => {
    const {doc, user, channels} = JSON.parse(line);
    const put = [];
    globalThis.channel = (...names) => { put.push(...names); };
    globalThis.expiry = () => {};
    globalThis.requireAdmin = () => { if (user !== null) throw {forbidden: "sg admin required"}; };
    globalThis.requireUser = (name) => { if (user !== null) inside([user], name); };
    globalThis.requireAccess = (name) => { if (user !== null) inside(channels, name); };
    try { sync(doc, null); return {put}; } catch (thrown) {
      if (!thrown.forbidden) throw thrown;
      return {refused: thrown.forbidden};
    }
  });
  console.log(JSON.stringify(answers));
});
"""


class NodeRule:
    """Asks the function about many documents at once."""

    def __init__(self, program: str, function: Path = databases.SYNC_FUNCTION) -> None:
        """`program`: Node; `function`: the file."""
        self._command = [program, "-e", _AROUND, str(function)]

    def asked(self, documents: list[Any], user: str | None, channels: list[str]) -> list[dict[str, Any]]:
        """For each document the channels it is `put` into, or why it is `refused`."""
        lines = (json.dumps({"doc": document, "user": user, "channels": channels}) for document in documents)
        told = "\n".join(lines)
        ran = subprocess.run(self._command, input=told, capture_output=True, text=True, check=False, timeout=120)
        assert ran.returncode == 0, ran.stderr[-2000:]
        answers: list[dict[str, Any]] = json.loads(ran.stdout)
        return answers


def node_rule() -> NodeRule:
    """The rule; skips where there is no Node."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("missing: a JavaScript engine (node)")
    return NodeRule(program)
