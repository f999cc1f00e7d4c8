"""A router for a test: started on free ports, gone at its end.

```python
from crosstie.testing import Router

with Router() as router:
    print(router.url, router.amqp_url)
```

With pytest, the fixture `crosstie_router` is such a router for all tests of a run.
"""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import tempfile
import threading
from pathlib import Path

from crosstie.__main__ import program

# Everything is allowed to everyone, on addresses of this machine.
CONFIG = {
    "version": 2,
    "workers": [
        {
            "type": "router",
            "id": "router",
            "realms": [
                {
                    "name": "realm1",
                    "roles": [
                        {
                            "name": "anonymous",
                            "permissions": [
                                {
                                    "uri": "",
                                    "match": "prefix",
                                    "allow": {
                                        "call": True,
                                        "register": True,
                                        "publish": True,
                                        "subscribe": True,
                                    },
                                }
                            ],
                        }
                    ],
                }
            ],
            "transports": [
                {
                    "type": "universal",
                    "id": "wamp",
                    "endpoint": {"type": "tcp", "interface": "127.0.0.1", "port": 0},
                    "rawsocket": {},
                    "websocket": {"ws": {}},
                    "pages": ["health", "metrics", "status"],
                },
                {
                    "type": "amqp",
                    "id": "amqp",
                    "endpoint": {"type": "tcp", "interface": "127.0.0.1", "port": 0},
                },
            ],
        }
    ],
}


def config() -> dict:
    """Return a copy of the default configuration, to be changed and passed to `Router`.

    It has the realm `realm1`, where anonymous clients may do everything, and an AMQP broker with
    the user `guest`. A port of 0 is a free one.
    """
    return copy.deepcopy(CONFIG)


class StartError(Exception):
    """The router did not become ready; the text has its log."""


class Router:
    """One router in a directory of its own, for as long as a `with` block."""

    def __init__(
        self,
        config: dict | None = None,
        *,
        directory: Path | str | None = None,
        timeout: float = 60,
    ) -> None:
        """Prepare it. Without `directory` it has a temporary one; a `config.json` there is used."""
        self.config = config
        self.timeout = timeout
        self.log: list[str] = []
        # Its files, such as durable queues, stay for the next start, as long as this object.
        self._temporary = None if directory else tempfile.TemporaryDirectory(prefix="crosstie-")
        self.directory = Path(directory or self._temporary.name)
        self._process: subprocess.Popen | None = None
        self._news = threading.Condition()
        self._is_ready = False

    def __enter__(self) -> Router:
        """Start it, and wait until clients may connect."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it, and remove its temporary directory."""
        try:
            self.stop()
        finally:
            if self._temporary is not None:
                self._temporary.cleanup()

    def start(self) -> None:
        """Start it, and wait until clients may connect."""
        if self._process is not None and self._process.poll() is None:
            raise StartError("the router runs already")
        command = os.environ.get("CROSSTIE") or program()
        if command is None:
            raise StartError("there is no program 'crosstie' beside this Python, nor on PATH")
        self.log, self._is_ready = [], False
        file = self.directory / "config.json"
        if self.config is not None or not file.exists():
            file.write_text(json.dumps(self.config or CONFIG, indent=1))
        self._process = subprocess.Popen(
            [command, "start", "--cbdir", str(self.directory), "--logformat", "json"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        threading.Thread(target=self._read, daemon=True).start()
        with self._news:
            self._news.wait_for(
                lambda: self._is_ready or self._process.poll() is not None, self.timeout
            )
        if not self._is_ready:
            self.kill()
            raise StartError("the router did not start:\n" + "\n".join(self.log))

    def stop(self) -> int:
        """End it in order; return its exit code."""
        process = self._process
        if process is None:
            return 0
        process.terminate()
        try:
            return process.wait(self.timeout)
        finally:
            self.kill()

    def kill(self) -> None:
        """End it without asking, as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def urls(self, transport: str) -> list[str]:
        """Return where clients reach the transport with this id."""
        for text in self.log:
            if f"transport '{transport}' started at" in text:
                return re.findall(r"\w+(?:\+unix)?://[^\s,]+", text)
        raise LookupError(f"there is no transport '{transport}'")

    def _url(self, transport: str, scheme: str) -> str:
        found = [url for url in self.urls(transport) if url.startswith(scheme + "://")]
        if not found:
            raise LookupError(f"transport '{transport}' has no URL with {scheme}")
        return found[0]

    @property
    def url(self) -> str:
        """The WebSocket URL of the transport `wamp`."""
        return self._url("wamp", "ws")

    @property
    def rawsocket_url(self) -> str:
        """The RawSocket URL of the transport `wamp`."""
        return self._url("wamp", "rs")

    @property
    def http_url(self) -> str:
        """Where the pages `/health` and `/metrics` of the transport `wamp` are."""
        return self.url.replace("ws://", "http://").removesuffix("/ws")

    @property
    def amqp_url(self) -> str:
        """The URL of the transport `amqp`, with the user `guest` and the vhost `/`."""
        address = self._url("amqp", "amqp").removeprefix("amqp://").split("/")[0]
        return f"amqp://guest:guest@{address}/%2F"

    def _read(self) -> None:
        process = self._process
        for line in process.stderr:
            try:
                text = str(json.loads(line)["fields"].get("message", ""))
            except (ValueError, KeyError, TypeError, AttributeError):
                text = line.rstrip()
            with self._news:
                self.log.append(text)
                self._is_ready |= text.startswith("Ready")
                self._news.notify_all()
        process.wait()
        with self._news:
            self._news.notify_all()
