"""`crosstie trace`: the messages of one session or connection, bounded, and without secrets."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from rig import config
from rig.amqp_peer import Peer
from rig.console import Console
from rig.rawsocket import RawSocket
from rig.router import Router, binary
from rig.session import CALL, ERROR, EVENT, GOODBYE, PUBLISH, RESULT
from rig.waiting import DEADLINE_S
from rig.websocket import WebSocket

SECRET = "open sesame"


@pytest.fixture(scope="module")
def router(tmp_path_factory) -> Iterator[Router]:
    """One node for all tests."""
    amqp = {"type": "amqp", "id": "amqp", "endpoint": config.tcp()}
    node = config.plain(config.universal("tcp", config.tcp()), amqp)
    router = Router(tmp_path_factory.mktemp("traced"), config=node)
    yield router
    router.stop()


def command(router: Router, *words: object) -> subprocess.Popen:
    """Start `crosstie trace`."""
    return subprocess.Popen(
        [str(binary()), "trace", *map(str, words), "--cbdir", str(router.directory)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def tracing(router: Router, *words: object) -> Iterator[subprocess.Popen]:
    """Run `crosstie trace` from when it has begun."""
    process = command(router, *words)
    try:
        said = process.stderr.readline()
        assert said.endswith("has begun\n"), said
        yield process
    finally:
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen) -> tuple[list[dict], str]:
    """Wait for its end; return its lines, and what it said."""
    printed, said = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, said
    return [json.loads(line) for line in printed.splitlines()], said


def raw(router: Router) -> RawSocket:
    """Join by RawSocket."""
    return RawSocket.tcp(router.address("tcp")).shake_hands().join()


def web(router: Router) -> WebSocket:
    """Join by WebSocket."""
    return WebSocket.tcp(router.address("tcp")).open("json").join()


def number(router: Router) -> int:
    """Return the number of the only AMQP connection."""
    listed = subprocess.run(
        [str(binary()), "connections", "--json", "--cbdir", str(router.directory)],
        capture_output=True,
        check=True,
        text=True,
    )
    (row,) = json.loads(listed.stdout)
    return row["connection"]


@pytest.mark.parametrize("join", [raw, web])
def test_a_session_is_shown_in_both_directions(router, join):
    with join(router) as peer, tracing(router, peer.id, "--messages", 4) as process:
        subscription = peer.subscribe("com.example.topic")
        peer.ask(PUBLISH, {"exclude_me": False}, "com.example.topic", [SECRET])
        peer.hear(EVENT)
        lines, said = ended(process)
    assert "as many messages as --messages" in said
    shown = [(line["direction"], line["type"]) for line in lines]
    assert shown == [
        ("received", "SUBSCRIBE"),
        ("sent", "SUBSCRIBED"),
        ("received", "PUBLISH"),
        ("sent", "EVENT"),
    ]
    assert lines[1]["message"][2] == subscription
    assert lines[2]["message"][3:] == ["com.example.topic"]
    assert lines[2]["argument_bytes"] == len(f'["{SECRET}"]')
    assert SECRET not in json.dumps(lines)


def test_arguments_are_shown_on_request_and_secrets_never(router):
    with raw(router) as peer, tracing(router, peer.id, "--messages", 2, "--payload") as process:
        keys = {"ticket": SECRET, "deep": [{"Password": SECRET}], "kept": "a"}
        peer.ask(CALL, {}, "com.example.nobody", [1], keys)
        peer.hear(ERROR)
        lines, _ = ended(process)
    assert SECRET not in json.dumps(lines)
    redacted = "(redacted)"
    expected = {"ticket": redacted, "deep": [{"Password": redacted}], "kept": "a"}
    assert lines[0]["message"][4:] == [[1], expected]
    assert lines[1]["type"] == "ERROR"


def test_a_trace_ends_with_its_session(router):
    with raw(router) as peer, tracing(router, peer.id) as process:
        peer.say(GOODBYE, {}, "wamp.close.normal")
        peer.hear(GOODBYE)
        peer.join()
        lines, said = ended(process)
    assert [line["type"] for line in lines] == ["GOODBYE", "GOODBYE"]
    assert "has ended" in said


@pytest.mark.parametrize(
    ("bound", "why"), [(("--bytes", 1), "--bytes"), (("--for", "1s"), "--for")]
)
def test_each_bound_ends_it(router, bound, why):
    with raw(router) as peer:
        with tracing(router, peer.id, *bound) as process:
            peer.ask(CALL, {}, "wamp.session.count")
            peer.hear(RESULT)
            _, said = ended(process)
        assert why in said
        # Another one may begin.
        with tracing(router, peer.id, "--messages", 2) as process:
            peer.round_trip()
            lines, _ = ended(process)
            assert len(lines) == 2


def test_another_trace_of_the_same_is_refused(router):
    with raw(router) as peer, tracing(router, peer.id):
        other = command(router, peer.id)
        _, said = other.communicate(timeout=DEADLINE_S)
        assert other.returncode == 1
        assert "is traced already" in said


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_end_of_the_command_ends_a_trace_of_a_quiet_session(router, number):
    with raw(router) as peer, tracing(router, peer.id) as process:
        since = len(router.log)
        process.send_signal(number)
        process.wait(DEADLINE_S)
        why = "unread" if number == signal.SIGKILL else "requested"
        router.await_log(lambda line: line.text == f"A trace has ended: {why}", since)


def test_long_messages_are_shown_by_their_size(router):
    with raw(router) as peer, tracing(router, peer.id, "--messages", 1, "--payload") as process:
        peer.ask(PUBLISH, {}, "com.example.topic", ["x" * 100_000])
        (line,), _ = ended(process)
    assert line["too_long"]
    assert line["bytes"] > 100_000
    assert "message" not in line


def test_names_do_not_control_a_terminal(router):
    with raw(router) as peer, tracing(router, peer.id, "--messages", 1) as process:
        peer.ask(PUBLISH, {"_a": "\u202e\x7f\x9b"}, "com.example.topic")
        printed, _ = process.communicate(timeout=DEADLINE_S)
    assert printed.isascii()
    assert json.loads(printed)["message"][2]["_a"] == "\u202e\x7f\x9b"


@pytest.mark.parametrize("payload", [(), ("--payload",)])
def test_an_amqp_connection(router, payload):
    connected = socket.create_connection(router.address("amqp"))
    with Peer(connected).open("guest", "guest") as peer:
        peer.channel()
        peer.call("queue.declare", queue="traced", exclusive=True)
        peer.expect("queue.declare-ok")
        peer.call("basic.consume", queue="traced", no_ack=True)
        peer.expect("basic.consume-ok")
        with tracing(router, number(router), "--messages", 6, *payload) as process:
            peer.publish("", "traced", b"the body")
            peer.expect("basic.deliver")
            lines, _ = ended(process)
    shown = [(line["direction"], line["type"]) for line in lines]
    content = ["header", "body"]
    assert shown == [("received", kind) for kind in ["basic.publish", *content]] + [
        ("sent", kind) for kind in ["basic.deliver", *content]
    ]
    assert lines[0]["arguments"]["routing_key"] == "traced"
    assert lines[1]["body_bytes"] == 8
    assert lines[2].get("body") == ("the body" if payload else None)
    assert ("properties" in lines[4]) == bool(payload)


def test_a_body_in_several_frames_is_not_shown(router):
    body = json.dumps({"filler": "x" * 5000, "password": SECRET}).encode()
    connected = socket.create_connection(router.address("amqp"))
    with Peer(connected).open("guest", "guest", frame_max=4096) as peer:
        peer.channel()
        with tracing(router, number(router), "--messages", 4, "--payload") as process:
            peer.publish("", "nowhere", body)
            lines, _ = ended(process)
    assert [line["type"] for line in lines] == ["basic.publish", "header", "body", "body"]
    assert [line.get("part") for line in lines[2:]] == [True, True]
    assert SECRET not in json.dumps(lines)


def test_nothing_to_trace(router):
    for id in (1, 123456789):
        process = command(router, id)
        _, said = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 1
        assert f"neither a session nor a connection {id}" in said
    process = command(router, 1, "--messages", 0)
    _, said = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 1
    assert "'messages': expected 1 to 1000000, got 0" in said


def test_only_the_administrator_may(tmp_path):
    console = Console(tmp_path)
    try:
        with raw(console.router) as traced:
            begin = "crossbar.worker.worker1.trace_router_session"
            denied, answer = console.join("ben")
            with denied:
                assert answer[0] == 2
                denied.say(CALL, 1, {}, begin, [traced.id])
                assert denied.hear(ERROR)[4] == "wamp.error.not_authorized"
                denied.say(CALL, 2, {}, "crossbar.read_trace", [1])
                assert denied.hear(ERROR)[4] == "wamp.error.not_authorized"
            allowed, answer = console.join("ann")
            with allowed:
                assert answer[0] == 2
                allowed.say(CALL, 1, {}, begin, [traced.id])
                trace = allowed.hear(RESULT)[3][0]["trace"]
                traced.round_trip()
                allowed.say(CALL, 2, {}, "crossbar.read_trace", [trace])
                part = allowed.hear(RESULT)[3][0]
                assert [json.loads(line)["direction"] for line in part["lines"]][:1] == ["received"]
                allowed.say(CALL, 3, {}, "crossbar.end_trace", [trace])
                allowed.hear(RESULT)
    finally:
        console.router.stop()
