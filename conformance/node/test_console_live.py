"""The pages of the console that show what happens now, and the procedures that they read."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator

import pika
import pytest
from rig import certificates, config
from rig.browser import Browser
from rig.console import Console
from rig.console_page import go, log_in, rows, text
from rig.rawsocket import RawSocket
from rig.session import ABORT, CALL, ERROR, EVENT, HELLO, INVOCATION, RESULT, ROLES, YIELD
from rig.waiting import await_true
from rig.websocket import WebSocket

NAME = "<b>a</b>.example"
DAYS = 9


class Troubled(Console):
    """A console whose node has a certificate that ends soon, and a listener that refuses."""

    def configuration(self) -> dict:
        """Return the configuration."""
        made = super().configuration()
        ticket = {"type": "static", "principals": {"ann": {"ticket": "1", "role": "anonymous"}}}
        closed = {"type": "rawsocket", "id": "closed", "endpoint": config.tcp()}
        secure = {"type": "rawsocket", "id": "secure", "endpoint": config.tls(self.directory)}
        made["workers"][0]["transports"] += [{**closed, "auth": {"ticket": ticket}}, secure]
        return made


@pytest.fixture(scope="module")
def console(tmp_path_factory) -> Iterator[Troubled]:
    """One node for all tests; each leaves it as it was."""
    directory = tmp_path_factory.mktemp("console")
    certificates.write_self_signed(directory, ["localhost", NAME], DAYS)
    console = Troubled(directory)
    yield console
    console.router.stop()


class Reader:
    """A session in the management realm with the role that only reads."""

    def __init__(self, console: Console):
        self.peer: WebSocket = console.join("ben")[0]
        self.requests = itertools.count(1)

    def call(self, procedure: str, *arguments: object) -> list:
        """Return the answer to a call."""
        self.peer.say(CALL, next(self.requests), {}, procedure, arguments)
        return self.peer.hear_any()

    def read(self, procedure: str, *arguments: object) -> object:
        """Return the result of a call."""
        answer = self.call(procedure, *arguments)
        assert answer[0] == RESULT, answer
        return answer[3][0]


def call(caller: RawSocket, callee: RawSocket, procedure: str) -> None:
    """Make a call that is answered."""
    caller.ask(CALL, {}, procedure)
    invocation = callee.hear(INVOCATION)
    callee.say(YIELD, invocation[1], {})
    caller.hear(RESULT)


def test_histograms_come_together_and_by_label(console: Console):
    reader = Reader(console)
    peers = [RawSocket.tcp(console.router.address("tcp")).shake_hands().join() for _ in range(2)]
    caller, callee = peers
    with reader.peer, caller, callee:
        callee.register("com.timed")
        for _ in range(3):
            call(caller, callee, "com.timed")
        (calls,) = (
            row for row in reader.read("crossbar.get_histograms") if row["name"] == "call_duration"
        )
        assert calls["unit"] == "us"
        assert calls["count"] == sum(calls["classes"]) == 3
        assert calls["classes"][-1] > 0
        (row,) = reader.read("crossbar.get_histograms", "call_duration")
        assert (row["worker"], row["realm"], row["role"]) == ("worker1", "realm1", "anonymous")
        assert row["count"] == 3
        assert reader.read("crossbar.get_histograms", "call_duration", 1) == []
        assert reader.read("crossbar.get_histograms", "call_duration", 0, 0) == []
        refused = reader.call("crossbar.get_histograms", "call")
        assert refused[0] == ERROR
        assert "expected one of call_duration, " in refused[5][0]


def test_what_passes_now(console: Console, browser: Browser):
    browser.open(f"http://127.0.0.1:{console.address[1]}/")
    log_in(browser, "ben")
    text(browser, "Overview")
    go(browser, "live")
    text(browser, "No call was answered.")
    text(browser, "No event had so many receivers.")
    address = console.router.address("tcp")
    peers = [RawSocket.tcp(address).shake_hands().join() for _ in range(12)]
    callee, caller, *subscribers = peers
    callee.register("com.timed")
    for subscriber in subscribers:
        subscriber.subscribe("com.news")
    host, port = console.router.address("amqp")
    parameters = pika.ConnectionParameters(host, port)
    with pika.BlockingConnection(parameters) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("timed", durable=True)

        def is_shown() -> bool:
            call(caller, callee, "com.timed")
            caller.publish("com.news")
            for subscriber in subscribers:
                subscriber.hear(EVENT)
            durable = pika.BasicProperties(delivery_mode=2)
            channel.basic_publish("", "timed", b"x", durable)
            tables = ("Call round trip", "Event fan-out", "Publisher confirm")
            by_role = rows(browser, "Calls by realm and role").split()
            has_rate = by_role[:3] == ["realm1", "anonymous", "worker1"] and by_role[3] != "0/s"
            return has_rate and all(rows(browser, table) for table in tables)

        await_true("rates and times are shown", is_shown)
        channel.queue_delete("timed")
    for peer in peers:
        peer.close()
    assert browser.faults == []


def test_what_is_wrong(console: Console, browser: Browser):
    reader = Reader(console)
    host, port = console.router.address("amqp")
    refused = RawSocket.tcp(console.router.address("closed")).shake_hands()
    connection = pika.BlockingConnection(pika.ConnectionParameters(host, port))
    with reader.peer, refused, connection:
        details = {"roles": ROLES, "authmethods": ["wampcra"], "authid": "carl"}
        refused.say(HELLO, "realm1", details)
        assert refused.hear_any()[0] == ABORT
        channel = connection.channel()
        channel.exchange_declare("lost", "fanout")
        channel.confirm_delivery()
        for exchange, mandatory in [("lost", False), ("lost", True), ("", False)]:
            with contextlib.suppress(pika.exceptions.UnroutableError):
                channel.basic_publish(exchange, "nowhere", b"x", mandatory=mandatory)

        figures = reader.read("crossbar.get_figures")
        assert sum(figures["authentications_refused"].values()) == 1
        assert set(figures["actions_refused"].values()) == {0}
        assert figures["amqp"]["messages_unroutable"] == 3
        assert figures["amqp"]["messages_returned"] == 1
        procedure = "crossbar.worker.worker1.get_amqp_unroutable"
        rows_of = [
            {"vhost": "/", "exchange": "lost", "messages": 2},
            {"vhost": "/", "exchange": "", "messages": 1},
        ]
        assert reader.read(procedure) == rows_of
        assert reader.read(procedure, 1) == rows_of[:1]
        (certificate,) = reader.read("crossbar.get_certificates")
        assert (certificate["worker"], certificate["transport"]) == ("worker1", "secure")
        assert certificate["names"] == ["localhost", NAME]
        assert certificate["days_left"] == DAYS - 1
        assert reader.read("crossbar.get_certificates", 1) == []

        browser.open(f"http://127.0.0.1:{console.address[1]}/")
        log_in(browser, "ben")
        text(browser, "Overview")
        go(browser, "trouble")
        text(browser, "1 returned to their publishers, 2 dropped.")
        assert rows(browser, "Certificates").split() == [
            *("secure", "worker1", "localhost,", NAME),
            *(certificate["file"], certificate["expires"][:10], str(DAYS - 1)),
        ]
        assert rows(browser, "Unroutable messages").split() == [
            "lost",
            "/",
            "2",
            "(default)",
            "/",
            "1",
        ]
        assert "login refused: " in rows(browser, "Refused and dropped")
        channel.exchange_delete("lost")
    assert browser.faults == []
