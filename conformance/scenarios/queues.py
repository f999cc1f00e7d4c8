"""Queues: their arguments, who may use them, when they go."""

from __future__ import annotations

from rig.amqp_script import Script
from rig.waiting import await_true

from scenarios import scenario

BY_HAND = "by-hand"


@scenario()
def queue_declared_twice(s: Script) -> None:
    c = s.channel()
    c.queue("q", durable=True)
    c.queue("q", durable=True)
    c.queue("q", passive=True)
    c.queue("q")
    c = c.again()
    c.queue("q", durable=True, auto_delete=True)
    c = c.again()
    c.queue("q", durable=True, exclusive=True)
    c = c.again()
    # Unknown arguments are neither refused nor compared.
    c.queue("q", durable=True, arguments={"unknown": 1})
    c.queue("q", durable=True, arguments={"x-unknown": "a"})


@scenario()
def queue_with_other_arguments(s: Script) -> None:
    c = s.channel()
    first = {
        "x-expires": 600_000,
        "x-message-ttl": 60_000,
        "x-max-length": 10,
        "x-max-length-bytes": 1000,
        "x-dead-letter-exchange": "dlx",
        "x-dead-letter-routing-key": "key",
        "x-overflow": "drop-head",
        "x-single-active-consumer": True,
        "x-queue-mode": "lazy",
        "x-queue-master-locator": "min-masters",
    }
    c.queue("q", arguments=first)
    c.queue("q", arguments=first)
    other = {
        "x-expires": 600_001,
        "x-message-ttl": 5,
        "x-max-length": 11,
        "x-max-length-bytes": 1001,
        "x-dead-letter-exchange": "other",
        "x-dead-letter-routing-key": "other",
        "x-overflow": "reject-publish",
        "x-single-active-consumer": False,
        "x-queue-mode": "default",
        "x-queue-type": "quorum",
    }
    for name, value in other.items():
        c.queue("q", arguments={**first, name: value})
        c = c.again()
    for name in first:
        c.queue("q", arguments={key: value for key, value in first.items() if key != name})
        c = c.again()
    c.queue("q", arguments={**first, "x-queue-type": "classic"})


@scenario(BY_HAND)
def queue_arguments_of_other_widths(s: Script) -> None:
    c = s.channel()
    c.queue("q", arguments={"x-message-ttl": 1000})
    for letter, octets in [("l", 8), ("s", 2), ("u", 2), ("i", 4), ("L", 8)]:
        number = (1000).to_bytes(octets, "big")
        c.queue("q", arguments={"x-message-ttl": (letter, number)})
        c = c.opened_again()


@scenario()
def queue_with_bad_arguments(s: Script) -> None:
    c = s.channel()
    bad = [
        {"x-expires": 0},
        {"x-expires": -1},
        {"x-expires": "10"},
        {"x-expires": 2**40},
        {"x-message-ttl": -1},
        {"x-message-ttl": "a"},
        {"x-message-ttl": 2**40},
        {"x-message-ttl": True},
        {"x-max-length": -1},
        {"x-max-length": "10"},
        {"x-max-length-bytes": -1},
        {"x-max-length-bytes": [1]},
        {"x-overflow": "drop-tail"},
        {"x-overflow": 1},
        {"x-dead-letter-exchange": 1},
        {"x-dead-letter-routing-key": "alone"},
        {"x-dead-letter-exchange": "a", "x-dead-letter-routing-key": 1},
        {"x-single-active-consumer": "yes"},
        {"x-queue-type": "best"},
        {"x-queue-type": 1},
        {"x-queue-mode": "eager"},
        {"x-queue-version": 3},
        {"x-queue-version": "2"},
        {"x-delivery-limit": -1},
        {"x-delivery-limit": "a"},
        {"x-max-priority": -1},
        {"x-max-priority": "a"},
        {"x-max-priority": 256},
        {"x-max-priority": True},
    ]
    for number, arguments in enumerate(bad):
        c.queue(f"q{number}", arguments=arguments)
        c = c.opened_again()


