"""Writing to a socket at once.

Twisted collects what is written, asks the reactor to tell when the socket takes data, and sends in
the reactor's next turn: for a peer that answers one message at a time that is a wake-up and two
system calls more for each. Here the first messages after each input are sent at once. Later
writes are left to Twisted, so that a burst still becomes few system calls.
"""

from __future__ import annotations

from twisted.internet.address import UNIXAddress
from twisted.internet.tcp import Connection

# An answer and the next request: more than that without any input in between is a burst.
AT_ONCE_MAX = 2


class Writer:
    """Writes to one transport; `input_came` is to be called at each read."""

    __slots__ = ("_at_once", "_transport")

    def __init__(self, transport):
        self._transport = transport
        self._at_once = AT_ONCE_MAX if is_plain(transport) else 0

    def input_came(self):
        """Allow messages to be sent at once again."""
        self._at_once = AT_ONCE_MAX

    def write(self, octets):
        """Write bytes after all that was written before."""
        transport = self._transport
        if (
            self._at_once
            and not transport.dataBuffer
            and not transport._tempDataLen
            and transport.connected
            and not transport.disconnecting
        ):
            self._at_once -= 1
            try:
                sent = transport.socket.send(octets)
            except OSError:
                # Full or broken: Twisted finds out which, and does what follows from it.
                sent = 0
            if sent == len(octets):
                return
            octets = octets[sent:]
        transport.write(octets)


class Waiting(Writer):
    """Leaves everything to a transport that is more than a socket, such as TLS."""

    __slots__ = ()

    def input_came(self):
        """Nothing changes."""


def writer(transport) -> Writer:
    """Return what writes to this transport as early as it may."""
    if isinstance(transport.getHost(), UNIXAddress):
        # Autobahn sets this whatever the socket is, and Twisted logs that it cannot be set.
        transport.setTcpNoDelay = lambda enabled: None
    else:
        # RawSocket of Autobahn's leaves it to the kernel to wait for more.
        transport.setTcpNoDelay(True)
    return Writer(transport) if is_plain(transport) else Waiting(transport)


def is_plain(transport) -> bool:
    """Whether what is written goes to the socket as it is, and can be seen to have gone."""
    return (
        isinstance(transport, Connection)
        and not transport.TLS
        and hasattr(transport, "_tempDataLen")
        and hasattr(transport, "dataBuffer")
    )
