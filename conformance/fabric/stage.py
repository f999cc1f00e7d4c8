"""Sessions of nodes, and what nodes of one realm are configured with."""

from __future__ import annotations

import contextlib
import threading

from rig import config
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.session import (
    CALL,
    ERROR,
    EVENT,
    GOODBYE,
    HELLO,
    INVOCATION,
    PUBLISH,
    PUBLISHED,
    REGISTER,
    REGISTERED,
    RESULT,
    ROLES,
    SUBSCRIBE,
    SUBSCRIBED,
    UNREGISTER,
    UNREGISTERED,
    WELCOME,
    YIELD,
)
from rig.waiting import await_true

FEATURES = (
    "call_canceling",
    "call_reroute",
    "call_timeout",
    "progressive_call_results",
    "progressive_call_invocations",
)
ABLE = ROLES | {role: {"features": dict.fromkeys(FEATURES, True)} for role in ("caller", "callee")}


class Session:
    """A session of any role, by RawSocket."""

    def __init__(self, node: Router, realm: str = "realm1", transport: str = "tcp"):
        self.peer = RawSocket.tcp(node.address(transport)).shake_hands()
        self.peer.say(HELLO, realm, {"roles": ABLE})
        self.id = self.peer.hear(WELCOME)[1]
        self._request = 0

    def subscribe(self, topic: str, **options: object) -> int:
        """Subscribe, wait until that is so, and return the subscription."""
        self._request += 1
        self.peer.say(SUBSCRIBE, self._request, options, topic)
        return self.peer.hear(SUBSCRIBED)[2]

    def tell_subscribe(self, topic: str) -> None:
        """Subscribe without waiting."""
        self._request += 1
        self.peer.say(SUBSCRIBE, self._request, {}, topic)

    def await_subscribed(self) -> int:
        """Wait until that is so."""
        return self.peer.hear(SUBSCRIBED)[2]

    def publish(self, topic: str, *args: object, **options: object) -> None:
        """Publish, and wait until that is done."""
        self._request += 1
        options["acknowledge"] = True
        self.peer.say(PUBLISH, self._request, options, topic, list(args))
        self.peer.hear(PUBLISHED)

    def tell(self, topic: str, *args: object) -> None:
        """Publish without waiting."""
        self._request += 1
        self.peer.say(PUBLISH, self._request, {}, topic, list(args))

    def event(self) -> list:
        """Return the next event."""
        return self.peer.hear(EVENT)

    def tell_register(self, procedure: str, **options: object) -> None:
        """Register without waiting."""
        self._request += 1
        self.peer.say(REGISTER, self._request, options, procedure)

    def register(self, procedure: str, **options: object) -> int:
        """Register, wait until that is so, and return the registration."""
        self.tell_register(procedure, **options)
        return self.peer.hear(REGISTERED)[2]

    def not_registered(self, procedure: str, **options: object) -> str:
        """Register in vain, and return why."""
        self.tell_register(procedure, **options)
        return self.peer.hear(ERROR)[4]

    def unregister(self, registration: int) -> None:
        """Unregister, and wait until that is so."""
        self._request += 1
        self.peer.say(UNREGISTER, self._request, registration)
        self.peer.hear(UNREGISTERED)

    def call(self, procedure: str, *args: object, **options: object) -> int:
        """Call without waiting, and return the request."""
        self._request += 1
        self.peer.say(CALL, self._request, options, procedure, list(args))
        return self._request

    def call_on(self, request: int, procedure: str, *args: object, **options: object) -> None:
        """Send the next part of a call."""
        self.peer.say(CALL, request, options, procedure, list(args))

    def result(self) -> list:
        """Return the next result."""
        return self.peer.hear(RESULT)

    def refused(self, procedure: str, *args: object) -> str:
        """Call in vain, and return why."""
        self.call(procedure, *args)
        return self.peer.hear(ERROR)[4]

    def invocation(self) -> list:
        """Return the next invocation."""
        return self.peer.hear(INVOCATION)

    def answer(self, invocation: list, *results: object, **options: object) -> None:
        """Answer an invocation."""
        self.peer.say(YIELD, invocation[1], options, list(results))

    def fail(self, invocation: list, error: str, *args: object) -> None:
        """Answer an invocation with an error."""
        self.peer.say(ERROR, INVOCATION, invocation[1], {}, error, list(args))

    def serve(self, name: str) -> None:
        """Answer everything with that name, until it is closed."""

        def answer() -> None:
            with contextlib.suppress(OSError, AssertionError):
                while True:
                    self.answer(self.invocation(), name)

        threading.Thread(target=answer, daemon=True).start()

    def is_sent_away(self) -> bool:
        """Wait for what a session is told that loses a registration."""
        return self.peer.hear_any()[0] in (GOODBYE, UNREGISTERED)

    def close(self) -> None:
        """Leave."""
        self.peer.say(GOODBYE, {}, "wamp.close.normal")
        self.peer.close()


def node_config(urls: list[str], realm: dict | None = None, **fabric: object) -> dict:
    """Return a node whose `realm1` is shared over these servers."""
    link = {"nats": {"urls": urls}, **fabric}
    shared = {"name": "realm1", "roles": [config.role("anonymous")], "fabric": link}
    return config.node([shared | (realm or {})], [config.universal("tcp", config.tcp())])


def await_neighbours(found: list[Router], count: int | None = None, realm: str = "realm1") -> None:
    """Wait until each of them knows all the others in that realm."""
    wanted = len(found) - 1 if count is None else count
    for each in found:
        await_true(
            f"{wanted} neighbours",
            lambda each=each: (
                each.metric("fabric_neighbours", state="active", realm=realm) == wanted
            ),
        )
