"""Bounds of queues, and messages that expire."""

from __future__ import annotations

from rig.amqp_script import Channel, Script

from scenarios import scenario


def rest(channel: Channel, queue: str) -> None:
    """Write down everything in a queue."""
    while channel.get(queue, no_ack=True):
        pass


@scenario()
def length_drops_the_head(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q", arguments={"x-max-length": 3})
    c("confirm.select")
    c.send(queue, *"12345")
    c.confirms(5)
    c.count(queue)
    rest(c, queue)


@scenario()
def length_counts_what_is_ready(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q", arguments={"x-max-length": 2})
    c.send(queue, *"12")
    c.get(queue)
    c.get(queue)
    c.send(queue, *"345")
    c.count(queue)
    # A requeued message may be the next to drop.
    c("basic.nack", delivery=2, multiple=True, requeue=True)
    c.count(queue)
    rest(c, queue)


@scenario()
def length_in_octets(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q", arguments={"x-max-length-bytes": 10})
    c.send(queue, "1234", "5678", "90ab")
    c.count(queue)
    rest(c, queue)
    # One that alone is too long does not stay.
    c.send(queue, "x" * 11)
    c.count(queue)


@scenario()
def length_of_nothing(s: Script) -> None:
    """A queue that keeps nothing still serves consumers."""
    c = s.channel()
    queue = c.queue("q", arguments={"x-max-length": 0})
    c("confirm.select")
    c.send(queue, "lost")
    c.confirms(1)
    c.count(queue)
    c.consume(queue)
    c.send(queue, "delivered")
    c.deliveries(1)


@scenario()
def overflow_rejects(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q", arguments={"x-max-length": 2, "x-overflow": "reject-publish"})
    c("confirm.select")
    # One by one: what is rejected is decided when it comes.
    for body in "1234":
        c.send(queue, body)
        c.confirms(1)
    c.send(queue, "5", mandatory=True)
    c.confirms(1)
    rest(c, queue)
    c.send(queue, "6")
    c.confirms(1)
    c.count(queue)


@scenario()
def overflow_rejects_silently(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    c.send(queue, "1")
    c.count(queue)
    c.send(queue, "2", mandatory=True)
    c.nothing_more(queue)
    rest(c, queue)


@scenario()
def overflow_in_one_of_two(s: Script) -> None:
    """One that rejects is enough for a nack; the other one keeps its copy."""
    c = s.channel()
    exchange = c.exchange("x", "fanout")
    full = c.queue("full", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    free = c.queue("free")
    c.bind(full, exchange)
    c.bind(free, exchange)
    c("confirm.select")
    for body in "12":
        c.send("", body, exchange=exchange)
        c.confirms(1)
    rest(c, full)
    rest(c, free)


@scenario()
def message_expires(s: Script) -> None:
    c = s.channel()
    dead = c.queue("dead")
    to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    queue = c.queue("q", arguments=to_dead)
    c.consume(dead, no_ack=True)
    c.send(queue, "1", expiration="50")
    c.deliveries(1)
    c.count(queue)


@scenario()
def queue_makes_messages_expire(s: Script) -> None:
    c = s.channel()
    dead = c.queue("dead")
    to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    queue = c.queue("q", arguments={**to_dead, "x-message-ttl": 50})
    c.consume(dead, no_ack=True)
    c.send(queue, "1", "2")
    c.deliveries(2)
    # The shorter of the two counts.
    slow = c.queue("slow", arguments={**to_dead, "x-message-ttl": 600_000})
    c.send(slow, "3", expiration="50")
    c.deliveries(1)
    c.count(slow)


@scenario()
def expiry_at_the_head(s: Script) -> None:
    """A message expires when it comes to the head, not behind one that does not."""
    c = s.channel()
    dead = c.queue("dead")
    to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    queue = c.queue("q", arguments=to_dead)
    clock = c.queue("clock", arguments=to_dead)
    c.consume(dead, no_ack=True)
    c.send(queue, "first", expiration="600000")
    c.send(queue, "second", expiration="1")
    c.send(clock, "tick", expiration="150")
    c.deliveries(1)
    c.count(queue)
    c.get(queue, no_ack=True)
    c.deliveries(1)
    c.count(queue)


@scenario()
def expires_at_once(s: Script) -> None:
    """With a time of nothing a message is for who waits already."""
    c = s.channel()
    queue = c.queue("q", arguments={"x-message-ttl": 0})
    c.send(queue, "nobody waits")
    c.count(queue)
    c.get(queue)
    other = c.queue("other")
    c.send(other, "nobody either", expiration="0")
    c.get(other)
    c.consume(queue)
    c.send(queue, "delivered")
    c.deliveries(1)
    # Back in the queue, its time is over.
    c("basic.cancel", tag="c")
    c("basic.nack", delivery=1, requeue=True)
    c.get(queue)


@scenario()
def delivered_does_not_expire(s: Script) -> None:
    c = s.channel()
    dead = c.queue("dead")
    to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    queue = c.queue("q", arguments={**to_dead, "x-message-ttl": 200})
    c.consume(dead, "dead", no_ack=True)
    c.send(queue, "held", "left")
    c.get(queue)
    # The other one has gone: so much time is over.
    c.deliveries(1)
    c("basic.nack", delivery=1, requeue=True)
    c.deliveries(1)


@scenario()
def priorities_are_only_a_property(s: Script) -> None:
    """In a queue without priorities they change nothing."""
    c = s.channel()
    queue = c.queue("q")
    c.send(queue, "low", priority=0)
    c.send(queue, "high", priority=9)
    rest(c, queue)


def one_by_one(channel: Channel, queue: str, *bodies: str) -> None:
    """Publish each once the one before is answered; then write down everything in the queue."""
    channel("confirm.select")
    for body in bodies:
        channel.send(queue, body)
        channel.confirms(1)
    rest(channel, queue)


@scenario()
def quorum_overflow_rejects(s: Script) -> None:
    """A quorum queue refuses once it is over its bound: it takes one message more."""
    c = s.channel()
    rejects = {"x-queue-type": "quorum", "x-overflow": "reject-publish"}
    for length in (0, 2):
        arguments = {**rejects, "x-max-length": length}
        queue = c.queue(f"length {length}", durable=True, arguments=arguments)
        one_by_one(c, queue, *"12345")
    arguments = {**rejects, "x-max-length-bytes": 100}
    queue = c.queue("bytes", durable=True, arguments=arguments)
    one_by_one(c, queue, *(str(number) * 30 for number in range(6)))
    large = c.queue("large", durable=True, arguments=arguments)
    one_by_one(c, large, "x" * 200, "y")


@scenario()
def quorum_overflow_with_dead_letters_drops_the_head(s: Script) -> None:
    c = s.channel()
    dead = c.queue("dead")
    arguments = {
        "x-queue-type": "quorum",
        "x-max-length": 2,
        "x-overflow": "reject-publish-dlx",
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": dead,
    }
    queue = c.queue("q", durable=True, arguments=arguments)
    c.consume(dead, no_ack=True)
    c("confirm.select")
    for body in "1234":
        c.send(queue, body)
        c.confirms(1)
    c.deliveries(2)
    rest(c, queue)
