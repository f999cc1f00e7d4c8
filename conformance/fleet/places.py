"""Both brokers with MQTT, AMQP and a management API, and the same users."""

from __future__ import annotations

import copy
import socket
from pathlib import Path

import pika
from mgmt.cases import Api
from rig import config, rabbitmq
from rig import mqtt_wire as wire
from rig.broker import ALL
from rig.http import Http
from rig.mqtt_peer import Peer
from rig.pika_client import connect
from rig.ports import free_ports
from rig.router import Router

# Names of users and their passwords.
USERS = ("guest", "test", "limited")
LIMITED = {
    "configure": "^mqtt-subscription-own",
    "write": "^(mqtt-subscription-own|amq\\.topic)",
    "read": "^(mqtt-subscription-own|amq\\.topic)",
}
TOPICS = {"exchange": "amq.topic", "write": "^own\\.", "read": "^own\\."}


def outside() -> str | None:
    """Return an address of this machine that is no loopback address; nothing is sent for it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))
        except OSError:
            return None
        found = probe.getsockname()[0]
    return None if found.startswith("127.") else found


class Place:
    """A broker: where its clients find it."""

    name: str
    mqtt: tuple[str, int]
    amqp: tuple[str, int]
    http: tuple[str, int]

    @property
    def is_rabbitmq(self) -> bool:
        """Whether this is the judge."""
        return self.name == "rabbitmq"

    @property
    def api(self) -> Api:
        """Return its management API."""
        return Api(Http(self.http), self.amqp)

    def peer(self, version: int = wire.V311) -> Peer:
        """Open a connection."""
        return Peer.to(self.mqtt, version)

    def client(
        self, client_id: str, version: int = wire.V311, user: str = "test", **more: object
    ) -> Peer:
        """Open a connection, and send CONNECT on it."""
        peer = self.peer(version)
        peer.connect(client_id, user=user, password=user.rpartition(":")[2].encode(), **more)
        return peer

    def channel(self, vhost: str = "/"):
        """Return a channel of pika's."""
        connection = connect(self.amqp, "test", vhost=vhost)
        channel = connection.channel()
        channel.confirm_delivery()
        return channel

    def queues(self, client_id: str, vhost: str = "%2F") -> dict[str, dict]:
        """Return what the API says of a client's queues."""
        keys = ("durable", "auto_delete", "exclusive", "arguments")
        return {
            queue["name"]: {key: queue[key] for key in keys}
            for queue in self.api.json(f"queues/{vhost}")
            if queue["name"].startswith(f"mqtt-subscription-{client_id}qos")
        }

    def bindings(self, client_id: str, vhost: str = "%2F") -> set[tuple]:
        """Return the bindings of a client's queues: source, queue, key, arguments."""
        return {
            (one["source"], one["destination"], one["routing_key"], repr(one["arguments"]))
            for one in self.api.json(f"bindings/{vhost}")
            if one["destination"].startswith(f"mqtt-subscription-{client_id}qos")
        }


class Judge(rabbitmq.RabbitMq, Place):
    """RabbitMQ with its MQTT plugin."""

    def __init__(self, directory: Path) -> None:
        mqtt, http = free_ports(2)
        self.mqtt, self.http = ("127.0.0.1", mqtt), ("127.0.0.1", http)
        super().__init__(directory)
        self.name, self.amqp = "rabbitmq", self.address
        for user in USERS[1:]:
            self.api.ask("PUT", f"users/{user}", {"password": user, "tags": ""})
            rights = LIMITED if user == "limited" else ALL
            self.api.ask("PUT", f"permissions/%2F/{user}", rights)
        self.api.ask("PUT", "topic-permissions/%2F/limited", TOPICS)
        self.api.ask("PUT", "vhosts/second")
        self.api.ask("PUT", "permissions/second/test", ALL)

    def configuration(self) -> tuple[list[str], str]:
        """Add the plugins, and their ports."""
        plugins, lines = super().configuration()
        lines += f"mqtt.listeners.tcp.1 = 127.0.0.1:{self.mqtt[1]}\n"
        lines += f"management.tcp.port = {self.http[1]}\n"
        if address := outside():
            lines += f"listeners.tcp.2 = {address}:{self.address[1]}\n"
            lines += f"mqtt.listeners.tcp.2 = {address}:{self.mqtt[1]}\n"
        else:
            lines += "management.tcp.ip = 127.0.0.1\n"
        return [*plugins, "rabbitmq_mqtt", "rabbitmq_management"], lines


class Crosstie(Place):
    """A node, which may be killed and started again on the same ports."""

    name = "crosstie"

    def __init__(
        self,
        directory: Path,
        amqp: dict | None = None,
        limits: dict | None = None,
        **options: object,
    ) -> None:
        self.directory = directory
        self.settings = {**configuration(amqp or {}, options), "limits": limits or {}}
        self.router = Router(directory, config=copy.deepcopy(self.settings))
        self._look()
        assert self.api.ask("PUT", "topic-permissions/%2F/limited", TOPICS).status == 201

    def _look(self) -> None:
        self.mqtt = self.router.address("mqtt")
        self.amqp = self.router.address("amqp")
        self.http = self.router.address("management")
        for each in self.settings["workers"][0]["transports"]:
            each["endpoint"]["port"] = self.router.address(each["id"])[1]

    def restart(self, *, kill: bool) -> None:
        """Stop or kill it, and start it again."""
        if kill:
            self.router.kill()
        else:
            self.router.stop()
        self.router = Router(self.directory, config=copy.deepcopy(self.settings))

    def stop(self) -> None:
        """End it as an operator would."""
        self.router.stop()


def configuration(amqp: dict, options: dict) -> dict:
    """Return a node with MQTT in a vhost, in each way."""
    home = {"options": {"vhost": "/", **options}}
    node = config.plain(
        {"type": "amqp", "id": "amqp", "endpoint": config.tcp()},
        {"type": "amqp.management", "id": "management", "endpoint": config.tcp()},
        {"type": "mqtt", "id": "mqtt", "endpoint": config.tcp(), **home},
        config.universal("tcp", config.tcp(), mqtt=home, websocket={"ws": {"mqtt": home}, "/": {}}),
    )
    users = [{"name": name, "password": name} for name in USERS]
    users[0]["tags"] = ["administrator"]
    limited = {"user": "limited", **LIMITED}
    rights = [{"user": name, **ALL} for name in USERS[:2]]
    vhosts = [
        {"name": "/", "permissions": [*rights, limited]},
        {"name": "second", "permissions": rights},
    ]
    node["workers"][0]["amqp"] = {"users": users, "vhosts": vhosts, **amqp}
    return node


def take(channel, queue: str) -> tuple[bytes, pika.BasicProperties, str] | None:
    """Take a message of a queue: body, properties, routing key."""
    method, properties, body = channel.basic_get(queue, auto_ack=True)
    return (body, properties, method.routing_key) if method else None
