"""The console: its pages in a browser, its roles, and what keeps other pages away from it."""

from __future__ import annotations

import gzip
import itertools
import socket
from collections.abc import Iterator

import pika
import pytest
from fabric.stage import await_neighbours, node_config
from rig import config
from rig.browser import Browser
from rig.console import Console
from rig.console_page import fill, go, log_in, press, rows, text
from rig.http import Http
from rig.nats import cluster
from rig.node import management
from rig.ports import free_ports
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.session import (
    ABORT,
    CALL,
    ERROR,
    HELLO,
    INVOCATION,
    RESULT,
    ROLES,
    WELCOME,
    YIELD,
)
from rig.waiting import await_true
from rig.websocket import WebSocket

MARKUP = "com.<img/src=x/onerror=alert(1)>"


@pytest.fixture(scope="module")
def console(tmp_path_factory) -> Iterator[Console]:
    """One node for all tests; each leaves it as it was."""
    console = Console(tmp_path_factory.mktemp("console"))
    yield console
    console.router.stop()


def test_files_have_a_strict_policy_and_a_tag(console: Console):
    http = Http(console.address)
    page = http.get("/", {"Accept-Encoding": "gzip"})
    assert b"<title>Crosstie</title>" in gzip.decompress(page.body)
    policy = page.header("content-security-policy") or ""
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert page.header("x-frame-options") == "DENY"
    tag = page.header("etag")
    assert tag
    assert http.get("/", {"If-None-Match": tag}).status == 304
    assert http.get("/main.js").header("content-type") == "text/javascript; charset=utf-8"
    assert http.get("/../main.rs").status in (400, 404)
    assert http.post("/", b"").status == 405
    assert http.get("/", {"Host": "evil.example"}).status == 403


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1:{port}", 101),
        (None, 101),
        ("http://127.0.0.1:1", 403),
        ("http://localhost:{port}", 403),
        ("http://evil.example", 403),
        ("null", 403),
    ],
)
def test_only_its_own_pages_open_a_session(console: Console, origin: str | None, status: int):
    host, port = console.address
    named = origin and origin.format(port=port)
    with WebSocket.tcp(console.address) as peer:
        assert peer.upgrade(Host=f"{host}:{port}", Origin=named)[0] == status


@pytest.mark.parametrize(
    ("user", "procedure", "arguments", "outcome"),
    [
        ("ben", "crossbar.get_figures", [], None),
        ("ben", "crossbar.worker.worker1.get_router_registrations", [], None),
        ("ben", "crossbar.worker.worker1.get_amqp_monitoring", ["queues"], None),
        ("ben", "crossbar.worker.worker1.get_amqp_monitoring", ["users"], "invalid_argument"),
        ("ben", "crossbar.worker.worker1.get_amqp_management", ["users"], "not_authorized"),
        ("ben", "crossbar.worker.worker1.get_amqp_definitions", [], "not_authorized"),
        ("ben", "crossbar.worker.worker1.close_router_session", [1], "not_authorized"),
        ("ben", "crossbar.reload", [], "not_authorized"),
        ("ben", "crossbar.get_log", [], "not_authorized"),
        ("ben", "crossbar.worker.worker1.get_router_sessions_by_id", [[1]], None),
        ("ben", "crossbar.worker.worker1.get_amqp_state", [], None),
        ("ben", "crossbar.worker.worker1.get_fabric_realms", [], None),
        ("ben", "crossbar.worker.worker1.move_amqp_messages", ["a", "b"], "not_authorized"),
        ("ann", "crossbar.get_log", [], None),
        ("ben", "crossbar.set_log_level", ["debug", 1], "not_authorized"),
        ("ann", "crossbar.reload", [True], None),
        ("ann", "crossbar.worker.worker1.get_amqp_management", ["users"], None),
        ("ann", "crossbar.shutdown", [], "not_authorized"),
        ("ann", "crossbar.upgrade", ["/bin/true"], "not_authorized"),
        ("ann", "crossbar.start_worker", ["w", "guest"], "not_authorized"),
        ("ann", "crossbar.worker.worker1.back_up_amqp_store", ["/tmp/x"], "not_authorized"),
        ("ann", "wamp.session.list", [], "not_authorized"),
    ],
)
def test_a_role_decides_what_may_be_called(
    console: Console, user: str, procedure: str, arguments: list, outcome: str | None
):
    peer, welcome = console.join(user)
    with peer:
        assert welcome[0] == WELCOME, welcome
        peer.say(CALL, 1, {}, procedure, arguments)
        answer = peer.hear_any()
        if outcome is None:
            assert answer[0] == RESULT, answer
        else:
            assert answer[0] == ERROR, answer
            assert answer[4].endswith(outcome), answer


