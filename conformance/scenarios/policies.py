"""Policies of the brokers' definitions (`rig.broker.POLICIES`), on queues declared later."""

from __future__ import annotations

from rig.amqp_script import Channel, Script

from scenarios import scenario

BY_HAND = "by-hand"
QUORUM = {"x-queue-type": "quorum"}


def dying(channel: Channel, dead: str, **more: object) -> dict:
    """Return arguments of a queue whose dead letters go to `dead`."""
    return {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead, **more}


@scenario(BY_HAND, "pika")
def policy_bounds_a_queue(s: Script) -> None:
    c = s.channel()
    dead = c.queue("dead")
    queue = c.queue("policed.cap", arguments=dying(c, dead))
    c("confirm.select")
    c.send(queue, *"1234")
    c.confirms(4)
    c.count(queue)
    c.tell_all(queue)
    c.count(dead)
    c.get(dead, no_ack=True)


@scenario(BY_HAND)
def smallest_bound_of_argument_and_policies(s: Script) -> None:
    c = s.channel()
    c("confirm.select")
    queues = [
        c.queue("policed.cap.less", arguments={"x-max-length": 1}),
        c.queue("policed.cap.more", arguments={"x-max-length": 9}),
        c.queue("policed.cap.operated", arguments={"x-max-length": 9}),
        c.queue("policed.operated"),
    ]
    for queue in queues:
        c.send(queue, *"123456")
        c.confirms(6)
        c.count(queue)


@scenario(BY_HAND)
def policy_is_skipped_for_a_key_of_another_type(s: Script) -> None:
    c = s.channel()
    c("confirm.select")
    for queue in (
        c.queue("policed.mixed.classic", durable=True),
        c.queue("policed.mixed.quorum", durable=True, arguments=QUORUM),
    ):
        c.send(queue, *"1234")
        c.confirms(4)
        c.count(queue)


@scenario(BY_HAND)
def policy_rejects_publications(s: Script) -> None:
    c = s.channel()
    c("confirm.select")
    queue = c.queue("policed.reject")
    c.send(queue, *"12")
    c.confirms(2)
    c.count(queue)
    dropping = c.queue("policed.reject.not", arguments={"x-overflow": "drop-head"})
    c.send(dropping, *"12")
    c.confirms(2)
    c.tell_all(dropping)


@scenario(BY_HAND)
def policy_expires_messages(s: Script) -> None:
    c = s.channel()
    dead = c.queue("dead")
    queue = c.queue("policed.ttl", arguments=dying(c, dead))
    c("confirm.select")
    c.send(queue, "1")
    c.confirms()
    c.count(queue)
    c.get(dead, no_ack=True)


@scenario(BY_HAND)
def policy_chooses_an_alternate_exchange(s: Script) -> None:
    c = s.channel()
    c("exchange.declare", exchange="policed.unrouted", type="fanout", durable=False)
    queue = c.queue("q")
    c.bind(queue, "policed.unrouted")
    own = c.exchange("own")
    exchange = c.exchange("policed.alternate")
    other = c.exchange("policed.alternate.own", arguments={"alternate-exchange": own})
    c.send("nowhere", "1", exchange=exchange, mandatory=True)
    c.send("nowhere", "2", exchange=other, mandatory=True)
    c.events(1, "return")
    c.tell_all(queue)
    c("exchange.delete", exchange="policed.unrouted")


@scenario(BY_HAND)
def equivalence_is_about_arguments_alone(s: Script) -> None:
    c = s.channel()
    queue = c.queue("policed.cap")
    c("queue.declare", queue=queue)
    c("queue.declare", queue=queue, arguments={"x-max-length": 2})