@scenario()
def queue_with_good_arguments(s: Script) -> None:
    c = s.channel()
    good = [
        {"x-message-ttl": 0},
        {"x-max-length": 0},
        {"x-max-length-bytes": 0},
        {"x-expires": 1_800_000},
        {"x-overflow": "reject-publish"},
        {"x-overflow": "reject-publish-dlx"},
        {"x-dead-letter-exchange": ""},
        {"x-dead-letter-exchange": "not there", "x-dead-letter-routing-key": ""},
        {"x-queue-mode": "lazy"},
        {"x-queue-version": 2},
        {"x-ha-policy": "all"},
        {"anything": {"at": ["all", 1, None]}},
        {"x-queue-type": "classic"},
        {"x-delivery-limit": 3},
        {"x-max-in-memory-length": 3},
        {"x-max-age": "1h"},
    ]
    for number, arguments in enumerate(good):
        c.queue(f"q{number}", arguments=arguments)
        c = c.opened_again()


@scenario()
def quorum_queue_declared(s: Script) -> None:
    c = s.channel()
    quorum = {"x-queue-type": "quorum"}
    c.queue("transient", arguments=quorum)
    c = c.again()
    c.queue("exclusive", durable=True, exclusive=True, arguments=quorum)
    c = c.again()
    c.queue("auto", durable=True, auto_delete=True, arguments=quorum)
    c = c.again()
    c.queue("lazy", durable=True, arguments={**quorum, "x-queue-mode": "lazy"})
    c = c.again()
    c.queue("limit", durable=True, arguments={**quorum, "x-delivery-limit": -1})
    c.queue("overflow", durable=True, arguments={**quorum, "x-overflow": "reject-publish-dlx"})
    c.queue("priority", durable=True, arguments={**quorum, "x-max-priority": 5})
    c = c.again()
    c("queue.declare", queue="", durable=True, arguments=quorum)
    c = c.again()
    c.queue("q", durable=True, arguments={**quorum, "x-delivery-limit": 2})
    c.queue("q", durable=True, arguments={**quorum, "x-delivery-limit": 2})
    c.queue("q", durable=True, arguments={**quorum, "x-delivery-limit": 3})
    c = c.again()
    c.queue("q", durable=True)


@scenario()
def queue_not_there(s: Script) -> None:
    c = s.channel()
    c("queue.declare", queue="no such", passive=True)
    for method, more in {
        "queue.bind": {"exchange": "amq.direct", "routing_key": ""},
        "queue.purge": {},
        "basic.get": {},
        "basic.consume": {"tag": "t"},
    }.items():
        c = c.again()
        c(method, queue="no such", **more)
    c = c.again()
    # Missing objects may be deleted and unbound.
    c("queue.delete", queue="no such")
    c("queue.unbind", queue="no such", exchange="amq.direct", routing_key="")


@scenario()
def queue_reserved(s: Script) -> None:
    c = s.channel()
    c("queue.declare", queue="amq.mine")
    c = c.again()
    c("queue.declare", queue="amq.mine", passive=True)
    c = c.again()
    c("queue.declare", queue="amq.gen-not-there", exclusive=True)


@scenario()
def queue_named_by_the_broker(s: Script) -> None:
    c = s.channel()
    queue = c.queue(exclusive=True)
    other = c.queue(exclusive=True)
    s.tell("different", queue != other, len(queue), queue.startswith("amq.gen-"))
    c.send(queue, "x")
    c.get(queue, no_ack=True)
    c("queue.delete", queue=queue)
    # Even a client that knows an existing name may not declare it again.
    c("queue.declare", queue=other, exclusive=True)


@scenario()
def queue_names_in_unicode(s: Script) -> None:
    c = s.channel()
    queue = c.queue("schlüssel 鍵 🔑")
    exchange = c.exchange("tausch ⇄", "direct")
    c.bind(queue, exchange, "größe")
    c.send("größe", "grüße", exchange=exchange, headers={"schlüssel": "wért"}, type="ø")
    c.get(queue, no_ack=True)
    c("queue.declare", queue="kein schlüssel", passive=True)


