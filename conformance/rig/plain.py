"""A connection with nothing but sockets: for saying what no client library would say."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path

from rig.waiting import DEADLINE_S


class ClosedError(Exception):
    """The router ended the connection; `rest` came before that and was not asked for."""

    def __init__(self, rest: bytes = b""):
        super().__init__(f"closed by the router, after {rest[:200]!r}")
        self.rest = rest


class Keeping:
    """Takes the place of a socket, and keeps what would be sent."""

    def __init__(self):
        self.octets = bytearray()

    def sendall(self, octets: bytes) -> None:
        """Keep bytes."""
        self.octets += octets


class Plain:
    """Bytes to and from the router."""

    def __init__(self, connected: socket.socket):
        connected.settimeout(DEADLINE_S)
        self.socket = connected
        self._kept = b""

    @classmethod
    def tcp(
        cls,
        address: tuple[str, int],
        receive_buffer: int | None = None,
        source: str = "",
    ):
        """Connect over TCP, from the address `source` if one is given.

        A small `receive_buffer` makes a peer that soon takes no more.
        """
        opened = socket.socket()
        if source:
            opened.bind((source, 0))
        if receive_buffer:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        opened.settimeout(DEADLINE_S)
        opened.connect(address)
        return cls(opened)

    @classmethod
    def unix(cls, path: Path):
        """Connect over a Unix socket."""
        opened = socket.socket(socket.AF_UNIX)
        opened.settimeout(DEADLINE_S)
        opened.connect(str(path))
        return cls(opened)

    @classmethod
    def tls(cls, address: tuple[str, int], authority: Path):
        """Connect over TLS, and verify the router."""
        context = ssl.create_default_context(cafile=str(authority))
        opened = socket.create_connection(address, DEADLINE_S)
        return cls(context.wrap_socket(opened, server_hostname="localhost"))

    @property
    def name(self) -> str:
        """How the router's log names this peer."""
        host, port = self.socket.getsockname()[:2]
        return f"{host}:{port}"

    def send(self, octets: bytes) -> None:
        """Send bytes; a router that has closed already is not an error here."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(octets)

    @contextlib.contextmanager
    def at_once(self) -> Iterator[bytearray]:
        """Send all that is sent meanwhile in one piece."""
        with self.kept() as octets:
            yield octets
        self.send(octets)

    @contextlib.contextmanager
    def kept(self) -> Iterator[bytearray]:
        """Keep what would be sent meanwhile."""
        outgoing, keeping = self.socket, Keeping()
        self.socket = keeping
        try:
            yield keeping.octets
        finally:
            self.socket = outgoing

    def receive(self, count: int) -> bytes:
        """Return exactly `count` bytes."""
        while len(self._kept) < count:
            more = self._receive_some()
            if not more:
                raise ClosedError(self._kept)
            self._kept += more
        octets, self._kept = self._kept[:count], self._kept[count:]
        return octets

    def echoed(self, octets: bytes) -> bytes:
        """Send bytes and return as many, both at once, as an echo asks for.

        In one thread, because TLS in Python is not made for two.
        """
        waits = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
        unsent = memoryview(octets)
        self.socket.setblocking(False)
        while len(self._kept) < len(octets):
            with contextlib.suppress(*waits):
                if unsent:
                    unsent = unsent[self.socket.send(unsent[:65536]) :]
            try:
                more = self._receive_some()
            except waits:
                writing = [self.socket] if unsent else []
                if select.select([self.socket], writing, [], DEADLINE_S) == ([], [], []):
                    raise TimeoutError(f"{len(self._kept)} bytes came back") from None
                continue
            if not more:
                raise ClosedError(self._kept)
            self._kept += more
        self.socket.settimeout(DEADLINE_S)
        return self.receive(len(octets))

    def receive_until(self, end: bytes) -> bytes:
        """Return the bytes up to and with `end`."""
        while end not in self._kept:
            more = self._receive_some()
            if not more:
                raise ClosedError(self._kept)
            self._kept += more
        at = self._kept.index(end) + len(end)
        octets, self._kept = self._kept[:at], self._kept[at:]
        return octets

    def receive_all(self) -> bytes:
        """Return everything until the router closes its side."""
        while more := self._receive_some():
            self._kept += more
        octets, self._kept = self._kept, b""
        return octets

    def finish(self) -> None:
        """Close the sending side only."""
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Cut the connection with a TCP reset."""
        linger = struct.pack("ii", 1, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.socket.close()

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _receive_some(self) -> bytes:
        try:
            return self.socket.recv(65536)
        except (ConnectionResetError, BrokenPipeError):
            # Closing with unread bytes resets the connection; whoever broke the protocol
            # while still sending has to expect that.
            return b""
