"""A server of HTTP that keeps what it is asked."""

from __future__ import annotations

import queue
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from rig.waiting import DEADLINE_S


class Site:
    """A server that keeps what it is asked, and answers as its paths say.

    `refusals` are statuses and headers of the next answers.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.requests: queue.Queue[dict] = queue.Queue()
        self.refusals: list[tuple[int, dict[str, str]]] = []
        self.held = threading.Event()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                body = self.rfile.read(length)
                asked = {"method": self.command, "path": self.path, "body": body.decode()}
                headers = {name.lower(): value for name, value in self.headers.items()}
                site.requests.put({**asked, "headers": headers})
                if self.path.startswith("/held"):
                    site.held.wait(DEADLINE_S)
                content = b"x" * 300_000 if self.path == "/long" else "é".encode()
                usual = 404 if self.path == "/missing" else 200, {}
                status, more = site.refusals.pop(0) if site.refusals else usual
                self.send_response(status)
                for name, value in more.items():
                    self.send_header(name, value)
                if self.path == "/away":
                    self.send_header("Location", "http://127.0.0.1:1/")
                self.send_header("X-Two", "1")
                self.send_header("X-Two", "2")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = answer  # noqa: N815

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        # The test is about a client that does not wait for an answer.
        self.server.handle_error = lambda *_: None
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
            self.url = f"https://localhost:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def next(self) -> dict:
        """Return the next request."""
        return self.requests.get(timeout=DEADLINE_S)

    def close(self) -> None:
        """Stop answering."""
        self.held.set()
        self.server.shutdown()
        self.server.server_close()
