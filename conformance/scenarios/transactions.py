"""Transactions: what is published and acknowledged happens at the commit, or not at all."""

from __future__ import annotations

from rig.amqp_script import Script

from scenarios import scenario

BY_HAND = "by-hand"


@scenario()
def transaction_of_publications(s: Script) -> None:
    c, d = s.channel(), s.channel()
    queue = c.queue("q")
    c("tx.select")
    c.send(queue, "1", "2")
    d.get(queue, no_ack=True)
    c("tx.commit")
    d.tell_all(queue)
    c.send(queue, "3")
    c("tx.rollback")
    c("tx.commit")
    c.send(queue, "4", delivery_mode=2)
    c("tx.commit")
    d.tell_all(queue)
    # Selected twice is selected, and forgets nothing.
    c.send(queue, "5")
    c("tx.select")
    c("tx.commit")
    d.tell_all(queue)


@scenario()
def transaction_of_durable(s: Script) -> None:
    c = s.channel()
    queue, other = c.queue("q", durable=True), c.queue("r", durable=True)
    c("tx.select")
    for number in range(50):
        c.send(queue, f"q{number}", delivery_mode=2)
        c.send(other, f"r{number}", delivery_mode=2)
    c("tx.commit")
    c.tell_all(queue)
    c.count(other)
    got = c.get(other)["event"]
    c.send(queue, "moved", delivery_mode=2)
    c("basic.ack", delivery=got.arguments["delivery"])
    c("tx.commit")
    c.count(other)
    c.tell_all(queue)


