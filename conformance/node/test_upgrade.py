"""`crosstie upgrade`: another program takes over from a running node, or the node goes on."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rig import config
from rig.amqp_peer import Peer
from rig.plain import ClosedError
from rig.ports import free_ports
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.service_manager import NotifySocket, passing
from rig.session import CALL, INVOCATION, RESULT, YIELD
from rig.upgrade_load import Callers, Publisher
from rig.upgrades import Upgrades
from rig.waiting import DEADLINE_S, await_true

CONNECTION_FORCED = 320
HOUR = ("--over", "1h")


def amqp(endpoint: dict | None = None) -> dict:
    """Return an AMQP transport."""
    return {"type": "amqp", "id": "amqp", "endpoint": endpoint or config.tcp()}


@pytest.fixture
def start(tmp_path) -> Iterator[Callable[..., Upgrades]]:
    """Start nodes that are upgraded; what is left of them is killed."""
    started: list[Upgrades] = []

    def start(configuration: dict, within: tuple[str, ...] = ()) -> Upgrades:
        directory = tmp_path / f"node{len(started)}"
        directory.mkdir()
        (directory / "config.json").write_text(json.dumps(configuration))
        router = Router(directory, "--cbdir", str(directory), within=within)
        started.append(Upgrades(router))
        return started[-1]

    yield start
    for each in started:
        each.close()


def join(node: Upgrades, transport: str = "tcp") -> RawSocket:
    """Join the realm."""
    return RawSocket.tcp(node.router.address(transport)).shake_hands().join()


def connect(node: Upgrades) -> Peer:
    """Open an AMQP connection with a channel."""
    peer = Peer(socket.create_connection(node.router.address("amqp"), timeout=DEADLINE_S))
    peer.open("guest", "guest")
    peer.channel()
    return peer


def store(node: Upgrades, count: int) -> None:
    """Put confirmed messages into a durable queue."""
    with connect(node) as peer:
        peer.call("queue.declare", queue="kept", durable=True)
        peer.expect("queue.declare-ok")
        peer.call("confirm.select")
        peer.expect("confirm.select-ok")
        for number in range(count):
            peer.publish("", "kept", b"%d" % number, {"delivery_mode": 2})
            peer.expect("basic.ack")
        peer.leave()


def stored(node: Upgrades) -> int:
    """Return the number of messages in that queue."""
    with connect(node) as peer:
        peer.call("queue.declare", queue="kept", passive=True)
        count = peer.expect("queue.declare-ok")["messages"]
        peer.leave()
    return count


def expect_whole(node: Upgrades) -> None:
    """Have sessions meet on every listener."""
    with join(node) as one, join(node) as other:
        one.round_trip()
        other.round_trip()


def expect_former(node: Upgrades, pid: int) -> None:
    """Have the first process go on, alone and whole."""
    assert node.pid == pid
    expect_whole(node)
    assert [pid] == [each for each in node.processes() if "start" in arguments(each)]
    assert "running" in node.run("status")
    # Nothing of the upgrade is left: the next one comes through.
    node.upgrade()
    assert node.pid != pid
    expect_whole(node)
    node.stop()


def serving(peers: list[RawSocket]) -> int:
    """Return the number of clients that have not left."""
    count = 0
    for peer in peers:
        with contextlib.suppress(ClosedError):
            peer.round_trip()
            count += 1
    return count


def arguments(pid: int) -> str:
    """Return the command line of a process."""
    return Path(f"/proc/{pid}/cmdline").read_text()


def test_another_process_serves_at_the_same_addresses(start):
    node = start(
        config.plain(config.universal("tcp", config.tcp()), config.universal("unix", config.unix()))
    )
    former = node.pid
    with join(node) as before:
        said = node.upgrade()
        before.expect_end()
    assert said == f"Upgraded; process {node.pid} serves\n"
    assert node.pid != former
    assert node.router.process.wait(DEADLINE_S) == 0
    expect_whole(node)
    path = node.directory / "router.sock"
    RawSocket.unix(path).shake_hands().join().close()
    assert "running" in node.run("status")
    node.stop()
    assert not path.exists()
    assert not (node.directory / "node.pid").exists()


def test_confirmed_messages_are_in_the_store_that_the_new_process_opens(start):
    node = start(config.plain(config.universal("tcp", config.tcp()), amqp()))
    store(node, 10)
    for _ in range(3):
        with connect(node) as before:
            node.upgrade()
            close = before.expect("connection.close")
            assert close["code"] == CONNECTION_FORCED, close
        assert stored(node) == 10
        expect_whole(node)
    node.stop()


def test_clients_of_a_router_without_a_store_leave_in_slices_for_the_new_process(start):
    node = start(config.plain())
    former = node.pid
    peers = [join(node) for _ in range(10)]
    upgrade = node.begin(None, *HOUR)
    node.log("Upgrading: the new program accepts; clients that leave for it: 10")
    # Both serve: those that have not left, and those that come.
    new = join(node)
    new.round_trip()
    assert serving(peers) > 5
    assert node.pid == former
    node.router.kill()
    node.ended(upgrade, 2)
    node.await_other(former)
    # It has gone on by itself.
    new.round_trip()
    expect_whole(node)
    for peer in (*peers, new):
        peer.close()
    node.stop()


def test_open_calls_are_answered_before_a_store_moves_and_connections_wait(start):
    limits = {"shutdown_timeout_ms": 3_600_000}
    node = start(config.plain(config.universal("tcp", config.tcp()), amqp(), limits=limits))
    with join(node) as callee, join(node) as caller:
        callee.register("com.slow")
        call = caller.ask(CALL, {}, "com.slow")
        invocation = callee.hear(INVOCATION)
        upgrade = node.begin(None, *HOUR)
        node.log("waits for open calls")
        waiting = RawSocket.tcp(node.router.address("tcp"))
        callee.say(YIELD, invocation[1], {}, ["late"])
        result = caller.hear(RESULT)
        assert (result[1], result[3]) == (call, ["late"])
    node.ended(upgrade)
    with waiting.shake_hands().join() as peer:
        peer.round_trip()
    node.stop()


@pytest.mark.parametrize("way", ["end", "hang", "fail", "nonsense"])
@pytest.mark.parametrize("step", ["hello", "accept", "serve", "keep"])
def test_a_program_that_fails_leaves_the_node_as_it_was(start, step, way):
    node = start(config.plain(config.universal("tcp", config.tcp()), amqp()))
    former = node.pid
    store(node, 3)
    timeout = ("--timeout", "500ms") if way == "hang" else ()
    said = node.upgrade(node.failing(step, way), *timeout, code=1)
    reason = {
        "end": "exit code 3",
        "hang": "did not answer in time",
        "fail": "a reason of the test's",
        "nonsense": "no message of a hand-over",
    }
    assert reason[way] in said
    node.log("The upgrade has failed, and this process goes on")
    assert stored(node) == 3
    expect_former(node, former)


def test_a_router_without_a_store_accepts_again_when_the_new_process_is_killed(start):
    node = start(
        config.plain(config.universal("tcp", config.tcp()), config.universal("unix", config.unix()))
    )
    former = node.pid
    peers = [join(node) for _ in range(10)]
    upgrade = node.begin(None, *HOUR)
    node.log("Upgrading: the new program accepts")
    os.kill(node.successor(), signal.SIGKILL)
    assert "SIGKILL" in node.ended(upgrade, 1)
    assert serving(peers) > 5
    RawSocket.unix(node.directory / "router.sock").shake_hands().join().close()
    for peer in peers:
        peer.close()
    expect_former(node, former)


def test_stores_come_back_when_the_new_process_is_killed_before_it_has_them(start):
    limits = {"shutdown_timeout_ms": 3_600_000}
    node = start(config.plain(config.universal("tcp", config.tcp()), amqp(), limits=limits))
    former = node.pid
    store(node, 3)
    with join(node) as callee, join(node) as caller:
        callee.register("com.slow")
        caller.ask(CALL, {}, "com.slow")
        invocation = callee.hear(INVOCATION)
        upgrade = node.begin(None, *HOUR)
        node.log("waits for open calls")
        successor = node.successor()
        os.kill(successor, signal.SIGKILL)
        node.await_end(successor)
        callee.say(YIELD, invocation[1], {}, ["late"])
        assert caller.hear(RESULT)[3] == ["late"]
    assert "SIGKILL" in node.ended(upgrade, 1)
    assert stored(node) == 3
    expect_former(node, former)


def test_the_new_process_opens_the_stores_of_one_that_was_killed(start):
    limits = {"shutdown_timeout_ms": 3_600_000}
    node = start(config.plain(config.universal("tcp", config.tcp()), amqp(), limits=limits))
    former = node.pid
    store(node, 3)
    with join(node) as callee, join(node) as caller:
        callee.register("com.slow")
        caller.ask(CALL, {}, "com.slow")
        callee.hear(INVOCATION)
        upgrade = node.begin(None, *HOUR)
        node.log("waits for open calls")
        waiting = RawSocket.tcp(node.router.address("tcp"))
        node.router.kill()
    node.ended(upgrade, 2)
    with waiting.shake_hands().join() as peer:
        peer.round_trip()
    assert node.pid != former
    assert stored(node) == 3
    node.stop()


def test_a_program_goes_on_by_itself_if_the_node_is_killed_before_it_is_ready(start):
    # Ports that it can bind by itself, as it may have been sent nothing yet.
    tcp, of_amqp = (config.tcp(port=port) for port in free_ports(2))
    node = start(config.plain(config.universal("tcp", tcp), amqp(of_amqp)))
    store(node, 3)
    former = node.pid
    program, go = node.waiting()
    upgrade = node.begin(program)
    node.successor()
    node.router.kill()
    node.ended(upgrade, 2)
    go.touch()
    node.await_other(former)
    node.log(f"Ready; to stop: SIGINT or SIGTERM to process {node.pid}")
    expect_whole(node)
    assert stored(node) == 3
    node.stop()


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["exit 2"], "exit code 2"),
        (["exec sleep 1000"], "did not answer in time"),
        (["kill -SEGV $$"], "SIGSEGV"),
    ],
)
def test_a_program_that_is_no_node_is_refused(start, lines, expected):
    node = start(config.plain())
    former = node.pid
    said = node.upgrade(node.script(*lines), "--timeout", "500ms", code=1)
    assert expected in said
    expect_former(node, former)


def test_a_program_that_cannot_be_started_is_refused_by_its_path(start):
    node = start(config.plain())
    with join(node) as peer:
        text = node.directory / "text"
        text.write_text("no program")
        assert "text': Permission denied" in node.upgrade(text, code=1)
        assert "missing': No such file" in node.upgrade(node.directory / "missing", code=1)
        assert "Permission denied" in node.upgrade(node.directory, code=1)
        peer.round_trip()
    node.stop()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda text: text[:-10], "config.json"),
        (lambda text: text.replace('"rawsocket"', '"rowsocket"'), "rowsocket"),
        (
            lambda text: text.replace(
                '"port": 0', '"port": 1, "tls": {"key": "none", "certificate": "none"}'
            ),
            "none",
        ),
    ],
)
def test_a_configuration_that_the_new_program_refuses_changes_nothing(start, change, expected):
    node = start(config.plain())
    former = node.pid
    file = node.directory / "config.json"
    right = file.read_text()
    file.write_text(change(right))
    with join(node) as peer:
        assert expected in node.upgrade(code=1)
        peer.round_trip()
    file.write_text(right)
    expect_former(node, former)


def test_an_address_that_another_program_has_leaves_the_node_as_it_was(start):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        node = start(config.plain())
        former = node.pid
        file = node.directory / "config.json"
        right = file.read_text()
        second = config.universal("second", config.tcp(port=taken.getsockname()[1]))
        file.write_text(json.dumps(config.plain(config.universal("tcp", config.tcp()), second)))
        assert "transport second of worker" in node.upgrade(code=1)
        file.write_text(right)
        expect_former(node, former)


def test_what_would_change_the_node_is_refused_during_an_upgrade(start):
    node = start(config.plain())
    program, go = node.waiting()
    upgrade = node.begin(program)
    node.successor()
    refused = "an upgrade of the node is in progress"
    assert refused in node.upgrade(code=1)
    assert refused in node.run("reload", code=1)
    assert refused in node.run("drain", code=1)
    assert refused in node.run("undrain", code=1)
    node.router.signal(signal.SIGHUP)
    assert "running" in node.run("status")
    go.touch()
    node.ended(upgrade)
    expect_whole(node)
    assert node.run("reload") == "No key has changed\n"
    node.stop()


def test_an_upgrade_is_refused_during_a_drain(start):
    node = start(config.plain())
    node.run("drain", "--grace", "0s", "--over", "0s")
    assert "the node drains" in node.upgrade(code=1)
    node.run("undrain")
    node.upgrade()
    expect_whole(node)
    node.stop()


def test_a_stop_ends_an_upgrade_and_both_processes(start):
    node = start(config.plain(config.universal("tcp", config.tcp()), amqp()))
    program, _ = node.waiting()
    upgrade = node.begin(program)
    successor = node.successor()
    node.router.signal(signal.SIGTERM)
    assert node.router.exit_code() == 0
    node.await_end(successor)
    assert node.ended(upgrade, 1)
    assert not (node.directory / "node.pid").exists()


def test_a_manager_is_told_of_the_new_process(start, tmp_path, monkeypatch):
    manager = NotifySocket(f"{tmp_path}/notify")
    try:
        monkeypatch.setenv("NOTIFY_SOCKET", manager.address)
        monkeypatch.setenv("WATCHDOG_USEC", "2000000")
        node = start(config.plain())
        first = manager.awaits(lambda message: message.startswith("READY=1"), DEADLINE_S)
        node.upgrade()
        told = manager.awaits(lambda message: message == f"MAINPID={node.pid}", DEADLINE_S, first)
        ready = manager.awaits(lambda message: message.startswith("READY=1"), DEADLINE_S, told)
        fed = manager.awaits(lambda message: message == "WATCHDOG=1", DEADLINE_S, ready)
        # The service does not stop: its new process feeds the watchdog.
        node.router.process.wait(DEADLINE_S)
        manager.awaits(lambda message: message == "WATCHDOG=1", DEADLINE_S, fed)
        assert not any(message.startswith("STOPPING=1") for message in manager.messages)
        node.stop()
        manager.awaits(lambda message: message.startswith("STOPPING=1"), DEADLINE_S, ready)
    finally:
        manager.close()


def test_sockets_of_a_manager_are_passed_on_by_name(start):
    systemd = {"type": "systemd", "name": "web"}
    node = start(config.plain(config.universal("tcp", systemd)), within=passing(web="tcp"))
    for _ in range(2):
        node.upgrade()
        expect_whole(node)
    node.stop()


def test_the_operators_listener_moves_too(start):
    admin = {"endpoint": config.tcp(), "pages": ["health"]}
    node = start(config.plain(config.universal("tcp", config.tcp()), amqp(), admin=admin))
    line = node.router.await_log(lambda line: line.text.startswith("Admin pages started at"))
    url = line.text.split()[-1]

    def health() -> str:
        with urllib.request.urlopen(f"{url}health", timeout=DEADLINE_S) as answer:
            return answer.read().decode()

    node.upgrade()
    await_true("the new process is ready", lambda: health() == "ok\n")
    node.upgrade(node.failing("serve", "end"), code=1)
    assert health() == "ok\n"
    node.stop()


def test_guests_start_when_those_of_the_former_process_have_ended(start):
    configuration = config.plain()
    # It ends a while after it is told to, and notes both.
    trap = 'trap "sleep 0.3; echo end >> runs; exit" TERM'
    script = f"echo begin >> runs; {trap}; while :; do sleep 0.05; done"
    guest = {"type": "guest", "executable": "sh", "arguments": ["-c", script]}
    configuration["workers"].append(guest)
    configuration["controller"] = {"options": {"shutdown": ["shutdown_on_shutdown_requested"]}}
    node = start(configuration)
    runs = node.directory / "runs"
    await_true("the guest runs", lambda: runs.exists() and runs.read_text() == "begin\n")
    node.upgrade()
    await_true("the next guest runs", lambda: runs.read_text() == "begin\nend\nbegin\n")
    node.upgrade(node.failing("keep", "end"), code=1)
    expect_whole(node)
    node.stop()
    assert runs.read_text() == "begin\nend\nbegin\nend\n"


def test_a_node_on_its_embedded_default_is_upgraded(tmp_path):
    ports = ("--listen", "127.0.0.1:0", "--amqp", "127.0.0.1:0")
    router = Router(tmp_path, *ports, "--socket", str(tmp_path / "own.sock"))
    node = Upgrades(router)
    place = ("--socket", str(tmp_path / "own.sock"))
    try:
        for _ in range(2):
            node.upgrade_at(*place)
            failing = node.failing("keep", "end")
            assert "exit code 3" in node.upgrade_at(*place, failing, code=1)
            RawSocket.unix(tmp_path / "own.sock").shake_hands().join().close()
            RawSocket.tcp(router.address("transport1")).shake_hands().join().close()
        await_true("one process is left", lambda: len(node.processes()) == 1)
    finally:
        node.close()


def test_nothing_is_lost_under_load(start):
    node = start(config.plain(config.universal("tcp", config.tcp()), amqp()))
    url = next(url for url in node.router.urls("tcp") if url.startswith("ws://"))
    callers, publisher = Callers(url), Publisher(node.router.address("amqp"))
    try:
        for _ in range(3):
            before = len(publisher.confirmed)
            await_true("messages are confirmed", lambda: len(publisher.confirmed) > before + 20)  # noqa: B023
            node.upgrade()
        node.upgrade(node.failing("serve", "end"), code=1)
        lost, ledger = publisher.end(), callers.end()
    finally:
        callers.kill()
    assert lost == []
    assert publisher.refused == []
    # Once at the start, and after each upgrade.
    assert publisher.connected >= 4
    assert (ledger["refused"], ledger["wrong"], ledger["heard_twice"]) == ([], 0, 0)
    assert ledger["answered"] > 0
    assert ledger["joined"] >= 8
    node.stop()


def test_connections_are_not_refused_while_a_node_is_upgraded(start):
    node = start(config.plain(config.universal("tcp", config.tcp()), amqp()))
    address = node.router.address("tcp")
    refused: list[BaseException] = []
    connected = 0
    is_over = threading.Event()

    def knock() -> None:
        nonlocal connected
        while not is_over.is_set():
            try:
                socket.create_connection(address, timeout=DEADLINE_S).close()
                connected += 1
            except OSError as error:
                refused.append(error)

    knocking = threading.Thread(target=knock)
    knocking.start()
    try:
        for _ in range(3):
            node.upgrade()
        node.upgrade(node.failing("serve", "end"), code=1)
        before = connected
        await_true("connections go on", lambda: connected > before + 10)
    finally:
        is_over.set()
        knocking.join()
    assert refused == []
    node.stop()
