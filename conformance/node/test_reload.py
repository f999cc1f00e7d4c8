"""A changed configuration, applied to a running node by `crosstie reload` and by SIGHUP."""

from __future__ import annotations

import copy
import json
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pika
import pytest
from rig import certificates, config
from rig.links import Link
from rig.node import Node
from rig.rawsocket import RawSocket
from rig.router import Router, binary
from rig.session import (
    ABORT,
    CALL,
    ERROR,
    GOODBYE,
    HELLO,
    INVOCATION,
    PUBLISH,
    RESULT,
    ROLES,
    SUBSCRIBE,
    WELCOME,
    YIELD,
)
from rig.waiting import DEADLINE_S, await_true

CHALLENGE, AUTHENTICATE = 4, 5


class Reloads:
    """A node with a configuration that changes."""

    def __init__(self, router: Router, configuration: dict):
        self.router, self.configuration = router, configuration

    def write(self, change: Callable[[dict], None]) -> None:
        """Change the configuration's file alone."""
        newer = copy.deepcopy(self.configuration)
        change(newer["workers"][0])
        self.configuration = newer
        (self.router.directory / "config.json").write_text(json.dumps(newer))

    def ask(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `crosstie reload`."""
        command = [str(binary()), "reload", "--cbdir", str(self.router.directory), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=4 * DEADLINE_S)

    def reload(self, *arguments: str) -> dict:
        """Run it, which must succeed."""
        ended = self.ask("--json", *arguments)
        assert ended.returncode == 0, ended
        return json.loads(ended.stdout)

    def refused(self, *arguments: str) -> str:
        """Run it, which must fail; return the reason."""
        ended = self.ask(*arguments)
        assert ended.returncode == 1, ended
        return ended.stdout + ended.stderr

    def change(self, change: Callable[[dict], None]) -> dict:
        """Change the file and reload."""
        self.write(change)
        return self.reload()

    def join(self, realm: str = "realm1", transport: str = "tcp") -> RawSocket:
        """Join a realm."""
        peer = RawSocket.tcp(self.router.address(transport)).shake_hands()
        return peer.join(realm)


@pytest.fixture
def reloads(start_router) -> Callable[..., Reloads]:
    """Start a node whose configuration changes."""

    def start(configuration: dict) -> Reloads:
        return Reloads(start_router(configuration), configuration)

    return start


def forbid(uri: str) -> Callable[[dict], None]:
    """Take the rights to a URI from the role `anonymous`."""

    def change(worker: dict) -> None:
        permissions = [config.permission("*"), config.permission(uri, call=False)]
        worker["realms"][0]["roles"] = [config.role("anonymous", *permissions)]

    return change


def keys(told: dict) -> list[tuple[str, str, str]]:
    """Return what changed, and the effects."""
    return [(each["change"], each["key"], each["effect"]) for each in told["changes"]]


def is_authorized(peer: RawSocket, topic: str) -> bool:
    """Say whether a session may publish."""
    peer.ask(PUBLISH, {"acknowledge": True}, topic)
    answer = peer.hear_any()
    assert answer[0] != ERROR or answer[4] == "wamp.error.not_authorized", answer
    return answer[0] != ERROR


def test_a_dry_run_names_the_changes_and_applies_none(reloads):
    node = reloads(config.plain())
    with node.join() as peer:
        node.write(forbid("com.secret"))
        told = node.reload("--dry-run")
        way = "workers[worker1].realms[realm1].roles[anonymous].permissions[com.secret]"
        assert keys(told) == [("added", way, "at_once")]
        assert told["applied"] is False
        assert is_authorized(peer, "com.secret")
        assert f"added {way}: at once" in node.ask("--dry-run").stdout


def test_a_file_that_has_not_changed_changes_nothing(reloads):
    node = reloads(config.plain())
    with node.join() as peer:
        assert node.ask().stdout == "No key has changed\n"
        peer.round_trip()


def test_a_session_loses_a_right_at_its_next_message_and_gets_it_back(reloads):
    node = reloads(config.plain())
    with node.join() as peer:
        assert is_authorized(peer, "com.secret")
        node.change(forbid("com.secret"))
        assert not is_authorized(peer, "com.secret")
        assert is_authorized(peer, "com.open")
        node.change(forbid("com.open"))
        assert is_authorized(peer, "com.secret")
        assert not is_authorized(peer, "com.open")


def test_realms_and_roles_come_and_go(reloads):
    node = reloads(config.plain())
    with node.join() as stays:

        def add(worker: dict) -> None:
            worker["realms"] += [{"name": "realm2", "roles": [config.role("anonymous")]}]
            worker["realms"][0]["roles"] += [config.role("guest")]

        told = node.change(add)
        assert keys(told) == [
            ("added", "workers[worker1].realms[realm1].roles[guest]", "at_once"),
            ("added", "workers[worker1].realms[realm2]", "at_once"),
        ]
        with node.join("realm2") as peer:
            peer.round_trip()
            node.change(lambda worker: worker["realms"].pop())
            peer.expect_end()
        with RawSocket.tcp(node.router.address("tcp")).shake_hands() as peer:
            peer.say(HELLO, "realm2", {"roles": ROLES})
            peer.expect_end()
        stays.round_trip()


def test_open_calls_of_a_removed_realm_are_answered(reloads):
    configuration = config.plain()
    configuration["workers"][0]["realms"].append(
        {"name": "realm2", "roles": [config.role("anonymous")]}
    )
    node = reloads(configuration)
    idle = [node.join("realm2") for _ in range(1000)]
    with node.join("realm2") as callee, node.join("realm2") as caller:
        callee.register("com.slow")
        calls = [caller.ask(CALL, {}, "com.slow") for _ in range(50)]
        invocations = [callee.hear(INVOCATION)[1] for _ in calls]
        node.change(lambda worker: worker["realms"].pop())
        for invocation in invocations:
            callee.say(YIELD, invocation, {}, ["late"])
        results = [caller.hear(RESULT) for _ in calls]
        assert [(call, ["late"]) for call in calls] == [(r[1], r[3]) for r in results]
        for peer in (callee, caller, *idle):
            peer.expect_end()
    for peer in idle:
        peer.close()


def test_a_listener_whose_address_stays_refuses_nobody(reloads):
    node = reloads(config.plain())
    address = node.router.address("tcp")
    ended, joined, failures = threading.Event(), [], []

    def connect() -> None:
        while not ended.is_set():
            try:
                with RawSocket.tcp(address).shake_hands().join() as peer:
                    peer.round_trip()
                joined.append(1)
            except Exception as failure:
                failures.append(repr(failure))
                return

    thread = threading.Thread(target=connect)
    with node.join() as first:
        thread.start()
        for number in range(20):

            def change(worker: dict, number: int = number) -> None:
                worker["transports"][0]["max_connections"] = 1_000 + number
                worker["transports"][0]["endpoint"]["backlog"] = 100 + number

            told = node.change(change)
            assert {effect for _, _, effect in keys(told)} == {"new_sessions"}
            first.round_trip()
        ended.set()
        thread.join(DEADLINE_S)
    assert not failures
    assert joined
    assert node.router.address("tcp") == address


def test_connections_from_before_a_reload_count_for_the_bound_of_their_address(reloads):
    node = reloads(config.plain(config.universal("tcp", config.tcp(), max_connections=5)))
    peers = [node.join() for _ in range(2)]

    def change(worker: dict) -> None:
        worker["transports"][0]["max_connections"] = 2

    node.change(change)
    with RawSocket.tcp(node.router.address("tcp")) as third:
        third.send(b"\x7f\xf1\0\0")
        assert not third.receive_all().startswith(b"\x7f\xf1")
    for peer in peers:
        peer.round_trip()
        peer.close()


def test_a_transport_is_added_changed_to_another_role_and_removed(reloads):
    node = reloads(config.plain())
    unix = node.router.directory / "second.sock"

    def add(worker: dict) -> None:
        worker["realms"][0]["roles"].append(config.role("other", config.permission("com.x")))
        worker["transports"].append(config.universal("second", config.unix("second.sock")))

    def change(worker: dict) -> None:
        worker["transports"][1]["rawsocket"] = {"auth": config.static("other")}

    node.change(add)
    with RawSocket.unix(unix).shake_hands().join() as before:
        assert is_authorized(before, "com.y")
        node.change(change)
        with RawSocket.unix(unix).shake_hands().join() as after:
            assert is_authorized(after, "com.x")
            assert not is_authorized(after, "com.y")
            assert is_authorized(before, "com.y")
            node.change(lambda worker: worker["transports"].pop())
            after.expect_end()
        before.expect_end()
    assert not unix.exists()


def test_a_transport_moves_and_its_sessions_stay(reloads):
    second = config.universal("unix", config.unix("b.sock"))
    node = reloads(config.plain(config.universal("tcp", config.tcp()), second))
    directory = node.router.directory

    def move(worker: dict) -> None:
        worker["transports"][1]["endpoint"] = config.unix("c.sock")

    with RawSocket.unix(directory / "b.sock").shake_hands().join() as before:
        node.change(move)
        before.round_trip()
        with RawSocket.unix(directory / "c.sock").shake_hands().join() as after:
            after.round_trip()
        assert not (directory / "b.sock").exists()
        before.round_trip()


def test_transports_exchange_addresses(reloads):
    def unix(name: str, file: str, role: str) -> dict:
        rawsocket = {"auth": config.static(role)}
        return config.universal(name, config.unix(file), rawsocket=rawsocket)

    def put(*transports: dict) -> Callable[[dict], None]:
        def change(worker: dict) -> None:
            worker["transports"][1:] = transports

        return change

    def allows(file: str, topic: str) -> bool:
        with RawSocket.unix(node.router.directory / file).shake_hands().join() as peer:
            return is_authorized(peer, topic)

    configuration = config.plain()
    roles = [config.role(name, config.permission(f"com.{name}")) for name in ("one", "two")]
    configuration["workers"][0]["realms"][0]["roles"] += roles
    put(unix("first", "a.sock", "one"), unix("second", "b.sock", "two"))(
        configuration["workers"][0]
    )
    node = reloads(configuration)
    assert allows("a.sock", "com.one")
    node.change(put(unix("first", "b.sock", "one"), unix("second", "a.sock", "two")))
    assert allows("b.sock", "com.one")
    assert allows("a.sock", "com.two")
    # The one takes the other's address, and nobody takes its own.
    node.change(put(unix("first", "a.sock", "one")))
    assert allows("a.sock", "com.one")
    assert not (node.router.directory / "b.sock").exists()


def test_a_port_in_use_leaves_everything_as_it_was(reloads):
    node = reloads(config.plain())
    with socket.create_server(("127.0.0.1", 0)) as taken, node.join() as peer:

        def move(worker: dict) -> None:
            forbid("com.secret")(worker)
            worker["realms"].append({"name": "realm2"})
            worker["transports"][0]["endpoint"]["port"] = taken.getsockname()[1]

        node.write(move)
        assert "in use" in node.refused()
        assert is_authorized(peer, "com.secret")
    with RawSocket.tcp(node.router.address("tcp")).shake_hands() as other:
        other.say(HELLO, "realm2", {"roles": ROLES})
        other.expect_end()


def test_a_half_written_file_leaves_everything_as_it_was(reloads):
    node = reloads(config.plain())
    file = node.router.directory / "config.json"
    whole = file.read_text()
    with node.join() as peer:
        file.write_text(whole[: len(whole) // 2])
        assert "config.json:" in node.refused()
        file.write_text(whole.replace('"realms"', '"relams"'))
        assert 'did you mean "realms"?' in node.refused()
        file.unlink()
        assert "config.json" in node.refused()
        peer.round_trip()
        file.write_text(whole)
        assert node.reload()["changes"] == []


def test_a_key_that_needs_a_restart_is_named_and_left_out_by_a_partial_reload(reloads):
    node = reloads(config.plain())
    with node.join() as peer:

        def change(worker: dict) -> None:
            forbid("com.secret")(worker)
            worker["realms"][0]["options"] = {"uri_check": "strict"}

        node.write(change)
        said = node.refused()
        assert "workers[worker1].realms[realm1].options.uri_check" in said
        assert is_authorized(peer, "com.secret")
        assert node.ask("--dry-run").returncode == 1
        told = node.reload("--partial")
        assert told["needs_restart"] == ["workers[worker1].realms[realm1].options.uri_check"]
        assert not is_authorized(peer, "com.secret")
        # What was left out is still different.
        assert "uri_check" in node.refused()


def test_a_hundred_hangups_end_with_the_last_configuration(reloads):
    node = reloads(config.plain())
    with node.join() as peer:
        for number in range(100):
            node.write(forbid(f"com.secret{number}"))
            node.router.signal(signal.SIGHUP)
        await_true("the last one holds", lambda: not is_authorized(peer, "com.secret99"))
        assert is_authorized(peer, "com.secret98")
        peer.round_trip()


def test_the_sessions_of_a_removed_principal_end(reloads):
    def with_tickets(**tickets: str) -> dict:
        principals = {
            name: {"ticket": ticket, "role": "anonymous"} for name, ticket in tickets.items()
        }
        return {"ticket": {"type": "static", "principals": principals}}

    def put(**tickets: str) -> Callable[[dict], None]:
        def change(worker: dict) -> None:
            worker["transports"][0]["rawsocket"] = {"auth": with_tickets(**tickets)}

        return change

    def log_in(name: str, ticket: str) -> RawSocket:
        peer = RawSocket.tcp(node.router.address("tcp")).shake_hands()
        hello = {"roles": ROLES, "authmethods": ["ticket"], "authid": name}
        peer.say(HELLO, "realm1", hello)
        peer.hear(CHALLENGE)
        peer.say(AUTHENTICATE, ticket, {})
        return peer

    configuration = config.plain()
    put(joe="a", ann="b", eve="c")(configuration["workers"][0])
    node = reloads(configuration)
    joe, ann, eve = log_in("joe", "a"), log_in("ann", "b"), log_in("eve", "c")
    for peer in (joe, ann, eve):
        assert peer.hear(WELCOME)
    # A login that has begun does not outlive its principal.
    late = RawSocket.tcp(node.router.address("tcp")).shake_hands()
    late.say(HELLO, "realm1", {"roles": ROLES, "authmethods": ["ticket"], "authid": "joe"})
    late.hear(CHALLENGE)
    told = node.change(put(ann="b", eve="changed"))
    assert "a" not in json.dumps([[each["from"], each["to"]] for each in told["changes"]])
    assert joe.hear(GOODBYE)[2] == "wamp.close.logout"
    late.say(AUTHENTICATE, "a", {})
    assert late.hear(ABORT)[2] == "wamp.error.not_authorized"
    for peer in (ann, eve):
        peer.say(SUBSCRIBE, 1, {}, "com.topic")
        assert peer.hear_any()[0] != GOODBYE
    with log_in("eve", "changed") as again:
        assert again.hear(WELCOME)
    for peer in (joe, ann, eve, late):
        peer.close()


def test_the_sessions_of_a_removed_endpoint_end_if_they_logged_in_there(reloads):
    principals = {"joe": {"ticket": "a", "role": "anonymous"}}
    endpoint = {"auth": {"ticket": {"type": "static", "principals": principals}}}
    configuration = config.plain()
    configuration["workers"][0]["transports"][0]["rawsocket"] = endpoint
    node = reloads(configuration)
    hello = {"roles": ROLES, "authmethods": ["ticket"], "authid": "joe"}
    with (
        RawSocket.tcp(node.router.address("tcp")).shake_hands() as joe,
        RawSocket.tcp(node.router.address("tcp")).shake_hands() as late,
    ):
        for peer in (joe, late):
            peer.say(HELLO, "realm1", hello)
            peer.hear(CHALLENGE)
        joe.say(AUTHENTICATE, "a", {})
        joe.hear(WELCOME)
        node.change(lambda worker: worker["transports"][0].pop("rawsocket"))
        assert joe.hear(GOODBYE)[2] == "wamp.close.logout"
        late.say(AUTHENTICATE, "a", {})
        late.hear(ABORT)


def test_a_replaced_certificate_is_shown_to_new_connections(reloads, tmp_path):
    certificates.write(tmp_path)
    node = reloads(config.plain(config.universal("tcp", config.tls(tmp_path))))
    address = node.router.address("tcp")

    def shown() -> bytes:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with socket.create_connection(address) as plain, context.wrap_socket(plain) as secure:
            return secure.getpeercert(binary_form=True)

    before = shown()
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    former_key = (tmp_path / "server.key").read_bytes()
    with (
        socket.create_connection(address) as plain,
        RawSocket(context.wrap_socket(plain)).shake_hands().join() as peer,
    ):
        certificates.write(tmp_path)
        new_key = (tmp_path / "server.key").read_bytes()
        assert new_key != former_key
        (tmp_path / "server.key").write_bytes(former_key)
        assert "server.pem" in node.refused()
        assert shown() == before
        (tmp_path / "server.key").write_bytes(new_key)
        # The listener may have read it by itself already.
        assert node.reload()["certificates"] in (0, 1)
        assert shown() != before
        peer.round_trip()


@pytest.mark.parametrize("link", [Link("asyncio", "rs", "tcp", "cbor")], ids=str, indirect=True)
def test_autobahn_and_pika_lose_nothing_over_reloads(link, reloads, new_session, place_of):
    configuration = config.plain(
        config.universal("tcp", config.tcp()),
        {"type": "amqp", "id": "amqp", "endpoint": config.tcp()},
    )
    node = reloads(configuration)
    place = place_of(link, of=node.router)
    callee, caller = (new_session(link.client).open(place) for _ in range(2))
    callee.register("com.echo", {"do": "echo"})
    host, port = node.router.address("amqp")
    with pika.BlockingConnection(pika.ConnectionParameters(host, port)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("kept", durable=True)
        for number in range(10):

            def change(worker: dict, number: int = number) -> None:
                forbid(f"com.secret{number}")(worker)
                worker["realms"] = [worker["realms"][0], {"name": f"extra{number}"}]
                for transport in worker["transports"]:
                    transport["max_connections"] = 100 + number

            node.write(change)
            waiting = subprocess.Popen(
                [str(binary()), "reload", "--cbdir", str(node.router.directory)],
                stdout=subprocess.DEVNULL,
            )
            for each in range(10):
                assert caller.call("com.echo", each).args == [each]
                channel.basic_publish("", "kept", b"%d" % (number * 10 + each), mandatory=True)
            assert waiting.wait(4 * DEADLINE_S) == 0
        bodies = [int(channel.basic_get("kept", auto_ack=True)[2]) for _ in range(100)]
        assert bodies == list(range(100))
    callee.round_trip()


def test_a_reload_while_workers_restart_ends_with_the_last_configuration(tmp_path):
    def guest(name: str, script: str) -> dict:
        return {
            "type": "guest",
            "id": name,
            "executable": "sh",
            "arguments": ["-c", script],
            "options": {"restart": "restart-always"},
        }

    def write(*guests: dict, realm: str = "realm1") -> dict:
        configuration = config.plain(config.universal("unix", config.unix("node.sock")))
        role = config.role("anonymous", config.permission("*"))
        configuration["workers"][0]["realms"] = [{"name": realm, "roles": [role]}]
        configuration["workers"] += guests
        (tmp_path / "config.json").write_text(json.dumps(configuration))
        return configuration

    fails, waits, stays = "exit 1", "exec sleep 1001", "trap '' TERM; exec sleep 1002"
    configuration = write(
        guest("mended", fails), guest("failing", fails), guest("gone", fails), guest("slow", stays)
    )
    node = Node(tmp_path, configuration)
    try:
        node.says("Ready;")
        with node.management() as manager:

            def state(name: str) -> dict:
                return manager.call("crossbar.get_worker", name)

            def command(name: str) -> str:
                pid = state(name)["pid"]
                return Path(f"/proc/{pid}/cmdline").read_text() if pid else ""

            # Each waits longer before each further start.
            for name in ("mended", "failing", "gone"):
                await_true("it restarts", lambda name=name: state(name)["restarts"] >= 2)
            await_true("it runs", lambda: "1002" in command("slow"))
            rest = guest("mended", waits), guest("failing", fails)
            write(*rest, guest("slow", "exec sleep 1003"), realm="realm2")
            manager.call("crossbar.reload")
            await_true("it runs", lambda: "1001" in command("mended"))
            # Another one, while the first is still ending the former run.
            write(*rest, guest("slow", "exec sleep 1004"), realm="realm3")
            manager.call("crossbar.reload")
            await_true("the last one runs", lambda: "1004" in command("slow"))
            assert "1001" in command("mended")
            assert set(manager.call("crossbar.get_workers")) == {
                "worker1",
                "mended",
                "failing",
                "slow",
            }
            before = state("failing")["restarts"]
            await_true("it restarts still", lambda: state("failing")["restarts"] > before)
        with node.join(realm="realm3") as session:
            session.call("wamp.session.count")
    finally:
        assert node.stop() == 0


def test_only_a_changed_guest_is_restarted(tmp_path):
    def guest(name: str, *arguments: str) -> dict:
        return {"type": "guest", "id": name, "executable": "sleep", "arguments": list(arguments)}

    def write(*guests: dict) -> dict:
        configuration = config.plain(config.universal("unix", config.unix("node.sock")))
        configuration["workers"] += guests
        (tmp_path / "config.json").write_text(json.dumps(configuration))
        return configuration

    configuration = write(guest("same", "1000"), guest("changed", "1000"), guest("gone", "1000"))
    node = Node(tmp_path, configuration)
    try:
        node.says("Ready;")
        with node.management() as manager, node.join() as session:

            def pid(name: str) -> int:
                return manager.call("crossbar.get_worker", name)["pid"]

            before = {name: pid(name) for name in ("same", "changed")}
            write(guest("same", "1000"), guest("changed", "2000"), guest("added", "1000"))
            told = manager.call("crossbar.reload")
            assert [each["key"] for each in told["changes"]] == [
                "workers[changed].arguments",
                "workers[added]",
                "workers[gone]",
            ]
            await_true("it runs anew", lambda: pid("changed") not in (None, before["changed"]))
            names = {"worker1", "same", "changed", "added"}
            await_true(
                "the others are as wanted",
                lambda: set(manager.call("crossbar.get_workers")) == names,
            )
            assert pid("same") == before["same"]
            session.call("wamp.session.count")
    finally:
        assert node.stop() == 0
