"""Bounds of memory and of the disk that operators set: publishers are blocked, and free again."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig.amqp_peer import Peer
from rig.http import Http
from rig.node import management
from rig.ports import free_ports
from rig.router import binary
from rig.waiting import await_true

from mgmt.cases import Api
from mgmt.named import Named

MEMORY = "set_vm_memory_high_watermark"
ALARM = "{resource_limit, disk, node()}"
PERSISTENT = {"delivery_mode": 2}


@pytest.fixture
def named(tmp_path_factory) -> Iterator[Named]:
    """Return the programs, and a node with the management API."""
    found = Named.started(tmp_path_factory)
    yield found
    found.stop()


def ctl(named: Named, *words: str) -> str:
    """Run a command, which must succeed."""
    done = named.run("rabbitmqctl", ("-q", *words))
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def block(named: Named) -> None:
    """Block publishers as the suite of RabbitMQ's Java client does."""
    ctl(named, MEMORY, "0.000000001")
    assert ctl(named, "eval", f"rabbit_alarm:set_alarm({{{ALARM}, []}}).") == "ok\n"


def unblock(named: Named) -> None:
    """Unblock them in the same way."""
    ctl(named, MEMORY, "0.4")
    assert ctl(named, "eval", f"rabbit_alarm:clear_alarm({ALARM}).") == "ok\n"


def enter(named: Named) -> Peer:
    """Open a channel with confirms."""
    peer = Peer(socket.create_connection(named.router.address("amqp"))).open("guest", "guest")
    peer.channel()
    peer.call("confirm.select")
    peer.expect("confirm.select-ok")
    return peer


def node_of(named: Named) -> dict:
    """Return what the management API says of the node."""
    api = Api(Http(named.router.address("management")), named.router.address("amqp"))
    (node,) = api.json("nodes")
    return node


