"""Users, vhosts, and who may do what."""

from __future__ import annotations

from rig.amqp_script import Script

from scenarios import scenario

BY_HAND = "by-hand"


# (amqprs does not say that it understands a close, so the socket just ends, after a while.)
@scenario(without=("rust",))
def wrong_password(s: Script) -> None:
    s.connect(password="wrong")
    s.connect(password="")


@scenario(without=("rust",))
def unknown_user(s: Script) -> None:
    s.connect(user="stranger", password="x")


@scenario()
def password_in_unicode(s: Script) -> None:
    s.connect(user="reader").channel()("basic.qos", count=1)


@scenario()
def unknown_vhost(s: Script) -> None:
    s.connect(vhost="no such vhost")


@scenario()
def vhost_without_permission(s: Script) -> None:
    s.connect(vhost="empty")
    s.connect(user="nobody")
    s.connect(user="guest", vhost="second")


@scenario()
def vhosts_are_apart(s: Script) -> None:
    c = s.channel()
    queue = c.queue("q")
    c.send(queue, "x")
    d = s.channel(vhost="second")
    d("queue.declare", queue=queue, passive=True)
    d = d.again()
    d("queue.declare", queue=queue, exclusive=True)
    d.get(queue)
    d("exchange.declare", exchange="no such", type="direct", passive=True)


@scenario()
def may_only_read(s: Script) -> None:
    owner = s.channel()
    queue = owner.queue("q")
    exchange = owner.exchange("x", "fanout")
    owner.send(queue, "1", "2")
    owner.count(queue)
    c = s.channel(user="reader")
    c.get(queue, no_ack=True)
    c("queue.declare", queue=queue, passive=True)
    for method, arguments in [
        ("queue.declare", {"queue": queue}),
        ("queue.declare", {"queue": "", "exclusive": True}),
        ("queue.delete", {"queue": queue}),
        ("queue.bind", {"queue": queue, "exchange": exchange, "routing_key": ""}),
        ("queue.unbind", {"queue": queue, "exchange": exchange, "routing_key": ""}),
        ("exchange.declare", {"exchange": exchange, "type": "fanout"}),
        ("exchange.delete", {"exchange": exchange}),
        (
            "exchange.bind",
            {"destination": exchange, "source": "amq.fanout", "routing_key": ""},
        ),
    ]:
        c(method, **arguments)
        c = c.again()
    c.send(queue, "x")
    c.closed()
    c = c.again()
    c.send("", "x", exchange=exchange)
    c.closed()
    c = c.again()
    c("queue.purge", queue=queue)
    c.consume(queue)


@scenario()
def may_only_with_some_names(s: Script) -> None:
    """Patterns: `^mine` to configure, `shared.write` to write to, `shared.read` to read from."""
    owner = s.channel()
    c = s.channel(user="limited")
    mine = f"mine.{s.driver}"
    for name in ("shared.write", "shared.read", "other"):
        owner("queue.declare", queue=f"{name}.{s.driver}")
    c("queue.declare", queue=mine)
    s.declared("queue", mine)
    c.send(f"shared.write.{s.driver}", "x", mandatory=True)
    c.closed()
    c = c.again()
    c.consume(f"shared.read.{s.driver}", "a")
    c.consume(f"shared.write.{s.driver}", "b")
    c = c.again()
    c("queue.declare", queue=f"shared.read.{s.driver}")
    c = c.again()
    c("queue.declare", queue=f"not.{mine}")
    c = c.again()
    c("exchange.declare", exchange=mine, type="topic")
    s.declared("exchange", mine)
    c("queue.bind", queue=mine, exchange=mine, routing_key="#")
    c.send("k", "x", exchange=mine)
    c.get(mine, no_ack=True)
    c("queue.bind", queue=mine, exchange="amq.topic", routing_key="#")
    c = c.again()
    # Dead letters go where their queue's owner may write.
    arguments = {"x-dead-letter-exchange": "amq.topic"}
    c("queue.declare", queue=f"{mine}.2", arguments=arguments)
    c = c.again()
    c("queue.declare", queue=f"{mine}.3", arguments={"x-dead-letter-exchange": mine})
    s.declared("queue", f"{mine}.3")
    arguments = {"alternate-exchange": "amq.topic"}
    c("exchange.declare", exchange=f"{mine}.4", type="topic", arguments=arguments)
    for name in ("shared.write", "shared.read", "other"):
        owner("queue.delete", queue=f"{name}.{s.driver}")
