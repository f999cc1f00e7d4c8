"""MQTT brokers to test: mosquitto, which judges the scenarios, and Crosstie.

How a test uses them:

- `broker` runs the test once on each of the two. Both are shared by the whole session, so names of
  topics and clients must be the test's own (`names`), and retained messages are cleared by it.
- `crosstie`: the shared node alone. `start_node(...)`: a node of the test's own, which it may stop,
  kill and start again on the same ports.
- Everything is allowed there. `strict` is the same, but for `test/forbidden` and what is below it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

from rig import config
from rig import mqtt_wire as wire
from rig.mqtt_peer import Peer
from rig.router import Router
from rig.waiting import DEADLINE_S

FORBIDDEN = "test/forbidden"


def transport(name: str = "mqtt", endpoint: dict | None = None, **options: object) -> dict:
    """Return a transport as Crossbar.io's users write it."""
    settings = {"realm": "realm1", **options}
    return {"type": "mqtt", "id": name, "endpoint": endpoint or config.tcp(), "options": settings}


def realm(*roles: dict, **more: object) -> dict:
    """Return the realm, in which all may do everything."""
    return {"name": "realm1", "roles": [config.role("anonymous"), *roles], **more}


def strict_realm() -> dict:
    """Return a realm in which something is forbidden."""
    forbidden = config.permission("test.forbidden.*", call=False)
    return {
        "name": "strict",
        "roles": [config.role("anonymous", config.permission("*"), forbidden)],
    }


def configuration(*transports: dict, of: dict | None = None, **more: object) -> dict:
    """Return a node with MQTT on `mqtt`, and on `tcp` WAMP, and MQTT in each other way."""
    spoken = transports or [transport()]
    beside = {"options": {"realm": "realm1"}}
    everything = config.universal(
        "tcp", config.tcp(), mqtt=beside, websocket={"ws": {"mqtt": beside}, "/": {}}
    )
    realms = [of or realm(), strict_realm()]
    return config.node(realms, [*spoken, everything], **more)


class Broker:
    """Where a scenario is played."""

    def __init__(
        self, name: str, address: Callable[[], tuple[str, int]], patience_s: float = DEADLINE_S
    ):
        self.name = name
        self._address = address
        self._patience_s = patience_s
        self._peers: list[Peer] = []

    @property
    def address(self) -> tuple[str, int]:
        """Return host and port."""
        return self._address()

    @property
    def is_mosquitto(self) -> bool:
        """Whether this is the judge."""
        return self.name == "mosquitto"

    def peer(self, version: int = wire.V5) -> Peer:
        """Open a connection, which ends with the test."""
        self._peers.append(Peer.to(self.address, version, self._patience_s))
        return self._peers[-1]

    def client(self, client_id: str = "", version: int = wire.V5, **more: object) -> Peer:
        """Open a connection, and send CONNECT on it."""
        peer = self.peer(version)
        peer.connect(client_id, **more)
        return peer

    def close(self) -> None:
        """End the connections."""
        for peer in self._peers:
            peer.close()


class Node:
    """A node that may be stopped and started again; its clients find it where it was."""

    def __init__(self, directory: Path, settings: dict):
        self.directory = directory
        # As the file has it, and with the ports that the node has chosen, for another start.
        self.written, self.settings = copy.deepcopy(settings), settings
        self.router = Router(directory, config=settings)
        for each in settings["workers"][0]["transports"]:
            endpoint = each["endpoint"]
            if endpoint["type"] == "tcp" and endpoint["port"] == 0:
                endpoint["port"] = self.router.address(each["id"])[1]

    def address(self, name: str = "mqtt") -> tuple[str, int]:
        """Return host and port of a transport."""
        return self.router.address(name)

    def broker(self) -> Broker:
        """Return it as a place for clients."""
        return Broker("crosstie", self.address)

    def start(self) -> None:
        """Start it again."""
        self.router = Router(self.directory, config=self.settings)

    def stop(self) -> None:
        """Stop it as an operator does."""
        self.router.stop()

    def kill(self) -> None:
        """Kill it."""
        self.router.kill()
