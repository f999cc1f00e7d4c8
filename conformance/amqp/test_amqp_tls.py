"""AMQP over TLS: passwords, and certificates instead of them."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pika
import pytest
import trustme
from rig import config
from rig.amqp_peer import Peer
from rig.broker import Crosstie
from rig.waiting import DEADLINE_S


@dataclass
class Secured:
    """A broker that speaks TLS only."""

    broker: Crosstie
    authority: trustme.CA

    def context(self, name: str | None = None, authority: trustme.CA | None = None):
        """Return what a client needs; with a certificate of this common name if one is given."""
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        if name is not None:
            certificate = (authority or self.authority).issue_cert(common_name=name)
            certificate.configure_cert(context)
        return context

    def connect(self, context: ssl.SSLContext) -> Peer:
        """Open a connection."""
        opened = socket.create_connection(self.broker.address, DEADLINE_S)
        return Peer(context.wrap_socket(opened, server_hostname="localhost"))


@pytest.fixture
def secure(start_broker, tmp_path: Path) -> Callable[..., Secured]:
    """Start a broker; `asks` makes it ask for certificates."""

    def start(*, asks: bool) -> Secured:
        authority = trustme.CA()
        server = authority.issue_cert("localhost", "127.0.0.1")
        server.private_key_pem.write_to_path(tmp_path / "key.pem")
        server.cert_chain_pems[0].write_to_path(tmp_path / "certificate.pem")
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        tls: dict = {
            "key": str(tmp_path / "key.pem"),
            "certificate": str(tmp_path / "certificate.pem"),
        }
        if asks:
            tls["ca_certificates"] = [str(tmp_path / "ca.pem")]
        return Secured(start_broker(transport={"endpoint": config.tcp(tls=tls)}), authority)

    return start


def test_a_password_over_tls(secure) -> None:
    secured = secure(asks=False)
    with secured.connect(secured.context()) as peer:
        start = peer.start()
        assert set(start["mechanisms"].split()) == {"PLAIN", "AMQPLAIN"}
    options = pika.ConnectionParameters(
        *secured.broker.address,
        credentials=pika.PlainCredentials("test", "test"),
        ssl_options=pika.SSLOptions(secured.context(), "localhost"),
    )
    with pika.BlockingConnection(options) as connection:
        channel = connection.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.basic_publish("", queue, bytes(300_000))
        _, _, body = channel.basic_get(queue, auto_ack=True)
        assert body == bytes(300_000)


def test_a_certificate_instead_of_a_password(secure) -> None:
    secured = secure(asks=True)
    with secured.connect(secured.context("test")) as peer:
        peer.open(mechanism="EXTERNAL", response=b"")
        peer.channel()
        peer.leave()
    options = pika.ConnectionParameters(
        *secured.broker.address,
        credentials=pika.credentials.ExternalCredentials(),
        ssl_options=pika.SSLOptions(secured.context("test"), "localhost"),
    )
    with pika.BlockingConnection(options) as connection:
        connection.channel().queue_declare("", exclusive=True)


def test_a_certificate_of_no_user(secure) -> None:
    """The name in the certificate is no user's."""
    secured = secure(asks=True)
    with secured.connect(secured.context("stranger")) as peer:
        peer.start(mechanism="EXTERNAL", response=b"")
        code, text, *_ = peer.expect_connection_close()
        assert code == 403
        assert text.startswith("ACCESS_REFUSED - Login was refused using ")
        assert "EXTERNAL" in text


@pytest.mark.parametrize("name", [None, "test"])
def test_no_certificate_or_that_of_another_authority(name, secure) -> None:
    secured = secure(asks=True)
    context = secured.context(name, trustme.CA())
    try:
        with secured.connect(context) as peer:
            peer.start()
            rest = peer.receive_all()
    except (ssl.SSLError, OSError):
        return
    assert rest == b""


def test_plain_octets_where_tls_is_spoken(secure) -> None:
    secured = secure(asks=False)
    with Peer.tcp(secured.broker.address) as peer:
        peer.send(b"AMQP\0\0\x09\x01")
        # An alert of TLS, or just the end.
        assert peer.receive_all()[:1] in (b"", b"\x15")
    with secured.connect(secured.context()) as peer:
        peer.open()
        peer.leave()
