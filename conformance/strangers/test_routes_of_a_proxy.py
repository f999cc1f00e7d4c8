"""Crossbar.io's proxy workers name roles in their routes: other roles are refused there."""

from __future__ import annotations

from pathlib import Path

from rig import config
from rig.rawsocket import RawSocket
from rig.session import ABORT, WELCOME

from strangers.service import check


def proxied(routes: dict) -> dict:
    """Return a node whose router is reached through a proxy with these routes."""
    realms = [
        {"name": name, "roles": [config.role("anonymous"), config.role("red")]}
        for name in ("realm1", "realm2")
    ]
    doors = [
        {
            "type": "rawsocket",
            "id": f"as_{role}",
            "endpoint": config.unix(f"{role}.sock"),
            "auth": config.static(role),
        }
        for role in ("anonymous", "red")
    ]
    own = {"type": "rawsocket", "endpoint": config.unix("router.sock")}
    configured = config.node(realms, [own])
    configured["workers"].append(
        {
            "type": "proxy",
            "connections": {"one": {"transport": own}},
            "routes": routes,
            "transports": doors,
        }
    )
    return configured


def answer(directory: Path, role: str, realm: str) -> tuple[int, object]:
    """Join a realm with a role; return the answer's type, and the reason or role in it."""
    with RawSocket.unix(directory / f"{role}.sock") as peer:
        peer.shake_hands().say(1, realm, {"roles": {"caller": {}}})
        message = peer.hear_any()
        kind = message[0]
        return kind, message[2] if kind == ABORT else message[2]["authrole"]


def test_a_role_that_a_proxy_has_no_route_for_does_not_come_in(start_node, tmp_path: Path):
    """The routes of Crossbar.io's example `proxy/config4` name roles."""
    start_node(proxied({"realm1": {"anonymous": "one"}}), tmp_path)
    assert answer(tmp_path, "anonymous", "realm1") == (WELCOME, "anonymous")
    assert answer(tmp_path, "red", "realm1") == (ABORT, "wamp.error.no_such_role")
    assert answer(tmp_path, "anonymous", "realm2") == (ABORT, "wamp.error.no_such_realm")


def test_every_role_that_a_proxy_has_a_route_for_comes_in(start_node, tmp_path: Path):
    routes = {"realm1": {"anonymous": "one", "red": ["one"]}, "realm2": {"red": "one"}}
    start_node(proxied(routes), tmp_path)
    assert answer(tmp_path, "red", "realm1") == (WELCOME, "red")
    assert answer(tmp_path, "red", "realm2") == (WELCOME, "red")
    assert answer(tmp_path, "anonymous", "realm2") == (ABORT, "wamp.error.no_such_role")


def test_a_web_service_of_a_proxy_has_no_more_than_its_routes(tmp_path: Path):
    configured = proxied({"realm1": {"anonymous": "one"}})
    service = {"type": "caller", "realm": "realm1", "role": "red"}
    web = {"type": "web", "endpoint": config.tcp(), "paths": {"call": service}}
    configured["workers"][1]["transports"].append(web)
    code, said = check(tmp_path, configured)
    assert (code, '"admits"' in said) == (1, True), said
    service["role"] = "anonymous"
    assert check(tmp_path, configured)[0] == 0
