"""Sessions of nodes, and what nodes of one realm are configured with."""

from __future__ import annotations

from rig import config
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.session import (
    EVENT,
    GOODBYE,
    HELLO,
    PUBLISH,
    PUBLISHED,
    ROLES,
    SUBSCRIBE,
    SUBSCRIBED,
    WELCOME,
)
from rig.waiting import await_true


class Session:
    """A session that publishes and subscribes, by RawSocket."""

    def __init__(self, node: Router, realm: str = "realm1", transport: str = "tcp"):
        self.peer = RawSocket.tcp(node.address(transport)).shake_hands()
        self.peer.say(HELLO, realm, {"roles": ROLES})
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

    def close(self) -> None:
        """Leave."""
        self.peer.say(GOODBYE, {}, "wamp.close.normal")
        self.peer.close()


def node_config(urls: list[str], realm: dict | None = None, **fabric: object) -> dict:
    """Return a node whose `realm1` is shared over these servers."""
    link = {"nats": {"urls": urls}, **fabric}
    shared = {"name": "realm1", "roles": [config.role("anonymous")], "fabric": link}
    return config.node([shared | (realm or {})], [config.universal("tcp", config.tcp())])


def await_neighbours(found: list[Router], count: int | None = None) -> None:
    """Wait until each of them knows all the others."""
    wanted = len(found) - 1 if count is None else count
    for each in found:
        await_true(
            f"{wanted} neighbours",
            lambda each=each: each.metric("fabric_neighbours", state="active") == wanted,
        )