def test_lists_of_entries_come_in_parts(console: Console):
    callee = RawSocket.tcp(console.router.address("tcp")).shake_hands().join()
    peer, _ = console.join("ben")
    with callee, peer:
        for number in range(5):
            callee.register(f"com.part.p{number}")
            callee.subscribe(f"com.part.t{number}", match="prefix")
        callee.register("com.other")
        requests = itertools.count(1)

        def listed(procedure: str, *arguments: object) -> list[dict]:
            peer.say(
                CALL,
                next(requests),
                {},
                f"crossbar.worker.worker1.get_router_{procedure}",
                arguments,
            )
            return peer.hear(RESULT)[3][0]

        first = listed("registrations", "realm1", 0, 3, "com.part.")
        rest = listed("registrations", "realm1", 3, 3, "com.part.")
        assert len(first) == 3
        found = {entry["uri"] for entry in first + rest}
        assert found == {f"com.part.p{number}" for number in range(5)}
        assert {entry["callees"] for entry in first} == {1}
        assert listed("registrations", "realm1", 5, 3, "com.part.") == []
        topics = listed("subscriptions", None, 0, 100, "com.part.")
        assert {(entry["match"], entry["subscribers"]) for entry in topics} == {("prefix", 1)}
        assert len(topics) == 5
        sessions = listed("sessions", None, 0, 100, callee.authid)
        assert [entry["session"] for entry in sessions] == [callee.id]


