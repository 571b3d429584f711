"""The page comes from the listener alone: no foreign resource, no inline script, text never put in as HTML."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("prometheus_client", reason="the listener needs the extra `agent`")
from sluicegate_agent.config.outward import MetricsConfig
from sluicegate_agent.web.access import Access
from sluicegate_agent.web.http import Request, Response
from sluicegate_agent.web.routes import PAGE, Routes


def fetched(path: str) -> Response:
    """A file of the page as the listener gives it."""
    nothing: Any = SimpleNamespace(ready=None, status=None)
    routes = Routes(nothing, nothing, Access(MetricsConfig(listen="unix:/x")))
    found = routes.handle(Request("GET", path, {}, {}))
    assert isinstance(found, Response)
    return found


@pytest.mark.parametrize("path", sorted(PAGE))
def test_a_file_of_the_page(path: str) -> None:
    """With its type; it names no address but that of SVG's names."""
    found = fetched(path)
    assert (found.status, found.kind) == (200, PAGE[path][1])
    addresses = set(re.findall(rb"(?:https?:)?//[\w.-]+\.\w+[^\s\"']*", found.body))
    assert addresses <= {b"http://www.w3.org/2000/svg"}


def test_the_page_keeps_to_its_own_policy() -> None:
    """No inline script or style, which the policy would refuse; nothing is written as HTML."""
    html, script = fetched("/").body.decode(), fetched("/page.js").body.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=", html)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|\.style\b", script)
    named = set(re.findall(r'byId\("(\w+)"\)', script))
    assert named == set(re.findall(r'\bid="(\w+)"', html))


def test_the_script_reads_keys_that_the_status_has() -> None:
    """Every key of the events that the page asks for is one that `View.status` gives."""
    import inspect

    from sluicegate_agent.web.view import View

    given = set(re.findall(r'"(\w+)":', inspect.getsource(View))) | {"uptime_s", "rss_bytes", "alerts"}
    asked = set(re.findall(r"\bseen\.(\w+)", fetched("/page.js").body.decode()))
    assert asked
    assert asked <= given
