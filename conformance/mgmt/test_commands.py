"""RabbitMQ's commands, by the names of its programs, as RabbitMQ 3.10.8 answers them."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest
from rig.rawsocket import RawSocket
from rig.router import binary
from rig.session import CALL, RESULT

from mgmt import commands
from mgmt.different_commands import DIFFERENT
from mgmt.named import Named

SHUTDOWN = "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'"
RECORDED = json.loads((Path(__file__).parent / "commands.json").read_text())


@pytest.fixture(scope="module")
def named(tmp_path_factory) -> Iterator[Named]:
    """Return the programs, and a node with the management API."""
    found = Named.started(tmp_path_factory)
    yield found
    found.stop()


@pytest.fixture(scope="module")
def outcomes(named) -> dict[str, dict]:
    """Return what comes of the script."""
    status = named.run("rabbitmqctl", ("status", "--formatter", "json"))
    node = json.loads(status.stdout)["listeners"][0]["node"]
    address = named.router.address("amqp")
    management = named.router.address("management")[1]
    found: dict[str, dict] = {}
    commands.Broker(address, management, node, named.run).play(found)
    return found


def test_the_commands_are_those_of_rabbitmq(outcomes):
    assert outcomes.keys() == RECORDED.keys()
    differing = {
        name: (RECORDED[name], found) for name, found in outcomes.items() if found != RECORDED[name]
    }
    unlisted = {name: both for name, both in differing.items() if name not in DIFFERENT}
    assert unlisted == {}
    # The list has nothing that is not so any more.
    assert DIFFERENT.keys() - differing.keys() == set()


def test_the_program_needs_no_link(named):
    done = subprocess.run(
        [binary(), "rabbitmqctl", "--cbdir", named.router.directory, "-q", "list_vhosts"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[:2] == ["name", "/"]


def test_unhonoured_words_are_refused_by_name(named):
    for words in (
        ("--erlang-cookie", "x", "list_users"),
        ("list_users", "--dry-run"),
        ("list_users", "--formatter", "erlang"),
        ("list_queues", "memory"),
        ("eval", "1."),
        ("join_cluster", "x"),
    ):
        done = named.run("rabbitmqctl", words)
        named_word = next(word for word in words[::-1] if word not in ("x", "1.", "list_users"))
        assert (done.returncode, done.stdout) == (64, ""), (words, done)
        assert named_word.lstrip("-") in done.stderr


def test_a_node_is_awaited_and_stopped(tmp_path_factory):
    named = Named.started(tmp_path_factory)
    pid = str(named.router.process.pid)
    waited = named.run("rabbitmqctl", ("wait", "--pid", pid))
    assert (waited.returncode, waited.stdout.splitlines()[0]) == (0, f"pid is {pid}")
    stopped = named.run("rabbitmqctl", ("-q", "stop"))
    assert (stopped.returncode, stopped.stdout) == (0, "")
    assert named.router.exit_code() == 0
    for words in (("list_users",), ("await_startup", "--timeout", "0"), ("ping",)):
        done = named.run("rabbitmqctl", words)
        assert done.returncode == 69
        assert "unable to perform an operation on node" in done.stderr


def test_lists_come_in_parts(named):
    # More than fit one answer of the management realm.
    count = 5_050
    connection = pika.BlockingConnection(pika.ConnectionParameters(*named.router.address("amqp")))
    channel = connection.channel()
    for number in range(count):
        channel.queue_declare(f"many.{number}", auto_delete=True, exclusive=True)
    done = named.run("rabbitmqctl", ("-q", "-s", "list_queues", "name", "messages"))
    names = [line for line in done.stdout.splitlines() if line.startswith("many.")]
    assert len({*names}) == count
    connection.close()
    users = [{"name": f"many.{number}", "tags": ""} for number in range(count)]
    given = json.dumps({"users": users})
    assert named.run("rabbitmqctl", ("-q", "import_definitions"), given).returncode == 0
    done = named.run("rabbitmqctl", ("-q", "-s", "list_users"))
    names = [line for line in done.stdout.splitlines() if line.startswith("many.")]
    assert len({*names}) == count


def test_definitions_are_exported_and_imported(named, tmp_path):
    def ctl(*words: str, given: str = "") -> subprocess.CompletedProcess:
        return named.run("rabbitmqctl", words, given)

    assert ctl("add_vhost", "kept").returncode == 0
    file = tmp_path / "definitions.json"
    exported = ctl("export_definitions", str(file))
    assert exported.stdout == f'Exporting definitions in JSON to a file at "{file}" ...\n'
    assert exported.returncode == 0
    assert json.loads(file.read_text()) == json.loads(ctl("export_definitions", "-").stdout)
    assert ctl("export_definitions", str(file)).returncode == 65
    assert ctl("delete_vhost", "kept").returncode == 0
    assert ctl("-q", "import_definitions", str(file)).returncode == 0
    assert "kept" in ctl("-q", "list_vhosts").stdout.splitlines()
    assert ctl("import_definitions", given="no JSON").returncode == 65
    assert ctl("import_definitions", str(tmp_path / "absent")).returncode == 65
    assert ctl("delete_vhost", "kept").returncode == 0


def count(wamp: RawSocket) -> int:
    """Return the number of sessions of its realm."""
    wamp.ask(CALL, {}, "wamp.session.count")
    return wamp.hear(RESULT)[3][0]


def test_the_broker_stops_and_starts_in_a_running_node(named):
    pages, address = named.router.address("tcp"), named.router.address("amqp")

    def connected() -> pika.BlockingConnection:
        return pika.BlockingConnection(pika.ConnectionParameters(*address))

    persistent = pika.BasicProperties(delivery_mode=2)
    connection = connected()
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare("kept", durable=True)
    channel.queue_declare("lost")
    for body, properties in ((b"taken", persistent), (b"stored", persistent), (b"lost", None)):
        channel.basic_publish("", "kept", body, properties)
    assert channel.basic_get("kept")[2] == b"taken"
    with RawSocket.tcp(pages) as wamp:
        wamp.shake_hands().join()
        stopped = named.run("rabbitmqctl", ("-q", "stop_app"))
        assert (stopped.returncode, stopped.stderr) == (0, "")
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
            connection.process_data_events(time_limit=60)
        assert closed.value.reply_code == 320
        assert closed.value.reply_text == SHUTDOWN
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            connected()
        assert named.router.health()[0] == 200
        assert "stopped by an operator" in named.router.health()[1]
        assert count(wamp) >= 1
        # It starts with the configuration that is then in force.
        path = named.router.directory / "config.json"
        configuration = json.loads(path.read_text())
        users = [{"name": name, "password": "guest"} for name in ("guest", "late")]
        allowed = [{"user": "guest", "configure": ".*", "write": ".*", "read": ".*"}]
        configuration["workers"][0]["amqp"] |= {
            "users": users,
            "vhosts": [{"name": "/", "permissions": allowed}],
        }
        path.write_text(json.dumps(configuration))
        reload = [binary(), "reload", "--cbdir", named.router.directory]
        subprocess.run(reload, check=True, capture_output=True)
        started = named.run("rabbitmqctl", ("-q", "start_app"))
        assert (started.returncode, started.stderr) == (0, "")
        assert count(wamp) >= 1
    assert "late" in named.run("rabbitmqctl", ("-q", "list_users")).stdout
    connection = connected()
    channel = connection.channel()
    got = [channel.basic_get("kept", auto_ack=True) for _ in range(3)]
    assert [(body, method and method.redelivered) for method, _, body in got] == [
        (b"taken", True),
        (b"stored", False),
        (None, None),
    ]
    with pytest.raises(pika.exceptions.ChannelClosedByBroker):
        channel.queue_declare("lost", passive=True)
    connection.close()
    # Another program may take the port that the system chose.
    assert named.run("rabbitmqctl", ("-q", "stop_app")).returncode == 0
    with socket.create_server(address):
        started = named.run("rabbitmqctl", ("-q", "start_app"))
    assert (started.returncode, started.stderr) == (0, "")
