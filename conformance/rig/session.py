"""WAMP by hand over any plain transport: join, and send whatever one likes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable

import cbor2
import msgpack

HELLO, WELCOME, ABORT, GOODBYE, ERROR = 1, 2, 3, 6, 8
PUBLISH, PUBLISHED = 16, 17
SUBSCRIBE, SUBSCRIBED, UNSUBSCRIBE, UNSUBSCRIBED, EVENT = 32, 33, 34, 35, 36
CALL, CANCEL, RESULT = 48, 49, 50
REGISTER, REGISTERED, UNREGISTER, UNREGISTERED = 64, 65, 66, 67
INVOCATION, INTERRUPT, YIELD = 68, 69, 70

ROLES = {"publisher": {}, "subscriber": {}, "caller": {}, "callee": {}}
VIOLATION = "wamp.error.protocol_violation"

ENCODE: dict[str, Callable] = {
    "json": lambda message: json.dumps(message).encode(),
    "msgpack": msgpack.packb,
    "cbor": cbor2.dumps,
}
DECODE: dict[str, Callable] = {
    "json": json.loads,
    "msgpack": msgpack.unpackb,
    "cbor": cbor2.loads,
}


class Wamp:
    """Messages over a transport with `send_bytes` and `receive_bytes`; mixed into both."""

    serializer = "json"

    def send_octets(self, octets: bytes) -> None:
        """Send the bytes of one message."""
        raise NotImplementedError

    def receive_octets(self) -> bytes:
        """Return the bytes of the next message."""
        raise NotImplementedError

    def say(self, *message: object) -> None:
        """Send one message."""
        self.send_octets(ENCODE[self.serializer](list(message)))

    def hear(self, kind: int) -> list:
        """Return the next message, which must be of this kind."""
        message = self.hear_any()
        assert message[0] == kind, message
        return message

    def hear_any(self) -> list:
        """Return the next message."""
        return DECODE[self.serializer](self.receive_octets())

    def join(self, realm: str = "realm1", **details: object):
        """Open a session."""
        self.say(HELLO, realm, {"roles": ROLES, **details})
        welcome = self.hear(WELCOME)
        self.id, self.authid = welcome[1], welcome[2].get("authid", "")
        self.requests = itertools.count(1)
        return self

    def ask(self, kind: int, *rest: object) -> int:
        """Send a request with the next id."""
        request = next(self.requests)
        self.say(kind, request, *rest)
        return request

    def subscribe(self, topic: str, **options: object) -> int:
        """Subscribe; return the subscription."""
        self.ask(SUBSCRIBE, options, topic)
        return self.hear(SUBSCRIBED)[2]

    def register(self, procedure: str, **options: object) -> int:
        """Register; return the registration. The caller handles the invocations."""
        self.ask(REGISTER, options, procedure)
        return self.hear(REGISTERED)[2]

    def publish(self, topic: str, *args: object) -> None:
        """Publish, and wait for the acknowledgement."""
        self.ask(PUBLISH, {"acknowledge": True}, topic, args)
        self.hear(PUBLISHED)

    def round_trip(self) -> None:
        """Call a procedure of one's own: the whole way through the router and back."""
        registration = self.register(f"com.witness.n{self.id}")
        request = self.ask(CALL, {}, f"com.witness.n{self.id}", ["ping"])
        invocation = self.hear(INVOCATION)
        assert (invocation[2], invocation[4]) == (registration, ["ping"])
        self.say(YIELD, invocation[1], {}, ["pong"])
        result = self.hear(RESULT)
        assert (result[1], result[3]) == (request, ["pong"])
        self.ask(UNREGISTER, registration)
        self.hear(UNREGISTERED)