def total_memory() -> int:
    """Return the machine's memory."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("MemTotal:")]
    return int(line.split()[1]) * 1024


def test_a_client_that_came_back_is_blocked_and_unblocked(named):
    peer = enter(named)
    # The client loses its connection, and returns.
    peer.close()
    peer = enter(named)
    block(named)
    # No queue gets this message, and an empty broker has no memory in use.
    peer.publish("", "")
    assert peer.expect("connection.blocked", 0)["reason"] == "low on memory"
    unblock(named)
    peer.expect("connection.unblocked", 0)
    peer.expect("basic.ack")
    peer.leave()


def test_a_connection_of_an_alarms_time_is_blocked(named):
    block(named)
    peer = enter(named)
    peer.publish("", "")
    peer.expect("connection.blocked", 0)
    unblock(named)
    peer.expect("connection.unblocked", 0)
    peer.leave()


def test_the_first_message_of_an_alarms_time_waits_for_its_end(named):
    witness = enter(named)
    witness.call("queue.declare", queue="waits")
    witness.expect("queue.declare-ok")
    block(named)
    peer = enter(named)
    peer.publish("", "waits", b"first")
    peer.publish("", "waits", b"second")
    peer.expect("connection.blocked", 0)
    assert depth(witness, "waits") == 0
    unblock(named)
    peer.expect("connection.unblocked", 0)
    peer.expect("basic.ack")
    await_true("both are there", lambda: depth(witness, "waits") == 2)
    for each in (peer, witness):
        each.leave()


def test_the_management_api_publishes_while_an_alarm_stands(named):
    block(named)
    api = Api(Http(named.router.address("management")), named.router.address("amqp"))
    assert api.ask("PUT", "queues/%2F/told", {}).status == 201
    message = {
        "routing_key": "told",
        "payload": "x",
        "payload_encoding": "string",
        "properties": {},
    }
    answer = api.ask("POST", "exchanges/%2F/amq.default/publish", message)
    assert json.loads(answer.body) == {"routed": True}
    unblock(named)


def depth(peer: Peer, queue: str) -> int:
    """Return the number of messages in a queue."""
    peer.call("queue.declare", queue=queue, passive=True)
    return peer.expect("queue.declare-ok")["messages"]


def test_a_raised_alarm_blocks_durable_messages(named):
    peer = enter(named)
    peer.call("queue.declare", queue="kept", durable=True)
    peer.expect("queue.declare-ok")
    ctl(named, "eval", f"rabbit_alarm:set_alarm({{{ALARM}, []}}).")
    assert node_of(named)["disk_free_alarm"]
    assert "operator raised the alarm of disk" in named.router.health()[1]
    peer.publish("", "kept", b"x", PERSISTENT)
    assert peer.expect("connection.blocked", 0)["reason"] == "low on disk"
    ctl(named, "eval", f"rabbit_alarm:clear_alarm({ALARM}).")
    peer.expect("connection.unblocked", 0)
    peer.expect("basic.ack")
    assert not node_of(named)["disk_free_alarm"]
    peer.leave()


def test_a_raised_alarm_of_the_disk_blocks_transient_messages_too(named):
    """As on RabbitMQ. A disk that is full in earnest blocks those that need it."""
    peer = enter(named)
    ctl(named, "eval", f"rabbit_alarm:set_alarm({{{ALARM}, []}}).")
    # No queue gets this message, and the disk has room.
    peer.publish("", "")
    assert peer.expect("connection.blocked", 0)["reason"] == "low on disk"
    ctl(named, "eval", f"rabbit_alarm:clear_alarm({ALARM}).")
    peer.expect("connection.unblocked", 0)
    peer.expect("basic.ack")
    peer.leave()


def test_bounds_are_shown_and_end_with_the_broker(named):
    before = node_of(named)
    for words, key, expected in (
        ((MEMORY, "0.5"), "mem_limit", total_memory() // 2),
        ((MEMORY, "absolute", "3GiB"), "mem_limit", 3 << 30),
        (("set_disk_free_limit", "60MB"), "disk_free_limit", 60_000_000),
        (("set_disk_free_limit", "mem_relative", "0"), "disk_free_limit", 0),
        (("set_disk_free_limit", "2GB"), "disk_free_limit", 2_000_000_000),
    ):
        ctl(named, *words)
        assert node_of(named)[key] == expected, words
    shown = json.loads(ctl(named, "status", "--formatter", "json"))
    assert shown["vm_memory_high_watermark_limit"] == 3 << 30
    assert shown["disk_free_limit"] == 2_000_000_000
    # A reload of other keys leaves them, and one of the same key replaces them.
    path = named.router.directory / "config.json"
    configuration = json.loads(path.read_text())
    limits = configuration["workers"][0]["amqp"].setdefault("limits", {})
    for key, expected in (("queues_max", 3 << 30), ("memory_bytes_max", 1 << 21)):
        limits[key] = 1 << 21
        path.write_text(json.dumps(configuration))
        reload = [binary(), "reload", "--cbdir", named.router.directory]
        subprocess.run(reload, check=True, capture_output=True)
        assert node_of(named)["mem_limit"] == expected
    ctl(named, "stop_app")
    ctl(named, "start_app")
    after = node_of(named)
    assert after["mem_limit"] == 1 << 21
    assert after["disk_free_limit"] == before["disk_free_limit"]


def test_a_bound_above_the_disk_blocks_before_the_command_ends(named):
    free = os.statvfs(named.router.directory)
    peer = enter(named)
    peer.call("queue.declare", queue="kept", durable=True)
    peer.expect("queue.declare-ok")
    ctl(named, "set_disk_free_limit", str(free.f_blocks * free.f_frsize))
    assert node_of(named)["disk_free_alarm"]
    assert named.run("rabbitmq-diagnostics", ("check_alarms",)).returncode == 69
    peer.publish("", "kept", b"x", PERSISTENT)
    peer.expect("connection.blocked", 0)
    # The alarm ends at the limit, and not a tenth above it.
    free = os.statvfs(named.router.directory)
    ctl(named, "set_disk_free_limit", str(int(free.f_bavail * free.f_frsize * 0.97)))
    assert not node_of(named)["disk_free_alarm"]
    peer.expect("connection.unblocked", 0)
    peer.expect("basic.ack")
    peer.leave()


def test_a_bound_of_channels(named):
    """As RabbitMQ's Java client sets it: for new connections, on which a higher one is refused."""

    def evaluated(expression: str) -> str:
        return ctl(named, "eval", expression).strip()

    def tuned() -> tuple[Peer, int]:
        peer = Peer(socket.create_connection(named.router.address("amqp")))
        peer.start("guest", "guest")
        return peer, peer.expect("connection.tune")["channel_max"]

    read = "application:get_env(rabbit, channel_max)"
    peer, before = tuned()
    peer.close()
    assert evaluated(f"{read}.") == f"{{ok,{before}}}"
    old = enter(named)
    assert evaluated("application:set_env(rabbit, channel_max, 3).") == "ok"
    assert evaluated(f"{{ok, V}} = {read}, V.") == "3"
    # The client that was there has what it has negotiated.
    for number in range(2, 6):
        old.channel(number)
    old.leave()
    peer, offered = tuned()
    assert offered == 3
    peer.call("connection.tune-ok", 0, channel_max=4, frame_max=131072, heartbeat=0)
    code, text, *_ = peer.expect_connection_close()
    assert (code, "channel_max = 4 is higher" in text) == (530, True)
    peer = enter(named)
    for number in (2, 3):
        peer.channel(number)
    peer.call("channel.open", 4)
    assert peer.expect_connection_close()[0] == 530
    assert evaluated("application:set_env(rabbit, channel_max, 0).") == "ok"
    peer, offered = tuned()
    assert offered == 65_535
    peer.close()


def test_a_bound_of_channels_ends_with_another_one_of_a_listener(named):
    path = named.router.directory / "config.json"
    configuration = json.loads(path.read_text())
    transports = configuration["workers"][0]["transports"]
    first = next(each for each in transports if each["type"] == "amqp")
    second = {"type": "amqp", "endpoint": {"type": "tcp", "port": free_ports(1)[0]}}
    transports.append(second)

    def reloaded(transport: dict, **options: int) -> int:
        transport.setdefault("options", {}).update(options)
        path.write_text(json.dumps(configuration))
        reload = [binary(), "reload", "--cbdir", named.router.directory]
        subprocess.run(reload, check=True, capture_output=True)
        read = "{ok, V} = application:get_env(rabbit, channel_max), V."
        return int(ctl(named, "eval", read))

    assert reloaded(second, channels_max=200) == 200
    assert ctl(named, "eval", "application:set_env(rabbit, channel_max, 7).") == "ok\n"
    for each in (first, second, first):
        heartbeat = each.get("options", {}).get("heartbeat_seconds", 60)
        assert reloaded(each, heartbeat_seconds=heartbeat + 1) == 7
    assert reloaded(second, channels_max=201) == 201


def test_wrong_orders_are_refused(named):
    procedure = "crossbar.worker.worker1.set_amqp_bound"
    with management(named.router.directory) as operator:
        for arguments in (["cpu", 1], ["disk", -1], ["memory", 1, "furlongs"], ["memory", 1e300]):
            with pytest.raises(Exception, match="expected"):
                operator.call(procedure, *arguments)
    done = named.run("rabbitmqctl", ("eval", "init:stop()."))
    assert (done.returncode, done.stdout) == (64, "")
    await_true("the node lives", lambda: named.router.health()[0] == 200)
