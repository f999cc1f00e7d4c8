"""oslo.messaging's server and client beyond their heartbeats, with nothing to do and with much.

The interval is the shortest that there is, and what a test waits for is heartbeats, not time.
"""

from __future__ import annotations

import signal
import subprocess
import threading
import uuid
from collections.abc import Callable

import pytest
from rig.broker import Broker
from rig.process import Process
from rig.relay import Relay
from rig.router import binary
from rig.waiting import DEADLINE_S

# Heartbeats to live through; the server looks after its connections twice as often.
PERIODS = 5


@pytest.fixture
def topic() -> str:
    """A topic of the test's own."""
    return f"topic-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def relay(broker: Broker, start_relay) -> Relay:
    """Between both ends and the broker."""
    return start_relay(broker.address)


@pytest.fixture
def place(relay: Relay, topic: str) -> list[object]:
    """Return the common arguments of both ends."""
    host, port = relay.address
    url = f"rabbit://test:test@{host}:{port}/"
    return ["--url", url, "--topic", topic, "--heartbeat", 1]


@pytest.fixture
def server(start_process, place: list[object]) -> Process:
    """A server which listens already."""
    server = start_process(binary(), "oslo", "rpc-server", "native", *place)
    assert server.line().startswith("Running server")
    return server


@pytest.fixture
def direct(broker: Broker, topic: str) -> list[object]:
    """The same place, for who does not want to be cut off."""
    return ["--url", broker.url(scheme="rabbit"), "--topic", topic]


@pytest.fixture
def call(direct: list[object]) -> Callable[..., subprocess.CompletedProcess]:
    """Run `crosstie oslo rpc-client` to its end."""

    def call(*arguments: object) -> subprocess.CompletedProcess:
        command = [binary(), "oslo", "rpc-client", *direct, *arguments]
        return subprocess.run(
            list(map(str, command)), text=True, capture_output=True, timeout=30, check=False
        )

    return call


# The server's own connection, and one for replies.
SERVERS = 2


def test_a_server_that_has_served_and_then_waited_serves(relay, server, call):
    """It has a connection for replies since the first call, which is to be kept alive as well."""
    for _ in range(2):
        done = call("echo", "--quiet")
        assert done.returncode == 0, done.stderr
        server.line()
        relay.await_open(SERVERS)
        relay.await_keepalives(PERIODS)
    done = call("sink", "--cast", "--quiet")
    assert done.returncode == 0, done.stderr
    code, rest = server.interrupt()
    assert code == 0, server.errors
    assert rest.endswith("called!!!\nStopping..\n")
    assert server.errors == []


def test_a_server_and_clients_are_busy_for_long(relay, server, call, start_process, place):
    """Calls one after the other while slow ones last for several heartbeats, and one after that."""
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.extend(server.process.stdout))
    reader.start()
    client = [binary(), "oslo", "rpc-client", *place, "--quiet"]
    busy = start_process(*client, "echo", "--repeat", 0, "--threads", 2)
    slow = start_process(*client, "sleep", "timeout=3", "--threads", 3, "--repeat", 2)
    assert slow.process.wait(60) == 0, slow.errors
    assert busy.interrupt()[0] == 0, busy.errors
    done = call("echo", "--quiet")
    assert done.returncode == 0, done.stderr
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(DEADLINE_S) == 0, server.errors
    reader.join()
    assert lines[-1] == "Stopping..\n"
    assert server.errors == []


def test_a_slow_call_keeps_its_caller_waiting(server, call):
    """A caller waits for several heartbeats, with nothing to say on either of its connections."""
    done = call("sleep", "timeout=4", "reply=at last", "--heartbeat", 1)
    assert done.returncode == 0, done.stderr
    assert "RPC return value=at last" in done.stdout
    assert server.interrupt()[0] == 0


def test_a_server_that_is_cut_off_comes_back(relay, server, call, start_process, direct):
    """More than once; what it was at is answered all the same, on connections that are new."""
    for _ in range(2):
        slow = [binary(), "oslo", "rpc-client", *direct, "sleep", "timeout=1", "reply=after all"]
        sleeper = start_process(*slow)
        assert "::sleeps(" in server.line()
        server.errors.clear()
        relay.cut()
        server.said("; connecting again\n", "connected again\n")
        sleeper.line()
        assert sleeper.line() == "RPC return value=after all"
        done = call("echo", "--quiet")
        assert done.returncode == 0, done.stderr
        server.line()
    code, rest = server.interrupt()
    assert (code, rest) == (0, "Stopping..\n")


def test_a_network_that_is_gone_is_noticed(relay, server, call):
    """Nothing is closed: only heartbeats tell."""
    relay.hold()
    server.said("silent for twice the heartbeat of 1 s; connecting again\n")
    relay.go_on()
    server.said("connected again\n")
    done = call("echo", "--quiet")
    assert done.returncode == 0, done.stderr
    server.line()
    assert server.interrupt()[0] == 0


@pytest.mark.parametrize("kill", [False, True], ids=["stop", "kill"])
def test_a_broker_that_restarts_has_its_server_again(start_broker, start_process, topic, kill):
    """Its queues are gone with the broker; the server makes them again."""
    broker = start_broker()
    place = ["--url", broker.url(scheme="rabbit"), "--topic", topic]
    server = start_process(binary(), "oslo", "rpc-server", "native", *place)
    assert server.line().startswith("Running server")
    echo = [binary(), "oslo", "rpc-client", *place, "sink", "--quiet"]
    for _ in range(2):
        assert start_process(*echo).process.wait(DEADLINE_S) == 0
        server.errors.clear()
        broker.restart(kill=kill)
        server.said("; connecting again\n", "connected again\n")
    assert start_process(*echo).process.wait(DEADLINE_S) == 0
    assert server.interrupt()[0] == 0


def test_a_server_without_a_broker_ends_when_it_is_told(start_broker, start_process, topic):
    """In the midst of its tries, at once and in good order."""
    broker = start_broker()
    place = ["--url", broker.url(scheme="rabbit"), "--topic", topic]
    server = start_process(binary(), "oslo", "rpc-server", "native", *place)
    assert server.line().startswith("Running server")
    broker.router.stop()
    server.said("; connecting again\n", "; trying again\n")
    code, rest = server.interrupt()
    assert (code, rest) == (0, "Stopping..\n")
