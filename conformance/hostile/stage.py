"""A node under attack: its witness, its memory, and whether it outlives all that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rig import broker, mqtt_broker, mqtt_wire
from rig.amqp_peer import Peer
from rig.longpoll import LongPoll
from rig.mqtt_peer import Peer as MqttPeer
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.waiting import await_true
from rig.websocket import WebSocket

from hostile.witness import PATIENCE_S, Witness

MIB = 1 << 20


class Stage:
    """A node and its witness; what a test does to the one must not be felt by the other."""

    def __init__(self, router: Router):
        self.router = router
        self.witness = Witness(router)
        # From now on the most is that of the attack.
        Path(f"/proc/{router.process.pid}/clear_refs").write_text("5")
        self._before = self._octets("VmRSS")

    def session(self, serializer: str = "msgpack", **details: object) -> RawSocket:
        """Join as an attacker."""
        return self.rawsocket(serializer).join(**details)

    def rawsocket(self, serializer: str = "msgpack") -> RawSocket:
        """Connect without a session."""
        opened = RawSocket.tcp(self.router.address("tcp"))
        opened.socket.settimeout(PATIENCE_S)
        return opened.shake_hands(serializer)

    def websocket(self, serializer: str = "json") -> WebSocket:
        """Connect without a session."""
        opened = WebSocket.tcp(self.router.address("tcp"))
        opened.socket.settimeout(PATIENCE_S)
        return opened.open(serializer)

    def longpoll(self, protocol: str = "wamp.2.json") -> LongPoll:
        """Open a transport, without a session."""
        return LongPoll(self.router.address("tcp"), protocol, patience_s=PATIENCE_S)

    def peer(self, channels: int = 1) -> Peer:
        """Connect to the broker, with so many channels."""
        opened = Peer.tcp(self.router.address("amqp"))
        opened.socket.settimeout(PATIENCE_S)
        opened.open()
        for number in range(1, channels + 1):
            opened.channel(number)
        return opened

    def mqtt(self, version: int = mqtt_wire.V5) -> MqttPeer:
        """Connect as an MQTT client, without CONNECT."""
        return MqttPeer.to(self.router.address("mqtt"), version, PATIENCE_S)

    def everybody_else_is_served(self) -> None:
        """The witness lost no session and continues; the node lives."""
        assert self.router.process.poll() is None, "the node has ended"
        self.witness.everybody_is_served()

    def grew_at_most(self, mib: int) -> None:
        """Never had more resident memory than this beyond what it had before."""
        grown = (self._octets("VmHWM") - self._before) / MIB
        assert grown <= mib, f"the node had {grown:.0f} MiB more; at most {mib} are right"

    def nothing_is_held(self) -> None:
        """Once attackers have gone, what was held for them is off the account."""
        held = "next to nothing is held"
        await_true(held, lambda: self.metric("held_bytes") < MIB, PATIENCE_S)

    def metric(self, name: str, **labels: str) -> float:
        """Return a metric of the node."""
        return self.router.metric(name, **labels)

    def _octets(self, field: str) -> int:
        status = Path(f"/proc/{self.router.process.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith(f"{field}:")]
        return int(line.split()[1]) * 1024


@pytest.fixture
def attacked(start_router) -> Iterator[Callable[..., Stage]]:
    """Start a node with a witness; the node serves others until the test's end."""
    stages: list[Stage] = []

    def start(
        amqp: dict | None = None,
        websocket: dict | None = None,
        longpoll: dict | None = None,
        joints: tuple[dict, ...] = (),
        realm: dict | None = None,
        threads: int | None = None,
        mqtt: dict | None = None,
        **more: object,
    ) -> Stage:
        configuration = broker.configuration({"limits": amqp or {}})
        configuration["workers"][0]["joints"] = list(joints)
        if realm:
            configuration["workers"][0]["realms"] = [realm]
        if threads:
            configuration["workers"][0].setdefault("options", {})["threads"] = threads
        configuration |= more
        _, pages = configuration["workers"][0]["transports"]
        pages["websocket"] = {"ws": {"options": websocket or {}}}
        pages["web"] = {"paths": {"lp": {"type": "longpoll", "options": longpoll or {}}}}
        if mqtt is not None:
            configuration["workers"][0]["transports"].append(mqtt_broker.transport())
            configuration["limits"] = mqtt
        stages.append(Stage(start_router(configuration)))
        return stages[-1]

    yield start
    for stage in stages:
        stage.everybody_else_is_served()
        stage.witness.end()
