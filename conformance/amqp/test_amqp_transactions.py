"""Transactions: all of one or nothing after kills, and peers that never commit."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pika
import pika.exceptions
from rig.amqp_peer import Peer
from rig.broker import Broker, Crosstie
from rig.plain import ClosedError
from rig.streams import STREAM, bodies, channel_of, read
from rig.waiting import DEADLINE_S, await_true

PERSISTENT = pika.BasicProperties(delivery_mode=2)
KILLS = 8
# Publications of one transaction, with their targets.
PUBLISHED = Counter({"left": 3, "right": 2})
SOURCE = 2_000


def connect(broker: Broker) -> pika.BlockingConnection:
    """Connect as pika's users do."""
    parameters = pika.URLParameters(broker.url("test"))
    parameters.socket_timeout = DEADLINE_S
    return pika.BlockingConnection(parameters)


@dataclass
class Mover:
    """Takes messages from one queue and publishes several for each, in a transaction."""

    broker: Broker
    published: Counter[str]
    begun: set[bytes] = field(default_factory=set)
    committed: set[bytes] = field(default_factory=set)

    def run_until(self, commits: int, end: Callable[[], None]) -> None:
        """Go on until there are so many commits, and `end` the broker meanwhile."""
        thread = threading.Thread(target=self._move)
        thread.start()
        try:
            await_true(f"{commits} commits", lambda: len(self.committed) >= commits)
        finally:
            end()
            thread.join(DEADLINE_S)
        assert not thread.is_alive()

    def _move(self) -> None:
        try:
            channel = connect(self.broker).channel()
            channel.tx_select()
            while True:
                method, _, body = channel.basic_get("source")
                self.begun.add(body)
                for queue in self.published.elements():
                    channel.basic_publish("", queue, body, PERSISTENT)
                channel.basic_ack(method.delivery_tag)
                channel.tx_commit()
                self.committed.add(body)
        except (pika.exceptions.AMQPError, OSError):
            # As it should be: the broker was killed.
            pass


def fill_source(broker: Broker, *emptied: str) -> None:
    """Fill the queue to move from, and empty others."""
    with connect(broker) as connection:
        channel = connection.channel()
        for queue in ("source", *emptied):
            channel.queue_declare(queue, durable=True)
            channel.queue_purge(queue)
        channel.tx_select()
        for number in range(SOURCE):
            channel.basic_publish("", "source", b"%d" % number, PERSISTENT)
        channel.tx_commit()


def take_all(channel, queue: str) -> Counter[bytes]:
    """Take everything out of a queue."""
    found: Counter[bytes] = Counter()
    while (got := channel.basic_get(queue, auto_ack=True))[0]:
        found[got[2]] += 1
    return found


def test_a_kill_leaves_all_of_a_transaction_or_nothing(tmp_path):
    broker = Crosstie(tmp_path, amqp={"store": str(tmp_path / "amqp.store")})
    try:
        chance = random.Random(1)
        for kill in range(KILLS):
            fill_source(broker, *PUBLISHED)
            mover = Mover(broker, PUBLISHED)
            mover.run_until(chance.randrange(1, 120), broker.router.kill)
            broker.restart(kill=True)
            with connect(broker) as connection:
                channel = connection.channel()
                left = take_all(channel, "source")
                moved = {queue: take_all(channel, queue) for queue in PUBLISHED}
            assert len(left) == left.total(), f"kill {kill}: doubled in the source"
            for body in (b"%d" % number for number in range(SOURCE)):
                there = {queue: found[body] for queue, found in moved.items()}
                if left[body]:
                    assert body not in mover.committed, f"kill {kill}: {body} was committed"
                    assert not any(there.values()), f"kill {kill}: {body} in parts: {there}"
                else:
                    assert body in mover.begun, f"kill {kill}: {body} was never taken"
                    assert there == PUBLISHED, f"kill {kill}: {body} in parts: {there}"
    finally:
        broker.stop()


