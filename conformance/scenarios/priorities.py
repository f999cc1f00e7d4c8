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
    """What is dropped is what would be next, and that has the highest priority."""
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
