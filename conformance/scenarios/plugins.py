"""Exchanges of RabbitMQ's plugins: consistent hash, modulus hash, random, recent history."""

from __future__ import annotations

from rig.amqp_script import Channel, Script

from scenarios import scenario

KEYS = ("", "a", "key-1", "order-42", "0123456789ab", "0123456789abc", "naïve")
# One client is enough for what a broker chooses; `by-hand` sends every kind of header.
BY_HAND = "by-hand"


def three(channel: Channel) -> list[str]:
    """Declare three queues."""
    return [channel.queue(name) for name in "abc"]


def chosen(channel: Channel, exchange: str, queues: list[str], *sent: tuple[str, dict]) -> None:
    """Publish with these keys and properties, then say which messages each queue has got."""
    channel("confirm.select")
    for number, (key, more) in enumerate(sent):
        channel.send(key, f"{number} {key}", exchange=exchange, **more)
    channel.confirms(len(sent))
    for queue in queues:
        channel.tell_all(queue)


@scenario()
def consistent_hash(s: Script) -> None:
    c = s.channel()
    exchange = c.exchange("x", "x-consistent-hash")
    queues = three(c)
    for weight, queue in enumerate(queues, 1):
        c.bind(queue, exchange, str(weight))
    keys = [*KEYS, *(f"key-{number}" for number in range(100))]
    chosen(c, exchange, queues, *((key, {}) for key in keys))
    # Without the second one the places of the third move down.
    c("queue.unbind", queue=queues[1], exchange=exchange, routing_key="2")
    chosen(c, exchange, queues, *((key, {}) for key in keys))


@scenario(BY_HAND)
def consistent_hash_of_a_header(s: Script) -> None:
    c = s.channel()
    exchange = c.exchange("x", "x-consistent-hash", arguments={"hash-header": "h"})
    queues = three(c)
    for queue in queues:
        c.bind(queue, exchange, "7")
    values = ["a", "5", "", 5, -5, 1 << 40, -(1 << 40), 1.5, True, False, ["a", 1], {"k": "v"}]
    sent = [("k", {"headers": {"h": value}}) for value in values]
    chosen(c, exchange, queues, ("k", {}), ("other", {"headers": {"i": 1}}), *sent)


@scenario()
def consistent_hash_of_a_property(s: Script) -> None:
    c = s.channel()
    queues = three(c)
    for name in ("message_id", "correlation_id", "timestamp"):
        exchange = c.exchange(name, "x-consistent-hash", arguments={"hash-property": name})
        for queue in queues:
            c.bind(queue, exchange, "5")
        values = [1_700_000_000 + n for n in range(9)] if name == "timestamp" else KEYS[1:]
        chosen(c, exchange, queues, ("k", {}), *(("k", {name: value}) for value in values))


@scenario()
def consistent_hash_refuses(s: Script) -> None:
    c = s.channel()
    for number, arguments in enumerate(
        (
            {"hash-property": "reply_to"},
            {"hash-header": "h", "hash-property": "message_id"},
        )
    ):
        c.exchange(f"x{number}", "x-consistent-hash", arguments=arguments)
        c = c.again()
    exchange = c.exchange("x", "x-consistent-hash", arguments={"hash-header": "h"})
    # Its arguments are not compared.
    c.exchange("x", "x-consistent-hash", arguments={"hash-property": "nope"})
    c.exchange("x", "x-random")
    c = c.again()
    queue = c.queue("q")
    for key in ("", "abc", "1.0", "0", "-1", " 5"):
        c.bind(queue, exchange, key)
        c = c.again()
    c("queue.unbind", queue=queue, exchange=exchange, routing_key="abc")
    c.bind(queue, exchange, "+05")
    chosen(c, exchange, [queue], ("k", {}))


@scenario()
def consistent_hash_bound_twice(s: Script) -> None:
    """The second binding of a queue adds nothing, whatever its weight is."""
    c = s.channel()
    exchange = c.exchange("x", "x-consistent-hash")
    queues = three(c)
    for queue, weight in zip(queues, "123", strict=True):
        c.bind(queue, exchange, weight)
    c.bind(queues[0], exchange, "9")
    chosen(c, exchange, queues, *((key, {}) for key in KEYS))


@scenario()
def consistent_hash_to_an_exchange(s: Script) -> None:
    c = s.channel()
    exchange = c.exchange("x", "x-consistent-hash")
    other = c.exchange("other", "direct")
    queues = three(c)
    c.bind(queues[0], exchange, "2")
    c("exchange.bind", destination=other, source=exchange, routing_key="3")
    for key in KEYS[:4]:
        c.bind(queues[1], other, key)
    chosen(c, exchange, queues, *((key, {}) for key in KEYS))


@scenario()
def modulus_hash(s: Script) -> None:
    c = s.channel()
    exchange = c.exchange("x", "x-modulus-hash")
    queues = three(c)
    # By key and then by name, in whatever order they come.
    for queue in reversed(queues):
        c.bind(queue, exchange, "k")
    keys = [*KEYS, *(f"key-{number}" for number in range(50))]
    chosen(c, exchange, queues, *((key, {}) for key in keys))
    c.bind(queues[2], exchange, "before")
    chosen(c, exchange, queues, *((key, {}) for key in keys))
    copies = {"headers": {"CC": ["one", "two"], "BCC": ["three"]}}
    chosen(c, exchange, queues, *((key, copies) for key in keys))


@scenario()
def random(s: Script) -> None:
    c = s.channel()
    exchange = c.exchange("x", "x-random")
    queue = c.queue("q")
    c.bind(queue, exchange, "k")
    c.bind(queue, exchange, "l")
    chosen(c, exchange, [queue], *((key, {}) for key in KEYS))


@scenario()
def recent_history(s: Script) -> None:
    c = s.channel()
    exchange = c.exchange("x", "x-recent-history", arguments={"x-recent-history-length": 3})
    one, two = c.queue("one"), c.queue("two")
    c.bind(one, exchange, "k")
    left_out = {"headers": {"x-recent-history-no-store": True}}
    chosen(c, exchange, [one], *((key, {}) for key in KEYS), ("secret", left_out))
    c.bind(two, exchange, "k")
    c.tell_all(two)
    c.bind(two, exchange, "k")
    c.count(two)
    c.bind(two, exchange, "another")
    c.tell_all(two)
    chosen(c, exchange, [one, two], ("k", {}))


@scenario()
def recent_history_before_the_answer(s: Script) -> None:
    c = s.channel()
    exchange = c.exchange("x", "x-recent-history")
    queue = c.queue("q")
    c.consume(queue, no_ack=True)
    chosen(c, exchange, [], *((str(number), {}) for number in range(25)))
    c.bind(queue, exchange)
    c.deliveries(20)


@scenario()
def recent_history_refuses(s: Script) -> None:
    c = s.channel()
    for length in (0, -1, "5", True):
        c.exchange("x", "x-recent-history", arguments={"x-recent-history-length": length})
        c = c.again()
    c.exchange("x", "x-recent-history")
    c.exchange("x", "x-recent-history", arguments={"x-recent-history-length": 7})
