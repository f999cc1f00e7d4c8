"""Queues of a replicated vhost larger than the memory of its nodes: the log has their middle."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pika
import pytest
from rig.nats import NatsServer
from rig.router import Router
from rig.waiting import await_true

from ledger.stage import (
    PERSISTENT,
    STREAM,
    at_owner,
    await_alarm,
    await_owner,
    connect,
    role,
    told,
)

LIMITS = {"memory_bytes_max": 8 << 20}
# Many megabytes go through a log that is synced, perhaps beside other suites.
PATIENCE_S = 120
pytestmark = pytest.mark.timeout(600)

BODY = b"x" * 1000
# More than a node may hold in memory.
COUNT = 12_000


def publish(channel, numbers: range, mode: int = 2, priorities: int = 1) -> None:
    """Publish numbered messages; the last one is confirmed, and so are all before it."""
    for number in numbers:
        properties = pika.BasicProperties(delivery_mode=mode, priority=number // 500 % priorities)
        channel.basic_publish("", "deep", b"%08d" % number + BODY, properties)
    channel.queue_declare("after", durable=True)
    channel.confirm_delivery()
    channel.basic_publish("", "after", b"", pika.BasicProperties(delivery_mode=2))


def take(node: Router, count: int) -> Iterator[int]:
    """Consume that many messages and acknowledge them; return their numbers."""
    with connect(node) as connection:
        channel = connection.channel()
        channel.basic_qos(prefetch_count=500)
        for got, (method, _, body) in enumerate(channel.consume("deep", inactivity_timeout=60), 1):
            assert method is not None, f"only {got - 1} of {count} came"
            yield int(body[:8])
            if got % 250 == 0 or got == count:
                channel.basic_ack(method.delivery_tag, multiple=True)
            if got == count:
                # An acknowledgement has no answer; the declaration behind it has one.
                channel.queue_declare("deep", passive=True)
                break


def begin(start, servers, nodes: list[Router], arguments: dict, **how: int) -> Router:
    """Fill a queue at the owner of two nodes; return the owner."""
    nodes += [start(servers, name, limits=LIMITS, keep_local=True) for name in ("node_a", "node_b")]

    def fill(owner: Router) -> None:
        with connect(owner) as connection:
            channel = connection.channel()
            channel.queue_declare("deep", durable=True, arguments=arguments)
            assert channel.queue_purge("deep") is not None
            publish(channel, range(COUNT), **how)

    owner, _ = at_owner(nodes, fill, PATIENCE_S)
    return owner


def other_of(nodes: list[Router], owner: Router) -> Router:
    return next(node for node in nodes if node is not owner)


def state(servers: list[NatsServer]) -> dict:
    """Return the state of the vhost's log."""
    with servers[0].client() as client:
        return client.ask(f"$JS.API.STREAM.INFO.{STREAM}", {})["state"]


def await_read(servers: list[NatsServer], nodes: list[Router]) -> None:
    """Wait until the standby has read what the owner has written, as its heartbeats say."""
    other = other_of(nodes, await_owner(nodes)).directory.name
    last = state(servers)["last_seq"]
    with servers[0].client() as client:
        client.subscribe("A1.=2F.beat")

        def is_read() -> bool:
            client.flush()
            told = [json.loads(payload) for _, payload in client.messages]
            told = [beat for beat in told if beat["node"].split("/")[0] == other]
            return any(int(beat["sequence"], 16) >= last for beat in told)

        await_true("the standby has read along", is_read, PATIENCE_S)


