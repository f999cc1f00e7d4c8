"""Fixtures: hosts of Python components, and the router that they and their components join."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rig import config
from rig.container import Container
from rig.router import Router

# No longer message goes over the transport `narrow`.
BOUND = 65_536


@pytest.fixture(scope="module")
def hub(tmp_path_factory, certificate_directory: Path) -> Iterator[Router]:
    """A router with the management realm beside the one of the components."""
    realms = [
        {"name": name, "roles": [config.role("anonymous"), config.role("red")]}
        for name in ("crossbar", "realm1")
    ]
    red = config.universal("red", config.unix("red.sock"))
    red["rawsocket"]["auth"] = config.static("red")
    cbor = config.universal("cbor", config.tcp())
    cbor["websocket"]["ws"] = {"serializers": ["cbor"]}
    narrow = config.universal("narrow", config.unix("narrow.sock"))
    bounded = {"options": {"max_message_size": BOUND}}
    narrow |= {"rawsocket": bounded, "websocket": {"ws": bounded}}
    everything = [
        config.universal("unix", config.unix()),
        config.universal("tcp", config.tcp()),
        config.universal("tls", config.tls(certificate_directory)),
        red,
        cbor,
        narrow,
    ]
    running = Router(tmp_path_factory.mktemp("hub"), config=config.node(realms, everything))
    yield running
    running.stop()


@pytest.fixture
def start_container(hub: Router, tmp_path: Path) -> Iterator[Callable[..., Container]]:
    """Start hosts; they end with the test."""
    running: list[Container] = []

    def start(*arguments: str, **more: object) -> Container:
        started = Container(tmp_path, hub.directory / "router.sock", *arguments, **more)
        running.append(started)
        started.ready()
        return started

    yield start
    for each in running:
        each.close()
        assert not any("Unhandled" in line.text for line in each.log), each.log


@pytest.fixture
def container(start_container) -> Container:
    """A host that goes on when it has no components."""
    return start_container("--shutdown", "manual")


@pytest.fixture
def over(hub: Router, certificate_directory: Path) -> Callable[[str], dict]:
    """Name a transport that a component may take."""
    host, port = hub.address("tcp")
    tcp = {"type": "tcp", "host": host, "port": port}
    unix = {"type": "unix", "path": str(hub.directory / "router.sock")}
    websocket = {"type": "websocket", "url": f"ws://{host}:{port}/ws", "endpoint": tcp}
    _, tls_port = hub.address("tls")
    authority = {"ca_certificates": [str(certificate_directory / "ca.pem")]}
    tls = {"type": "tcp", "host": "localhost", "port": tls_port, "version": 4, "tls": authority}
    ways = {
        "rs-tls-msgpack": {"type": "rawsocket", "endpoint": tls, "serializer": "msgpack"},
        "ws-tls-json": {
            **websocket,
            "url": f"wss://localhost:{tls_port}/ws",
            "endpoint": tls,
            "serializers": ["json"],
        },
        "rs-unix-msgpack": {"type": "rawsocket", "endpoint": unix, "serializer": "msgpack"},
        "rs-unix-cbor": {"type": "rawsocket", "endpoint": unix, "serializers": ["cbor", "json"]},
        "rs-tcp-json": {"type": "rawsocket", "endpoint": tcp, "serializer": "json"},
        "ws-tcp-json": {**websocket, "serializers": ["json"]},
        "ws-tcp-msgpack": {**websocket, "serializers": ["msgpack"]},
        "ws-tcp-cbor": {**websocket, "serializers": ["cbor"]},
        "ws-tcp-json.batched": {**websocket, "serializers": ["json.batched"]},
        "ws-tcp-cbor.batched": {**websocket, "serializers": ["cbor.batched", "cbor"]},
        "ws-tcp-url": {"type": "websocket", "url": f"ws://{host}:{port}/ws"},
        "ws-unix-json": {**websocket, "endpoint": unix, "serializers": ["json"]},
        "ws-tcp-deflate": {
            **websocket,
            "serializers": ["json"],
            "options": {"compression": {"deflate": {}}, "auto_ping_interval": 20000},
        },
    }
    return lambda name: ways[name]


@pytest.fixture
def unix(over) -> dict:
    """The transport of tests that do not care which."""
    return over("rs-unix-msgpack")


def of_class(name: str, transport: dict, **more: object) -> dict:
    """Return the definition of a class component."""
    return {
        "type": "class",
        "classname": name if "." in name or ":" in name else f"parts.{name}",
        "realm": "realm1",
        "transport": transport,
        **more,
    }