@scenario()
def queue_purged(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c.send(queue, "1", "2", "3")
    c.get(queue)
    c("queue.purge", queue=queue)
    c("queue.purge", queue=queue)
    c.count(queue)
    # Unacknowledged deliveries are not purged.
    c("basic.nack", delivery=1, requeue=True)
    c.get(queue, no_ack=True)


@scenario()
def queue_deleted(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c.send(queue, "1", "2")
    c("queue.delete", queue=queue, if_empty=True)
    c = c.again()
    c.consume(queue)
    c.deliveries(2)
    c("queue.delete", queue=queue, if_unused=True)
    c = c.again()
    c.count(queue)
    c("queue.delete", queue=queue, if_unused=True, if_empty=False)
    c.count(queue)


@scenario()
def queue_exclusive(s: Script) -> None:
    mine = s.connect()
    c = mine.channel()
    queue = c.queue("q", exclusive=True)
    c.queue("q", exclusive=True)
    other = s.connect()
    d = other.channel()
    d.queue("q", exclusive=True)
    d = d.again()
    d.queue("q")
    for method, more in {
        "queue.declare": {"passive": True},
        "queue.bind": {"exchange": "amq.direct", "routing_key": ""},
        "queue.unbind": {"exchange": "amq.direct", "routing_key": ""},
        "queue.purge": {},
        "queue.delete": {},
        "basic.get": {},
        "basic.consume": {"tag": "t"},
    }.items():
        d = d.again()
        d(method, queue=queue, **more)
    d = d.again()
    # Every client may publish to it.
    d("confirm.select")
    d.send(queue, "x")
    d.confirms(1)
    c.get(queue, no_ack=True)
    # The owner may not take it for another one.
    c.queue("q")


@scenario()
def queue_exclusive_goes_with_its_connection(s: Script) -> None:
    mine = s.connect()
    c = mine.channel()
    queue = c.queue("q", exclusive=True, durable=True)
    c.send(queue, "x")
    mine.close()
    d = s.channel()
    d("queue.declare", queue=queue, passive=True)
    d = d.again()
    d.queue("q")


@scenario()
def queue_auto_delete(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q", auto_delete=True)
    c.count(queue)
    c.consume(queue, "one")
    c.consume(queue, "two")
    c("basic.cancel", tag="one")
    c.count(queue)
    c("basic.cancel", tag="two")
    c.count(queue)
    c = c.again()
    # By the end of a channel as well.
    queue = c.queue("q", auto_delete=True)
    d = c.link.channel(2)
    d.consume(queue, "three")
    d("channel.close")
    c.count(queue)


@scenario()
def queue_expires(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q", arguments={"x-expires": 300})
    c.consume(queue)
    # Not while it is consumed from: this waits for a message that is late itself.
    slow = c.queue(
        "slow",
        arguments={"x-message-ttl": 900, "x-dead-letter-exchange": ""}
        | {"x-dead-letter-routing-key": queue},
    )
    c.send(slow, "x")
    c.deliveries(1)
    c("basic.cancel", tag="c")
    # Gone sometime after its last use; publishing to it is none.
    await_gone(s, queue)
    c.count(queue)


def await_gone(s: Script, queue: str) -> None:
    """Wait until a queue is not there any more without using it: messages come back then."""
    probe = s.channel()
    returned = probe.link.driver.events[1]

    def is_gone() -> bool:
        probe.send(queue, "probe", mandatory=True)
        # The broker has done with the message when it answers this.
        probe.link.driver.call(1, "basic.qos", count=0)
        return bool(returned)

    await_true(f"{queue} is gone", is_gone)
    returned.clear()


@scenario()
def queue_lost_while_consumed(s: Script) -> None:
    """A consumer is told that its queue is gone."""
    c = s.channel()
    queue = c.queue("q")
    c.consume(queue, "one")
    d = s.channel()
    d("queue.delete", queue=queue)
    c.events(1, "cancel")
    # The channel goes on; the tag is free again.
    queue = c.queue("q")
    c.consume(queue, "one")
    c.send(queue, "x")
    c.deliveries(1)


@scenario()
def stream_queue(s: Script) -> None:
    c = s.channel()
    c.queue("q", durable=True, arguments={"x-queue-type": "stream"})


@scenario()
def passive_declare_counts(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c("confirm.select")
    c.send(queue, "1", "2", "3")
    c.confirms(3)
    c.count(queue)
    c("basic.qos", count=1)
    c.consume(queue)
    c.deliveries(1)
    # Only what is ready counts.
    c.count(queue)
