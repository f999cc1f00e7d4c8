"""The pages of the console that show what happens now, and the procedures that they read."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pika
import pytest
from rig.browser import Browser
from rig.console import Console
from rig.console_page import go, log_in, rows, text
from rig.rawsocket import RawSocket
from rig.session import CALL, ERROR, EVENT, INVOCATION, RESULT, YIELD
from rig.waiting import await_true
from rig.websocket import WebSocket


@pytest.fixture(scope="module")
def console(tmp_path_factory) -> Iterator[Console]:
    """One node for all tests; each leaves it as it was."""
    console = Console(tmp_path_factory.mktemp("console"))
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
