"""Combinations of two features."""

from __future__ import annotations

from rig.amqp_script import Script

from scenarios import scenario


@scenario()
def queue_deleted_with_deliveries_out(s: Script) -> None:
    """Deliveries may still be acknowledged; nothing comes back."""
    c = s.channel()
    queue = c.queue("q")
    c.send(queue, *"123")
    c.get(queue)
    c.get(queue)
    c.get(queue)
    c("queue.delete", queue=queue)
    queue = c.queue("q")
    c("basic.ack", delivery=1)
    c("basic.nack", delivery=2, requeue=True)
    c("basic.reject", delivery=3, requeue=False)
    c.count(queue)
    c("basic.ack", delivery=3)
    c.closed()


@scenario()
def acknowledge_across_queues(s: Script) -> None:
    """Multiple takes in every queue of the channel."""
    c = s.channel()
    one, two = c.queue("one"), c.queue("two")
    c.send(one, "a", "b")
    c.send(two, "c", "d")
    for queue in (one, two, one, two):
        c.get(queue)
    c("basic.nack", delivery=3, multiple=True, requeue=True)
    c.count(one)
    c.count(two)
    c("basic.ack", delivery=0, multiple=True)
    c.get(one)
    c.get(two)


@scenario()
def long_backlog_in_order(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c("confirm.select")
    total = 2000
    c.send(queue, *(str(number) for number in range(total)))
    c.confirms(total)
    c("basic.qos", count=50)
    c.consume(queue)
    waiting = c.link.driver.events[1]
    seen: list[int] = []
    while len(seen) < total:
        c.link.driver.await_true(lambda: bool(waiting))
        taken = c.link.driver.in_order(list(waiting))
        waiting.clear()
        seen += [int(event.body) for event in taken]
        c.link.driver.call(1, "basic.ack", delivery=len(seen), multiple=True)
    s.tell("in order", seen == list(range(total)))
    c.count(queue)


@scenario()
def requeued_to_another_consumer(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c("basic.qos", count=1)
    c.consume(queue, "first")
    c.send(queue, "1")
    c.deliveries(1)
    d = s.channel()
    d.consume(queue, "second")
    c("basic.cancel", tag="first")
    c("basic.reject", delivery=1, requeue=True)
    d.deliveries(1)


@scenario()
def redelivered_only_if_delivered(s: Script) -> None:
    """Messages behind a prefetch bound are not delivered yet."""
    c = s.channel()
    queue = c.queue("q")
    c.send(queue, "1", "2")
    d = c.link.channel(2)
    d("basic.qos", count=1)
    d.consume(queue)
    d.deliveries(1)
    d("channel.close")
    c.get(queue)
    c.get(queue)


@scenario()
def confirm_for_many_queues(s: Script) -> None:
    c = s.channel()
    exchange = c.exchange("x", "fanout")
    for number in range(5):
        durable = {"durable": True} if number % 2 else {}
        c.bind(c.queue(f"q{number}", **durable), exchange)
    c("confirm.select")
    c.send("", "1", exchange=exchange, delivery_mode=2, mandatory=True)
    c.send("", "2", exchange=exchange, delivery_mode=1, mandatory=True)
    c.confirms(2)
    for number in range(5):
        c.tell_all(s.of(f"q{number}"))


@scenario()
def confirms_of_two_channels(s: Script) -> None:
    """Each counts for itself, from one."""
    c = s.channel()
    queue = c.queue("q")
    d = c.link.channel(2)
    c("confirm.select")
    d("confirm.select")
    c.send(queue, "1", "2")
    d.send(queue, "3")
    c.confirms(2)
    d.confirms(1)


@scenario()
def expires_while_held_and_requeued(s: Script) -> None:
    """A time of its own goes on while it is held."""
    c = s.channel()
    dead = c.queue("dead")
    to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    queue = c.queue("q", arguments=to_dead)
    c.consume(dead, "dead", no_ack=True)
    c.send(queue, "held", expiration="50")
    c.get(queue)
    # So long that it is over.
    clock = c.queue("clock", arguments={**to_dead, "x-message-ttl": 150})
    c.send(clock, "tick")
    c.deliveries(1)
    c("basic.reject", delivery=1, requeue=True)
    c.deliveries(1)


@scenario()
def length_and_dead_letters_of_the_same_queue(s: Script) -> None:
    """A queue whose dead letters come back to itself."""
    c = s.channel()
    queue = s.of("q")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue}
    c.queue("q", arguments=arguments)
    c.send(queue, "1", "2")
    c.get(queue)
    c("basic.reject", delivery=1, requeue=False)
    c.count(queue)
    c.get(queue)
    c.get(queue)


@scenario()
def exchange_deleted_with_bindings(s: Script) -> None:
    c = s.channel()
    exchange = c.exchange("x", "topic")
    queue = c.queue("q")
    c.bind(queue, exchange, "#")
    c("exchange.delete", exchange=exchange)
    c.exchange("x", "topic")
    # The new one of that name has no bindings.
    c.send("a", "1", exchange=exchange, mandatory=True)
    c.events(1, "return")
    c.count(queue)


@scenario()
def queue_deleted_with_bindings(s: Script) -> None:
    c = s.channel()
    exchange = c.exchange("x", "direct")
    queue = c.queue("q")
    c.bind(queue, exchange, "k")
    c("queue.delete", queue=queue)
    queue = c.queue("q")
    c.send("k", "1", exchange=exchange, mandatory=True)
    c.events(1, "return")
    c.count(queue)


@scenario()
def binding_survives_what_it_is_bound_to_twice(s: Script) -> None:
    c = s.channel()
    exchange = c.exchange("x", "topic")
    queue = c.queue("q")
    for key in ("a.#", "a.*", "*.b"):
        c.bind(queue, exchange, key)
    c.send("a.b", "once", exchange=exchange)
    c.tell_all(queue)
    c("queue.unbind", queue=queue, exchange=exchange, routing_key="a.#")
    c.send("a.b", "still", exchange=exchange)
    c.send("a", "not any more", exchange=exchange, mandatory=True)
    c.events(1, "return")
    c.tell_all(queue)


@scenario()
def cancelled_by_deletion_with_other_consumers(s: Script) -> None:
    """All of them are notified."""
    c = s.channel()
    queue = c.queue("q")
    c.consume(queue, "a")
    d = s.channel()
    d.consume(queue, "b")
    e = s.channel()
    e("queue.delete", queue=queue)
    c.events(1, "cancel")
    d.events(1, "cancel")


@scenario("by-hand")
def names_of_what_is_longest(s: Script) -> None:
    c = s.channel()
    long = "k" * 255
    queue = c.queue("q")
    exchange = c.exchange("x", "direct")
    c.bind(queue, exchange, long)
    c.send(long, "1", exchange=exchange)
    c.get(queue, no_ack=True)
    c.consume(queue, "t" * 255)
    c.send(queue, "2")
    c.deliveries(1)


@scenario("by-hand")
def large_headers(s: Script) -> None:
    """As long as a frame can take, in one piece."""
    c = s.channel()
    queue = c.queue("q")
    c.send(queue, "1", headers={"long": "x" * 100_000})
    (event,) = [c.link.driver.call(1, "basic.get", queue=queue, no_ack=True)["event"]]
    s.tell(len(event.properties["headers"]["long"]))