@scenario()
def transaction_of_acknowledgements(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c.send(queue, "1", "2", "3", "4")
    c("basic.qos", count=2)
    c.consume(queue)
    c.deliveries(2)
    c("tx.select")
    c("basic.ack", delivery=1)
    # There is room for another one at the commit only.
    c.nothing_more(queue)
    c("tx.commit")
    c.deliveries(1)
    c("basic.ack", delivery=3, multiple=True)
    c("tx.rollback")
    c.nothing_more(queue)
    c("basic.nack", delivery=2, requeue=False)
    c("basic.ack", delivery=3)
    c("tx.commit")
    c.deliveries(1)
    c.count(queue)


@scenario()
def transaction_rolled_back_and_said_again(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c.send(queue, "1", "2", "3")
    for _ in range(3):
        c.get(queue)
    c("tx.select")
    c("basic.ack", delivery=2)
    c("basic.reject", delivery=1, requeue=True)
    c("basic.nack", delivery=3, requeue=False)
    c("tx.rollback")
    c("basic.ack", delivery=3, multiple=True)
    c("tx.commit")
    c.count(queue)


@scenario()
def transaction_requeues_and_refuses(s: Script) -> None:
    c = s.channel()
    dead = c.queue("dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    queue = c.queue("q", arguments=arguments)
    c.send(queue, "1", "2", "3", "4")
    for _ in range(4):
        c.get(queue)
    c("tx.select")
    c("basic.reject", delivery=1, requeue=True)
    c("basic.nack", delivery=2, requeue=False)
    c("basic.reject", delivery=3, requeue=True)
    c("basic.ack", delivery=4)
    c.count(queue)
    c("tx.commit")
    c.count(queue)
    c.tell_all(queue)
    c.tell_all(dead)


@scenario()
def transaction_does_not_recover(s: Script) -> None:
    """Messages acknowledged and not committed are not delivered again."""
    c = s.channel()
    queue = c.queue("q")
    c.send(queue, "1", "2")
    c.get(queue)
    c.get(queue)
    c("tx.select")
    c("basic.ack", delivery=1)
    c("basic.recover", requeue=True)
    c.get(queue)
    c.get(queue)
    c("tx.rollback")
    c("basic.ack", delivery=1)
    c("basic.ack", delivery=3)
    c("tx.commit")
    c.count(queue)


@scenario()
def transaction_left_open(s: Script) -> None:
    c, d = s.channel(), s.channel()
    queue = d.queue("q")
    d.send(queue, "1")
    d.count(queue)
    c.get(queue)
    c("tx.select")
    c.send(queue, "2")
    c("basic.ack", delivery=1)
    c("channel.close")
    d.count(queue)
    d.tell_all(queue)


@scenario()
def transaction_cut_off(s: Script) -> None:
    c, d = s.channel(), s.channel()
    queue = d.queue("q")
    d.send(queue, "1")
    d.count(queue)
    c.get(queue)
    c("tx.select")
    c.send(queue, "2")
    c("basic.ack", delivery=1)
    c.link.drop()
    d.consume(queue)
    d.deliveries(1)
    d.nothing_more(queue)


@scenario()
def transaction_returns(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c("tx.select")
    c.send("to nowhere", "1", mandatory=True)
    c.send(queue, "2", mandatory=True)
    c.nothing_more(queue)
    c("tx.commit")
    c.events(1, "return")
    c.tell_all(queue)
    c.send("to nowhere", "3", mandatory=True)
    c("tx.rollback")
    c.nothing_more(queue)


@scenario(BY_HAND)
def transaction_returns_before_its_answer(s: Script) -> None:
    c = s.channel()
    c("tx.select")
    c.send("to nowhere", "1", mandatory=True)
    c("tx.commit")
    s.tell([event.told() for event in c.link.driver.events[1]])


@scenario(BY_HAND)
def transactions_not_begun(s: Script) -> None:
    """A channel is either in transactions or confirms."""
    c = s.channel()
    c("tx.commit")
    c = c.again()
    c("tx.rollback")
    c = c.again()
    c("confirm.select")
    c("tx.select")
    c = c.again()
    c("tx.select")
    c("confirm.select")


@scenario()
def transaction_published_nowhere(s: Script) -> None:
    """An invalid publication fails at once; earlier ones of the transaction are dropped."""
    c = s.channel()
    queue = c.queue("q")
    c("tx.select")
    c.send(queue, "1")
    c.send("key", "2", exchange="missing")
    c.closed()
    c = c.again()
    c.count(queue)


@scenario(BY_HAND)
def transaction_acknowledged_twice(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c.send(queue, "1")
    c.get(queue)
    c("tx.select")
    c("basic.ack", delivery=1)
    c("basic.ack", delivery=1)
    c.closed()
    c = c.again()
    c.count(queue)


@scenario()
def transaction_of_a_queue_that_goes(s: Script) -> None:
    c = s.channel()
    queue, other = c.queue("q"), c.queue("r")
    c("tx.select")
    c.send(queue, "1")
    c.send(other, "2")
    c("queue.delete", queue=queue)
    c("tx.commit")
    c.tell_all(other)


@scenario(BY_HAND)
def transaction_that_a_queue_refuses(s: Script) -> None:
    """It is done as far as it can be, and its channel is closed."""
    c = s.channel()
    arguments = {"x-max-length": 1, "x-overflow": "reject-publish"}
    queue, other = c.queue("q", arguments=arguments), c.queue("r")
    c("tx.select")
    c.send(queue, "1", "2")
    c.send(other, "3")
    c("tx.commit")
    c = c.again()
    c.tell_all(queue)
    c.tell_all(other)


@scenario(
    BY_HAND,
    crosstie=[
        "('queue.declare', {'queue': 'q'}, {'consumers': 0, 'messages': 0, 'queue': 'q'})",
        "('tx.select', {}, {})",
        "('queue.bind', {'exchange': 'amq.direct', 'queue': 'q', 'routing_key': 'key'}, {})",
        "('tx.commit', {}, {})",
        "('take all', 'q', ['1'])",
    ],
    because="a message goes where the bindings at the commit lead, not those of before",
)
def transaction_routed(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c("tx.select")
    c.send("key", "1", exchange="amq.direct")
    c.bind(queue, "amq.direct", "key")
    c("tx.commit")
    c.tell_all(queue)


@scenario()
def transaction_for_a_consumer(s: Script) -> None:
    c, d = s.channel(), s.channel()
    queue = c.queue("q")
    d.consume(queue)
    c("tx.select")
    c.send(queue, "1", "2", headers={"a": 1})
    d.nothing_more(queue)
    c("tx.commit")
    d.deliveries(2)
