"""The example of a page and its backend, played in a browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig.browser import Browser
from rig.node import Node
from rig.ports import free_ports
from rig.router import ROOT
from rig.session import CALL, ERROR, EVENT, RESULT
from rig.websocket import WebSocket


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Start the example in a copy, on a port of its own."""
    left = shutil.ignore_patterns("key.*", "*.sock", "node.*")
    shutil.copytree(ROOT / "examples/page_and_backend", tmp_path / "example", ignore=left)
    directory = tmp_path / "example/.crossbar"
    (port,) = free_ports(1)
    file = directory / "config.json"
    file.write_text(file.read_text().replace("8080", str(port)))
    node = Node(directory)
    node.says("Ready!", "Container")
    yield port
    node.close()


def test_pages_see_the_total_and_may_do_nothing_else(port):
    with WebSocket.tcp(("127.0.0.1", port)).open("json") as page:
        page.join()
        page.subscribe("com.example.total")
        for total in (1, 2):
            page.ask(CALL, {}, "com.example.add", [1])
            kinds = {message[0]: message for message in (page.hear_any(), page.hear_any())}
            assert kinds[RESULT][3] == [total]
            assert kinds[EVENT][4] == [total]
        page.ask(CALL, {}, "wamp.session.list")
        assert page.hear(ERROR)[4] == "wamp.error.not_authorized"


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs chromium")
def test_a_browser_adds(port, tmp_path):
    (tmp_path / "browser").mkdir()
    browser = Browser(tmp_path / "browser")
    try:
        browser.open(f"http://127.0.0.1:{port}/")
        is_ready = "document.getElementById('add')?.disabled === false"
        browser.await_page("the page is connected", is_ready)
        browser.evaluate("document.getElementById('add').click()")
        total = "document.getElementById('total').textContent"
        browser.await_page("the page shows the total", f"{total} === '1'")
        assert not browser.faults
    finally:
        browser.close()
