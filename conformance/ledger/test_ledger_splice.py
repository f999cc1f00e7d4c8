"""Clients of a vhost on nodes that do not own it: its current owner serves them."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import amqp
import pika
import pika.exceptions
import pytest
from rig import certificates
from rig.nats import NatsServer
from rig.ports import free_ports
from rig.router import ROOT, Router
from rig.waiting import DEADLINE_S, await_true

from ledger.stage import (
    Publisher,
    await_end,
    await_owner,
    check,
    connect,
    declare,
    refusal,
    role,
    take_all,
)

# More than what is held for a connection on its way.
LARGE = 3 << 20


@pytest.fixture
def splicing(start) -> Callable[..., Router]:
    """Start a node that passes its clients on, over plain connections or with TLS."""

    def started(servers: list[NatsServer], name: str, **more: object) -> Router:
        address = f"127.0.0.1:{free_ports(1)[0]}"
        node = start(servers, name, elsewhere="splice", address=address, **more)
        node.nodes_address = address
        return node

    return started


@pytest.fixture
def three(nats, splicing) -> tuple[Router, list[Router]]:
    """Return the owner of three nodes, and the others, which know it."""
    servers = nats()
    nodes = [splicing(servers, f"node_{name}") for name in "abc"]
    owner = await_owner(nodes)
    others = [node for node in nodes if node is not owner]
    for node in others:
        await_reached(node)
    return owner, others


def await_reached(node: Router) -> None:
    """Wait until a client of this node is let in."""

    def is_let_in() -> bool:
        with contextlib.suppress(pika.exceptions.AMQPError):
            connect(node).close()
            return True
        return False

    await_true("its clients are let in", is_let_in)


def test_clients_of_every_node_are_in_one_vhost(three):
    owner, (first, second) = three
    with connect(first) as publisher, connect(second) as consumer, connect(owner) as near:
        channel = publisher.channel()
        channel.queue_declare("far", durable=True)
        channel.confirm_delivery()
        for number in range(20):
            channel.basic_publish("", "far", bytes([number]) * LARGE)
        taken = consumer.channel()
        for number in range(20):
            method, _, body = taken.basic_get("far")
            assert body == bytes([number]) * LARGE
            taken.basic_ack(method.delivery_tag)
        # Exclusive queues belong to a connection, on any node.
        channel.queue_declare("mine", exclusive=True)
        for other in (consumer, near):
            with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
                other.channel().queue_declare("mine", passive=True)
            assert closed.value.reply_code == 405
    assert first.metric("amqp_splices_opened_total") >= 1
    assert first.metric("amqp_splices_sent_bytes_total") > 20 * LARGE
    assert second.metric("amqp_splices_received_bytes_total") > 20 * LARGE
    for node in (first, second):
        await_true("it has ended", lambda node=node: node.metric("amqp_splices_open") == 0)
        # The vhost is not here.
        assert 'crosstie_amqp_connections{worker="worker1"' not in node.page("/metrics")


def test_py_amqp_and_heartbeats_through_another_node(three):
    _, (node, _) = three
    host, port = node.address("amqp")
    with amqp.Connection(f"{host}:{port}", userid="test", password="test", heartbeat=2) as client:
        channel = client.channel()
        channel.queue_declare("beats", durable=True)
        heard: list[bytes] = []
        channel.basic_consume("beats", callback=lambda message: heard.append(message.body))
        before = client.bytes_recv

        def is_alive() -> bool:
            client.heartbeat_tick()
            with contextlib.suppress(TimeoutError):
                client.drain_events(timeout=0.2)
            return client.bytes_recv > before + 1

        # The owner's heartbeats come, and it hears the client's.
        await_true("heartbeats come", is_alive)
        channel.basic_publish(amqp.Message("x"), "", "beats")
        while not heard:
            client.drain_events(timeout=DEADLINE_S)


def test_a_node_checks_who_its_clients_are(three):
    _, (node, _) = three
    host, port = node.address("amqp")
    for password, vhost, said in [("wrong", "/", "403"), ("test", "none", "530")]:
        credentials = pika.PlainCredentials("test", password)
        parameters = pika.ConnectionParameters(host, port, vhost, credentials)
        with pytest.raises(pika.exceptions.AMQPConnectionError) as refused:
            pika.BlockingConnection(parameters)
        assert said in repr(refused.value)
    assert node.metric("amqp_splices_open") == 0


def test_confirmed_messages_of_clients_elsewhere_survive_the_owner(nats, splicing):
    servers = nats()
    nodes = [splicing(servers, f"node_{name}") for name in "abc"]
    owner = await_owner(nodes)
    others = [node for node in nodes if node is not owner]
    declare(owner)
    publishers = [Publisher([node], name) for name, node in enumerate(others)]
    for publisher in publishers:
        publisher.await_more(30)
    with connect(others[0]) as idle:
        owner.kill()
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
            await_end(idle)
        assert (closed.value.reply_code, "has gone" in closed.value.reply_text) == (320, True)
    for publisher in publishers:
        publisher.await_more(30)
        publisher.stop()
    await_owner(others)
    check(take_all(others), publishers)


def test_a_node_that_ends_tells_its_clients(three):
    owner, (node, _) = three
    with connect(node) as client:
        node.signal(15)
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
            await_end(client)
    assert closed.value.reply_code == 320
    assert node.exit_code() == 0
    await_true("the owner knows", lambda: owner.metric("amqp_connections") == 0)


def test_nodes_speak_tls_and_let_in_no_one_without_a_certificate(nats, splicing, tmp_path: Path):
    authority = certificates.write(tmp_path)
    tls = {
        "certificate": str(tmp_path / "server.pem"),
        "key": str(tmp_path / "server.key"),
        "ca_certificates": [str(authority)],
    }
    servers = nats()
    nodes = [splicing(servers, f"node_{name}", tls=tls) for name in "ab"]
    owner = await_owner(nodes)
    (other,) = (node for node in nodes if node is not owner)
    await_reached(other)
    host, _, port = owner.nodes_address.rpartition(":")
    before = owner.metric("peer_faults_total")
    with socket.create_connection((host, int(port)), DEADLINE_S) as plain:
        plain.sendall(b"AMQP\x00\x00\x09\x01")
        assert not plain.recv(100).startswith(b"\x01")
    context = ssl.create_default_context(cafile=str(authority))
    with (
        socket.create_connection((host, int(port)), DEADLINE_S) as stranger,
        contextlib.suppress(OSError),
        context.wrap_socket(stranger, server_hostname=host) as spoken,
    ):
        spoken.sendall(b"XTSPLIC\x01" + bytes(32) + b"\x01/")
        assert spoken.recv(100) == b""
    await_true("counted", lambda: owner.metric("peer_faults_total") >= before + 2)
    # One with a certificate, who is no node all the same.
    context.load_cert_chain(tls["certificate"], tls["key"])
    with (
        socket.create_connection((host, int(port)), DEADLINE_S) as stranger,
        context.wrap_socket(stranger, server_hostname=host) as spoken,
    ):
        spoken.sendall(b"XTSPLIC\x01" + bytes(32) + b"\x01/" + bytes(4) + bytes(32))
        heard = b""
        while part := spoken.recv(100):
            heard += part
        assert len(heard) <= 64
    await_true("counted", lambda: owner.metric("amqp_splices_strangers_total") == 1)
    connect(other).close()


def test_the_owners_address_is_shown_and_its_key_is_not(nats, start, splicing):
    servers = nats()
    first = splicing(servers, "node_a")
    assert await_owner([first]) is first
    # It does not pass its clients on.
    second = start(servers, "node_b", address="127.0.0.1:1")
    await_true("it knows", lambda: first.nodes_address in refusal(second))
    assert role(second) == "standby"
    key = re.compile(r"#[0-9a-f]{64}")
    for node in (first, second):
        said = node.page("/") + node.page("/metrics") + str([line.text for line in node.log])
        assert not key.search(said)
    assert not key.search(refusal(second))


def test_every_metric_is_in_the_documentation(three):
    _, (node, _) = three
    told = set(re.findall(r"(?m)^(crosstie_amqp_splices_\w+)\{", node.page("/metrics")))
    documented = re.findall(
        r"`(crosstie_amqp_splices_\w+)`", (ROOT / "docs/metrics.md").read_text()
    )
    assert told
    assert told == set(documented)
