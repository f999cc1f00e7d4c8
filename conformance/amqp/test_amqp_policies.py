"""Policies that change while queues have messages, by reloads of the definitions.

The expectations are what RabbitMQ 3.10.8 did after `rabbitmqctl set_policy` and `clear_policy`.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pika
import pytest
from rig.broker import Crosstie, policies
from rig.brokers import connect
from rig.router import binary

# A loaded machine takes long.
DEADLINE_S = 90
NAMES = ("live", "other")


class Policed:
    """A broker whose policies a test sets."""

    def __init__(self, broker: Crosstie) -> None:
        self.broker = broker
        self.policies: dict = {}
        self.connection = connect(broker)
        self.channel = self.connection.channel()

    def set(self, name: str, pattern: str, definition: dict) -> None:
        """Set a policy for queues and exchanges of that pattern."""
        self.policies[name] = (pattern, definition, 0)
        self._reload()

    def clear(self, name: str) -> None:
        """Withdraw a policy."""
        if self.policies.pop(name, None) is not None:
            self._reload()

    def _reload(self) -> None:
        write(self.broker.directory, self.policies)
        command = [binary(), "reload", "--cbdir", str(self.broker.directory)]
        subprocess.run(command, check=True, capture_output=True)

    def fill(self, queue: str, *bodies: str, **arguments: object) -> None:
        """Declare a queue, and publish to it."""
        self.channel.queue_declare(queue, durable=True, arguments=arguments)
        self.publish(queue, *bodies)

    def publish(self, key: str, *bodies: str, exchange: str = "") -> None:
        """Publish persistent messages."""
        for body in bodies:
            properties = pika.BasicProperties(delivery_mode=2)
            self.channel.basic_publish(exchange, key, body.encode(), properties)

    def count(self, queue: str) -> int:
        """Count the ready messages."""
        return self.channel.queue_declare(queue, passive=True).method.message_count

    def rest(self, queue: str) -> list[tuple[str, str | None]]:
        """Take everything out; return the bodies, and why each has died."""
        taken = []
        while True:
            method, properties, body = self.channel.basic_get(queue, auto_ack=True)
            if method is None:
                return taken
            deaths = (properties.headers or {}).get("x-death") or [{}]
            taken.append((body.decode(), deaths[0].get("reason")))

    def is_there(self, queue: str) -> bool:
        """Whether a queue exists. A declaration would count as a use of it."""
        channel = self.connection.channel()
        channel.confirm_delivery()
        try:
            channel.basic_publish("", queue, b"", mandatory=True)
        except pika.exceptions.UnroutableError:
            return False
        finally:
            channel.close()
        return True


def write(directory: Path, of_users: dict, of_operators: dict | None = None) -> None:
    """Write definitions with these policies."""
    given = {"vhosts": [{"name": "/"}], **policies(of_users, of_operators or {})}
    (directory / "definitions.json").write_text(json.dumps(given))


def eventually(value: Callable, expected: object) -> None:
    """Await that value."""
    deadline = time.monotonic() + DEADLINE_S
    while (found := value()) != expected:
        assert time.monotonic() < deadline, f"expected {expected}, got {found}"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def live_crosstie(tmp_path_factory) -> Crosstie:
    """A Crosstie whose definitions these tests change."""
    directory = tmp_path_factory.mktemp("live")
    write(directory, {})
    running = Crosstie(directory, amqp={"definitions": "definitions.json"})
    yield running
    running.stop()


@pytest.fixture
def policed(live_crosstie) -> Policed:
    """The broker, without policies."""
    policed = Policed(live_crosstie)
    yield policed
    for name in NAMES:
        policed.clear(name)
    policed.connection.close()


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_bound_drops_the_oldest_at_once_and_is_withdrawn(policed, kind):
    queue, dead = f"live.bound.{kind}", f"live-dead.{kind}"
    policed.channel.queue_declare(dead, durable=True)
    policed.fill(queue, *"123456", **{"x-queue-type": kind})
    eventually(lambda: policed.count(queue), 6)
    definition = {"dead-letter-exchange": "", "dead-letter-routing-key": dead}
    policed.set("live", r"^live\.bound", {"max-length": 2, **definition})
    eventually(lambda: policed.count(queue), 2)
    eventually(lambda: policed.count(dead), 4)
    assert policed.rest(dead) == [(body, "maxlen") for body in "1234"]
    policed.clear("live")
    policed.publish(queue, *"789")
    eventually(lambda: policed.count(queue), 5)
    assert policed.rest(queue) == [(body, None) for body in "56789"]
    policed.channel.queue_delete(queue)
    policed.channel.queue_delete(dead)


def test_a_classic_queue_drops_before_it_rejects(policed):
    policed.fill("live.reject", *"12345")
    eventually(lambda: policed.count("live.reject"), 5)
    policed.set("live", r"^live\.reject", {"max-length": 2, "overflow": "reject-publish"})
    eventually(lambda: policed.count("live.reject"), 2)
    policed.publish("live.reject", *"67")
    assert policed.rest("live.reject") == [("4", None), ("5", None)]
    policed.channel.queue_delete("live.reject")


def test_a_time_to_live_counts_for_later_messages(policed):
    policed.fill("live.ttl", "early")
    eventually(lambda: policed.count("live.ttl"), 1)
    policed.set("live", r"^live\.ttl", {"message-ttl": 0})
    # The change has come when a message does not stay.
    policed.fill("live.ttl-witness")
    policed.channel.queue_purge("live.ttl-witness")

    def stays() -> int:
        policed.publish("live.ttl-witness", "late")
        return len(policed.rest("live.ttl-witness"))

    eventually(stays, 0)
    policed.publish("live.ttl", "late")
    assert policed.rest("live.ttl") == [("early", None)]
    policed.channel.queue_delete("live.ttl")
    policed.channel.queue_delete("live.ttl-witness")


def test_an_expiry_deletes_queues_that_exist(policed):
    policed.fill("live.expires", "1")
    policed.fill("live-stays", "1")
    policed.set("live", r"^live\.expires", {"expires": 100})
    eventually(lambda: policed.is_there("live.expires"), False)
    assert policed.is_there("live-stays")
    policed.channel.queue_delete("live-stays")


def test_an_alternate_exchange_comes_and_goes(policed):
    channel = policed.channel
    channel.exchange_declare("live.exchange", "direct")
    channel.exchange_declare("live-alternate", "fanout")
    channel.queue_declare("live-unrouted")
    channel.queue_bind("live-unrouted", "live-alternate")
    policed.set("live", r"^live\.exchange", {"alternate-exchange": "live-alternate"})
    policed.publish("nowhere", "1", exchange="live.exchange")
    eventually(lambda: policed.rest("live-unrouted"), [("1", None)])
    policed.clear("live")
    policed.publish("nowhere", "2", exchange="live.exchange")
    policed.publish("", "3", exchange="live-alternate")
    eventually(lambda: policed.rest("live-unrouted"), [("3", None)])
    channel.queue_delete("live-unrouted")
    channel.exchange_delete("live.exchange")
    channel.exchange_delete("live-alternate")


def test_a_policy_of_a_stream_leaves_its_messages(policed):
    policed.fill("live.stream", *"123", **{"x-queue-type": "stream"})
    policed.set("live", r"^live\.stream", {"max-age": "1Y", "max-length-bytes": 1})
    eventually(lambda: policed.count("live.stream"), 3)
    policed.channel.queue_delete("live.stream")


def test_queues_show_their_policies(start_broker, tmp_path):
    broker = start_broker()
    directory = broker.directory
    of_operators = {"limit": ("capped", {"max-length": 3, "expires": 3_600_000}, 0)}
    of_users = {
        "cap": ("capped", {"max-length": 5, "queue-mode": "lazy"}, 1),
        "unrouted": (".*", {"alternate-exchange": "amq.fanout"}, 0),
    }
    write(directory, of_users, of_operators)
    broker.configuration["workers"][0]["amqp"]["definitions"] = "definitions.json"
    broker.restart()
    with connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("capped")
        channel.queue_declare("other", durable=True)
        queues = listed(directory, "queues")
        assert {
            name: (row["policy"], row["operator_policy"], row["effective_policy_definition"])
            for name, row in queues.items()
        } == {
            "capped": (
                "cap",
                "limit",
                {"expires": 3_600_000, "max-length": 3, "queue-mode": "lazy"},
            ),
            "other": ("unrouted", None, {"alternate-exchange": "amq.fanout"}),
        }
        exchanges = listed(directory, "exchanges")
        assert exchanges["amq.topic"]["policy"] == "unrouted"


def listed(directory: Path, what: str) -> dict:
    """Return what a command lists of the vhost `/`, by name."""
    command = [binary(), what, "--json", "--cbdir", str(directory)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    rows = json.loads(done.stdout)
    return {row["name"]: row for row in rows if row["vhost"] == "/"}
