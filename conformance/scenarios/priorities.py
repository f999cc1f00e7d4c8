"""Messages that go before others, and consumers that do."""

from __future__ import annotations

from rig.amqp_script import Script

from scenarios import scenario

FIVE = {"x-max-priority": 5}


@scenario()
def priority_queue(s: Script) -> None:
    """The highest first, and within one in the order of publishing."""
    c = s.channel()
    queue = c.queue("q", arguments=FIVE)
    c.send(queue, "none")
    for body, priority in [("a", 2), ("b", 5), ("c", 2), ("d", 0), ("e", 5), ("f", 4)]:
        c.send(queue, body, priority=priority)
    c.count(queue)
    c.get(queue, no_ack=True)
    c.consume(queue, no_ack=True)
    c.deliveries(6)
    c.count(queue)


@scenario()
def priority_beyond_the_highest(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q", arguments={"x-max-priority": 3})
    c.send(queue, "three", priority=3)
    c.send(queue, "beyond", priority=255)
    c.send(queue, "two", priority=2)
    c.count(queue)
    c.tell_all(queue)


@scenario()
def priorities_there_can_be(s: Script) -> None:
    c = s.channel()
    for highest in (0, 1, 10, 255):
        queue = c.queue(f"q{highest}", arguments={"x-max-priority": highest})
        for priority in (0, 255, 1, 10):
            c.send(queue, str(priority), priority=priority)
        c.count(queue)
        c.tell_all(queue)


@scenario()
def priority_queue_declared_again(s: Script) -> None:
    c = s.channel()
    c.queue("q", arguments=FIVE)
    c.queue("q", arguments=FIVE)
    c.queue("q", arguments={"x-max-priority": 6})
    c = c.again()
    c.queue("q")
    c = c.again()
    c.queue("plain")
    c.queue("plain", arguments=FIVE)


@scenario()
def requeued_with_priority(s: Script) -> None:
    """Back to its place among those of its own priority."""
    c = s.channel()
    queue = c.queue("q", arguments=FIVE)
    for body, priority in [("a", 1), ("b", 5), ("c", 1), ("d", 5)]:
        c.send(queue, body, priority=priority)
    c.count(queue)
    for _ in range(3):
        c.get(queue)
    c.send(queue, "e", priority=5)
    c.send(queue, "f", priority=1)
    c.count(queue)
    c("basic.nack", delivery=3, multiple=True, requeue=True)
    c.count(queue)
    c.tell_all(queue)


@scenario()
def length_drops_the_most_urgent(s: Script) -> None:
    """The next message is dropped, and that has the highest priority."""
    c = s.channel()
    dead = c.queue("dead")
    to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    queue = c.queue("q", arguments={**FIVE, **to_dead, "x-max-length": 2})
    c("confirm.select")
    for body, priority in [("a", 5), ("b", 0), ("c", 0), ("d", 4)]:
        c.send(queue, body, priority=priority)
        c.confirms(1)
    c.count(queue)
    c.tell_all(queue)
    c.tell_all(dead)


@scenario()
def overflow_rejects_the_most_urgent(s: Script) -> None:
    c = s.channel()
    arguments = {**FIVE, "x-max-length": 1, "x-overflow": "reject-publish"}
    queue = c.queue("q", arguments=arguments)
    c("confirm.select")
    for body, priority in [("a", 0), ("b", 5)]:
        c.send(queue, body, priority=priority)
        c.confirms(1)
    c.count(queue)
    c.tell_all(queue)


@scenario()
def dead_letters_keep_their_priority(s: Script) -> None:
    c = s.channel()
    dead = c.queue("dead", arguments=FIVE)
    to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    queue = c.queue("q", arguments={**FIVE, **to_dead})
    for body, priority in [("a", 1), ("b", 5), ("c", 3)]:
        c.send(queue, body, priority=priority)
    c.count(queue)
    for tag in (1, 2, 3):
        c.get(queue)
        c("basic.reject", delivery=tag, requeue=False)
    c.count(dead)
    c.tell_all(dead)


@scenario()
def expiry_behind_the_more_urgent(s: Script) -> None:
    """A message expires when nothing more urgent is before it."""
    c = s.channel()
    dead = c.queue("dead")
    to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    queue = c.queue("q", arguments={**FIVE, **to_dead})
    clock = c.queue("clock", arguments=to_dead)
    c.consume(dead, no_ack=True)
    c.send(queue, "urgent", priority=5)
    c.send(queue, "old", expiration="1")
    c.send(clock, "tick", expiration="150")
    c.deliveries(1)
    c.count(queue)
    c.get(queue, no_ack=True)
    c.deliveries(1)
    c.count(queue)


@scenario()
def queue_makes_the_urgent_expire(s: Script) -> None:
    c = s.channel()
    dead = c.queue("dead", arguments=FIVE)
    to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    queue = c.queue("q", arguments={**FIVE, **to_dead, "x-message-ttl": 50})
    c.consume(dead, no_ack=True)
    c.send(queue, "urgent", priority=5)
    c.deliveries(1)
    c.count(queue)


@scenario()
def purge_of_all_priorities(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q", arguments=FIVE)
    for priority in (0, 1, 5):
        c.send(queue, str(priority), priority=priority)
    c.count(queue)
    c.get(queue)
    c("queue.purge", queue=queue)
    c.count(queue)
    c("basic.reject", delivery=1, requeue=True)
    c.get(queue)


@scenario()
def consumer_priority(s: Script) -> None:
    """One with a higher priority is given all while it takes messages."""
    c = s.channel()
    queue = c.queue("q")
    low, high, lower = (c.link.channel(number) for number in (2, 3, 4))
    low.consume(queue, "low")
    high("basic.qos", count=2)
    high.consume(queue, "high", arguments={"x-priority": 10})
    lower.consume(queue, "lower", arguments={"x-priority": -1})
    c.send(queue, "1", "2", "3", "4")
    high.deliveries(2)
    low.deliveries(2)
    high("basic.ack", delivery=2, multiple=True)
    c.count(queue)
    c.send(queue, "5", "6")
    high.deliveries(2)
    low.consume(queue, "lowest", arguments={"x-priority": -2147483648})
    low("basic.cancel", tag="low")
    c.send(queue, "7")
    lower.deliveries(1)
    lower("basic.cancel", tag="lower")
    c.send(queue, "8")
    low.deliveries(1)
    c.count(queue)


@scenario()
def consumers_of_equal_priority(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    one, two, three = (c.link.channel(number) for number in (2, 3, 4))
    one.consume(queue, "one", no_ack=True, arguments={"x-priority": 3})
    three.consume(queue, "three", no_ack=True, arguments={"x-priority": 1})
    two.consume(queue, "two", no_ack=True, arguments={"x-priority": 3})
    c.send(queue, "1", "2", "3", "4")
    one.deliveries(2)
    two.deliveries(2)
    c.count(queue)


@scenario()
def consumer_priority_that_cannot_be(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    for priority in ("high", True, None, {"a": 1}):
        c.consume(queue, arguments={"x-priority": priority})
        c = c.opened_again()


@scenario()
def consumer_priority_on_a_quorum_queue(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q", durable=True, arguments={"x-queue-type": "quorum"})
    low, high = c.link.channel(2), c.link.channel(3)
    low.consume(queue, "low", no_ack=True)
    high("basic.qos", count=1)
    high.consume(queue, "high", arguments={"x-priority": 1})
    c.send(queue, "1")
    high.deliveries(1)
    c.send(queue, "2")
    low.deliveries(1)


@scenario()
def successor_by_priority(s: Script) -> None:
    """The next single active consumer is the one with the highest priority."""
    c = s.channel()
    queue = c.queue("q", arguments={"x-single-active-consumer": True})
    one, two, three = (c.link.channel(number) for number in (2, 3, 4))
    one.consume(queue, "one", no_ack=True)
    two.consume(queue, "two", no_ack=True, arguments={"x-priority": 1})
    three.consume(queue, "three", no_ack=True, arguments={"x-priority": 5})
    c.send(queue, "1")
    one.deliveries(1)
    one("basic.cancel", tag="one")
    c.send(queue, "2")
    three.deliveries(1)
    three("basic.cancel", tag="three")
    c.send(queue, "3")
    two.deliveries(1)


@scenario()
def limit_of_all_consumers_and_automatic_ones(s: Script) -> None:
    """The limit holds back those that acknowledge nothing as well."""
    c = s.channel()
    held, automatic = c.queue("held"), c.queue("automatic")
    c("basic.qos", count=1, is_global=True)
    c.consume(held, "held")
    c.consume(automatic, "automatic", no_ack=True)
    d = c.link.channel(2)
    d.send(automatic, "1")
    c.deliveries(1)
    d.send(held, "2")
    c.deliveries(1)
    d.send(automatic, "3", "4")
    d.count(automatic)
    c("basic.ack", delivery=2)
    c.deliveries(2)
    d.count(automatic)