@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize("mode", [2, 1], ids=["persistent", "transient"])
def test_a_queue_larger_than_memory_outlives_its_owner(nats, start, kind: str, mode: int) -> None:
    servers = nats()
    nodes: list[Router] = []
    # With a limit, messages that return to a quorum queue keep their place.
    limit = {"x-delivery-limit": 100} if kind == "quorum" else {}
    owner = begin(start, servers, nodes, {"x-queue-type": kind, **limit}, mode=mode)
    other = other_of(nodes, owner)
    await_read(servers, nodes)
    for node in nodes:
        assert node.metric("amqp_memory_bytes") < LIMITS["memory_bytes_max"]
    first = list(take(owner, 4_000))
    assert first == list(range(4_000))
    owner.kill()
    assert await_owner([other], PATIENCE_S) is other
    # Without a confirm a transient message need not be there; what is there is in order.
    with connect(other) as connection:
        left = connection.channel().queue_declare("deep", passive=True).method.message_count
    if mode == 2 or kind == "quorum":
        assert left >= COUNT - 4_000
    rest = list(take(other, left))
    assert rest == sorted(rest)
    assert rest[-1] == COUNT - 1
    if mode == 2 or kind == "quorum":
        assert set(rest) >= set(range(4_000, COUNT))
    assert other.metric("amqp_memory_bytes") < LIMITS["memory_bytes_max"]


def test_short_queues_larger_than_memory_outlive_their_owner(nats, start) -> None:
    limits = {"memory_bytes_max": 2 << 20}
    queues, count = [f"short.{nth}" for nth in range(15)], 700
    servers = nats()
    nodes = [start(servers, name, limits=limits) for name in ("node_a", "node_b")]

    def fill(owner: Router) -> None:
        with connect(owner) as connection:
            channel = connection.channel()
            for queue in queues:
                channel.queue_declare(queue, durable=True)
                channel.queue_purge(queue)
                for number in range(count):
                    channel.basic_publish("", queue, b"%08d" % number, PERSISTENT)
            publish(channel, range(0))

    owner, _ = at_owner(nodes, fill, PATIENCE_S)
    await_read(servers, nodes)

    def is_left_to_the_log() -> bool:
        half = limits["memory_bytes_max"] / 2
        return all(node.metric("amqp_memory_bytes") < half for node in nodes)

    await_true("messages have left the memory of both nodes", is_left_to_the_log, PATIENCE_S)
    owner.kill()
    other = other_of(nodes, owner)
    assert await_owner([other], PATIENCE_S) is other
    with connect(other) as connection:
        channel = connection.channel()
        for queue in queues:
            channel.queue_declare(queue, passive=True)
            taken = channel.consume(queue, auto_ack=True, inactivity_timeout=60)
            assert [int(next(taken)[2]) for _ in range(count)] == list(range(count))
            channel.cancel()
    assert other.metric("amqp_memory_bytes") < limits["memory_bytes_max"]


