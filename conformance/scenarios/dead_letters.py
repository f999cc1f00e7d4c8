"""Dead letters: why a message has died, where it goes, what its headers tell."""

from __future__ import annotations

from rig.amqp_script import Script

from scenarios import scenario


@scenario()
def rejected(s: Script) -> None:
    c = s.channel()
    exchange = c.exchange("dlx", "fanout")
    dead = c.queue("dead")
    c.bind(dead, exchange)
    queue = c.queue("q", arguments={"x-dead-letter-exchange": exchange})
    c.send(queue, "1", headers={"mine": 1}, correlation_id="c", delivery_mode=2)
    c.send(queue, "2", "3")
    for _ in range(3):
        c.get(queue)
    c("basic.reject", delivery=1, requeue=False)
    c("basic.nack", delivery=3, multiple=True, requeue=False)
    c.consume(dead, no_ack=True)
    c.deliveries(3)
    c.count(queue)


@scenario()
def routed_by_the_same_keys(s: Script) -> None:
    """Without a key of its own a dead letter keeps the ones that it was published with."""
    c = s.channel()
    source = c.exchange("source", "direct")
    target = c.exchange("target", "direct")
    queue = c.queue("q", arguments={"x-dead-letter-exchange": target})
    by_key, by_copy, by_name = c.queue("key"), c.queue("copy"), c.queue("name")
    c.bind(queue, source, "k")
    c.bind(by_key, target, "k")
    c.bind(by_copy, target, "cc")
    c.bind(by_name, target, queue)
    c.send("k", "1", exchange=source, headers={"CC": ["cc"], "BCC": ["bcc"]})
    c.get(queue)
    c("basic.reject", delivery=1, requeue=False)
    for each in (by_key, by_copy, by_name):
        c.consume(each, each, no_ack=True)
    c.deliveries(2)
    c.nothing_more(by_name)


@scenario()
def routed_by_another_key(s: Script) -> None:
    c = s.channel()
    target = c.exchange("target", "direct")
    dead = c.queue("dead")
    c.bind(dead, target, "died")
    arguments = {"x-dead-letter-exchange": target, "x-dead-letter-routing-key": "died"}
    queue = c.queue("q", arguments=arguments)
    c.send(queue, "1", headers={"CC": ["more"], "BCC": ["secret"]})
    c.get(queue)
    c("basic.reject", delivery=1, requeue=False)
    c.consume(dead, no_ack=True)
    c.deliveries(1)


