"""Nodes with links between their realms, and sessions by hand in them."""

from __future__ import annotations

import socket
from collections.abc import Callable

from rig import config
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.session import (
    CALL,
    EVENT,
    INVOCATION,
    PUBLISH,
    PUBLISHED,
    REGISTER,
    REGISTERED,
    RESULT,
    YIELD,
)
from rig.waiting import await_true

FEATURES = {
    "publisher": {},
    "subscriber": {},
    "caller": {
        "features": {
            "progressive_call_results": True,
            "progressive_call_invocations": True,
            "call_canceling": True,
        }
    },
    "callee": {
        "features": {
            "progressive_call_results": True,
            "progressive_call_invocations": True,
            "call_canceling": True,
        }
    },
}


def everybody() -> dict:
    """Return a role that may do everything and discloses who does it."""
    return config.role("anonymous", config.permission("*", disclose=True))


def node(*links: dict, port: int = 0, **realm: object) -> dict:
    """Return a node with a realm that has these links."""
    realm = {"name": "realm1", "roles": [everybody()], "rlinks": list(links), **realm}
    transports = [config.universal("tcp", config.tcp(port=port))]
    # Sessions by hand do not answer a GOODBYE.
    return config.node([realm], transports, limits={"shutdown_timeout_ms": 100})


def to(address: tuple[str, int], name: str = "rlink1", **more: object) -> dict:
    """Return a link to a node."""
    host, port = address
    endpoint = {"type": "tcp", "host": host, "port": port}
    return {
        "id": name,
        "realm": "realm1",
        "auth": {"anonymous": {}},
        "transport": {
            "type": "websocket",
            "endpoint": endpoint,
            "url": f"ws://{host}:{port}/ws",
            "serializers": ["cbor"],
        },
        "reconnect_delay_ms_max": 500,
        **more,
    }


def open_at(router: Router, realm: str = "realm1", **more: object) -> RawSocket:
    """Return a session there."""
    peer = RawSocket(socket.create_connection(router.address("tcp")))
    return peer.shake_hands("json").join(realm, roles=FEATURES, **more)


def is_there(router: Router, link: str = "rlink1") -> Callable[[], bool]:
    """Say whether a link is connected."""
    return lambda: router.metric("rlink_connected", link=link) == 1


def await_there(router: Router, link: str = "rlink1", since: int = 0) -> None:
    """Wait until a link knows what both sides have."""
    router.await_log(lambda line: line.text.startswith(f"Link '{link}' is there"), since)


def mirrors(router: Router, side: str, kind: str, count: int, link: str = "rlink1") -> None:
    """Wait until a link holds so many subscriptions or registrations on a side."""
    await_true(
        f"{link} holds {count} {kind}s on the {side} side",
        lambda: router.metric("rlink_mirrors", link=link, side=side, kind=kind) == count,
    )


def call(peer: RawSocket, procedure: str, *args: object, **options: object) -> int:
    """Call, and return the request."""
    return peer.ask(CALL, options, procedure, list(args))


def answered(callee: RawSocket, caller: RawSocket, procedure: str, *args: object) -> list:
    """Call, answer, and return the invocation."""
    request = call(caller, procedure, *args)
    invocation = callee.hear(INVOCATION)
    callee.say(YIELD, invocation[1], {}, ["answer", *args], {"by": callee.id})
    result = caller.hear(RESULT)
    assert result[1] == request
    assert result[3:] == [["answer", *args], {"by": callee.id}], result
    return invocation


def publish(peer: RawSocket, topic: str, *args: object, **options: object) -> int:
    """Publish, and return the publication."""
    peer.ask(PUBLISH, {"acknowledge": True, **options}, topic, list(args))
    return peer.hear(PUBLISHED)[2]


def hear_event(peer: RawSocket, *args: object) -> dict:
    """Hold the next message to be that event; return its details."""
    event = peer.hear(EVENT)
    assert event[4:5] == ([list(args)] if args else []), event
    return event[3]


def register(peer: RawSocket, procedure: str, **options: object) -> int:
    """Register, and return the registration."""
    peer.ask(REGISTER, options, procedure)
    return peer.hear(REGISTERED)[2]