def test_a_kill_leaves_no_part_of_a_transaction_before_that_of_its_streams(tmp_path):
    broker = Crosstie(tmp_path, amqp={"store": str(tmp_path / "amqp.store")})
    try:
        chance = random.Random(2)
        for kill in range(KILLS):
            streams = [f"stream.{kill}.{nth}" for nth in range(2)]
            fill_source(broker, "left")
            with channel_of(broker) as channel:
                for stream in streams:
                    channel.queue_declare(stream, durable=True, arguments=STREAM)
            mover = Mover(broker, Counter({streams[0]: 1, "left": 2, streams[1]: 1}))
            mover.run_until(chance.randrange(1, 60), broker.router.kill)
            broker.restart(kill=True)
            with channel_of(broker) as channel:
                left, moved = take_all(channel, "source"), take_all(channel, "left")
                streamed = [read_stream(channel, stream) for stream in streams]
            for body in (b"%d" % number for number in range(SOURCE)):
                there = (moved[body], *(found[body] for found in streamed))
                if left[body]:
                    assert body not in mover.committed, f"kill {kill}: {body} was committed"
                    assert not moved[body], f"kill {kill}: {body} in parts: {there}"
                    # The only part that may be there before commit-ok.
                    assert body in mover.begun or not any(there), f"kill {kill}: {body}: {there}"
                else:
                    assert there == (2, 1, 1), f"kill {kill}: {body} in parts: {there}"
            for found in streamed:
                alone = [body for body in found if left[body]]
                assert len(alone) <= 1, f"kill {kill}: of one transaction at most: {alone}"
    finally:
        broker.stop()


def read_stream(channel, stream: str) -> Counter[bytes]:
    """Read all that a stream has."""
    count = channel.queue_declare(stream, passive=True).method.message_count
    messages = read(channel, stream, count, "first", prefetch=100)
    return Counter(body.encode() for body in bodies(messages))


def test_an_uncommitted_transaction_is_bounded(start_broker):
    limits = {"transaction_bytes_max": 100_000, "transaction_messages_max": 50}
    broker = start_broker(amqp={"limits": limits})
    with Peer.tcp(broker.address) as peer, Peer.tcp(broker.address) as other:
        peer.open()
        other.open()
        # By bytes: all channels of a connection together.
        for number in (1, 2):
            peer.channel(number)
            peer.call("tx.select", number)
            peer.expect("tx.select-ok", number)
        peer.publish("", "nowhere", bytes(60_000), {}, 1)
        peer.publish("", "nowhere", bytes(60_000), {}, 2)
        code, text, *_ = peer.expect_channel_close(2)
        assert code == 406
        assert "transactions of this connection hold" in text
        peer.call("tx.rollback", 1)
        peer.expect("tx.rollback-ok")
        # By number.
        for _ in range(51):
            peer.publish("", "nowhere", b"x", {}, 1)
        code, text, *_ = peer.expect_channel_close(1)
        assert code == 406
        assert "at most 50" in text
        # The bound of one does not affect the others.
        other.channel()
        other.call("queue.declare", exclusive=True)
        queue = other.expect("queue.declare-ok")["queue"]
        other.call("tx.select")
        other.expect("tx.select-ok")
        other.publish("", queue, b"here")
        other.call("tx.commit")
        other.expect("tx.commit-ok")
        other.call("basic.get", queue=queue, no_ack=True)
        assert other.expect("basic.get-ok").body == b"here"
        peer.leave()
        other.leave()


def test_many_uncommitted_transactions_block_no_other_client(start_broker):
    limits = {"memory_bytes_max": 2_500_000, "transaction_bytes_max": 1_500_000}
    broker = start_broker(amqp={"limits": limits})
    peers = []
    for _ in range(4):
        peer = Peer.tcp(broker.address).open()
        peers.append(peer)
        peer.channel()
        peer.call("tx.select")
        peer.expect("tx.select-ok")
        for _ in range(10):
            peer.publish("", "nowhere", bytes(100_000))
        # New ones continue; beyond the bound one of those that hold most is closed.
        peer.call("queue.declare", exclusive=True)
        peer.expect("queue.declare-ok")
    left = [peer for peer in peers if goes_on(peer)]
    assert len(left) == 2
    # Those without transactions go on, and those who hold something can commit it.
    with Peer.tcp(broker.address) as peer:
        peer.open()
        peer.channel()
        peer.call("queue.declare", exclusive=True)
        queue = peer.expect("queue.declare-ok")["queue"]
        peer.publish("", queue, b"here")
        peer.call("basic.get", queue=queue, no_ack=True)
        assert peer.expect("basic.get-ok").body == b"here"
        peer.leave()
    for peer in left:
        peer.call("tx.commit")
        peer.expect("tx.commit-ok")
        peer.leave()


def goes_on(peer: Peer) -> bool:
    """Return whether the broker still answers."""
    try:
        peer.call("queue.declare", exclusive=True)
        return peer.hear().name == "queue.declare-ok"
    except (ClosedError, OSError):
        return False
