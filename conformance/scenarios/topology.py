"""Exchanges, queues and bindings: declared, compared, routed through, deleted."""

from __future__ import annotations

from rig.amqp_script import Channel, Script

from scenarios import scenario

BY_HAND = "by-hand"


def routed(channel: Channel, exchange: str, *sent: tuple[str, dict], queues: list[str]) -> None:
    """Publish with these keys and headers, then say which messages each queue has got."""
    for number, (key, headers) in enumerate(sent):
        more = {"headers": headers} if headers else {}
        channel.send(key, f"{number} {key}", exchange=exchange, mandatory=True, **more)
    # Each is either confirmed alone, or returned first.
    channel.confirms(len(sent))
    for event in list(channel.link.driver.events[channel.number]):
        channel.script.tell("returned", event.body)
    channel.link.driver.events[channel.number].clear()
    for queue in queues:
        channel.tell_all(queue)


@scenario()
def default_exchange(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c.send(queue, "to the queue of that name")
    c.get(queue, no_ack=True)
    c("queue.bind", queue=queue, exchange="", routing_key="x")
    c = c.again()
    c("queue.unbind", queue=queue, exchange="", routing_key=queue)
    c = c.again()
    c("exchange.delete", exchange="")
    c = c.again()
    c("exchange.declare", exchange="", type="direct", durable=True)
    c = c.again()
    c("exchange.declare", exchange="", type="direct", passive=True)


@scenario()
def direct_exchange(s: Script) -> None:
    c = s.channel()
    c("confirm.select")
    exchange = c.exchange("x", "direct")
    one, two = c.queue("one"), c.queue("two")
    c.bind(one, exchange, "a")
    c.bind(one, exchange, "b")
    c.bind(two, exchange, "b")
    # Twice the same is once.
    c.bind(two, exchange, "b")
    routed(c, exchange, ("a", {}), ("b", {}), ("c", {}), ("", {}), queues=[one, two])
    c("queue.unbind", queue=one, exchange=exchange, routing_key="b")
    # A missing binding may be removed.
    c("queue.unbind", queue=one, exchange=exchange, routing_key="never bound")
    routed(c, exchange, ("a", {}), ("b", {}), queues=[one, two])


@scenario()
def fanout_exchange(s: Script) -> None:
    c = s.channel()
    c("confirm.select")
    exchange = c.exchange("x", "fanout")
    one, two = c.queue("one"), c.queue("two")
    c.bind(one, exchange, "ignored")
    c.bind(one, exchange, "ignored too")
    c.bind(two, exchange)
    routed(c, exchange, ("", {}), ("any", {}), queues=[one, two])


@scenario()
def topic_exchange(s: Script) -> None:
    c = s.channel()
    c("confirm.select")
    exchange = c.exchange("x", "topic")
    patterns = ["a.b", "a.*", "a.#", "#", "*.b.#", "#.c", "*", "", "a..b", "*.*", "#.#", "a.#.b"]
    queues = []
    for number, pattern in enumerate(patterns):
        queues.append(c.queue(f"q{number}"))
        c.bind(queues[-1], exchange, pattern)
    keys = ["a", "a.b", "a.b.c", "", "b", "a..b", ".", "a.", ".b", "a.x.b", "A.b", "a.*", "#", "c"]
    routed(c, exchange, *((key, {}) for key in keys), queues=queues)
    c("queue.unbind", queue=queues[2], exchange=exchange, routing_key="a.#")
    routed(c, exchange, ("a.b", {}), queues=queues)


@scenario()
def headers_exchange(s: Script) -> None:
    c = s.channel()
    c("confirm.select")
    exchange = c.exchange("x", "headers")
    bindings = [
        {"x-match": "all", "a": 1, "b": "x"},
        {"x-match": "any", "a": 1, "b": "x"},
        {"a": 1},
        {"x-match": "all"},
        {"x-match": "any"},
        {"x-match": "all", "a": None},
        {"x-match": "all-with-x", "x-a": 1, "a": 1},
        {"x-match": "any-with-x", "x-a": 1, "a": 2},
        {"x-match": "all", "x-a": 1},
        {"x-match": "any", "t": True, "l": 2**40},
    ]
    queues = []
    for number, arguments in enumerate(bindings):
        queues.append(c.queue(f"q{number}"))
        c.bind(queues[-1], exchange, "", **arguments)
    sent = [
        {},
        {"a": 1},
        {"a": 1, "b": "x"},
        {"a": 2, "b": "x"},
        {"a": "1"},
        {"x-a": 1},
        {"x-a": 1, "a": 1},
        {"t": True},
        {"l": 2**40},
        {"c": 1},
    ]
    routed(c, exchange, *((str(at), headers) for at, headers in enumerate(sent)), queues=queues)


@scenario()
def headers_exchange_bad_match(s: Script) -> None:
    c = s.channel()
    exchange = c.exchange("x", "headers")
    queue = c.queue("q")
    c.bind(queue, exchange, "", **{"x-match": "most"})
    c = c.again()
    c.bind(queue, exchange, "", **{"x-match": 5})


@scenario()
def exchange_to_exchange(s: Script) -> None:
    c = s.channel()
    c("confirm.select")
    top, middle, side = c.exchange("top", "topic"), c.exchange("middle", "fanout"), ""
    side = c.exchange("side", "direct")
    one, two = c.queue("one"), c.queue("two")
    c("exchange.bind", destination=middle, source=top, routing_key="a.#")
    c("exchange.bind", destination=side, source=middle, routing_key="")
    # A ring is no endless loop, and two ways to a queue are one message.
    c("exchange.bind", destination=top, source=middle, routing_key="")
    c.bind(one, middle)
    c.bind(one, top, "a.b")
    c.bind(two, side, "a.b")
    routed(c, top, ("a.b", {}), ("a.c", {}), ("b", {}), queues=[one, two])
    c("exchange.unbind", destination=middle, source=top, routing_key="a.#")
    routed(c, top, ("a.b", {}), ("a.c", {}), queues=[one, two])
    c("exchange.bind", destination="no such", source=top, routing_key="")
    c = c.again()
    c("exchange.bind", destination=top, source="no such", routing_key="")


@scenario()
def alternate_exchange(s: Script) -> None:
    c = s.channel()
    c("confirm.select")
    last = c.exchange("last", "fanout")
    middle = c.exchange("middle", "direct", arguments={"alternate-exchange": last})
    first = c.exchange("first", "direct", arguments={"alternate-exchange": middle})
    lost = c.exchange("lost", "direct", arguments={"alternate-exchange": "nowhere at all"})
    one, two, three = c.queue("one"), c.queue("two"), c.queue("three")
    c.bind(one, first, "1")
    c.bind(two, middle, "2")
    c.bind(three, last)
    routed(c, first, ("1", {}), ("2", {}), ("3", {}), queues=[one, two, three])
    routed(c, lost, ("1", {}), queues=[])


@scenario()
def alternate_exchange_bad(s: Script) -> None:
    c = s.channel()
    c.exchange("x", "direct", arguments={"alternate-exchange": 5})
    c = c.again()
    c.exchange("x", "direct", arguments={"alternate-exchange": "a"})
    c.exchange("x", "direct", arguments={"alternate-exchange": "b"})
    c = c.again()
    c.exchange("x", "direct")


@scenario()
def exchange_declared_twice(s: Script) -> None:
    c = s.channel()
    c.exchange("x", "direct", durable=True)
    c.exchange("x", "direct", durable=True)
    c.exchange("x", "direct", passive=True)
    # Other arguments of a passive declare are ignored.
    c.exchange("x", "topic", passive=True)
    c.exchange("x", "fanout", durable=True)
    c = c.again()
    c.exchange("x", "direct")
    c = c.again()
    c.exchange("x", "direct", durable=True, auto_delete=True)
    c = c.again()
    c.exchange("x", "direct", durable=True, internal=True)
    c = c.again()
    c.exchange("x", "direct", durable=True, arguments={"unknown": 1})


@scenario()
def exchange_of_no_type(s: Script) -> None:
    s.channel().exchange("x", "no-such-type")


@scenario()
def exchange_of_a_known_wrong_type(s: Script) -> None:
    c = s.channel()
    c.exchange("x", "x-jms-topic")


@scenario()
def exchange_not_there(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c("exchange.declare", exchange="no such", type="direct", passive=True)
    c = c.again()
    c.bind(queue, "no such")
    c = c.again()
    # No error in these.
    c("queue.unbind", queue=queue, exchange="no such", routing_key="")
    c("exchange.delete", exchange="no such")
    c.send("key", "x", exchange="no such")
    c.closed()


@scenario()
def exchange_reserved(s: Script) -> None:
    c = s.channel()
    c("exchange.declare", exchange="amq.mine", type="direct")
    c = c.again()
    c("exchange.declare", exchange="amq.direct", type="direct", passive=True)
    c("exchange.declare", exchange="amq.direct", type="direct", durable=True)
    c("exchange.declare", exchange="amq.direct", type="fanout", durable=True)
    c = c.again()
    c("exchange.delete", exchange="amq.direct")
    c = c.again()
    c("exchange.declare", exchange="amq.rabbitmq.trace", type="topic", passive=True)
    c.send("key", "x", exchange="amq.rabbitmq.trace")
    c.closed()


@scenario()
def predeclared_exchanges(s: Script) -> None:
    c = s.channel()
    kinds = {"direct": "direct", "fanout": "fanout", "topic": "topic", "headers": "headers"}
    for name, kind in {**kinds, "match": "headers"}.items():
        c("exchange.declare", exchange=f"amq.{name}", type=kind, durable=True)
    queue = c.queue("q")
    c.bind(queue, "amq.topic", s.of("#"))
    c.send(s.of("news"), "x", exchange="amq.topic")
    c.get(queue, no_ack=True)


@scenario()
def exchange_internal(s: Script) -> None:
    c = s.channel()
    inner = c.exchange("inner", "fanout", internal=True)
    outer = c.exchange("outer", "fanout")
    queue = c.queue("q")
    c("exchange.bind", destination=inner, source=outer, routing_key="")
    c.bind(queue, inner)
    c.send("", "through", exchange=outer)
    c.get(queue, no_ack=True)
    c.send("", "x", exchange=inner)
    c.closed()


@scenario()
def exchange_auto_delete(s: Script) -> None:
    c = s.channel()
    exchange = c.exchange("x", "direct", auto_delete=True)
    one, two = c.queue("one"), c.queue("two")
    c.exchange("x", "direct", passive=True)
    c.bind(one, exchange, "a")
    c.bind(two, exchange, "b")
    c("queue.unbind", queue=one, exchange=exchange, routing_key="a")
    c.exchange("x", "direct", passive=True)
    c("queue.delete", queue=two)
    c.exchange("x", "direct", passive=True)


@scenario()
def exchange_auto_delete_as_source(s: Script) -> None:
    c = s.channel()
    source = c.exchange("source", "fanout", auto_delete=True)
    target = c.exchange("target", "fanout")
    c("exchange.bind", destination=target, source=source, routing_key="")
    c("exchange.delete", exchange=target)
    c.exchange("source", "fanout", passive=True)


@scenario()
def exchange_deleted_if_unused(s: Script) -> None:
    c = s.channel()
    exchange = c.exchange("x", "direct")
    queue = c.queue("q")
    c.bind(queue, exchange, "a")
    c("exchange.delete", exchange=exchange, if_unused=True)
    c = c.again()
    c("queue.unbind", queue=queue, exchange=exchange, routing_key="a")
    c("exchange.delete", exchange=exchange, if_unused=True)
    c.exchange("x", "direct", passive=True)


@scenario()
def bindings_with_arguments(s: Script) -> None:
    """Arguments make a binding another one, whatever the exchange makes of them."""
    c = s.channel()
    c("confirm.select")
    exchange = c.exchange("x", "direct")
    queue = c.queue("q")
    c.bind(queue, exchange, "a", one=1)
    c.bind(queue, exchange, "a", two=2)
    routed(c, exchange, ("a", {}), queues=[queue])
    c("queue.unbind", queue=queue, exchange=exchange, routing_key="a", arguments={"one": 1})
    routed(c, exchange, ("a", {}), queues=[queue])
    c("queue.unbind", queue=queue, exchange=exchange, routing_key="a", arguments={})
    routed(c, exchange, ("a", {}), queues=[queue])
    c("queue.unbind", queue=queue, exchange=exchange, routing_key="a", arguments={"two": 2})
    routed(c, exchange, ("a", {}), queues=[queue])


@scenario(BY_HAND)
def last_declared_queue(s: Script) -> None:
    """An empty name is the channel's last queue."""
    c = s.channel()
    c("queue.purge", queue="")
    c = c.again()
    queue = c.queue("q")
    exchange = c.exchange("x", "direct")
    # With an empty routing key too, that is the queue's name.
    c("queue.bind", queue="", exchange=exchange, routing_key="")
    c.send(queue, "x", exchange=exchange)
    c("basic.get", queue="", no_ack=True)
    c("queue.bind", queue="", exchange=exchange, routing_key="k")
    c.send("k", "y", exchange=exchange)
    c("basic.get", queue="", no_ack=True)
    c("basic.consume", queue="", tag="t")
    c("queue.declare", queue="", passive=True)


@scenario(BY_HAND)
def no_wait(s: Script) -> None:
    """Nothing answers what asks for no answer, but a fault does."""
    c = s.channel()
    queue, exchange = s.of("q"), s.of("x")
    c("exchange.declare", exchange=exchange, type="fanout", nowait=True)
    c("queue.declare", queue=queue, nowait=True)
    c("queue.bind", queue=queue, exchange=exchange, nowait=True)
    c("confirm.select", nowait=True)
    c("basic.consume", queue=queue, tag="t", nowait=True)
    c.send("", "x", exchange=exchange)
    c.deliveries(1)
    c.confirms(1)
    c("basic.cancel", tag="t", nowait=True)
    c("queue.purge", queue=queue, nowait=True)
    c.nothing_more(queue)
    c("exchange.delete", exchange=exchange, nowait=True)
    c("queue.delete", queue=queue, nowait=True)
    c("queue.declare", queue=queue, passive=True)
    c = c.again()
    c("exchange.declare", exchange="amq.x", type="fanout", nowait=True)
    c.closed()
