"""Logins by certificates in a vhost, and rights by client identifiers."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest
import trustme
from rig import config
from rig import mqtt_wire as wire
from rig.broker import ALL
from rig.mqtt_peer import Peer
from rig.pika_client import connect
from rig.router import Router

from fleet.places import Place, configuration

V5, V311 = wire.V5, wire.V311


class Secured:
    """A node whose MQTT clients show certificates or do not."""

    def __init__(self, directory: Path) -> None:
        self.authority = trustme.CA()
        server = self.authority.issue_cert("localhost", "127.0.0.1")
        server.private_key_pem.write_to_path(directory / "key.pem")
        server.cert_chain_pems[0].write_to_path(directory / "certificate.pem")
        self.authority.cert_pem.write_to_path(directory / "ca.pem")
        tls = {
            "key": str(directory / "key.pem"),
            "certificate": str(directory / "certificate.pem"),
            "ca_certificates": [str(directory / "ca.pem")],
            "client_certificate": "optional",
        }
        made = configuration({}, {})
        for name, more in (("named", {}), ("open", {"anonymous_user": "guest"})):
            options = {"vhost": "/", "certificate_login": True, **more}
            endpoint = config.tcp(tls=tls)
            listener = {"type": "mqtt", "id": name, "endpoint": endpoint, "options": options}
            made["workers"][0]["transports"].append(listener)
        self.router = Router(directory, config=made)

    def ask(self, listener: str, name: str | None, version: int, **login: object) -> tuple:
        """Log in with a certificate of that common name; return the code and the user."""
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        if name is not None:
            self.authority.issue_cert(common_name=name).configure_cert(context)
        place = Place()
        place.amqp, place.http = self.router.address("amqp"), self.router.address("management")
        with Peer.secure(self.router.address(listener), context, version) as peer:
            code = peer.ask_to_connect("certified", **login).code
            if code:
                return code, None
            (found,) = place.api.json("connections")
            peer.leave()
            return code, found["user"]


@pytest.fixture(scope="module")
def secured(tmp_path_factory) -> Iterator[Secured]:
    """One node for all tests."""
    running = Secured(tmp_path_factory.mktemp("secured"))
    yield running
    running.router.stop()


@pytest.mark.parametrize("version", [V311, V5])
def test_a_certificate_instead_of_a_password(secured: Secured, version: int) -> None:
    refused = 4 if version == V311 else 0x86
    assert secured.ask("named", "test", version) == (0, "test")
    assert secured.ask("named", "stranger", version) == (refused, None)
    assert secured.ask("named", None, version) == (refused, None)
    # What the client says comes first, and a name alone is no login.
    said = {"user": "guest", "password": b"guest"}
    assert secured.ask("named", "test", version, **said) == (0, "guest")
    wrong = {"user": "guest", "password": b"wrong"}
    assert secured.ask("named", "test", version, **wrong) == (refused, None)
    assert secured.ask("named", "test", version, user="test") == (refused, None)


def test_a_certificate_comes_before_the_anonymous_user(secured: Secured) -> None:
    assert secured.ask("open", "test", V5) == (0, "test")
    assert secured.ask("open", None, V5) == (0, "guest")


@pytest.fixture(scope="module")
def device() -> dict[str, str]:
    """Rights to the topics below a client's own identifier."""
    return {"exchange": "amq.topic", "write": r"^{client_id}\.", "read": r"^{client_id}\."}


def give(place: Place, topics: dict[str, str]) -> None:
    """Add the user of devices."""
    place.api.ask("PUT", "users/device", {"password": "device", "tags": ""})
    place.api.ask("PUT", "permissions/%2F/device", ALL)
    assert place.api.ask("PUT", "topic-permissions/%2F/device", topics).status in (201, 204)


def refused(place: Place, client_id: str, topic: str) -> None:
    """Publish where the client may not."""
    with place.client(client_id, user="device") as client:
        client.say(wire.Publish(topic, b"x", 1, id=9))
        client.expect_end()


def test_a_client_has_the_topics_of_its_identifier(place: Place, device) -> None:
    give(place, device)
    with place.client("device-1", user="device") as client:
        assert client.subscribe("device-1/#", qos=1) == [1]
        client.publish("device-1/a", b"own", 1)
        assert client.message().payload == b"own"
        client.leave()
    refused(place, "device-1", "device-2/a")
    refused(place, "device-1", "{client_id}/a")


def test_an_identifier_is_no_expression(crosstie: Place, device) -> None:
    """In RabbitMQ it is a part of the expression, and this client has all topics."""
    give(crosstie, device)
    refused(crosstie, ".*", "device-1/a")
    with crosstie.client(".*", user="device") as client:
        client.publish(".*/a", b"own", 1)
        client.leave()


def test_a_changed_permission_counts_for_a_connected_client(crosstie: Place, device) -> None:
    give(crosstie, {**device, "write": "^shared"})
    with crosstie.client("device-3", V5, user="device") as client:
        assert client.publish("device-3/a", b"x", 1) == 0x87
        give(crosstie, device)
        assert client.publish("device-3/a", b"x", 1) in (0, 0x10)
        assert client.publish("shared", b"x", 1) == 0x87
        client.leave()


def test_a_client_of_amqp_has_no_identifier(crosstie: Place, device) -> None:
    give(crosstie, device)
    connection = connect(crosstie.amqp, "device")
    channel = connection.channel()
    channel.confirm_delivery()
    channel.basic_publish("amq.topic", "{client_id}.a", b"x")
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="device-1"):
        channel.basic_publish("amq.topic", "device-1.a", b"x")
    connection.close()
