"""Consumers, prefetch, acknowledgements, redelivery."""

from __future__ import annotations

from rig.amqp_script import Script

from scenarios import scenario

BY_HAND = "by-hand"


@scenario()
def get_and_acknowledge(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c.get(queue)
    c.send(queue, "1", "2", "3")
    c.get(queue)
    c.get(queue)
    c.get(queue, no_ack=True)
    c.get(queue)
    c("basic.ack", delivery=2)
    c.count(queue)
    c("basic.nack", delivery=1, requeue=True)
    c.get(queue)


@scenario()
def unknown_delivery_tag(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c("basic.ack", delivery=1)
    c.closed()
    for method, more in [
        ("basic.ack", {"delivery": 7}),
        ("basic.ack", {"delivery": 7, "multiple": True}),
        ("basic.nack", {"delivery": 8}),
        ("basic.reject", {"delivery": 9}),
        ("basic.ack", {"delivery": 0}),
    ]:
        c = c.again()
        c(method, **more)
        c.closed()
    # Twice is once too often, and what was delivered goes back.
    c = c.again()
    c.send(queue, "1", "2")
    c.get(queue)
    c.get(queue)
    c("basic.ack", delivery=1)
    c("basic.ack", delivery=1)
    c.closed()
    c = c.again()
    c.get(queue)
    c.count(queue)


@scenario()
def acknowledge_without_acks(s: Script) -> None:
    """A delivery that needs no acknowledgement has no tag to acknowledge."""
    c = s.channel()
    queue = c.queue("q")
    c.send(queue, "1")
    c.get(queue, no_ack=True)
    c("basic.ack", delivery=1)
    c.closed()


@scenario()
def acknowledge_all(s: Script) -> None:
    """Multiple with tag 0 is everything, also when there is nothing."""
    c = s.channel()
    queue = c.queue("q")
    c.send(queue, "1", "2", "3", "4", "5")
    for _ in range(5):
        c.get(queue)
    c("basic.ack", delivery=2, multiple=True)
    c("basic.nack", delivery=4, multiple=True, requeue=True)
    c.count(queue)
    c.get(queue)
    c.get(queue)
    c("basic.ack", delivery=0, multiple=True)
    c("basic.ack", delivery=0, multiple=True)
    c("basic.nack", delivery=0, multiple=True, requeue=True)
    c.count(queue)


@scenario()
def requeue_keeps_the_place(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c.send(queue, *"123456")
    for _ in range(4):
        c.get(queue)
    c("basic.reject", delivery=3, requeue=True)
    c("basic.nack", delivery=2, requeue=True)
    c("basic.reject", delivery=1, requeue=False)
    for _ in range(5):
        c.get(queue)


@scenario()
def channel_end_requeues(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c.send(queue, *"1234")
    d = c.link.channel(2)
    d.consume(queue)
    d.deliveries(4)
    d("basic.ack", delivery=2)
    d("channel.close")
    for _ in range(4):
        c.get(queue, no_ack=True)


@scenario()
def connection_end_requeues(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c.send(queue, *"123")
    other = s.connect()
    d = other.channel()
    d.consume(queue)
    d.deliveries(3)
    c.count(queue)
    e = c.link.channel(2)
    e.consume(queue, "takes over")
    # No message is left until it goes without a word.
    e.nothing_more(queue)
    other.drop()
    e.deliveries(3)


@scenario()
def consumer_in_order(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c.send(queue, "1", "2")
    c.consume(queue)
    c.deliveries(2)
    c.send(queue, "3", "4", "5")
    c.deliveries(3)
    c("basic.ack", delivery=5, multiple=True)
    c.count(queue)


# (pika makes up tags itself.)
@scenario(without=("pika",))
def consumer_tags(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    tag = c("basic.consume", queue=queue, tag="").get("tag", "")
    s.tell("tag", tag.startswith("amq.ctag-"), len(tag))
    c.consume(queue, "mine")
    c("basic.cancel", tag="mine")
    # Free again; and what is not there may be cancelled.
    c.consume(queue, "mine")
    c("basic.cancel", tag="never there")
    c.count(queue)


@scenario(BY_HAND)
def consumer_tag_twice(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    d = c.link.channel(2)
    c.consume(queue, "mine")
    # A tag is a channel's.
    d.consume(queue, "mine")
    c("basic.consume", queue=queue, tag="mine")


@scenario()
def consumers_in_turn(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c.consume(queue, "a", no_ack=True)
    c.consume(queue, "b", no_ack=True)
    c.consume(queue, "c", no_ack=True)
    c.send(queue, *"123456")
    c.deliveries(6)


@scenario()
def consumers_in_turn_with_prefetch(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c("basic.qos", count=2)
    c.consume(queue, "a")
    c.consume(queue, "b")
    c.send(queue, *"123456")
    c.deliveries(4)
    c.nothing_more(queue)
    c("basic.ack", delivery=2)
    c.deliveries(1)
    c("basic.ack", delivery=1)
    c.deliveries(1)


@scenario()
def prefetch_per_consumer(s: Script) -> None:
    """A count is that of each consumer to come."""
    c = s.channel()
    queue, other = c.queue("q"), c.queue("other")
    c.send(queue, *"12345")
    c.send(other, *"abc")
    c("basic.qos", count=2)
    c.consume(queue, "two")
    c.deliveries(2)
    c.nothing_more(queue)
    c("basic.qos", count=1)
    c.consume(other, "one")
    c.deliveries(1)
    c.nothing_more(other)
    c("basic.ack", delivery=1)
    c.deliveries(1)
    c.nothing_more(queue)
    c("basic.ack", delivery=0, multiple=True)
    # One of the other queue, and the last of the first: in whatever order.
    c.count(queue)
    c.count(other)


@scenario()
def prefetch_of_a_channel(s: Script) -> None:
    """With the flag, all consumers of the channel share."""
    c = s.channel()
    queue, other = c.queue("q"), c.queue("other")
    c.send(queue, *"12")
    c.send(other, *"abc")
    c("basic.qos", count=2, is_global=True)
    c.consume(queue, "one")
    c.deliveries(2)
    c.consume(other, "two")
    c.nothing_more(other)
    c.count(other)
    c("basic.ack", delivery=1)
    c.deliveries(1)
    # No bound any more.
    c("basic.qos", count=0, is_global=True)
    c.deliveries(2)
    c.count(queue)
    c.count(other)


@scenario()
def prefetch_both(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c.send(queue, *"12345678")
    c("basic.qos", count=2)
    c("basic.qos", count=3, is_global=True)
    c.consume(queue, "one")
    c.deliveries(2)
    c.nothing_more(queue)
    c.consume(queue, "two")
    c.deliveries(1)
    c.nothing_more(queue)
    c("basic.ack", delivery=3)
    c.deliveries(1)
    c.nothing_more(queue)


@scenario()
def prefetch_leaves_no_ack_alone(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c("basic.qos", count=1)
    c.send(queue, *"123")
    c.consume(queue, no_ack=True)
    c.deliveries(3)
    c.count(queue)


@scenario()
def prefetch_by_size(s: Script) -> None:
    c = s.channel()
    c("basic.qos", size=1000)


@scenario()
def prefetch_and_get(s: Script) -> None:
    """Messages from basic.get do not count."""
    c = s.channel()
    queue = c.queue("q")
    c("basic.qos", count=1)
    c.send(queue, *"1234")
    c.get(queue)
    c.get(queue)
    c.consume(queue)
    c.deliveries(1)
    c.nothing_more(queue)


@scenario()
def cancelled_consumer(s: Script) -> None:
    """Its channel acknowledges its deliveries."""
    c = s.channel()
    queue = c.queue("q")
    c("basic.qos", count=2)
    c.send(queue, *"1234")
    c.consume(queue)
    c.deliveries(2)
    c("basic.cancel", tag="c")
    c("basic.ack", delivery=1)
    c.nothing_more(queue)
    c("basic.nack", delivery=2, requeue=True)
    c.get(queue)


@scenario()
def consumer_exclusive(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c.consume(queue, "only", exclusive=True)
    d = s.channel()
    d.consume(queue, "other")
    d = d.again()
    d.consume(queue, "other", exclusive=True)
    d = d.again()
    # Getting is not consuming.
    d.send(queue, "1")
    c.deliveries(1)
    d.get(queue)
    c("basic.cancel", tag="only")
    d.consume(queue, "other")
    c.consume(queue, "late", exclusive=True)


@scenario(without=("pika",))
def consumer_no_local(s: Script) -> None:
    """RabbitMQ ignores it."""
    c = s.channel()
    queue = c.queue("q")
    c.consume(queue, no_local=True)
    c.send(queue, "mine")
    c.deliveries(1)


@scenario()
def single_active_consumer(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q", arguments={"x-single-active-consumer": True})
    c.consume(queue, "first")
    d = c.link.channel(2)
    d.consume(queue, "second")
    c.send(queue, *"123")
    c.deliveries(3)
    d.nothing_more(queue)
    c("basic.ack", delivery=1)
    c("basic.cancel", tag="first")
    # Unacknowledged messages of the first stay with its channel, and come before the rest.
    c("channel.close")
    d.deliveries(2)
    d.send(queue, "4")
    d.deliveries(1)
    d("basic.consume", queue=queue, tag="mine alone", exclusive=True)


@scenario()
def recover(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c.send(queue, *"123")
    c.get(queue)
    c.get(queue)
    c("basic.recover", requeue=True)
    c.count(queue)
    for _ in range(3):
        c.get(queue)
    c("basic.ack", delivery=5, multiple=True)
    c.count(queue)


@scenario()
def recover_to_a_consumer(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c.send(queue, *"12")
    c.consume(queue)
    c.deliveries(2)
    c("basic.recover", requeue=True)
    c.deliveries(2)
    c.nothing_more(queue)


@scenario(without=("py-amqp",))
def recover_without_requeue(s: Script) -> None:
    c = s.channel()
    c("basic.recover", requeue=False)


@scenario(BY_HAND)
def recover_asynchronously(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c.send(queue, "1")
    c.get(queue)
    c("basic.recover-async", requeue=True)
    c.get(queue)


@scenario()
def delivery_tags_of_a_channel(s: Script) -> None:
    """One sequence for all that a channel delivers."""
    c = s.channel()
    one, two = c.queue("one"), c.queue("two")
    c.send(one, "1")
    c.get(one)
    c.consume(two, "two")
    c.send(two, "2")
    c.deliveries(1)
    c.consume(one, "one", no_ack=True)
    c.send(one, "3")
    c.deliveries(1)
    c.send(one, "4")
    c.deliveries(1)
    d = c.link.channel(2)
    d.send(two, "5")
    c.deliveries(1)
    d.consume(two, "another")
    d.send(two, "6", "7")
    d.deliveries(1)


@scenario()
def many_channels(s: Script) -> None:
    link = s.connect()
    first = link.channel(1)
    queue = first.queue("q")
    for number in (2, 3, 500, 2047):
        channel = link.channel(number)
        channel.consume(queue, "same tag")
        first.send(queue, "a")
        channel.deliveries(1)
        channel("basic.cancel", tag="same tag")
    first.count(queue)


@scenario(BY_HAND)
def channel_flow(s: Script) -> None:
    c = s.channel()
    c("channel.flow", active=True)
    c("channel.flow", active=False)


@scenario(BY_HAND)
def consumer_arguments(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c("basic.consume", queue=queue, tag="t", arguments={"x-cancel-on-ha-failover": True, "a": 1})
    c("basic.consume", queue=queue, tag="u", arguments={"x-stream-offset": "first"})


@scenario()
def quorum_queue_counts_deliveries(s: Script) -> None:
    c = s.channel()
    arguments = {
        "x-queue-type": "quorum",
        "x-delivery-limit": 2,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": s.of("dead"),
    }
    dead = c.queue("dead")
    queue = c.queue("q", durable=True, arguments=arguments)
    c("confirm.select")
    c.send(queue, "1", delivery_mode=2, headers={"mine": "x"})
    c.confirms(1)
    c.consume(queue)
    for _ in range(3):
        (delivered,) = c.deliveries(1) or [None]
        if delivered is None:
            break
        c("basic.reject", delivery=delivered.arguments["delivery"], requeue=True)
    c.consume(dead, "dead", no_ack=True)
    c.deliveries(1)
