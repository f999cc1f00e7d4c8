"""Permissions, policies and limits of a replicated vhost are in its log, and move with it."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pika
import pika.exceptions
import pytest
from rig import config
from rig.http import Http
from rig.nats import NatsServer
from rig.ports import free_ports
from rig.relay import Relay
from rig.router import Router, binary
from rig.waiting import await_true

from ledger.stage import STREAM, await_owner, connect, crosstie, moved, node_config, role, told

AL = pika.PlainCredentials("al", "al")
BO = pika.PlainCredentials("bo", "bo")


@pytest.fixture
def begin(tmp_path: Path, request) -> Callable[..., Router]:
    """Start a node with users without permissions and the management API, or start it again."""

    def started(
        servers: list[NatsServer],
        name: str,
        *,
        is_replicated: bool = True,
        vhosts: dict[str, list[NatsServer]] | None = None,
        **replicated: object,
    ) -> Router:
        directory = tmp_path / name
        directory.mkdir(exist_ok=True)
        settings = node_config(servers, **replicated)
        settings["controller"] = {"id": name}
        worker = settings["workers"][0]
        more = {"type": "amqp.management", "id": "management", "endpoint": config.tcp()}
        worker["transports"].append(more)
        users = worker["amqp"]["users"]
        users[0]["tags"] = ["administrator"]
        users.extend({"name": name, "password": name} for name in ("al", "bo"))
        for more_name, kept_by in (vhosts or {}).items():
            more = node_config(kept_by, **replicated)["workers"][0]["amqp"]["vhosts"][0]
            worker["amqp"]["vhosts"].append({**more, "name": more_name})
        if not is_replicated:
            del worker["amqp"]["vhosts"][0]["replicated"]
        node = Router(directory, config=settings)

        def end() -> None:
            if node.process.poll() is None:
                node.signal(signal.SIGCONT)
                node.stop()

        request.addfinalizer(end)
        return node

    return started


@pytest.fixture
def pair(nats, begin) -> tuple[Router, Router]:
    """Return the owner of two nodes, and the other one, which stands by."""
    servers = nats()
    nodes = [begin(servers, name) for name in ("node_a", "node_b")]
    owner = await_owner(nodes)
    (other,) = (node for node in nodes if node is not owner)
    await_true("it stands by", lambda: role(other) == "standby")
    return owner, other


def amqp(node: Router, *words: object) -> str:
    """Change something by the command line."""
    return told(node, "amqp", *words)


def refused(node: Router, *words: object) -> str:
    """Return why a change is refused."""
    return told(node, "amqp", *words, code=1)


def rows(node: Router, *words: str) -> list[dict]:
    """List settings."""
    return json.loads(amqp(node, *words, "list", "--json"))


KINDS = [
    ["permission"],
    ["topic-permission"],
    ["policy"],
    ["limit"],
    ["parameter"],
    ["vhost"],
]


def settings(node: Router) -> list[list[dict]]:
    """List all settings of a node's vhosts."""
    return [rows(node, *kind) for kind in KINDS]


