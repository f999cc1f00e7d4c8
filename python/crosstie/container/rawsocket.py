"""RawSocket for hosted components: Autobahn's protocol with a short way for each message.

Autobahn's own looks at its log twice and copies what it received several times per message, and
it takes a ping for a broken message. The handshake, the session and the closing are Autobahn's.
"""

from __future__ import annotations

from autobahn.twisted.rawsocket import WampRawSocketClientFactory, WampRawSocketClientProtocol
from autobahn.wamp.exception import SerializationError, TransportLost

from crosstie.container.farewell import Farewell
from crosstie.container.oversize import replacement
from crosstie.container.writing import writer

HEADER_OCTETS = 4
MESSAGE, PING, PONG = 0, 1, 2
# 24 bits do not hold the longest length that a handshake allows: this bit stands for it.
LENGTH_MAX, IS_LENGTH_MAX = 1 << 24, 0x08


class RawSocketProtocol(WampRawSocketClientProtocol):
    """One connection. Inputs: `dataReceived` and `send`; output: `session.onMessage`."""

    def connectionMade(self):
        """Begin the handshake."""
        self._writer = writer(self.transport)
        # Bytes of frames that are not complete yet.
        self._rest = b""
        self._refused = False
        self._farewell = Farewell()
        super().connectionMade()

    def dataReceived(self, data):
        """Take what one read brought: after the handshake, frames."""
        if not self._handshake_complete:
            self._shake_hands(data)
            return
        if self._refused:
            return
        self._writer.input_came()
        if self._rest:
            # A long message comes in many reads: they are joined once, when all is there.
            self._rest += data
            if len(self._rest) < self._awaited:
                return
            data = bytes(self._rest)
            self._rest = b""
        at, end = 0, len(data)
        while end - at >= HEADER_OCTETS:
            length = int.from_bytes(data[at + 1 : at + HEADER_OCTETS], "big")
            kind = data[at]
            if kind & IS_LENGTH_MAX and not length:
                kind, length = kind ^ IS_LENGTH_MAX, LENGTH_MAX
            if length > self.MAX_LENGTH:
                self._refuse(f"a frame of {length} bytes, where {self.MAX_LENGTH} were agreed")
                return
            begin = at + HEADER_OCTETS
            if end - begin < length:
                self._awaited = HEADER_OCTETS + length
                break
            at = begin + length
            self._frame(kind, data[begin:at])
            if self._session is None or self._refused:
                return
        else:
            self._awaited = HEADER_OCTETS
        if at < end:
            self._rest = bytearray(data[at:])

    def send(self, message):
        """Send a message of the session."""
        if self._session is None:
            raise TransportLost()
        if not self._farewell.allows(message):
            return
        try:
            payload, _ = self._serializer.serialize(message)
        except Exception as error:
            raise SerializationError(f"unable to serialize the payload ({error})") from error
        length = len(payload)
        if length > self._max_len_send:
            self.send(replacement(message, length, self._max_len_send, self.peer))
            return
        self._writer.write(header(MESSAGE, length) + payload)

    def connectionLost(self, reason):
        """End the session, then tell who made this connection."""
        self._rest = b""
        super().connectionLost(reason)
        self.factory.on_lost(reason)

    def _shake_hands(self, data):
        """Let Autobahn have what is the handshake's, and no more of it."""
        missing = HEADER_OCTETS - len(self._handshake_bytes)
        super().dataReceived(data[:missing])
        if self._handshake_complete and len(data) > missing:
            self.dataReceived(data[missing:])

    def _frame(self, kind, payload):
        if kind == MESSAGE:
            self.stringReceived(payload)
        elif kind == PING:
            self._writer.write(header(PONG, len(payload)) + payload)
        elif kind != PONG:
            self._refuse(f"a frame of the unknown kind {kind}")

    def stringReceived(self, payload):
        """Take one message, or several where the serializer batches."""
        try:
            for message in self._serializer.unserialize(payload):
                self._session.onMessage(self._farewell.heard(message, self._session))
        except Exception as error:
            self._refuse(f"a message that cannot be handled: {error}")

    def _refuse(self, what):
        self.log.warn("Closing the connection to {peer}: it sent {what}", peer=self.peer, what=what)
        self._refused = True
        self._rest = b""
        self.abort()


def header(kind, length) -> bytes:
    """Return what goes before a payload."""
    if length == LENGTH_MAX:
        return bytes((kind | IS_LENGTH_MAX, 0, 0, 0))
    return (kind << 24 | length).to_bytes(HEADER_OCTETS, "big")


class RawSocketFactory(WampRawSocketClientFactory):
    """Makes the protocols of one component; `on_lost` is called with the reason of each end."""

    protocol = RawSocketProtocol

    def __init__(self, make_session, serializer, on_lost):
        super().__init__(make_session, serializer)
        self.on_lost = on_lost
