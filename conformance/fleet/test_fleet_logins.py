"""Logins by certificates in a vhost."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from rig import config
from rig import mqtt_wire as wire
from rig.mqtt_peer import Peer
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
