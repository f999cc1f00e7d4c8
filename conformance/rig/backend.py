"""A web server behind the router: it notes what it is sent, and answers what a test says."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from rig.waiting import DEADLINE_S


@dataclass
class Got:
    """One request, as it came."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes = b""
    #: For answers in parts.
    connection: socket.socket | None = field(default=None, repr=False)

    def header(self, name: str) -> str | None:
        """Return the header of that name, which comes once."""
        found = [value for key, value in self.headers if key == name.lower()]
        assert len(found) <= 1, found
        return found[0] if found else None


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Backend:
    """Listens on a port of its own. `answer` returns bytes, or None to close the connection."""

    def __init__(self, answer: Callable[[Got], bytes | None] = lambda _got: OK):
        self.answer = answer
        self.got: list[Got] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Listen no more."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(2 * DEADLINE_S)
        try:
            with connection, connection.makefile("rb") as lines:
                while got := read(lines):
                    got.connection = connection
                    self.got.append(got)
                    answer = self.answer(got)
                    if answer is None:
                        return
                    connection.sendall(answer)
        except OSError:
            # The router has gone, which a test may want.
            pass


def read(lines) -> Got | None:
    """Read a whole request; None at the end of the connection."""
    line = lines.readline().decode("latin-1").rstrip("\r\n")
    if not line:
        return None
    headers = []
    while text := lines.readline().decode("latin-1").rstrip("\r\n"):
        name, _, value = text.partition(":")
        headers.append((name.lower(), value.strip()))
    got = Got(line, headers)
    if got.header("transfer-encoding"):
        while size := int(lines.readline(), 16):
            got.body += lines.read(size)
            lines.readline()
        lines.readline()
    else:
        got.body = lines.read(int(got.header("content-length") or 0))
    return got
