"""A browser without a window, driven by its own protocol (DevTools)."""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
from pathlib import Path
from typing import Any

from rig.http import Http
from rig.waiting import await_true
from rig.websocket import WebSocket

# As root a browser refuses its own sandbox; the pages of these tests have nothing to run in one.
COMMAND = [
    *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
    *("--disable-background-networking", "--disable-extensions", "--disable-sync"),
    *("--disable-component-update", "--disable-dev-shm-usage", "--remote-debugging-port=0"),
]
PATIENCE_S = 60


class Browser:
    """One page of a browser of its own."""

    def __init__(self, directory: Path):
        """Start it; its profile and its log are in that directory."""
        self.directory = directory
        self.requested: list[str] = []
        self.faults: list[str] = []
        self.numbers = itertools.count(1)
        said = (directory / "browser.log").open("w")
        command = [*COMMAND, f"--user-data-dir={directory}/profile", "about:blank"]
        self.process = subprocess.Popen(command, stdout=said, stderr=said, start_new_session=True)
        written = directory / "profile/DevToolsActivePort"

        def has_started() -> bool:
            return written.exists() and "\n" in written.read_text()

        await_true("the browser has started", has_started, PATIENCE_S)
        address = ("127.0.0.1", int(written.read_text().split()[0]))
        pages: list[dict] = []

        def has_page() -> bool:
            targets = json.loads(Http(address).get("/json/list").body)
            pages[:] = [target for target in targets if target["type"] == "page"]
            return bool(pages)

        await_true("the browser has a page", has_page, PATIENCE_S)
        self.socket = WebSocket.tcp(address)
        self.socket.serializer = "json"
        self.socket.socket.settimeout(PATIENCE_S)
        path = "/" + pages[0]["webSocketDebuggerUrl"].split("/", 3)[3]
        status, _, body = self.socket.upgrade(None, path, Host="127.0.0.1")
        assert status == 101, (status, body)
        for domain in ("Network", "Runtime", "Log", "Page"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: object) -> dict:
        """Send a command; return its result. Events on the way are noted."""
        number = next(self.numbers)
        request = {"id": number, "method": method, "params": parameters}
        self.socket.send_octets(json.dumps(request).encode())
        while True:
            message = json.loads(self.socket.receive_octets())
            if message.get("id") == number:
                assert "error" not in message, (method, message)
                return message["result"]
            self.note(message)

    def note(self, event: dict) -> None:
        """Keep what the page has requested, and what went wrong in it."""
        told = event.get("params", {})
        match event.get("method"):
            case "Network.requestWillBeSent":
                self.requested.append(told["request"]["url"])
            case "Network.webSocketCreated":
                self.requested.append(told["url"])
            case "Runtime.exceptionThrown":
                self.faults.append(json.dumps(told["exceptionDetails"]))
            case "Log.entryAdded" if told["entry"]["level"] == "error":
                self.faults.append(f"{told['entry'].get('url')}: {told['entry']['text']}")

    def open(self, url: str) -> None:
        """Open a page."""
        self.ask("Page.navigate", url=url)

    def evaluate(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        asked = {"expression": script, "awaitPromise": True, "returnByValue": True}
        result = self.ask("Runtime.evaluate", **asked)
        assert "exceptionDetails" not in result, (script, result["exceptionDetails"])
        return result["result"].get("value")

    def await_page(self, what: str, script: str) -> None:
        """Wait until an expression in the page is true; one that fails is not, or not yet."""

        def holds() -> bool:
            with contextlib.suppress(AssertionError):
                return bool(self.evaluate(script))
            return False

        await_true(what, holds, PATIENCE_S)

    def close(self) -> None:
        """End it."""
        self.socket.close()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
