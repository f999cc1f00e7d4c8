"""The work of an AMQP operator: list objects, empty and delete queues, end connections,
import what another broker has exported; by command line and in the management realm."""

from __future__ import annotations

import json
import re
import signal
import socket
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pika
import pytest
from pika.exceptions import ProbableAuthenticationError
from rig import config
from rig.amqp_peer import Peer
from rig.broker import Crosstie
from rig.node import Node
from rig.pika_client import closed_by_broker, connect
from rig.router import ROOT, Router, binary
from rig.waiting import await_true

EXPORTED = ROOT / "crates/config/tests/definitions/rabbitmq-3.10.8.json"
# Entries of a list in one result of the management realm.
PART_MAX = 5_000


def crosstie(*arguments: object, cwd: Path):
    """Run a command to its end, in an environment that names no node directory."""
    command = [str(binary()), *map(str, arguments)]
    environment = {"PATH": "/usr/bin:/bin"}
    return subprocess.run(
        command, cwd=cwd, env=environment, text=True, capture_output=True, timeout=60
    )


def listed(what: str, *arguments: object, cwd: Path) -> list[dict]:
    """Return what a list says in JSON."""
    done = crosstie(what, "--json", *arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def embedded(tmp_path) -> Iterator[Router]:
    """A node that was given nothing but a free port for WAMP."""
    running = Router(tmp_path, "--listen", "127.0.0.1:0")
    yield running
    running.stop()


@pytest.fixture
def start_node(tmp_path) -> Iterator[Callable[[dict], Node]]:
    """Start a node in a directory of its own; it ends with the test."""
    running: list[Node] = []

    def start(configuration: dict) -> Node:
        started = Node(tmp_path, configuration)
        running.append(started)
        started.says("^Ready")
        return started

    yield start
    for each in running:
        each.close()


def worker(**amqp: object) -> dict:
    """Return a router worker that speaks nothing but AMQP."""
    transport = {"type": "amqp", "id": "amqp", "endpoint": config.tcp()}
    return {"type": "router", "amqp": amqp, "transports": [transport]}


def address(node: Node, number: int = 1) -> tuple[str, int]:
    """Return where a worker of a node speaks AMQP."""
    line = node.says(f"'worker{number}': transport 'amqp' started at")
    found = re.search(r"amqp://([\d.]+):(\d+)", line.text)
    assert found, line.text
    return found[1], int(found[2])


# The embedded default.


def test_the_embedded_default_is_a_broker(embedded, tmp_path):
    place = embedded.address("amqp")
    assert place[0] == "127.0.0.1"
    with connect(place) as connection:
        channel = connection.channel()
        channel.queue_declare("passing")
        channel.basic_publish("", "passing", b"message")
        # Nothing that is to survive, no file.
        assert not (tmp_path / "crosstie.store").exists()
        channel.queue_declare("lasting", durable=True)
        await_true("the store is made", (tmp_path / "crosstie.store").exists)
        names = {queue["name"]: queue for queue in listed("queues", cwd=tmp_path)}
        assert names.keys() == {"passing", "lasting"}
        assert names["passing"]["messages_ready"] == 1
        assert names["lasting"]["durable"] is True


def test_the_embedded_default_is_stopped(tmp_path):
    nobody = crosstie("stop", cwd=tmp_path)
    assert nobody.returncode == 1
    assert nobody.stdout.startswith("No node runs here: ")
    node = Router(tmp_path, "--listen", "127.0.0.1:0")
    try:
        # Its process is there until its parent asks, which happens below.
        done = crosstie("stop", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"Stopped the node here, process {node.process.pid}\n"
        assert node.exit_code() == 0
    finally:
        node.kill()


def test_its_management_realm_is_its_users_own(tmp_path):
    running = Router(tmp_path, "--listen", "127.0.0.1:0")
    path = tmp_path / "crosstie-management.sock"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    url = f"rs+unix:{path}"
    done = crosstie(
        "call", "crossbar.get_status", "--url", url, "--realm", "crossbar", cwd=tmp_path
    )
    assert json.loads(done.stdout)["pid"] == running.process.pid
    status = crosstie("status", "--assert", "running", cwd=tmp_path)
    assert status.returncode == 0, status.stdout
    host, port = running.address("amqp")
    assert f"process: {running.process.pid}\n" in status.stdout
    assert f"amqp: amqp://{host}:{port}" in status.stdout
    running.stop()
    assert list(tmp_path.iterdir()) == []
    status = crosstie("status", "--assert", "stopped", cwd=tmp_path)
    assert status.returncode == 0, status.stderr
    assert status.stdout.startswith(f"stopped\ndirectory: {tmp_path}\nnote: this directory is not ")


def test_status_names_every_url(tmp_path):
    running = Router(tmp_path, "--listen", "127.0.0.1:0")
    said = crosstie("status", cwd=tmp_path).stdout.splitlines()
    for url in running.urls("transport1") + running.urls("transport2"):
        assert f"wamp: {url}" in said
    host, port = running.address("transport1")
    assert f"pages: http://{host}:{port}/" in said
    running.stop()


def test_a_second_embedded_node_is_told_about_the_first(tmp_path):
    first = Router(tmp_path, "--listen", "127.0.0.1:0")
    second = crosstie("start", "--listen", "127.0.0.1:0", cwd=tmp_path)
    assert second.returncode == 2
    assert f"runs here already, process {first.process.pid}" in second.stderr
    first.stop()


def test_files_of_a_killed_node_do_not_block_the_next(tmp_path):
    killed = Router(tmp_path, "--listen", "127.0.0.1:0")
    killed.kill()
    assert (tmp_path / "crosstie-management.sock").exists()
    assert crosstie("status", "--assert", "stopped", cwd=tmp_path).returncode == 0
    assert crosstie("queues", cwd=tmp_path).returncode == 2
    running = Router(tmp_path, "--listen", "127.0.0.1:0")
    assert listed("queues", cwd=tmp_path) == []
    running.stop()


@pytest.mark.parametrize(("port", "transport"), [(5672, "amqp"), (8080, "transport1")])
def test_a_taken_port_is_exchanged_for_another(tmp_path, port, transport):
    taken = socket.socket()
    # Connections that have ended do not count.
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind(("127.0.0.1", port))
        taken.listen()
    except OSError:
        # It exists already, which is as good.
        pass
    with taken:
        running = Router(tmp_path)
        place = running.address(transport)
        assert place[1] != port
        running.await_log(lambda line: f"another port than {port}" in line.text)
        url = running.urls(transport)[0]
        running.await_log(lambda line: f"and not to port {port} need the URL {url}" in line.text)
        if transport == "amqp":
            connect(place).close()
        running.stop()


def test_a_port_that_was_asked_for_is_not(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        arguments = ("start", "--listen", "127.0.0.1:0", "--amqp", f"127.0.0.1:{port}")
        done = crosstie(*arguments, cwd=tmp_path)
        assert done.returncode == 1
        assert str(port) in done.stderr
    running = Router(tmp_path, "--listen", "127.0.0.1:0", "--amqp", f"127.0.0.1:{port}")
    assert running.address("amqp") == ("127.0.0.1", port)
    running.stop()


def test_two_nodes_in_one_directory_are_told_apart(tmp_path):
    names = ("one.sock", "two.sock")
    nodes = [Router(tmp_path, "--listen", "127.0.0.1:0", "--socket", name) for name in names]
    for node, name in zip(nodes, names, strict=True):
        with connect(node.address("amqp")) as connection:
            connection.channel().queue_declare(f"queue of {name}")
            (queue,) = listed("queues", "--socket", name, cwd=tmp_path)
            assert queue["name"] == f"queue of {name}"
    assert crosstie("queues", cwd=tmp_path).returncode == 2
    for node in nodes:
        node.stop()


def test_alarms_are_shown(tmp_path):
    # The first node has the name of the store.
    first = Router(tmp_path, "--listen", "127.0.0.1:0", "--socket", "first.sock")
    second = Router(tmp_path, "--listen", "127.0.0.1:0")
    second.await_log(lambda line: "durable messages will not be stored" in line.text)
    assert "alarm:" not in crosstie("status", cwd=tmp_path).stdout
    with connect(second.address("amqp")) as connection:
        connection.channel().queue_declare("kept", durable=True)
        said = "alarm: the store cannot write: "
        await_true("the alarm", lambda: said in crosstie("status", cwd=tmp_path).stdout)
        first.stop()
        await_true("its end", lambda: said not in crosstie("status", cwd=tmp_path).stdout)
    second.stop()
    assert (tmp_path / "crosstie.store").exists()


def test_a_store_that_cannot_be_made_is_found_out_at_the_start(tmp_path):
    configuration = {"version": 2, "workers": [worker(store="/proc/self/x.store")]}
    (tmp_path / "config.json").write_text(json.dumps(configuration))
    done = crosstie("start", "--config", tmp_path / "config.json", cwd=tmp_path)
    assert done.returncode == 1
    assert "/proc/self/x.store: making it: " in done.stderr


def test_texts_of_clients_stay_in_one_log_line(embedded):
    forged = "evil\n2026-01-01T00:00:00 [Controller 1] forged \x1b[31m"
    place = embedded.address("amqp")
    parameters = pika.ConnectionParameters(*place, client_properties={"connection_name": forged})
    pika.BlockingConnection(parameters).close()
    line = embedded.await_log(lambda line: "evil" in str(line.fields))
    assert line.fields["name"] == "evil\\n2026-01-01T00:00:00 [Controller 1] forged \\u{1b}[31m"


def test_refusals_are_not_lost_among_those_who_come_and_go(embedded):
    place = embedded.address("amqp")
    since = len(embedded.log)
    for _ in range(40):
        connect(place).close()
    with pytest.raises(ProbableAuthenticationError):
        connect(place, "nobody")
    line = embedded.await_log(lambda line: "login refused" in line.text, since)
    assert line.level == "WARN"
    names = ("user", "method", "cause")
    assert [line.fields[name] for name in names] == ["nobody", "PLAIN", "login"]


# Lists and verbs.


def test_queues_are_listed_purged_and_deleted(embedded, tmp_path):
    with connect(embedded.address("amqp")) as connection:
        channel = connection.channel()
        channel.queue_declare("work", arguments={"x-expires": 600_000})
        channel.queue_declare("mine", exclusive=True, auto_delete=True)
        for _ in range(3):
            channel.basic_publish("", "work", b"12345")
        channel.basic_get("work")
        work = next(queue for queue in listed("queues", cwd=tmp_path) if queue["name"] == "work")
        assert (work["messages_ready"], work["messages_unacked"]) == (2, 1)
        assert work["arguments"] == {"x-expires": 600_000}
        assert work["worker"] == "worker1"
        table = crosstie("queues", cwd=tmp_path).stdout.splitlines()
        titles = "vhost queue type ready unacked consumers bytes features arguments"
        assert table[0].split() == titles.split()
        rows = {line.split()[1]: line.split() for line in table[2:]}
        assert rows["work"][2:5] == ["classic", "2", "1"]
        assert rows["mine"][-2:] == ["exclusive", "auto-delete"]

        done = crosstie("queues", "purge", "work", cwd=tmp_path)
        assert done.stdout == "Purged 2 messages of queue 'work' in vhost '/'\n", done.stderr
        cancelled: list[str] = []
        channel.add_on_cancel_callback(lambda frame: cancelled.append(frame.method.consumer_tag))
        tag = channel.basic_consume("work", lambda *_: None)
        done = crosstie("queues", "delete", "work", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        connection.process_data_events(5)
        assert cancelled == [tag]
        assert [queue["name"] for queue in listed("queues", cwd=tmp_path)] == ["mine"]


def test_exchanges_and_bindings_are_listed(embedded, tmp_path):
    with connect(embedded.address("amqp")) as connection:
        channel = connection.channel()
        channel.exchange_declare("topics", "topic", durable=True)
        channel.exchange_declare("below", "fanout", internal=True)
        channel.queue_declare("work")
        channel.queue_bind("work", "topics", "a.#", {"number": 5})
        channel.exchange_bind("below", "topics", "b.*")
        found = {exchange["name"]: exchange for exchange in listed("exchanges", cwd=tmp_path)}
        assert {"", "amq.direct", "amq.fanout", "amq.headers", "amq.match", "amq.topic"} <= set(
            found
        )
        assert found["topics"]["type"] == "topic"
        assert found["topics"]["durable"] is True
        assert found["below"]["internal"] is True
        bindings = [
            (binding["destination_type"], binding["destination"], binding["routing_key"])
            for binding in listed("bindings", cwd=tmp_path)
            if binding["source"] == "topics"
        ]
        assert sorted(bindings) == [("exchange", "below", "b.*"), ("queue", "work", "a.#")]
        assert "topics" in crosstie("bindings", "list", cwd=tmp_path).stdout
        assert "topics" in crosstie("exchanges", "list", cwd=tmp_path).stdout


def test_an_exchange_is_deleted_with_its_bindings(embedded, tmp_path):
    with connect(embedded.address("amqp")) as connection:
        channel = connection.channel()
        channel.exchange_declare("openstack", "topic")
        channel.queue_declare("work")
        channel.queue_bind("work", "openstack", "work")
        done = crosstie("exchanges", "delete", "openstack", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout == "Deleted exchange 'openstack' in vhost '/', with its bindings\n"
        # As another kind: the former one does not matter.
        channel.exchange_declare("openstack", "topic", durable=True)
        bindings = listed("bindings", cwd=tmp_path)
        assert not [binding for binding in bindings if binding["source"] == "openstack"]
    for name, said in [
        ("nowhere", "there is no exchange 'nowhere' in vhost '/'"),
        ("amq.topic", "deletion of system exchange 'amq.topic' in vhost '/' not allowed"),
        ("", "operation not permitted on the default exchange"),
    ]:
        done = crosstie("exchanges", "delete", name, cwd=tmp_path)
        assert done.returncode == 1
        assert said in done.stderr


def test_connections_are_listed_and_closed(embedded, tmp_path):
    place = embedded.address("amqp")
    with connect(place) as stays:
        connection = connect(place)
        connection.channel()
        connection.channel()
        first, second = listed("connections", cwd=tmp_path)
        assert (first["channels"], second["channels"]) == (0, 2)
        assert (second["user"], second["vhost"], second["state"]) == ("guest", "/", "running")
        assert second["since"]
        arguments = ("close", second["connection"], "--reason", "maintenance")
        done = crosstie("connections", *arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        code, text = closed_by_broker(connection)
        assert code == 320
        assert "maintenance" in text
        assert [each["connection"] for each in listed("connections", cwd=tmp_path)] == [
            first["connection"]
        ]
        stays.channel()
        done = crosstie("connections", "close", 999, cwd=tmp_path)
        assert done.returncode == 1
        assert done.stderr == "crosstie: there is no connection 999\n"


def test_names_of_clients_do_no_harm(embedded, tmp_path):
    with connect(embedded.address("amqp")) as connection:
        connection.channel().queue_declare("a\x1b[2J\tb")
        done = crosstie("queues", cwd=tmp_path)
        assert "\x1b" not in done.stdout
        assert len(done.stdout.splitlines()) == 3
        (queue,) = listed("queues", cwd=tmp_path)
        assert queue["name"] == "a\x1b[2J\tb"


def test_a_list_of_many_parts_is_whole(embedded, tmp_path):
    peer = Peer(socket.create_connection(embedded.address("amqp"))).open("guest", "guest")
    peer.channel()
    names = [f"queue{number:05}" for number in range(PART_MAX + 3)]
    for name in names:
        peer.call("queue.declare", queue=name, nowait=True)
    peer.round_trip()
    assert [queue["name"] for queue in listed("queues", cwd=tmp_path)] == names
    peer.leave()


def test_missing_objects_are_named(embedded, tmp_path):
    rows = [
        (("queues", "purge", "nothing"), 1, "there is no queue 'nothing' in vhost '/'"),
        (("queues", "delete", "nothing"), 1, "there is no queue 'nothing' in vhost '/'"),
        (
            ("queues", "purge", "a", "--vhost", "b"),
            1,
            "no worker of the node has a vhost 'b'",
        ),
        (("queues", "--vhost", "b"), 1, "there is no vhost 'b'"),
        (("bindings", "--vhost", "b"), 1, "there is no vhost 'b'"),
        (("queues", "--worker", "worker9"), 1, "worker9"),
        (("queues", "--cbdir", "elsewhere"), 2, "elsewhere"),
        (("queues", "--socket", "elsewhere.sock"), 2, "no node runs at 'elsewhere.sock'"),
    ]
    for arguments, code, text in rows:
        done = crosstie(*arguments, cwd=tmp_path)
        assert done.returncode == code, (arguments, done.stderr)
        assert text in done.stderr, (arguments, done.stderr)
    assert embedded.process.poll() is None


# A node in a directory.


def test_workers_are_asked_apart(start_node, tmp_path):
    node = start_node(
        {
            "version": 2,
            "workers": [
                worker(store="one.store"),
                worker(store="two.store", vhosts=[{"name": "/"}, {"name": "second"}]),
                {
                    "type": "router",
                    "realms": [{"name": "realm1", "roles": [config.role("anonymous")]}],
                    "transports": [config.universal("unix", config.unix())],
                },
            ],
        }
    )
    with connect(address(node)) as connection:
        connection.channel().queue_declare("work")
        where = ("--cbdir", tmp_path)
        (queue,) = listed("queues", *where, cwd=Path("/"))
        assert (queue["worker"], queue["name"]) == ("worker1", "work")
        done = crosstie("queues", "purge", "work", *where, cwd=Path("/"))
        assert done.returncode == 1
        assert "name one of worker1, worker2 with --worker" in done.stderr
        done = crosstie("queues", "purge", "work", "--worker", "worker1", *where, cwd=Path("/"))
        assert done.returncode == 0, done.stderr
        done = crosstie("queues", "--worker", "worker3", *where, cwd=Path("/"))
        assert done.returncode == 1
        assert "router 'worker3' has no AMQP" in done.stderr
        status = crosstie("status", *where, cwd=Path("/")).stdout
        assert len(re.findall("^amqp: amqp://127", status, re.MULTILINE)) == 2


def test_a_transport_is_started_while_the_node_runs(start_node):
    node = start_node({"version": 2, "workers": [{"type": "router", "transports": []}]})
    controller = node.management()
    definition = {"type": "amqp", "endpoint": config.tcp()}
    started = controller.call("crossbar.worker.worker1.start_router_transport", "later", definition)
    (url,) = started["urls"]
    found = re.fullmatch(r"amqp://([\d.]+):(\d+)/?", url)
    assert found, url
    with connect((found[1], int(found[2]))) as connection:
        connection.channel().queue_declare("work")
        (queue,) = controller.call("crossbar.worker.worker1.get_amqp_queues")
        assert queue["name"] == "work"
        transport = controller.call("crossbar.worker.worker1.get_router_transport", "later")
        assert (transport["type"], transport["connections"]) == ("amqp", 1)
        controller.call("crossbar.worker.worker1.stop_router_transport", "later")
        assert closed_by_broker(connection)[0] == 320


# Definitions of RabbitMQ's.


def defined(tmp_path: Path, **amqp: object) -> dict:
    (tmp_path / "definitions.json").write_bytes(EXPORTED.read_bytes())
    return {"version": 2, "workers": [worker(definitions="definitions.json", **amqp)]}


def test_exported_definitions_are_imported(start_node, tmp_path):
    node = start_node(defined(tmp_path))
    assert node.says("definitions imported from 'definitions.json'")
    place = address(node)
    connect(place).close()
    with connect(place, "nova", "s3cret", "nova") as connection:
        channel = connection.channel()
        assert channel.queue_declare("conductor", passive=True).method.message_count == 0
        # A stream.
        assert channel.queue_declare("log", passive=True).method.message_count == 0
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refused:
            channel.queue_declare("somebody else's")
        assert refused.value.reply_code == 403
        # Its topic permission is `^a`.
        channel = connection.channel()
        channel.confirm_delivery()
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refused:
            channel.basic_publish("nova", "conductor.x", b"message")
        assert refused.value.reply_code == 403
    with connect(place, "test", "test", "nova") as connection:
        channel = connection.channel()
        # By the binding that was imported.
        channel.confirm_delivery()
        channel.basic_publish("nova", "conductor.x", b"message", mandatory=True)
        assert channel.basic_get("conductor")[2] == b"message"
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        connect(place, "nopass", "x", "nova")
    queues = {queue["name"]: queue for queue in listed("queues", cwd=tmp_path)}
    assert sorted(queues) == ["classic", "conductor", "lazy ü", "log", "prio"]
    # `rabbitmqctl` writes the definition of an operator policy as a list of pairs.
    assert queues["conductor"]["operator_policy"] == "oper"
    # Once more, over what the store has kept.
    assert node.stop(signal.SIGINT) == 0
    again = start_node(defined(tmp_path))
    assert not [line for line in again.log if "inequivalent" in line.text]
    names = [queue["name"] for queue in listed("queues", cwd=tmp_path)]
    assert sorted(names) == ["classic", "conductor", "lazy ü", "log", "prio"]


def test_check_tells_what_is_imported(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(defined(tmp_path)))
    done = crosstie("check", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == (
        "definitions.json: definitions of RabbitMQ 3.10.8: 4 users, 2 vhosts, 3 exchanges, "
        "5 queues, 4 bindings, 0 not imported"
    )
    assert lines[-1] == "config.json: a valid node configuration"

    (tmp_path / "definitions.json").write_text('{"users": [{}]}')
    done = crosstie("check", cwd=tmp_path)
    assert done.returncode == 1
    assert '/users/0: "name" is missing' in done.stderr
    done = crosstie("start", cwd=tmp_path)
    assert done.returncode == 1
    assert '/users/0: "name" is missing' in done.stderr


def test_freshly_exported_definitions_are_imported(rabbitmq, start_broker, tmp_path):
    """The judge's own export, of the people that both brokers have in these tests."""
    with connect(rabbitmq.address, "test") as theirs:
        channel = theirs.channel()
        channel.exchange_declare("operators.exchange", "headers", durable=True)
        arguments = {"x-message-ttl": 60_000, "x-dead-letter-exchange": "operators.exchange"}
        channel.queue_declare("operators.queue", durable=True, arguments=arguments)
        match = {"x-match": "any", "kind": "a", "number": 7}
        channel.queue_bind("operators.queue", "operators.exchange", "", match)
        # A name of the broker's own is as good as any other.
        named = channel.queue_declare("", durable=True).method.queue
        assert named.startswith("amq.gen-")
        channel.queue_bind(named, "amq.topic", "a.#")
        path = tmp_path / "exported.json"
        rabbitmq.control("export_definitions", str(path))
        channel.queue_delete(named)
        channel.queue_delete("operators.queue")
        channel.exchange_delete("operators.exchange")
    ours: Crosstie = start_broker()
    (router,) = ours.configuration["workers"]
    router["amqp"] = {"definitions": str(path)}
    ours.restart()
    with connect(ours.address, "test") as connection:
        channel = connection.channel()
        # The same arguments, or it would be refused.
        channel.queue_declare("operators.queue", durable=True, arguments=arguments)
        channel.exchange_declare("operators.exchange", "headers", durable=True)
        properties = pika.BasicProperties(headers={"number": 7})
        channel.confirm_delivery()
        channel.basic_publish("operators.exchange", "", b"message", properties, mandatory=True)
        assert channel.basic_get("operators.queue")[2] == b"message"
        channel.basic_publish("amq.topic", "a.b", b"message", mandatory=True)
        assert channel.basic_get(named)[2] == b"message"
    # Once more, over what the store has kept.
    ours.restart()
    with connect(ours.address, "test") as connection:
        connection.channel().basic_publish("", named, b"message")
