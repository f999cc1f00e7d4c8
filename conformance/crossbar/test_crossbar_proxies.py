"""Crossbar.io's proxy workers: their transports become the router's, without a proxy."""

from __future__ import annotations

import json
from pathlib import Path

from rig import config
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.session import CALL, RESULT, WELCOME
from wamp.test_authentication import AUTHENTICATE, CHALLENGE, hello

ROUTER_SOCKET = {"type": "unix", "path": "router.sock"}


def proxy(*transports: dict, endpoint: dict = ROUTER_SOCKET) -> dict:
    """Return a proxy worker that forwards all clients to the router."""
    transport = {"type": "rawsocket", "endpoint": endpoint, "serializer": "cbor"}
    return {
        "type": "proxy",
        "connections": {"one": {"transport": transport}},
        "routes": {"realm1": {"anonymous": "one", "user": ["one"]}},
        "transports": list(transports),
    }


def node(*proxies: dict) -> dict:
    """Return a node whose router is reached through proxies alone."""
    realms = [{"name": "realm1", "roles": [config.role("anonymous"), config.role("user")]}]
    own = {
        "type": "rawsocket",
        "endpoint": ROUTER_SOCKET,
        "serializers": ["cbor"],
        "auth": {"anonymous-proxy": {"type": "static"}},
    }
    configured = config.node(realms, [own])
    configured["workers"].extend(proxies)
    return configured


def test_clients_of_a_proxys_transport_reach_the_router(tmp_path: Path):
    principals = {"joe": {"ticket": "hunter2", "role": "user"}}
    tickets = {
        "type": "rawsocket",
        "id": "tickets",
        "endpoint": config.tcp(),
        "auth": {"ticket": {"type": "static", "principals": principals}},
    }
    shared = config.universal("shared", config.tcp(shared=True))
    # Two that share a port say the same of it.
    router = Router(tmp_path, config=node(proxy(shared, tickets), proxy(shared)))
    anonymous = RawSocket.tcp(router.address("shared")).shake_hands().join()
    peer = hello(router, "tickets", authmethods=["ticket"], authid="joe")
    with anonymous, peer:
        peer.hear(CHALLENGE)
        peer.say(AUTHENTICATE, "hunter2", {})
        assert peer.hear(WELCOME)[2]["authrole"] == "user"
        # Both are in one realm.
        request = anonymous.ask(CALL, {}, "wamp.session.count")
        assert anonymous.hear(RESULT)[1:] == [request, {}, [2]]
    assert not (tmp_path / "router.sock").exists()
    router.stop()
    warned = [line.text for line in router.log if line.level == "WARN"]
    assert sum("a proxy's transports are taken to be" in text for text in warned) == 2
    assert any('"anonymous-proxy" is left out' in text for text in warned), json.dumps(warned)