@pytest.mark.parametrize("stops", [True, False], ids=["handed over", "killed"])
def test_priorities_and_bounds_hold_for_messages_in_the_log(nats, start, stops: bool) -> None:
    priorities = 4
    servers = nats()
    nodes: list[Router] = []
    bounds = {"x-max-priority": priorities - 1, "x-max-length": COUNT}
    owner = begin(start, servers, nodes, bounds, priorities=priorities)
    other = other_of(nodes, owner)
    await_read(servers, nodes)
    if stops:
        owner.stop()
    else:
        owner.kill()
    assert await_owner([other], PATIENCE_S) is other
    with connect(other) as connection:
        channel = connection.channel()
        declared = channel.queue_declare("deep", passive=True)
        assert declared.method.message_count == COUNT
        # One too many: the first of the highest priority is dropped for it.
        publish(channel, range(COUNT, COUNT + 1), priorities=priorities)
        declared = channel.queue_declare("deep", passive=True)
        assert declared.method.message_count == COUNT
    expected = sorted(range(COUNT + 1), key=lambda n: (-(n // 500 % priorities), n))
    assert list(take(other, COUNT)) == expected[1:]


def test_a_purge_beside_a_held_message_is_in_the_log(nats, start) -> None:
    servers = nats()
    nodes: list[Router] = []
    owner = begin(start, servers, nodes, {})
    other = other_of(nodes, owner)
    with connect(owner) as connection:
        channel = connection.channel()
        held, _, body = channel.basic_get("deep")
        assert int(body[:8]) == 0
        assert channel.queue_purge("deep").method.message_count == COUNT - 1
        publish(channel, range(COUNT, COUNT + 10))
        channel.basic_nack(held.delivery_tag)
        channel.queue_declare("deep", passive=True)
    await_read(servers, nodes)
    owner.kill()
    assert await_owner([other], PATIENCE_S) is other
    assert list(take(other, 11)) == [0, *range(COUNT, COUNT + 10)]
    with connect(other) as connection:
        connection.channel().queue_delete("deep")


def test_the_copy_of_an_owner_has_the_messages_that_only_the_log_had(nats, start) -> None:
    servers = nats()
    nodes: list[Router] = []
    owner = begin(start, servers, nodes, {})
    other = other_of(nodes, owner)
    await_read(servers, nodes)
    # An earlier copy is deleted once the next one is whole.
    earlier = other.directory / "amqp.store.replicated" / "=2F.0.store"
    earlier.mkdir(parents=True)
    owner.kill()
    assert await_owner([other], PATIENCE_S) is other
    assert list(take(other, 1_000)) == list(range(1_000))
    await_true("the copy is whole", lambda: not earlier.exists(), PATIENCE_S)
    other.stop()
    with servers[0].client() as client:
        assert client.ask(f"$JS.API.STREAM.DELETE.{STREAM}", {})["success"]
    again = start(servers, other.directory.name, limits=LIMITS)
    await_alarm(again, "its log is missing")
    told(again, "amqp", "recover", "/", "--from", "store", "--yes")
    assert await_owner([again], PATIENCE_S) is again
    assert list(take(again, COUNT - 1_000)) == list(range(1_000, COUNT))


def test_delayed_messages_larger_than_memory_outlive_the_owner(nats, start) -> None:
    servers = nats()
    nodes = [start(servers, name, limits=LIMITS) for name in ("node_a", "node_b")]

    def fill(owner: Router) -> None:
        with connect(owner) as connection:
            channel = connection.channel()
            kind = {"x-delayed-type": "direct"}
            channel.exchange_declare("late", "x-delayed-message", durable=True, arguments=kind)
            channel.queue_declare("deep", durable=True)
            channel.queue_purge("deep")
            channel.queue_bind("deep", "late", "deep")
            for number in range(4_000):
                # They are due once the next owner has begun, in another order than they come.
                headers = {"x-delay": 12_000 - number % 1000}
                properties = pika.BasicProperties(delivery_mode=2, headers=headers)
                channel.basic_publish("late", "deep", b"%08d" % number + BODY, properties)
            channel.confirm_delivery()
            channel.basic_publish("late", "deep", b"%08d" % 4_000 + BODY, properties)

    owner, _ = at_owner(nodes, fill, PATIENCE_S)
    await_read(servers, nodes)
    owner.kill()
    other = other_of(nodes, owner)
    assert await_owner([other], PATIENCE_S) is other
    assert set(take(other, 4_001)) == set(range(4_001))


def answer_reads(servers: list[NatsServer], is_answering: bool) -> None:
    """Let the servers answer reads of the log, or not; what is written they accept."""
    with servers[0].client() as client:
        config = client.ask(f"$JS.API.STREAM.INFO.{STREAM}", {})["config"]
        config["allow_direct"] = is_answering
        assert "error" not in client.ask(f"$JS.API.STREAM.UPDATE.{STREAM}", config)


def taken_over_without_reads(start, servers: list[NatsServer]) -> Router:
    """Have a node take over a deep queue while no server answers reads; return the node."""
    nodes: list[Router] = []
    owner = begin(start, servers, nodes, {})
    other = other_of(nodes, owner)
    await_read(servers, nodes)
    answer_reads(servers, False)
    owner.kill()
    assert await_owner([other], PATIENCE_S) is other
    return other


def test_pages_and_the_copy_wait_for_servers_that_do_not_answer(nats, start) -> None:
    servers = nats()
    owner = taken_over_without_reads(start, servers)
    copies = owner.directory / "amqp.store.replicated"
    (partial,) = copies.glob("*.store.partial")
    with connect(owner) as connection:
        channel = connection.channel()
        assert channel.queue_declare("deep", passive=True).method.message_count == COUNT
    alarm = "the next messages of queue 'deep' in vhost '/' cannot be read"

    def is_told() -> bool:
        # A node that loses its server meanwhile owns the vhost again once it can read the log.
        return alarm in owner.health()[1] or role(owner) != "owner"

    await_true(alarm, is_told, PATIENCE_S)
    answer_reads(servers, True)
    assert await_owner([owner], PATIENCE_S) is owner
    assert list(take(owner, COUNT)) == list(range(COUNT))
    await_true("the copy is whole", lambda: not partial.exists(), PATIENCE_S)
    await_true("it is ready", lambda: owner.health() == (200, "ok\n"))


def test_a_copy_that_is_not_whole_is_taken_by_name_alone(nats, start) -> None:
    servers = nats()
    owner = taken_over_without_reads(start, servers)
    owner.stop()
    store = owner.directory / "amqp.store"
    release = [str(owner.program), "amqp", "release", "/", "--store", str(store), "--keep-log"]
    done = subprocess.run(release, capture_output=True, text=True, timeout=60)
    assert "is not a whole copy of the vhost" in done.stderr
    assert done.returncode == 2
    with servers[0].client() as client:
        assert client.ask(f"$JS.API.STREAM.DELETE.{STREAM}", {})["success"]
    again = start(servers, owner.directory.name, limits=LIMITS)
    await_alarm(again, "its log is missing")
    said = told(again, "amqp", "recover", "/", "--from", "store", "--yes", code=1)
    assert "is not known to be whole" in said


def test_a_log_is_compacted_although_it_begins_with_a_deep_queue(nats, start) -> None:
    servers = nats()
    nodes: list[Router] = []
    owner = begin(start, servers, nodes, {})
    other = other_of(nodes, owner)

    filled = state(servers)["last_seq"]
    # More than the 64 MiB that a log may have whatever is in it.
    with connect(owner) as connection:
        channel = connection.channel()
        channel.queue_declare("busy", durable=True)
        channel.confirm_delivery()
        for _ in range(40):
            for _ in range(20):
                channel.basic_publish("", "busy", b"y" * 100_000, PERSISTENT)
            channel.queue_purge("busy")
    await_true(
        "the front of the log was written again", lambda: state(servers)["first_seq"] > filled
    )
    await_read(servers, nodes)
    owner.kill()
    assert await_owner([other], PATIENCE_S) is other
    assert list(take(other, COUNT)) == list(range(COUNT))


def test_interleaved_queues_are_drained_together_and_in_order(nats, start) -> None:
    queues = [f"deep{number}" for number in range(6)]
    node = start(nats(), "node_a", limits=LIMITS)
    await_owner([node], PATIENCE_S)
    with connect(node) as connection:
        channel = connection.channel()
        for queue in queues:
            channel.queue_declare(queue, durable=True)
        for number in range(COUNT):
            body = b"%08d" % number + BODY
            channel.basic_publish("", queues[number % len(queues)], body, PERSISTENT)
        channel.queue_declare("after", durable=True)
        channel.confirm_delivery()
        channel.basic_publish("", "after", b"", PERSISTENT)
        assert node.metric("amqp_memory_bytes") < LIMITS["memory_bytes_max"]
        taken: dict[str, list[int]] = {queue: [] for queue in queues}

        def on_message(_, method, __, body) -> None:
            taken[method.routing_key].append(int(body[:8]))
            channel.basic_ack(method.delivery_tag)

        channel.basic_qos(prefetch_count=50)
        for queue in queues:
            channel.basic_consume(queue, on_message)

        def is_drained() -> bool:
            connection.process_data_events(0.1)
            return sum(map(len, taken.values())) == COUNT

        await_true("all have come", is_drained, PATIENCE_S)
    for number, queue in enumerate(queues):
        assert taken[queue] == list(range(number, COUNT, len(queues)))
