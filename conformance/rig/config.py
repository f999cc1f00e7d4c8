"""Configurations of the routers under test, as an operator would write them."""

from __future__ import annotations

from pathlib import Path

EVERYTHING = {"call": True, "register": True, "publish": True, "subscribe": True}


def permission(uri: str, *, disclose: bool = False, **allow: bool) -> dict:
    """Return one permission of a role."""
    entry: dict = {"uri": uri, "allow": allow or EVERYTHING}
    if disclose:
        entry["disclose"] = {"caller": True, "publisher": True}
    return entry


def role(name: str, *permissions: dict) -> dict:
    """Return a role; without permissions it may do everything."""
    return {"name": name, "permissions": list(permissions) or [permission("*")]}


def static(role_name: str, authid: str | None = None) -> dict:
    """Return an `auth` that gives all clients the same role, and the same authid if given."""
    anonymous = {"type": "static", "role": role_name}
    if authid:
        anonymous["authid"] = authid
    return {"anonymous": anonymous}


def tcp(**more: object) -> dict:
    """Return a TCP endpoint on a port of the router's choice."""
    return {"type": "tcp", "interface": "127.0.0.1", "port": 0, **more}


def unix(path: str = "router.sock") -> dict:
    """Return a Unix endpoint in the node's directory."""
    return {"type": "unix", "path": path}


def tls(directory: Path) -> dict:
    """Return a TCP endpoint with the certificate that `rig.certificates` put into `directory`."""
    return tcp(tls={"key": f"{directory}/server.key", "certificate": f"{directory}/server.pem"})


def universal(name: str, endpoint: dict, **more: object) -> dict:
    """Return a transport that speaks RawSocket and WebSocket, and shows every page."""
    return {
        "type": "universal",
        "id": name,
        "endpoint": endpoint,
        "rawsocket": {},
        "websocket": {"ws": {}, "/": {}},
        "pages": ["health", "metrics", "status"],
        **more,
    }


def node(realms: list[dict], transports: list[dict], **more: object) -> dict:
    """Return a whole configuration with one router worker."""
    worker = {"type": "router", "realms": realms, "transports": transports}
    return {"version": 2, "workers": [worker], **more}


def with_goodbye(configuration: dict) -> dict:
    """Have the router send GOODBYE when it, one of its transports or realms stops."""
    configuration["workers"][0]["options"] = {"goodbye": True}
    return configuration


def plain(*transports: dict, **more: object) -> dict:
    """Return a node whose realm `realm1` allows everything to all clients."""
    realm = {"name": "realm1", "roles": [role("anonymous")]}
    return node([realm], list(transports) or [universal("tcp", tcp())], **more)
