"""Publishing: confirms, returns, properties, copies, direct replies."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from rig.amqp_script import Script

from scenarios import scenario

BY_HAND = "by-hand"


@scenario()
def every_property(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c.send(
        queue,
        "body",
        content_type="text/plain",
        content_encoding="utf-8",
        headers={
            "text": "wört",
            "number": 1,
            "large": 2**62,
            "negative": -5,
            "yes": True,
            "nothing": None,
            "table": {"in": {"a": ["list", 1, {}]}},
            "list": [],
        },
        delivery_mode=2,
        priority=7,
        correlation_id="correlation",
        reply_to="reply",
        expiration="60000",
        message_id="message",
        timestamp=1_700_000_000,
        type="type",
        user_id="test",
        app_id="application",
        cluster_id="cluster",
    )
    c.get(queue, no_ack=True)
    c.send(queue, "")
    c.get(queue, no_ack=True)


@scenario(BY_HAND)
def every_table_type(s: Script) -> None:
    """Bytes of a table come out as they went in."""
    c = s.channel()
    queue = c.queue("q")
    headers = {
        "b": ("b", b"\xff"),
        "B": ("B", b"\xff"),
        "s": ("s", b"\xff\xfe"),
        "u": ("u", b"\xff\xfe"),
        "I": -(2**31),
        "i": ("i", b"\xff\xff\xff\xff"),
        "l": 2**40,
        "f": ("f", b"\x3f\xc0\0\0"),
        "d": 1.5,
        "D": Decimal("-12.34"),
        "T": datetime.fromtimestamp(1_700_000_000, UTC),
        "x": ("x", b"\0\0\0\x03\0\xff\x01"),
        "S": b"\xff not utf-8",
        "A": [1, "a", [None]],
        "F": {"": 1},
        "V": None,
        "t": False,
    }
    for name, value in headers.items():
        c.send(queue, name, headers={name: value})
        c.get(queue, no_ack=True)


@scenario()
def bodies_of_any_size(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c.consume(queue, no_ack=True)
    # Around one frame, and around several.
    for size in (0, 1, 131063, 131064, 131065, 262128, 262129, 1_000_000):
        c.link.driver.publish(1, "", queue, bytes(size), {})
        events = c.link.driver.events[1]
        c.link.driver.await_true(lambda: bool(events))  # noqa: B023 (used at once)
        s.tell(size, len(events[0].body) == size, events[0].arguments)
        events.clear()


@scenario()
def confirms(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c.send(queue, "before")
    c("confirm.select")
    c.send(queue, "1", "2", "3")
    c.confirms(3)
    c("confirm.select")
    c.send(queue, "4")
    c.confirms(1)
    # It reached no queue: it is confirmed all the same.
    c.send("to nowhere", "5")
    c.confirms(1)
    c.count(queue)


@scenario()
def confirms_of_durable(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q", durable=True)
    c("confirm.select")
    c.send(queue, *(str(number) for number in range(100)), delivery_mode=2)
    c.confirms(100)
    c.count(queue)


@scenario()
def returns_before_confirms(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    exchange = c.exchange("x", "direct")
    c("confirm.select")
    c.send("nobody", "1", exchange=exchange, mandatory=True, message_id="m", headers={"a": 1})
    c.events(2, "return", "ack")
    c.send("no queue of that name", "2", mandatory=True)
    c.events(2, "return", "ack")
    c.send(queue, "3", mandatory=True)
    c.events(1, "return", "ack")
    c.count(queue)


@scenario()
def returns_without_confirms(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c.send("nobody", "1", "2", mandatory=True)
    c.events(2, "return")
    c.send("nobody", "3")
    c.nothing_more(queue)


@scenario(BY_HAND)
def immediate(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c.send(queue, "1", immediate=True)
    c.closed()


@scenario()
def user_id_of_another(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c.send(queue, "mine", user_id="test")
    c.get(queue, no_ack=True)
    c.send(queue, "not mine", user_id="guest")
    c.closed()


@scenario()
def bad_expirations(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    for expiration in ("soon", "-1", "1.5", " 1", "1 ", ""):
        c.send(queue, "x", expiration=expiration)
        c.closed()
        c = c.again()
    # Fifty days, which is more than a queue's may be.
    c.send(queue, "x", expiration="4294967296")
    c.count(queue)


@scenario()
def bad_delivery_modes(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    for mode in (0, 3, 255):
        c.send(queue, "x", delivery_mode=mode)
        c.closed()
        c = c.again()
    for mode in (1, 2):
        c.send(queue, "x", delivery_mode=mode)
        c.get(queue, no_ack=True)


@scenario()
def copies(s: Script) -> None:
    """CC and BCC: more routing keys; the first stays, the second is taken off."""
    c = s.channel()
    exchange = c.exchange("x", "direct")
    queues = {key: c.queue(key) for key in ("a", "b", "c", "d")}
    for key, queue in queues.items():
        c.bind(queue, exchange, key)
    c.send("a", "1", exchange=exchange, headers={"CC": ["b", "a"], "BCC": ["c"], "other": 1})
    for queue in queues.values():
        c.get(queue, no_ack=True)
    c.send(queues["a"], "2", headers={"CC": [queues["b"]], "BCC": [queues["d"]]})
    for queue in queues.values():
        c.get(queue, no_ack=True)
    c.send("a", "3", exchange=exchange, headers={"BCC": "b"})
    c.closed()
    c = c.again()
    # Other entries of the list are ignored.
    c.send("a", "4", exchange=exchange, headers={"CC": [1]})
    c.get(queues["a"], no_ack=True)


@scenario()
def direct_reply(s: Script) -> None:
    pseudo = "amq.rabbitmq.reply-to"
    asking, serving = s.channel(), s.channel()
    queue = serving.queue("server")
    serving.consume(queue, "server")
    asking.consume(pseudo, "replies", no_ack=True)
    asking.send(queue, "question", reply_to=pseudo, correlation_id="1")
    questions = serving.deliveries(1)
    token = questions[0].properties["reply_to"] if questions else ""
    s.tell("the token is another", token != pseudo, token.startswith(f"{pseudo}."))
    serving.send(token, "answer", correlation_id="1")
    asking.deliveries(1)
    # It can be asked for while the asker is there.
    serving("queue.declare", queue=token, passive=True)
    serving.send(token, "second answer", mandatory=True)
    asking.deliveries(1)
    asking("basic.cancel", tag="replies")
    serving("queue.declare", queue=token, passive=True)
    serving = serving.again()
    serving.send(token, "too late", mandatory=True)
    serving.events(1, "return")
    serving("basic.get", queue=token)


@scenario()
def direct_reply_faults(s: Script) -> None:
    pseudo = "amq.rabbitmq.reply-to"
    c = s.channel()
    queue = c.queue("q")
    c.send(queue, "x", reply_to=pseudo)
    c.closed()
    c = c.again()
    c("basic.consume", queue=pseudo, tag="t")
    c = c.again()
    c.consume(pseudo, "t", no_ack=True)
    c("basic.consume", queue=pseudo, tag="u", no_ack=True)
    c = c.again()
    c("queue.declare", queue=pseudo, passive=True)
    c("queue.declare", queue=pseudo)
    c("basic.get", queue=pseudo)
    c = c.again()
    c("queue.delete", queue=pseudo)
    c("queue.purge", queue=pseudo)
    c = c.again()
    c.bind(pseudo, "amq.direct", "x")
    c = c.again()
    c.send(f"{pseudo}.nonsense", "x", mandatory=True)
    c.events(1, "return")


@scenario()
def direct_reply_after_the_channel(s: Script) -> None:
    pseudo = "amq.rabbitmq.reply-to"
    asking, serving = s.channel(), s.channel()
    queue = serving.queue("server")
    asking.consume(pseudo, "replies", no_ack=True)
    asking.send(queue, "question", reply_to=pseudo)
    # (Until it is there: the two channels are not in order with each other.)
    asking.count(queue)
    got = serving.get(queue, no_ack=True).get("event")
    asking("channel.close")
    if got:
        serving.send(got.properties["reply_to"], "answer", mandatory=True)
        serving.events(1, "return")


@scenario(BY_HAND)
def access_requested(s: Script) -> None:
    """A leftover of AMQP 0-8."""
    c = s.channel()
    c("access.request", realm="/data", active=True, write=True, read=True)
