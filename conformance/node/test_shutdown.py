"""Orderly ends: listeners close, calls are answered, clients are to come back, exit 0."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess

import pytest
from rig import config
from rig.amqp_peer import Peer
from rig.links import CLIENTS, Link
from rig.node import node
from rig.rawsocket import RawSocket
from rig.router import Router, binary
from rig.session import CALL, ERROR, GOODBYE, INVOCATION, RESULT, YIELD
from rig.waiting import DEADLINE_S, await_true
from rig.websocket import WebSocket

CONNECTION_FORCED = b"CONNECTION_FORCED"
SHUTDOWN = "wamp.close.system_shutdown"


ORDERLY = [signal.SIGINT, signal.SIGTERM, signal.SIGQUIT]


@pytest.fixture
def start_polite(start_router):
    """Start a router that sends GOODBYE when it stops."""
    return lambda **more: start_router(config.with_goodbye(config.plain(**more)))


@pytest.mark.parametrize("number", ORDERLY)
def test_every_client_is_closed_without_goodbye(start_router, number):
    router = start_router(config.plain())
    raw = RawSocket.tcp(router.address("tcp")).shake_hands().join()
    web = WebSocket.tcp(router.address("tcp")).open().join()
    router.signal(number)
    raw.expect_end()
    web.expect_close(1001)
    raw.close()
    web.close()
    assert router.exit_code() == 0


def test_listeners_close_before_clients_are_disconnected(start_router):
    amqp = {"id": "amqp", "type": "amqp", "endpoint": config.tcp()}
    web = {"id": "web", "type": "web", "endpoint": config.tcp(), "paths": {}}
    admin = {"admin": {"endpoint": config.tcp()}}
    router = start_router(config.plain(config.universal("tcp", config.tcp()), amqp, web, **admin))
    addresses = [router.address(transport) for transport in ("tcp", "amqp", "web")]
    raw = RawSocket.tcp(addresses[0]).shake_hands().join()
    raw.register("com.slow")
    caller = RawSocket.tcp(addresses[0]).shake_hands().join()
    caller.say(CALL, next(caller.requests), {}, "com.slow")
    invocation = raw.hear(INVOCATION)
    newcomer = socket.create_connection(addresses[1])
    newcomer.sendall(b"AMQP\0\0\x09\x01")
    assert newcomer.recv(8)
    router.signal(signal.SIGTERM)
    for address in addresses:
        await_true("nobody listens", lambda address=address: is_refused(address))
    # A client in the middle of its log-in is closed without a word.
    rest = b"".join(iter(lambda: newcomer.recv(4096), b""))
    assert CONNECTION_FORCED not in rest
    # Its sessions go on, until their open calls are answered.
    raw.say(YIELD, invocation[1], {}, [1])
    assert caller.hear(RESULT)[3] == [1]
    caller.expect_end()
    raw.expect_end()
    for peer in (raw, caller, newcomer):
        peer.close()
    assert router.exit_code() == 0


def is_refused(address) -> bool:
    try:
        socket.create_connection(address).close()
    except ConnectionRefusedError:
        return True
    return False


def test_connections_in_the_backlog_are_closed_and_not_served(start_router):
    amqp = {"id": "amqp", "type": "amqp", "endpoint": config.tcp()}
    configuration = config.plain(config.universal("tcp", config.tcp()), amqp)
    configuration["workers"][0]["options"] = {"threads": 1}
    router = start_router(configuration)
    address = router.address("amqp")
    router.signal(signal.SIGSTOP)
    # The kernel accepts them, the node has not.
    waiting = [socket.create_connection(address) for _ in range(20)]
    for peer in waiting:
        peer.sendall(b"AMQP\0\0\x09\x01")
    router.signal(signal.SIGTERM)
    router.signal(signal.SIGCONT)
    for peer in waiting:
        try:
            while octets := peer.recv(4096):
                assert CONNECTION_FORCED not in octets
        except ConnectionResetError:
            pass
        peer.close()
    assert router.exit_code() == 0


def test_calls_that_are_not_answered_in_time_end_with_an_error(start_router):
    router = start_router(config.plain(limits={"shutdown_timeout_ms": 300}))
    place = router.address("tcp")
    callee = RawSocket.tcp(place).shake_hands().join()
    callee.register("com.never")
    raw = RawSocket.tcp(place).shake_hands().join()
    web = WebSocket.tcp(place).open().join()
    for caller in (raw, web):
        caller.say(CALL, next(caller.requests), {}, "com.never")
        callee.hear(INVOCATION)
    router.signal(signal.SIGTERM)
    for caller in (raw, web):
        error = caller.hear(ERROR)
        assert error[4] == "wamp.error.canceled", error
    raw.expect_end()
    web.expect_close(1001)
    for peer in (raw, web, callee):
        peer.close()
    assert router.exit_code() == 0
    assert any("has ended open calls" in line.text for line in router.log)


def test_calls_that_begin_during_the_stop_do_not_prolong_it(start_router):
    router = start_router(config.plain(limits={"shutdown_timeout_ms": 3_600_000}))
    place = router.address("tcp")
    callee = RawSocket.tcp(place).shake_hands().join()
    callee.register("com.slow")
    caller = RawSocket.tcp(place).shake_hands().join()
    caller.say(CALL, next(caller.requests), {}, "com.slow")
    first = callee.hear(INVOCATION)
    router.signal(signal.SIGTERM)
    await_true("nobody listens", lambda: is_refused(place))
    caller.say(CALL, next(caller.requests), {}, "com.slow")
    callee.hear(INVOCATION)
    callee.say(YIELD, first[1], {}, [1])
    assert caller.hear(RESULT)[3] == [1]
    assert caller.hear(ERROR)[4] == "wamp.error.canceled"
    caller.expect_end()
    for peer in (caller, callee):
        peer.close()
    assert router.exit_code() == 0


def test_a_goodbye_during_the_stop_is_answered(start_router):
    router = start_router(config.plain(limits={"shutdown_timeout_ms": 3_600_000}))
    place = router.address("tcp")
    callee = RawSocket.tcp(place).shake_hands().join()
    callee.register("com.slow")
    caller = RawSocket.tcp(place).shake_hands().join()
    leaving = WebSocket.tcp(place).open().join()
    caller.say(CALL, next(caller.requests), {}, "com.slow")
    invocation = callee.hear(INVOCATION)
    router.signal(signal.SIGTERM)
    await_true("nobody listens", lambda: is_refused(place))
    leaving.say(GOODBYE, {}, "wamp.close.normal")
    assert leaving.hear(GOODBYE)[2] == "wamp.close.normal"
    leaving.expect_close(1001)
    callee.say(YIELD, invocation[1], {}, [1])
    caller.hear(RESULT)
    for peer in (caller, callee, leaving):
        peer.close()
    assert router.exit_code() == 0


@pytest.mark.parametrize("number", ORDERLY)
def test_every_client_gets_goodbye_if_configured(start_polite, number):
    router = start_polite()
    raw = RawSocket.tcp(router.address("tcp")).shake_hands().join()
    web = WebSocket.tcp(router.address("tcp")).open().join()
    router.signal(number)
    assert raw.hear(GOODBYE)[2] == SHUTDOWN
    assert web.hear(GOODBYE)[2] == SHUTDOWN
    for peer in (raw, web):
        peer.say(GOODBYE, {}, "wamp.close.goodbye_and_out")
    raw.expect_end()
    web.expect_close(1000, 1001)
    raw.close()
    web.close()
    assert router.exit_code() == 0


def test_a_hangup_ends_nothing(start_router):
    router = start_router(config.plain())
    with RawSocket.tcp(router.address("tcp")).shake_hands().join() as peer:
        for _ in range(3):
            said = len(router.log)
            router.signal(signal.SIGHUP)
            router.await_log(lambda line: line.text.startswith("Received SIGHUP"), said)
            peer.round_trip()


@pytest.mark.parametrize("handling", [signal.SIG_DFL, signal.SIG_IGN], ids=["plain", "nohup"])
def test_a_hangup_has_the_log_go_on_in_a_new_file(tmp_path, handling):
    """As `logrotate` does it, however the node was started."""
    log, rotated = tmp_path / "node.log", tmp_path / "node.log.1"
    before = signal.signal(signal.SIGHUP, handling)
    try:
        router = Router(tmp_path, "--logtofile", config=config.plain())
    finally:
        signal.signal(signal.SIGHUP, before)
    try:
        await_true("the file has the start", lambda: '"Ready;' in log.read_text())
        log.rename(rotated)
        router.signal(signal.SIGHUP)
        await_true("a new file", lambda: log.exists() and "Received SIGHUP" in log.read_text())
    finally:
        router.stop()
    assert "Node ended" in log.read_text()
    assert "SIGHUP" not in rotated.read_text()


def test_a_log_that_cannot_be_opened_anew_goes_on(tmp_path):
    logs = tmp_path / "logs"
    router = Router(tmp_path, "--logdir", "logs", config=config.plain())
    logs.rename(tmp_path / "old")
    logs.write_text("in the way")
    router.signal(signal.SIGHUP)
    router.await_log(lambda line: "cannot open node.log anew" in line.text)
    router.stop()
    assert "Node ended" in (tmp_path / "old/node.log").read_text()


def test_ignored_signals_stay_ignored(tmp_path):
    """As what starts it in the background of a shell may do."""
    number = signal.SIGQUIT
    before = signal.signal(number, signal.SIG_IGN)
    try:
        router = Router(tmp_path, config=config.plain())
    finally:
        signal.signal(number, before)
    try:
        router.signal(number)
        with RawSocket.tcp(router.address("tcp")).shake_hands().join() as peer:
            peer.round_trip()
    finally:
        router.stop()
    assert not any("shutting down" in line.text for line in router.log if number.name in line.text)


def test_a_log_without_a_reader_stops_nothing(tmp_path):
    flood = "i=0; while :; do i=$((i+1)); printf '%s %01000d\\n' $i 0; done"
    guest = {"type": "guest", "executable": "sh", "arguments": ["-c", flood]}
    (tmp_path / "config.json").write_text(json.dumps(node(guest)))
    # This pipe has no reader; it holds a hundred of these lines.
    unread, stderr = os.pipe()
    command = [str(binary()), "start", "--cbdir", str(tmp_path), "--logtofile"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr)
    os.close(stderr)
    log = tmp_path / "node.log"
    try:
        # More than the pipe holds and the node keeps for it.
        await_true("much is logged", lambda: log.is_file() and log.stat().st_size > 4 << 20)
        asked = subprocess.run(
            [str(binary()), "status", "--cbdir", str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        assert asked.stdout.startswith("running"), asked
        url = re.search("management: (.*)", asked.stdout)
        assert url, asked
        call = [str(binary()), "call", "--url", url[1], "--realm", "crossbar"]
        asked = subprocess.run([*call, "crossbar.get_status"], timeout=DEADLINE_S)
        assert asked.returncode == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0
        # The file has all of it, and in its order.
        text = log.read_text()
        assert "Received SIGTERM, shutting down." in text
        assert text.rstrip().endswith("Node ended")
        assert "standard error accepted none" not in text
        numbers = [int(number) for number in re.findall(r"(?m)\] (\d+) 0000", text)]
        assert numbers == sorted(numbers)
    finally:
        process.kill()
        process.wait()
        os.close(unread)


def test_a_client_that_does_not_answer_is_not_waited_for_long(start_polite):
    router = start_polite(limits={"shutdown_timeout_ms": 300})
    deaf = RawSocket.tcp(router.address("tcp")).shake_hands().join()
    router.signal(signal.SIGTERM)
    assert router.exit_code() == 0
    assert deaf.hear(GOODBYE)[2] == SHUTDOWN
    deaf.expect_end()


def test_a_client_that_does_not_close_is_not_waited_for_long(start_router):
    router = start_router(config.plain(limits={"shutdown_timeout_ms": 3_600_000}))
    deaf = RawSocket.tcp(router.address("tcp")).shake_hands().join()
    router.signal(signal.SIGTERM)
    router.await_log(lambda line: "it did not answer" in line.text)
    assert router.exit_code() == 0
    deaf.expect_end()


def test_the_log_names_calls_that_are_waited_for(start_router):
    router = start_router(config.plain(limits={"shutdown_timeout_ms": 3_600_000}))
    place = router.address("tcp")
    with (
        RawSocket.tcp(place).shake_hands().join() as callee,
        RawSocket.tcp(place).shake_hands().join() as caller,
    ):
        callee.register("com.slow")
        caller.say(CALL, next(caller.requests), {}, "com.slow")
        invocation = callee.hear(INVOCATION)
        router.signal(signal.SIGTERM)
        line = router.await_log(lambda line: "waits for open calls" in line.text)
        assert line.text.endswith(": 1 at present")
        callee.say(YIELD, invocation[1], {}, [1])
        caller.hear(RESULT)
    assert router.exit_code() == 0


def test_the_log_says_who_is_waited_for(start_polite):
    router = start_polite(limits={"shutdown_timeout_ms": 3_600_000})
    deaf = RawSocket.tcp(router.address("tcp")).shake_hands().join()
    router.signal(signal.SIGTERM)
    line = router.await_log(lambda line: "waits for clients to close" in line.text)
    assert f"the WAMP session at tcp:{deaf.name}" in line.text
    deaf.hear(GOODBYE)
    deaf.say(GOODBYE, {}, "wamp.close.goodbye_and_out")
    assert router.exit_code() == 0
    deaf.close()


def test_a_client_that_does_not_read_is_not_waited_for(start_polite):
    router = start_polite(limits={"shutdown_timeout_ms": 3_600_000})
    place = router.address("tcp")
    deaf = RawSocket.tcp(place, receive_buffer=4096).shake_hands().join()
    deaf.subscribe("com.example.flood")
    with RawSocket.tcp(place).shake_hands().join() as loud:
        for _ in range(80):
            loud.publish("com.example.flood", ["x" * 100_000])
            loud.round_trip()
        router.signal(signal.SIGTERM)
        loud.hear(GOODBYE)
        loud.say(GOODBYE, {}, "wamp.close.goodbye_and_out")
    router.await_log(lambda line: "it does not read what it is sent" in line.text)
    assert router.exit_code() == 0
    deaf.close()


def test_an_amqp_client_is_not_waited_for_as_long(start_router):
    amqp = {"id": "amqp", "type": "amqp", "endpoint": config.tcp()}
    configuration = config.plain(limits={"shutdown_timeout_ms": 3_600_000})
    configuration["workers"][0]["transports"].append(amqp)
    router = start_router(configuration)
    busy = Peer(socket.create_connection(router.address("amqp"))).open("guest", "guest")
    router.signal(signal.SIGTERM)
    line = router.await_log(lambda line: "waits for clients to close" in line.text)
    assert "AMQP client '' of user 'guest' at tcp:127.0.0.1:" in line.text
    router.await_log(lambda line: "it did not answer" in line.text)
    assert router.exit_code() == 0
    busy.close()


def test_connections_without_a_session_do_not_delay_the_end(start_router):
    router = start_router(config.plain(limits={"shutdown_timeout_ms": 3_600_000}))
    with (
        RawSocket.tcp(router.address("tcp")),
        RawSocket.tcp(router.address("tcp")).shake_hands(),
        WebSocket.tcp(router.address("tcp")).open(),
    ):
        router.signal(signal.SIGTERM)
        assert router.exit_code() == 0


def test_a_second_signal_ends_it_at_once(start_polite):
    router = start_polite(limits={"shutdown_timeout_ms": 3_600_000})
    deaf = RawSocket.tcp(router.address("tcp")).shake_hands().join()
    router.signal(signal.SIGTERM)
    deaf.hear(GOODBYE)

    def ends_when_told_again() -> bool:
        # Signals that come close to the first one are taken for the same.
        if router.process.poll() is None:
            router.signal(signal.SIGTERM)
        return router.process.poll() is not None

    await_true("the second signal ends it", ends_when_told_again)
    # It was asked to stop and does; only how is not so orderly any more.
    router.process.returncode = 0


@pytest.mark.parametrize("kind", ["ws", "rs"])
@pytest.mark.parametrize("client", CLIENTS)
def test_clients_see_a_goodbye(start_polite, new_session, place_of, client, kind):
    router = start_polite()
    place = place_of(Link(client, kind, "tcp", "json"), of=router)
    session = new_session(client).open(place)
    router.signal(signal.SIGINT)
    assert session.next("left")["reason"] == SHUTDOWN
    session.next("disconnected")
    assert router.exit_code() == 0


def test_the_unix_socket_is_taken_away(start_router):
    router = start_router(config.plain(config.universal("unix", config.unix())))
    socket = router.directory / "router.sock"
    assert socket.is_socket()
    router.stop()
    assert not socket.exists()


def test_a_socket_file_of_a_router_that_died_is_no_obstacle(start_router, tmp_path):
    first = start_router(config.plain(config.universal("unix", config.unix())))
    first.kill()
    first.process.returncode = 0
    socket = first.directory / "router.sock"
    assert socket.is_socket()
    second = Router(
        first.directory, config=config.plain(config.universal("unix", config.unix(str(socket))))
    )
    try:
        with RawSocket.unix(socket).shake_hands().join() as peer:
            peer.round_trip()
    finally:
        second.stop()


def test_a_port_that_is_taken_is_an_error(start_router, tmp_path):
    first = start_router(config.plain())
    port = first.address("tcp")[1]
    endpoint = {**config.tcp(), "port": port}
    with pytest.raises(AssertionError):
        Router(tmp_path, config=config.plain(config.universal("tcp", endpoint)))