def rabbitmqctl(node: Router, *words: str) -> subprocess.CompletedProcess[str]:
    """Say something to a node by the command of RabbitMQ's name."""
    program = node.directory / "rabbitmqctl"
    if not program.exists():
        program.symlink_to(binary().resolve())
    return subprocess.run(
        [str(program), "--quiet", *words],
        env={"CROSSTIE_DIR": str(node.directory), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
    )


def make(owner: Router) -> None:
    """Make one setting of each kind."""
    rights = "^(own|amq)"
    amqp(owner, "permission", "set", "al", "^own", rights, rights)
    amqp(owner, "topic-permission", "set", "al", "amq.topic", "^a", ".*")
    amqp(owner, "policy", "set", "short", "^own", '{"max-length": 2}')
    amqp(owner, "policy", "set", "longest", "^own", '{"max-length": 3}', "--operator")
    amqp(owner, "limit", "set", "max-queues", 3)
    amqp(owner, "limit", "set", "max-connections", 2)
    amqp(owner, "vhost", "set", "/", "--description", "of three")


def code_of(act: Callable[[], object]) -> int:
    """Return the code with which a channel is closed."""
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
        act()
    return closed.value.reply_code


def not_let_in(node: Router, credentials: pika.PlainCredentials) -> str:
    """Return what a client is told that may not open the vhost."""
    with pytest.raises(pika.exceptions.ProbableAccessDeniedError) as refused:
        connect(node, credentials=credentials)
    assert "(530)" in str(refused.value)
    return str(refused.value)


def check_effect(node: Router) -> None:
    """Hold that the settings are in force for clients of a node."""
    with connect(node, credentials=AL) as connection:
        channel = connection.channel()
        channel.queue_declare("own", durable=True)
        channel.confirm_delivery()
        for _ in range(5):
            channel.basic_publish("", "own", b"x", pika.BasicProperties(delivery_mode=2))
        assert channel.queue_declare("own", passive=True).method.message_count == 2
        assert code_of(lambda: connection.channel().queue_declare("other")) == 403
        topic = connection.channel()
        topic.confirm_delivery()
        topic.basic_publish("amq.topic", "a", b"")
        assert code_of(lambda: topic.basic_publish("amq.topic", "b", b"")) == 403
        names = ("own.1", "own.2", "own.3")

        def declare() -> None:
            for name in names:
                connection.channel().queue_declare(name, exclusive=True)

        assert code_of(declare) == 406
        with connect(node):
            for credentials in (AL, pika.PlainCredentials("test", "test")):
                assert "connection limit (2) is reached" in not_let_in(node, credentials)
    assert "access to vhost '/' refused for user 'bo'" in not_let_in(node, BO)


def check_refused_elsewhere(node: Router, owner: Router) -> None:
    """Hold that a node that does not own the vhost names the owner."""
    name = f"vhost '/' is on node {owner.directory.name}/worker1"
    for words in (
        ["permission", "set", "bo", "", "", ""],
        ["permission", "clear", "al"],
        ["topic-permission", "clear", "al"],
        ["policy", "set", "p", "x", '{"max-length": 2}'],
        ["policy", "clear", "short"],
        ["limit", "set", "max-queues", 1],
        ["limit", "clear", "max-queues"],
        ["vhost", "set", "/", "--description", "x"],
    ):
        assert name in refused(node, *words), words


def test_settings_survive_a_killed_owner(pair):
    owner, other = pair
    check_plain = connect(owner)
    check_plain.close()
    make(owner)
    policy = ["set_policy", "by-name", "^named", '{"expires": 60000}']
    assert rabbitmqctl(owner, *policy).returncode == 0
    elsewhere = rabbitmqctl(other, *policy)
    assert elsewhere.returncode != 0
    assert f"vhost '/' is on node {owner.directory.name}" in elsewhere.stderr
    policies = rabbitmqctl(owner, "list_policies").stdout
    assert "by-name" in policies
    assert "short" in policies
    made = settings(owner)
    check_effect(owner)
    # What the configuration has is read-only, as without a log.
    assert "read-only" in refused(owner, "permission", "set", "test", "", "", "")
    check_refused_elsewhere(other, owner)
    assert rows(other, "policy") == []
    owner.kill()
    assert await_owner([other]) is other
    assert settings(other) == made
    assert rabbitmqctl(other, "list_policies").stdout == policies
    check_effect(other)


def test_settings_move_and_come_back(pair):
    owner, other = pair
    make(owner)
    for gone in ("own", "own.1"):
        with connect(owner) as connection:
            connection.channel().queue_delete(gone)
    made = settings(owner)
    moved(owner)
    await_owner([owner, other])
    assert settings(other) == made
    check_effect(other)
    amqp(other, "policy", "set", "short", "^own", '{"max-length": 1}')
    amqp(other, "permission", "clear", "al")
    amqp(other, "limit", "clear", "max-connections")
    changed = settings(other)
    moved(other)
    await_true("it is back", lambda: role(owner) == "owner")
    assert settings(owner) == changed
    not_let_in(owner, AL)
    with connect(owner) as connection:
        waiting = connection.channel().queue_declare("own", durable=True, passive=True)
        assert waiting.method.message_count == 1
    assert rows(other, "permission") == [row for row in changed[0] if row["user"] == "test"]


def test_the_owner_decides_about_clients_of_other_nodes(nats, begin):
    servers = nats()

    def spliced(name: str) -> Router:
        address = f"127.0.0.1:{free_ports(1)[0]}"
        return begin(servers, name, elsewhere="splice", address=address)

    nodes = [spliced(name) for name in ("node_a", "node_b")]
    owner = await_owner(nodes)
    (other,) = (node for node in nodes if node is not owner)

    def is_let_in() -> bool:
        with contextlib.suppress(pika.exceptions.AMQPError):
            connect(other).close()
            return True
        return False

    await_true("its clients are let in", is_let_in)
    make(owner)
    check_effect(other)
    # A change is in force for a client that is there.
    with connect(other, credentials=AL) as connection:
        channel = connection.channel()
        amqp(owner, "permission", "set", "al", "^other", "", "")
        channel.queue_declare("other", exclusive=True)
        assert code_of(lambda: channel.queue_declare("own.1")) == 403
        amqp(owner, "permission", "clear", "al")
        assert code_of(lambda: connection.channel().queue_declare("other.1")) == 403
    not_let_in(other, AL)


def test_settings_of_before_go_into_the_log_once(nats, begin):
    """Those that the node's store has of a vhost that was not replicated yet."""
    servers = nats()
    first = begin(servers, "node_a", is_replicated=False)
    make(first)
    made = settings(first)
    first.stop()
    first = begin(servers, "node_a")
    await_owner([first])
    assert settings(first) == made
    first.await_log(lambda line: "its log has the settings of this node's store now" in line.text)
    second = begin(servers, "node_b")
    await_true("it stands by", lambda: role(second) == "standby")
    first.kill()
    await_owner([second])
    assert settings(second) == made
    check_effect(second)
    for words in (["permission", "clear", "al"], ["policy", "clear", "short"]):
        amqp(second, *words)
    changed = settings(second)
    first = begin(servers, "node_a")
    await_true("it stands by", lambda: role(first) == "standby")
    moved(second)
    await_owner([first, second])
    assert settings(first) == changed


def test_a_log_that_has_settings_counts_above_a_store(nats, begin):
    servers = nats()
    first = begin(servers, "node_a", is_replicated=False)
    amqp(first, "permission", "set", "al", ".*", ".*", ".*")
    first.stop()
    second = begin(servers, "node_b")
    await_owner([second])
    amqp(second, "limit", "set", "max-queues", 7)
    first = begin(servers, "node_a")
    await_true("it stands by", lambda: role(first) == "standby")
    made = settings(second)
    second.kill()
    await_owner([first])
    first.await_log(lambda line: "permission of user 'al' in vhost '/'" in line.text)
    assert settings(first) == made
    first.stop()
    # Nor does it count when the vhost is not replicated any more.
    (known,) = (first.directory / "amqp.store.replicated").glob("*.known")
    known.unlink()
    first = begin(servers, "node_a", is_replicated=False)
    assert [row["user"] for row in rows(first, "permission")] == ["test"]


def test_settings_are_in_copies_and_in_a_released_store(nats, begin, tmp_path: Path):
    servers = nats()
    first = begin(servers, "node_a")
    await_owner([first])
    make(first)
    amqp(first, "policy", "set", "gone", "x", '{"max-length": 2}')
    amqp(first, "policy", "clear", "gone")
    made = settings(first)
    first.stop()
    # The log is lost, and rebuilt from the owner's copy.
    delete_stream(servers[0])
    first = begin(servers, "node_a")
    words = ["amqp", "recover", "/", "--from", "store", "--yes"]

    def is_recovered() -> bool:
        done = crosstie(first, *words)
        assert "settings" in done.stdout or done.returncode, done.stdout
        return done.returncode == 0

    await_true("it is recovered", is_recovered)
    await_owner([first])
    assert settings(first) == made
    check_effect(first)
    first.stop()
    store = first.directory / "amqp.store"
    done = subprocess.run(
        [str(binary()), "amqp", "release", "/", "--store", str(store)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    first = begin(servers, "node_a", is_replicated=False)
    assert settings(first) == made
    check_effect(first)


def delete_stream(server: NatsServer) -> None:
    """Lose the log."""
    with server.client() as client:
        assert client.ask(f"$JS.API.STREAM.DELETE.{STREAM}", {})["success"]


def test_definitions_go_into_the_log_of_the_owner(pair, tmp_path: Path):
    owner, other = pair
    make(owner)
    made = settings(owner)
    file = tmp_path / "definitions.json"
    amqp(owner, "definitions", "export", file)
    for words in (["policy", "clear", "short"], ["limit", "clear"], ["permission", "clear", "al"]):
        amqp(owner, *words)
    assert f"vhost '/' is on node {owner.directory.name}" in refused(
        other, "definitions", "import", file
    )
    amqp(owner, "definitions", "import", file)
    assert settings(owner) == made
    owner.kill()
    await_owner([other])
    assert settings(other) == made


def test_a_deleted_user_has_no_permissions_in_the_log(pair):
    owner, other = pair
    for node in pair:
        done = subprocess.run(
            [str(binary()), "amqp", "user", "add", "cy", "--cbdir", str(node.directory)],
            input="cy\n",
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
    amqp(owner, "permission", "set", "cy", ".*", ".*", ".*")
    amqp(owner, "user", "delete", "cy")
    owner.kill()
    await_owner([other])
    assert [row["user"] for row in rows(other, "permission")] == ["test"]
    not_let_in(other, pika.PlainCredentials("cy", "cy"))


def test_the_management_api_changes_the_owners_log_alone(pair):
    owner, other = pair
    body = {"pattern": "^own", "definition": {"max-length": 2}}
    place = "/api/policies/%2F/short"

    def put(node: Router) -> tuple[int, dict]:
        headers = {
            "Authorization": "Basic " + base64.b64encode(b"test:test").decode(),
            "Content-Type": "application/json",
        }
        http = Http(node.address("management"))
        answer = http.ask("PUT", place, headers, json.dumps(body).encode())
        return answer.status, json.loads(answer.body or b"{}")

    status, said = put(other)
    assert (status, said["error"]) == (503, "service_unavailable")
    assert f"vhost '/' is on node {owner.directory.name}" in said["reason"]
    assert put(owner)[0] == 201
    owner.kill()
    await_owner([other])
    assert put(other)[0] == 204


class Through:
    """A server behind a relay."""

    def __init__(self, relay: Relay):
        self.url = f"nats://{relay.address[0]}:{relay.address[1]}"


def is_owned(node: Router, vhost: str) -> bool:
    """Return whether a node owns one of its vhosts."""
    roles = re.findall(r"crosstie_ledger_role\{(.*)\} 1$", node.page("/metrics"), re.M)
    return any(f'vhost="{vhost}"' in of and 'role="owner"' in of for of in roles)


def users(node: Router) -> list[str]:
    """Return the names of a node's users."""
    return [row["name"] for row in rows(node, "user")]


def add(node: Router, *names: str) -> None:
    """Add users with permissions in all vhosts of a node."""
    for name in names:
        assert rabbitmqctl(node, "add_user", name, name).returncode == 0
        for vhost in [row["name"] for row in rows(node, "vhost")]:
            words = ["set_permissions", "-p", vhost, name, ".*", ".*", ".*"]
            assert rabbitmqctl(node, *words).returncode == 0, vhost


def kill_in_between(node: Router, relay: Relay, is_between: Callable[[], bool]) -> None:
    """Delete a user, and kill the node when the store has that, and the log has not."""
    relay.hold()
    program = [node.directory / "rabbitmqctl", "--quiet", "delete_user", "cy"]
    environment = {"CROSSTIE_DIR": str(node.directory), "PATH": os.environ["PATH"]}
    with subprocess.Popen(program, env=environment, stderr=subprocess.DEVNULL) as asked:
        await_true("the store has the change", lambda: "cy" not in users(node) and is_between())
        node.kill()
        asked.wait()
    relay.cut()


CY, DI = (pika.PlainCredentials(name, name) for name in ("cy", "di"))
LACKED = "its log lacked a change of permission of user 'cy'"


def has_said(node: Router, text: str) -> bool:
    """Return whether a node has logged something since its start."""
    return any(text in line.text for line in node.log)


@pytest.fixture
def relayed(nats) -> Iterator[tuple[NatsServer, Relay]]:
    """Return a server, and a relay to it."""
    (server,) = nats()
    relay = Relay(("127.0.0.1", server.port))
    yield server, relay
    relay.close()


def test_a_user_is_deleted_in_both_places_though_the_node_is_killed_in_between(relayed, begin):
    _, relay = relayed
    node = begin([Through(relay)], "node_a")
    await_owner([node])
    add(node, "cy", "di")
    connect(node, credentials=CY).close()
    kill_in_between(node, relay, lambda: True)
    relay.go_on()
    node = begin([Through(relay)], "node_a")
    await_owner([node])
    assert has_said(node, LACKED)
    assert "cy" not in users(node)
    assert "cy" not in rabbitmqctl(node, "list_permissions").stdout
    # A later user of that name has nothing of the former one, nor after another start.
    assert rabbitmqctl(node, "add_user", "cy", "cy").returncode == 0
    not_let_in(node, CY)
    assert rabbitmqctl(node, "set_permissions", "cy", ".*", ".*", ".*").returncode == 0
    node.kill()
    node = begin([Through(relay)], "node_a")
    await_owner([node])
    assert not has_said(node, "its log lacked")
    for credentials in (CY, DI):
        connect(node, credentials=credentials).close()


@pytest.mark.parametrize("case", ["stays deleted", "is created again", "has it set again"])
def test_a_user_loses_nothing_of_what_another_owner_has(relayed, begin, case: str):
    server, relay = relayed
    node = begin([Through(relay)], "node_a")
    await_owner([node])
    other = begin([server], "node_b")
    await_true("it stands by", lambda: role(other) == "standby")
    add(node, "cy")
    assert rabbitmqctl(other, "add_user", "cy", "cy").returncode == 0
    kill_in_between(node, relay, lambda: True)
    await_owner([other])
    # There its permission has always counted.
    connect(other, credentials=CY).close()
    if case == "has it set again":
        assert rabbitmqctl(other, "set_permissions", "cy", ".*", ".*", ".*").returncode == 0
    relay.go_on()
    node = begin([Through(relay)], "node_a")
    await_true("it stands by", lambda: role(node) == "standby")
    if case == "is created again":
        assert rabbitmqctl(node, "add_user", "cy", "cy").returncode == 0
    other.kill()
    await_owner([node])
    is_due = case == "stays deleted"
    assert has_said(node, LACKED) == is_due
    assert has_said(node, "the permission stays") == (case == "is created again")
    if case == "has it set again":
        assert rabbitmqctl(node, "add_user", "cy", "cy").returncode == 0
    if is_due:
        other = begin([server], "node_b")
        moved(node)
        not_let_in(other, CY)
    else:
        connect(node, credentials=CY).close()


def test_the_log_of_one_vhost_may_be_out_of_reach_for_long(relayed, begin):
    server, relay = relayed
    far = {"vhosts": {"far": [Through(relay)]}}
    node = begin([server], "node_a", **far)
    await_true("it owns both vhosts", lambda: is_owned(node, "/") and is_owned(node, "far"))
    add(node, "cy")
    connect(node, credentials=CY, virtual_host="far").close()
    # Of the two logs, one has its part.
    log = server.client()
    before = log.ask(f"$JS.API.STREAM.INFO.{STREAM}", {})["state"]["last_seq"]
    kill_in_between(
        node,
        relay,
        lambda: log.ask(f"$JS.API.STREAM.INFO.{STREAM}", {})["state"]["last_seq"] > before,
    )
    log.close()
    node = begin([server], "node_a", **far)
    await_true("it owns the first", lambda: is_owned(node, "/"))
    assert not has_said(node, LACKED)
    # The user is created again, and has something again, and once more after another start.
    assert rabbitmqctl(node, "add_user", "cy", "cy").returncode == 0
    assert rabbitmqctl(node, "set_permissions", "cy", ".*", ".*", ".*").returncode == 0
    node.kill()
    node = begin([server], "node_a", **far)
    await_true("it owns the first", lambda: is_owned(node, "/"))
    connect(node, credentials=CY).close()
    assert not is_owned(node, "far")
    relay.go_on()
    await_true("it owns the other one", lambda: is_owned(node, "far"))
    assert has_said(node, f"vhost 'far': {LACKED}")
    assert not has_said(node, f"vhost '/': {LACKED}")
    connect(node, credentials=CY).close()
    with pytest.raises(pika.exceptions.ProbableAccessDeniedError):
        connect(node, credentials=CY, virtual_host="far")
