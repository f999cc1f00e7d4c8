"""A stand-in for the monitoring page of a NATS server, which can be told to lie."""

from __future__ import annotations

import contextlib
import json
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NO_SYNC = "a server that does not sync"
# What it says in place of the truth, by the name of the lie.
LIES = {
    "an error": (500, b"something went wrong"),
    "garbage": (200, b"\x00\xff{]"),
    "a page without JetStream": (200, b'{"disabled": true}'),
    NO_SYNC: (
        200,
        json.dumps({"config": {"sync_interval": 120_000_000_000}}).encode(),
    ),
    "a server that came up empty": (
        200,
        json.dumps({"config": {"sync_always": True}, "streams": 0, "messages": 0}).encode(),
    ),
}
SILENCE = "nothing"
TRUTH = "the truth"


class Monitor:
    """Answers for one server: what the server says, a lie, or nothing."""

    def __init__(self, host: str, url: str):
        monitor = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                monitor.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.saying = TRUTH
        self.truth = url
        self._is_closing = threading.Event()
        self._server = ThreadingHTTPServer((host, 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://{host}:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=[0.05], daemon=True).start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Answer a request, or keep its sender waiting."""
        status, body = LIES.get(self.saying, (0, b""))
        if self.saying == TRUTH:
            url = self.truth + request.path
            with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as page:
                status, body = page.status, page.read()
        if not status:
            self._is_closing.wait(20)
            return
        with contextlib.suppress(OSError):
            request.send_response(status)
            request.send_header("Content-Length", str(len(body)))
            request.end_headers()
            request.wfile.write(body)

    def close(self) -> None:
        """End it."""
        self._is_closing.set()
        self._server.shutdown()
        self._server.server_close()
