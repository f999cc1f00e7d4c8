"""HTTP requests as they are written: no client of Python's resolves a path before it asks."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rig.waiting import DEADLINE_S, await_true


@dataclass
class Answer:
    """An answer of a server."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """Return the header of that name, if there is one."""
        found = [value for key, value in self.headers if key == name.lower()]
        assert len(found) <= 1, found
        return found[0] if found else None


class Http:
    """A server to ask; every request has a connection of its own."""

    def __init__(self, address: tuple[str, int], tls: ssl.SSLContext | None = None):
        self.address = address
        self.tls = tls

    def get(self, path: str, headers: dict[str, str] | None = None) -> Answer:
        """Ask for what is at a path."""
        return self.ask("GET", path, headers)

    def post(self, path: str, body: bytes | str, headers: dict[str, str] | None = None) -> Answer:
        """Send a body to a path."""
        return self.ask("POST", path, headers, body.encode() if isinstance(body, str) else body)

    def ask(
        self, method: str, path: str, headers: dict[str, str] | None = None, body: bytes = b""
    ) -> Answer:
        """Ask, with the path as it is given."""
        lines = [f"{method} {path} HTTP/1.1"]
        given = {"Host": "localhost", "Connection": "close", **(headers or {})}
        if body or method in ("POST", "PUT"):
            given.setdefault("Content-Length", str(len(body)))
        lines += [f"{name}: {value}" for name, value in given.items()]
        head = "\r\n".join([*lines, "", ""]).encode()
        return self.raw(head + body, method)

    def raw(self, request: bytes, method: str = "GET") -> Answer:
        """Send these bytes, and return the first answer."""
        with self.connect() as connection:
            connection.sendall(request)
            return read(connection, method)

    def connect(self) -> socket.socket:
        """Return a connection."""
        connection = socket.create_connection(self.address, timeout=DEADLINE_S)
        if self.tls:
            return self.tls.wrap_socket(connection, server_hostname="localhost")
        return connection

    def await_answer(self, path: str, wanted: Callable[[Answer], bool]) -> None:
        """Ask until the answer is `wanted`."""
        await_true(f"the answer at {path}", lambda: wanted(self.get(path)))


def read(connection: socket.socket, method: str = "GET") -> Answer:
    """Read one answer."""
    response = http.client.HTTPResponse(connection, method=method)
    response.begin()
    body = response.read()
    headers = [(name.lower(), value) for name, value in response.getheaders()]
    return Answer(response.status, headers, body)


def request(method: str, path: str, headers: Iterable[str] = (), body: bytes = b"") -> bytes:
    """Return a request of these header lines, as they are written."""
    lines = [f"{method} {path} HTTP/1.1", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def until_end(connection: socket.socket) -> bytes:
    """Read until the peer closes."""
    parts = []
    try:
        while part := connection.recv(65_536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)