@scenario()
def expired(s: Script) -> None:
    c = s.channel()
    dead = c.queue("dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    queue = c.queue("q", arguments=arguments)
    c.consume(dead, no_ack=True)
    c.send(queue, "1", expiration="1", headers={"a": "b"})
    # Only the headers tell the cause of the expiry.
    c.deliveries(1)


@scenario()
def too_many(s: Script) -> None:
    c = s.channel()
    dead = c.queue("dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    queue = c.queue("q", arguments={**arguments, "x-max-length": 1})
    c.consume(dead, no_ack=True)
    c.send(queue, *"123")
    c.deliveries(2)
    c.get(queue, no_ack=True)


@scenario()
def rejected_by_overflow(s: Script) -> None:
    c = s.channel()
    dead = c.queue("dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    bounds = {"x-max-length": 1, "x-overflow": "reject-publish-dlx"}
    queue = c.queue("q", arguments={**arguments, **bounds})
    c("confirm.select")
    for body in "12":
        c.send(queue, body)
        c.confirms(1)
    c.consume(dead, no_ack=True)
    c.deliveries(1)
    c.get(queue, no_ack=True)


@scenario()
def without_a_way(s: Script) -> None:
    """No exchange, or no binding: the message is dropped silently."""
    c = s.channel()
    queue = c.queue("q", arguments={"x-dead-letter-exchange": "no such exchange"})
    other = c.queue("other", arguments={"x-dead-letter-exchange": "amq.direct"})
    for each in (queue, other):
        c.send(each, "1", mandatory=True)
        c.get(each)
    c("basic.nack", delivery=2, multiple=True, requeue=False)
    c.count(queue)
    c.nothing_more(other)


@scenario()
def died_twice(s: Script) -> None:
    """One entry for each queue and reason, the newest first, with a count."""
    c = s.channel()
    one, two = s.of("one"), s.of("two")
    to = {"x-dead-letter-exchange": ""}
    c.queue("one", arguments={**to, "x-dead-letter-routing-key": two})
    c.queue("two", arguments={**to, "x-dead-letter-routing-key": one})
    c.send(one, "1")
    c.consume(one, "one")
    c.consume(two, "two")
    for _ in range(5):
        (delivered,) = c.deliveries(1) or [None]
        if delivered is None:
            return
        c("basic.reject", delivery=delivered.arguments["delivery"], requeue=False)
    c.deliveries(1)


@scenario()
def cycle_is_cut(s: Script) -> None:
    """A message that would expire in a circle is dropped; a rejected one goes on."""
    c = s.channel()
    queue = s.of("q")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue}
    c.queue("q", arguments={**arguments, "x-message-ttl": 30})
    other = c.queue("other")
    clock = c.queue(
        "clock",
        arguments={
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": other,
            "x-message-ttl": 300,
        },
    )
    c.consume(other, no_ack=True)
    c.send(queue, "1")
    c.send(clock, "tick")
    c.deliveries(1)
    c.count(queue)


@scenario()
def two_steps(s: Script) -> None:
    """Rejected, then expired."""
    c = s.channel()
    last = c.queue("last")
    to = {"x-dead-letter-exchange": ""}
    middle = c.queue(
        "middle", arguments={**to, "x-dead-letter-routing-key": last, "x-message-ttl": 30}
    )
    exchange = c.exchange("x", "topic")
    first = c.queue("first", arguments={**to, "x-dead-letter-routing-key": middle})
    c.bind(first, exchange, "#")
    c.consume(last, no_ack=True)
    c.send("some.key", "1", exchange=exchange, expiration="100000", headers={"CC": ["cc"]})
    c.get(first)
    c("basic.reject", delivery=1, requeue=False)
    c.deliveries(1)


@scenario()
def confirmed_whatever_becomes_of_it(s: Script) -> None:
    c = s.channel()
    dead = c.queue("dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    queue = c.queue("q", arguments={**arguments, "x-message-ttl": 0})
    c("confirm.select")
    c.send(queue, "1", "2", delivery_mode=2)
    c.confirms(2)
    c.consume(dead, no_ack=True)
    c.deliveries(2)


@scenario()
def deleted_queue_is_no_death(s: Script) -> None:
    c = s.channel()
    dead = c.queue("dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    queue = c.queue("q", arguments=arguments)
    other = c.queue("other", arguments=arguments)
    c.send(queue, "1")
    c.send(other, "2")
    c("queue.delete", queue=queue)
    c("queue.purge", queue=other)
    c.count(dead)


@scenario()
def headers_of_others(s: Script) -> None:
    """A publisher's own x-death is continued if it has the form of one."""
    c = s.channel()
    dead = c.queue("dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    queue = c.queue("q", arguments=arguments)
    c.consume(dead, "dead", no_ack=True)
    entry = {"queue": queue, "reason": "rejected", "count": 5, "exchange": "e"}
    mine = {"x-first-death-queue": "mine"}
    for number, headers in enumerate(
        [
            {"x-death": [entry], **mine},
            {"x-death": [], **mine},
            {"x-death": [{"queue": "other", "reason": "expired"}], **mine},
            {"x-death": [entry]},
            # The time is that of the first death in the queue.
            {"x-death": [{**entry, "time": 7}]},
            {"x-death": "no list"},
            mine,
            {"x-first-death-reason": "mine"},
            {"x-first-death-exchange": "mine"},
            {"x-last-death-queue": "mine"},
        ]
    ):
        c.send(queue, str(number), headers=headers)
        got = c.get(queue).get("event")
        if got:
            c("basic.reject", delivery=got.arguments["delivery"], requeue=False)
        c.deliveries(1)


@scenario()
def headers_of_earlier_versions(s: Script) -> None:
    """RabbitMQ before 3.5 wrote one entry for each death, without a count."""
    c = s.channel()
    dead = c.queue("dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    queue = c.queue("q", arguments=arguments)
    c.consume(dead, "dead", no_ack=True)
    own, other = {"queue": queue, "reason": "rejected"}, {"queue": "other", "reason": "expired"}
    for number, deaths in enumerate(
        [
            [{**other, "n": 3}, {**own, "n": 2}, {**other, "n": 1}, {**own, "n": 0}],
            [other, own],
            [{**other, "count": 4}, own, {**other, "count": 9}],
            [other, other],
        ]
    ):
        c.send(queue, str(number), headers={"x-death": deaths})
        got = c.get(queue).get("event")
        if got:
            c("basic.reject", delivery=got.arguments["delivery"], requeue=False)
        c.deliveries(1)


AT_LEAST_ONCE = {
    "x-queue-type": "quorum",
    "x-overflow": "reject-publish",
    "x-dead-letter-strategy": "at-least-once",
}


@scenario()
def at_least_once(s: Script) -> None:
    """The same letters as at most once, to every target."""
    c = s.channel()
    exchange = c.exchange("dlx", "fanout")
    for name in ("one", "two"):
        c.bind(c.queue(name), exchange)
    arguments = {**AT_LEAST_ONCE, "x-dead-letter-exchange": exchange}
    queue = c.queue("q", durable=True, arguments=arguments)
    c("confirm.select")
    c.send(queue, "1", headers={"mine": 1}, expiration="60000")
    c.confirms(1)
    c.get(queue)
    c("basic.reject", delivery=1, requeue=False)
    for name in ("one", "two"):
        c.consume(s.of(name), name, no_ack=True)
        c.deliveries(1)
    c.nothing_more(s.of("one"))


@scenario()
def kept_without_a_target(s: Script) -> None:
    """Kept letters count for the bound alone: no client sees, gets, purges or deletes them."""
    c = s.channel()
    arguments = {**AT_LEAST_ONCE, "x-dead-letter-exchange": s.of("absent"), "x-max-length": 2}
    queue = c.queue("q", durable=True, arguments=arguments)
    c("confirm.select")
    for body in "12":
        c.send(queue, body)
        c.confirms(1)
    for _ in range(2):
        c.get(queue)
    c("basic.nack", delivery=2, multiple=True, requeue=False)
    for body in "345":
        c.send(queue, body)
        c.confirms(1)
    c.count(queue)
    c.get(queue)
    c.get(queue)
    c("queue.purge", queue=queue)
    c("queue.delete", queue=queue)
