"""A TCP relay between a client and a server, that counts what passes on each connection.

Keepalives are the only traffic of an idle connection. So a test waits until several have come,
which is to have lived through several periods of a timer, whatever its length. It can also cut
everything, or stop passing anything on without closing, as a network does that is gone.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

from rig.waiting import await_true


class Relayed:
    """One connection through the relay."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client = client
        self.server = server
        self.is_open = True
        # How often something came from each side.
        self.from_client = 0
        self.from_server = 0

    def cut(self) -> None:
        """End both halves at once."""
        self.is_open = False
        for each in (self.client, self.server):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class Relay:
    """Listens on a port of its own and passes everything on to `target`.

    `look` sees what clients send, with its connection, before that is passed on.
    """

    def __init__(
        self,
        target: tuple[str, int],
        look: Callable[[Relayed, bytes], None] = lambda relayed, octets: None,
    ) -> None:
        self.target = target
        self._look = look
        self.connections: list[Relayed] = []
        self._passing, self._answering = threading.Event(), threading.Event()
        self.go_on()
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> tuple[str, int]:
        """Return the address for clients."""
        return self._listener.getsockname()

    def open(self) -> list[Relayed]:
        """Return the open connections."""
        return [each for each in self.connections if each.is_open]

    def await_open(self, count: int) -> None:
        """Wait until so many connections are left, or have come."""
        await_true(f"{count} connections are open", lambda: len(self.open()) == count)

    def await_keepalives(self, count: int, *, both: bool = True) -> None:
        """Wait until so many more have come on every open connection, from the client at least."""

        def has_come(seen: tuple[Relayed, int, int]) -> bool:
            each, from_client, from_server = seen
            assert each.is_open, "a connection has ended"
            return each.from_client > from_client and (each.from_server > from_server or not both)

        for _ in range(count):
            watched = [(each, each.from_client, each.from_server) for each in self.open()]
            assert watched, "nobody is connected"
            await_true(
                "a keepalive comes on each connection",
                lambda watched=watched: all(map(has_come, watched)),
            )

    def cut(self) -> None:
        """End every connection."""
        for each in self.open():
            each.cut()

    def hold(self) -> None:
        """Pass nothing on any more, and end nothing."""
        self._passing.clear()

    def hold_answers(self) -> None:
        """Pass nothing on to clients any more, and end nothing."""
        self._answering.clear()

    def go_on(self) -> None:
        """Pass on what was held, and all that comes."""
        self._passing.set()
        self._answering.set()

    def close(self) -> None:
        """End everything."""
        self.go_on()
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(self.target)
                except OSError:
                    client.close()
                    continue
                for each in (client, server):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                relayed = Relayed(client, server)
                self.connections.append(relayed)
                for ends in ((client, server, "from_client"), (server, client, "from_server")):
                    threading.Thread(target=self._pass, args=(relayed, *ends), daemon=True).start()

    def _pass(
        self, relayed: Relayed, source: socket.socket, sink: socket.socket, counted: str
    ) -> None:
        with contextlib.suppress(OSError):
            while octets := source.recv(1 << 16):
                self._passing.wait()
                setattr(relayed, counted, getattr(relayed, counted) + 1)
                if source is relayed.client:
                    self._look(relayed, octets)
                else:
                    self._answering.wait()
                sink.sendall(octets)
        relayed.cut()
