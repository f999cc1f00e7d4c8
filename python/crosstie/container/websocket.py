"""WebSocket for hosted components: Autobahn's protocol with a short way for common messages.

A message that came whole, in one frame, uncompressed and outside any other is handed on directly;
so is one sent that way. Everything else, such as fragments, compression, pings and closing, is
Autobahn's, which sees the same bytes in the same order.
"""

from __future__ import annotations

import random

from autobahn.twisted.websocket import WampWebSocketClientFactory, WampWebSocketClientProtocol
from autobahn.wamp.exception import SerializationError, TransportLost

from crosstie.container.farewell import Farewell
from crosstie.container.oversize import replacement
from crosstie.container.writing import writer

# The first byte of a frame that is a whole message.
TEXT, BINARY = 0x81, 0x82
# The second: the length, or that it follows in two bytes; above, it is Autobahn's.
LENGTH_SHORT_MAX, LENGTH_FOLLOWS = 125, 126
MASKED = 0x80


class WebSocketProtocol(WampWebSocketClientProtocol):
    """One connection. Inputs: `dataReceived` and `send`; output: `session.onMessage`."""

    def connectionMade(self):
        """Begin the handshake."""
        self._writer = writer(self.transport)
        self._farewell = Farewell()
        super().connectionMade()

    def dataReceived(self, data):
        """Take what one read brought."""
        self._writer.input_came()
        if self.state == self.STATE_OPEN and not self.data and not self.inside_message:
            data = self._take_whole_messages(data)
        if data:
            self._dataReceived(data)

    def _take_whole_messages(self, data):
        """Hand on the whole messages at the beginning; return the bytes after them."""
        at, end = 0, len(data)
        stats = self.trafficStats
        while end - at >= 2 and self.current_frame is None and self.state == self.STATE_OPEN:
            kind, length, begin = data[at], data[at + 1], at + 2
            if length == LENGTH_FOLLOWS:
                begin += 2
                length = int.from_bytes(data[at + 2 : begin], "big")
                if length <= LENGTH_SHORT_MAX:
                    break
            elif length > LENGTH_FOLLOWS:
                break
            after = begin + length
            if after > end or (kind != TEXT and kind != BINARY):
                break
            if 0 < self.maxMessagePayloadSize < length or 0 < self.maxFramePayloadSize < length:
                break
            payload = data[begin:after]
            if kind == TEXT and not is_text(payload):
                break
            stats.incomingOctetsWireLevel += after - at
            stats.incomingOctetsWebSocketLevel += length
            stats.incomingOctetsAppLevel += length
            stats.incomingWebSocketFrames += 1
            stats.incomingWebSocketMessages += 1
            if self.autoPingTimeoutCall and self.autoPingRestartOnAnyTraffic:
                self._cancelAutoPingTimeoutCall()
            self.onMessage(payload, kind == BINARY)
            at = after
        return data[at:] if at else data

    def onMessage(self, payload, isBinary):  # noqa: N803 (Autobahn calls it so)
        """Take one message, or several where the serializer batches."""
        try:
            for message in self._serializer.unserialize(payload, isBinary):
                self._session.onMessage(self._farewell.heard(message, self._session))
        except Exception as error:
            self.log.warn(
                "Closing the connection to {peer}: it sent a message that cannot be handled:"
                " {error}",
                peer=self.peer,
                error=error,
            )
            self._bailout(self.CLOSE_STATUS_CODE_PROTOCOL_ERROR, reason=str(error))

    def send(self, message):
        """Send a message of the session."""
        if self._session is None:
            raise TransportLost()
        if not self._farewell.allows(message):
            return
        try:
            payload, is_binary = self._serializer.serialize(message)
        except Exception as error:
            raise SerializationError(f"unable to serialize the payload ({error})") from error
        length = len(payload)
        # Before it is compressed: a message that was, but is not sent, spoils those after it.
        if 0 < self.maxMessagePayloadSize < length:
            self.send(replacement(message, length, self.maxMessagePayloadSize, self.peer))
            return
        if (
            length > 0xFFFF
            or self.state != self.STATE_OPEN
            or self._perMessageCompress is not None
            or self.send_queue
            or self.autoFragmentSize
            or not (self.maskClientFrames and self.applyMask)
        ):
            self.sendMessage(payload, is_binary)
            return
        kind = BINARY if is_binary else TEXT
        if length <= LENGTH_SHORT_MAX:
            head = bytes((kind, MASKED | length))
        else:
            head = bytes((kind, MASKED | LENGTH_FOLLOWS, length >> 8, length & 0xFF))
        octets = head + masked(payload)
        stats = self.trafficStats
        stats.outgoingWebSocketMessages += 1
        stats.outgoingWebSocketFrames += 1
        stats.outgoingOctetsAppLevel += length
        stats.outgoingOctetsWebSocketLevel += length
        stats.outgoingOctetsWireLevel += len(octets)
        self._writer.write(octets)

    def connectionLost(self, reason):
        """End the session, then tell who made this connection."""
        super().connectionLost(reason)
        self.factory.on_lost(reason)


def is_text(payload) -> bool:
    """Whether the bytes are UTF-8."""
    if payload.isascii():
        return True
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True


def masked(payload) -> bytes:
    """Return a random mask and the payload under it. RFC 6455, section 5.3."""
    length = len(payload)
    mask = random.getrandbits(32).to_bytes(4, "big")
    # One operation on two long numbers is faster than a loop over bytes, up to some kilobytes
    # and beyond.
    pattern = (mask * (length // 4 + 1))[:length]
    number = int.from_bytes(payload, "big") ^ int.from_bytes(pattern, "big")
    return mask + number.to_bytes(length, "big")


class WebSocketFactory(WampWebSocketClientFactory):
    """Makes the protocols of one component; `on_lost` is called with the reason of each end."""

    protocol = WebSocketProtocol

    def __init__(self, make_session, url, serializers, on_lost):
        super().__init__(make_session, url, serializers=serializers)
        self.noisy = False
        self.on_lost = on_lost
