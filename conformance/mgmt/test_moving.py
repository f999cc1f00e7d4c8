"""`crosstie init --from-rabbitmq`: the node that it writes starts, and serves what RabbitMQ had."""

from __future__ import annotations

import json
import subprocess

import pytest
from paho.mqtt import client as paho
from rig.amqp_peer import Peer
from rig.broker import password_hash
from rig.pika_client import connect
from rig.ports import free_ports
from rig.router import Router, binary

from mgmt.cases import ALL
from mgmt.references import queue

CONF = """
# Of a small site.
listeners.tcp.default = 127.0.0.1:{amqp}
management.tcp.port = {management}
management.tcp.ip = 127.0.0.1
prometheus.tcp.port = {prometheus}
heartbeat = 20
loopback_users = none
cluster_partition_handling = ignore
vm_memory_high_watermark.relative = 0.4
"""


def init(directory, *words: str) -> tuple[int, str]:
    """Run the command; return the exit code and what it prints."""
    command = [binary(), "init", *words, "--appdir", str(directory)]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    return done.returncode, done.stdout + done.stderr


def start(node) -> Router:
    """Start the node of a directory."""
    config = node / ".crossbar" / "config.json"
    written = json.loads(config.read_text())
    # Other tests may have the port of the template.
    written["admin"]["endpoint"]["port"] = 0
    config.write_text(json.dumps(written))
    return Router(node, "--cbdir", str(node / ".crossbar"))


def test_a_rabbitmq_moves(tmp_path):
    amqp, management, prometheus = free_ports(3)
    conf = tmp_path / "rabbitmq.conf"
    conf.write_text(CONF.format(amqp=amqp, management=management, prometheus=prometheus))
    definitions = tmp_path / "definitions.json"
    definitions.write_text(
        json.dumps(
            {
                "rabbit_version": "3.10.8",
                "users": [{"name": "al", "password_hash": password_hash("al"), "tags": []}],
                "vhosts": [{"name": "v"}],
                "permissions": [{"user": "al", "vhost": "v", **ALL}],
                "queues": [queue("v", "q", {})],
                "parameters": [{"component": "shovel", "vhost": "v", "name": "s", "value": {}}],
            }
        )
    )
    node = tmp_path / "node"
    code, said = init(node, "--from-rabbitmq", str(conf), str(definitions))
    assert code == 0, said
    for left_out in (
        "cluster_partition_handling: ",
        "vm_memory_high_watermark.relative: ",
        "loopback_users.guest: ",
        "shovel 's' in vhost 'v': not imported: ",
    ):
        assert f"left out: {left_out}" in said, said
    assert said.count("left out: ") == 4
    # What is left out of the definitions follows, as `crosstie check` has it.
    assert "definitions.json: definitions of RabbitMQ" in said
    config = node / ".crossbar" / "config.json"
    assert {file.stat().st_mode & 0o77 for file in config.parent.iterdir()} == {0}
    router = start(node)
    with Peer.tcp(("127.0.0.1", amqp)) as peer:
        peer.open("al", "al", vhost="v")
    router.stop()
    code, said = init(node, "--from-rabbitmq", str(conf))
    assert (code, "is there already" in said) == (2, True)


@pytest.mark.parametrize("transport", ["tcp", "websockets"])
def test_mqtt_moves(tmp_path, transport):
    """A client of MQTT is in by RabbitMQ's `guest`, as without a user name there."""
    amqp, management, prometheus, mqtt, web = free_ports(5)
    conf = tmp_path / "rabbitmq.conf"
    lines = CONF.format(amqp=amqp, management=management, prometheus=prometheus)
    lines += f"mqtt.listeners.tcp.1 = 127.0.0.1:{mqtt}\nmqtt.subscription_ttl = 60000\n"
    conf.write_text(f"{lines}web_mqtt.tcp.listener = 127.0.0.1:{web}\n")
    node = tmp_path / "node"
    code, said = init(node, "--from-rabbitmq", str(conf))
    assert (code, "note: MQTT is served" in said) == (0, True), said
    router = start(node)
    connection = connect(("127.0.0.1", amqp), "guest")
    channel = connection.channel()
    own = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(own, "amq.topic", "a.#")
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, transport=transport)
    client.ws_set_options(path="/ws")
    client.connect("127.0.0.1", mqtt if transport == "tcp" else web)
    client.loop_start()
    client.publish("a/b", b"moved", 1).wait_for_publish(30)
    method, _, body = channel.basic_get(own, auto_ack=True)
    assert (method.routing_key, body) == ("a.b", b"moved")
    client.disconnect()
    client.loop_stop()
    connection.close()
    router.stop()


def test_erlang_terms_are_refused(tmp_path):
    advanced = tmp_path / "advanced.config"
    advanced.write_text("[{rabbit, [{heartbeat, 5}]}].\n")
    code, said = init(tmp_path / "node", "--from-rabbitmq", str(advanced))
    assert (code, "Erlang terms" in said) == (2, True)
    assert not (tmp_path / "node").exists()