def test_messages_beyond_an_answer_stay_in_the_queue(console: Console):
    host, port = console.router.address("amqp")
    peer, _ = console.join("ann")
    with peer, pika.BlockingConnection(pika.ConnectionParameters(host, port)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("large")
        for _ in range(2):
            channel.basic_publish("", "large", b"x" * (5 << 20))
        cases = [({}, 400, 2), ({"truncate": 8}, 200, 0)]
        for number, (truncate, status, left) in enumerate(cases):
            wanted = {"count": 2, "ackmode": "ack_requeue_false", "encoding": "auto", **truncate}
            procedure = "crossbar.worker.worker1.request_amqp_management"
            peer.say(CALL, number + 1, {}, procedure, ["POST", "queues/%2F/large/get", wanted])
            answer = peer.hear(RESULT)[3][0]
            assert answer["status"] == status, answer
            count = channel.queue_declare("large", passive=True).method.message_count
            assert count == left
        channel.queue_delete("large")


def test_a_console_that_cannot_open_is_tried_again(console: Console):
    former = console.address
    with socket.create_server(("127.0.0.1", 0)) as taken:
        console.address = taken.getsockname()
        console.reload(is_right=False)
        with WebSocket.tcp(former).open():
            pass
    console.reload()
    peer, answer = console.join("ann")
    with peer:
        assert answer[0] == WELCOME, answer
    console.address = former
    console.reload()


def test_nobody_else_logs_in(console: Console):
    peer, answer = console.join("carl")
    with peer:
        assert answer[0] == ABORT, answer


def test_the_log_in_a_browser(console: Console, browser: Browser):
    browser.open(f"http://127.0.0.1:{console.address[1]}/")
    log_in(browser, "ann")
    text(browser, "Overview")
    go(browser, "log")
    text(browser, "lines")
    refused = RawSocket.tcp(console.router.address("tcp")).shake_hands()
    with refused:
        refused.say(HELLO, MARKUP, {"roles": ROLES})
        assert refused.hear_any()[0] == ABORT
    text(browser, MARKUP)
    assert browser.evaluate("document.querySelector('main img')") is None
    press(browser, "Set")
    lines = "document.querySelector('.log')?.innerText"
    browser.await_page("the level is set", f"{lines}?.includes('for 600 s, by an operator')")
    left = "((list) => list.scrollHeight - list.scrollTop - list.clientHeight)"
    browser.await_page("the end is shown", f"{left}(document.querySelector('.log')) < 8")

    level = "document.querySelector('.bar select')"
    browser.evaluate(f"{level}.value = 'warn'; {level}.dispatchEvent(new Event('change'))")
    browser.await_page("less is shown", f"!{lines}?.includes('by an operator')")
    assert MARKUP in browser.evaluate(lines)
    fill(browser, "filter", "nothing of this text")
    text(browser, "Nothing matches.")
    fill(browser, "filter", MARKUP.upper())
    text(browser, MARKUP)

    press(browser, "Log out")
    log_in(browser, "ben")
    text(browser, "The log is shown to the role administrator")
    assert browser.faults == []


def test_clients_that_read_slowly_or_send_most(console: Console, browser: Browser):
    browser.open(f"http://127.0.0.1:{console.address[1]}/")
    log_in(browser, "ben")
    text(browser, "Overview")
    go(browser, "trouble")
    text(browser, "No output waits for a client.")

    def join() -> RawSocket:
        return RawSocket.tcp(console.router.address("tcp")).shake_hands().join()

    host, port = console.router.address("amqp")
    parameters = pika.ConnectionParameters(host, port)
    with (
        join() as slow,
        join() as talker,
        pika.BlockingConnection(parameters) as reader,
        pika.BlockingConnection(parameters) as writer,
    ):
        # Both read nothing from now on; more waits than the system's buffers take.
        slow.subscribe("com.example.large")
        channel = reader.channel()
        channel.queue_declare("large")
        channel.basic_consume("large", lambda *_: None)
        for _ in range(12):
            talker.publish("com.example.large", "x" * (1 << 20))
        talker.round_trip()
        sending = writer.channel()
        for _ in range(6):
            sending.basic_publish("", "large", b"x" * (4 << 20))
        await_true("the session is slow", lambda: str(slow.id) in rows(browser, "Slow consumers"))
        await_true("the connection is slow", lambda: "AMQP" in rows(browser, "Slow consumers"))

        def talks() -> bool:
            talker.publish("com.example.small")
            talker.round_trip()
            sending.basic_publish("", "nowhere", b"x")
            busy = str(talker.id) in rows(browser, "Busiest sessions")
            return busy and "guest" in rows(browser, "Busiest connections")

        await_true("the busiest are shown", talks)
        press(browser, "to client", "main")
        order = (
            "document.querySelector('[aria-label=\"Busiest connections\"] [aria-sort]')?.innerText"
        )
        browser.await_page("the order is another", f"{order}?.startsWith('to client')")
        sending.queue_delete("large")
    assert browser.faults == []


def test_a_realm_on_several_nodes(tmp_path, browser: Browser):
    (server,) = cluster(tmp_path, 1)
    users = {"ben": {"ticket": "ben's secret", "role": "monitoring"}}
    ticket = {"type": "static", "principals": users}
    port = free_ports(1)[0]
    here_config = node_config([server.url])
    here_config["console"] = {"endpoint": config.tcp(port=port), "auth": {"ticket": ticket}}
    nodes = []
    try:
        for name, settings in (("here", here_config), ("there", node_config([server.url]))):
            directory = tmp_path / f"node{len(nodes)}"
            directory.mkdir()
            nodes.append(Router(directory, config=settings | {"controller": {"id": name}}))
        await_neighbours(nodes)
        browser.open(f"http://127.0.0.1:{port}/")
        log_in(browser, "ben")
        text(browser, "Overview")
        go(browser, "cluster")
        text(browser, "Realm realm1")
        text(browser, "No vhost is replicated.")
        others = "Nodes of realm1"
        await_true("the other node is active", lambda: "active" in rows(browser, others))
        assert "there" in rows(browser, others)
        with RawSocket.tcp(nodes[1].address("tcp")).shake_hands().join() as callee:
            callee.register("com.elsewhere")
            await_true("both exchange calls", lambda: "yes" in rows(browser, others))
        nodes[1].kill()
        await_true("the other node is suspected", lambda: "suspected" in rows(browser, others))
        text(browser, "silent 1")
    finally:
        for node in nodes:
            if node.process.returncode != -9:
                node.stop()
        server.close()
    assert browser.faults == []


def test_messages_move_to_another_queue(console: Console, browser: Browser):
    host, port = console.router.address("amqp")
    peer, _ = console.join("ann")
    with peer, pika.BlockingConnection(pika.ConnectionParameters(host, port)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("from")
        channel.queue_declare("to")
        channel.queue_declare("full", arguments={"x-max-length": 3, "x-overflow": "reject-publish"})
        for number in range(250):
            properties = pika.BasicProperties(
                headers={"n": number}, delivery_mode=2, user_id="guest", priority=3
            )
            channel.basic_publish("", "from", f"{number}".encode(), properties)

        def depth(queue: str) -> int:
            return channel.queue_declare(queue, passive=True).method.message_count

        requests = itertools.count(1)

        def move(*arguments: object) -> list:
            procedure = "crossbar.worker.worker1.move_amqp_messages"
            peer.say(CALL, next(requests), {}, procedure, arguments)
            return peer.hear_any()

        answer = move("from", "to", "/", 20)
        assert answer[3][0] == {
            "queue": "from",
            "to": "to",
            "vhost": "/",
            "moved": 20,
            "left": 230,
        }
        # The target takes some and rejects the rest, which return to their places.
        answer = move("from", "full")
        assert answer[4] == "crosstie.error.not_moved", answer
        assert answer[5][0].startswith("3 messages were moved, and no more: ")
        assert (depth("from"), depth("full")) == (227, 3)
        for arguments, error in [
            (["from", "nowhere"], "crossbar.error.no_such_object"),
            (["nowhere", "to"], "crossbar.error.no_such_object"),
            (["from", "to", "nowhere"], "crossbar.error.no_such_object"),
            (["from", "from"], "crosstie.error.not_moved"),
        ]:
            assert move(*arguments)[4] == error
        with management(console.directory) as operator:
            alarm = "crossbar.worker.worker1.set_amqp_alarm"
            operator.call(alarm, "memory", True)
            answer = move("from", "to")
            assert answer[5] == [
                "0 messages were moved, and no more: publishers are blocked: memory"
            ]
            operator.call(alarm, "memory", False)

        browser.open(f"http://127.0.0.1:{console.address[1]}/")
        log_in(browser, "ann")
        text(browser, "Overview")
        go(browser, "queues/%2F/from")
        press(browser, "Move messages")
        fill(browser, "ask-to", "to")
        press(browser, "Move", "dialog")
        text(browser, "227 messages are moved to to")
        text(browser, "0 ready")
        assert (depth("from"), depth("to")) == (0, 247)
        found = [channel.basic_get("to", auto_ack=True) for _ in range(247)]
        numbers = [int(body) for _, _, body in found]
        assert numbers == [number for number in range(250) if number not in (20, 21, 22)]
        _, properties, _ = found[-1]
        assert properties.headers == {"n": 249}
        assert (properties.user_id, properties.priority) == ("guest", 3)

        press(browser, "Log out")
        log_in(browser, "ben")
        buttons = "[...document.querySelectorAll('main .heading button')]"
        browser.await_page("others do not move", f"{buttons}[0]?.disabled")
        for queue in ("from", "to", "full"):
            channel.queue_delete(queue)
    assert browser.faults == []


def test_pages_in_a_browser(console: Console, browser: Browser):
    base = f"http://127.0.0.1:{console.address[1]}/"
    browser.open(base)
    log_in(browser, "ann")
    text(browser, "Overview")
    text(browser, console.router.urls("tcp")[0])

    callee = RawSocket.tcp(console.router.address("tcp")).shake_hands().join()
    with callee:
        registration = callee.register("com.example.twice")
        callee.register(MARKUP)
        go(browser, "sessions")
        text(browser, f"tcp:127.0.0.1:{callee.socket.getsockname()[1]}")
        go(browser, "procedures")
        text(browser, MARKUP)
        assert browser.evaluate("document.querySelector('main img')") is None

        go(browser, "try/call/realm1/com.example.twice")
        press(browser, "Join")
        browser.await_page(
            "the session has joined", "Boolean(document.getElementById('call-args'))"
        )
        browser.evaluate("document.getElementById('call-args').value = '[21]'")
        press(browser, "Call")
        invocation = callee.hear(INVOCATION)
        assert invocation[2] == registration
        callee.say(YIELD, invocation[1], {}, [2 * invocation[4][0]])
        log = "document.querySelector('.log')?.innerText"
        browser.await_page("the result is shown", f"{log}?.includes('42')")

    host, port = console.router.address("amqp")
    with pika.BlockingConnection(pika.ConnectionParameters(host, port)) as connection:
        channel = connection.channel()
        channel.queue_declare("<b>orders</b>")
        for _ in range(3):
            channel.basic_publish("", "<b>orders</b>", b"an order")
        go(browser, "queues/%2F/" + "%3Cb%3Eorders%3C%2Fb%3E")
        text(browser, "3 ready")
        press(browser, "Get")
        text(browser, "an order")
        press(browser, "Purge")
        press(browser, "Purge", "dialog")
        text(browser, "0 ready")
        assert channel.queue_declare("<b>orders</b>", passive=True).method.message_count == 0

    # The node ends without a word, and starts again: the page logs in by itself.
    go(browser, "overview")
    text(browser, "Overview")
    console.router.kill()
    text(browser, "reconnecting")
    console.start()
    is_away = "document.body.innerText.includes('reconnecting')"
    browser.await_page("the page is back", f"!{is_away}")
    text(browser, console.router.urls("tcp")[0])

    # An administrator becomes one who only reads; then the permission is withdrawn.
    console.users["ann"]["role"] = "monitoring"
    console.reload()
    browser.await_page(
        "the role has changed", "document.querySelector('.role')?.innerText === 'monitoring'"
    )
    go(browser, "users")
    text(browser, "are shown to the role administrator")
    del console.users["ann"]
    console.reload()
    text(browser, "no longer accepted")

    foreign = [url for url in browser.requested if "//127.0.0.1:" not in url and "data:" not in url]
    assert foreign == []
    # A browser logs the connections that fail while the node is away.
    faults = [
        fault for fault in browser.faults if "WebSocket" not in fault and "ERR_CONN" not in fault
    ]
    assert faults == []
