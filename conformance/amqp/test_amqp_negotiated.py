"""Values negotiated by a client and the broker: frame sizes, channels, capabilities."""

from __future__ import annotations

from rig.amqp_peer import Peer
from rig.amqp_wire import BODY
from rig.broker import Broker


def queue_of(peer: Peer) -> str:
    """Declare a queue that goes with the connection."""
    peer.call("queue.declare", exclusive=True)
    return peer.expect("queue.declare-ok")["queue"]


def test_small_frames(broker: Broker) -> None:
    """A client with frames of 4096 bytes gets no longer ones, whatever the other client has."""
    body = bytes(range(256)) * 300
    with Peer.tcp(broker.address) as large, Peer.tcp(broker.address) as small:
        large.open()
        large.channel()
        small.open(frame_max=4096)
        small.channel()
        queue = queue_of(small)
        small.call("basic.consume", queue=queue, no_ack=True)
        small.expect("basic.consume-ok")
        large.publish("", queue, body)
        # The peer holds every frame to its bound.
        assert small.expect("basic.deliver").body == body
        small.publish("", queue, body)
        assert small.expect("basic.deliver").body == body


def test_a_frame_beyond_what_was_agreed(broker: Broker) -> None:
    with Peer.tcp(broker.address) as peer:
        peer.open(frame_max=4096)
        peer.channel()
        peer.call("basic.publish", routing_key="x")
        peer.send_frame(BODY, 1, bytes(4097))
        assert peer.expect_connection_close()[0] == 501


def test_one_channel_too_many(broker: Broker) -> None:
    with Peer.tcp(broker.address) as peer:
        peer.open(channel_max=2)
        peer.channel(1)
        peer.channel(2)
        peer.call("channel.open", 3)
        code, text, *_ = peer.expect_connection_close()
        assert (code, text) == (
            530,
            "NOT_ALLOWED - number of channels opened (2) "
            "has reached the negotiated channel_max (2)",
        )


def test_no_cancel_for_who_does_not_know_it(broker: Broker) -> None:
    """A client without `consumer_cancel_notify` is not told that its queue is gone."""
    with Peer.tcp(broker.address) as plain, Peer.tcp(broker.address) as other:
        plain.open(properties={})
        plain.channel()
        other.open()
        other.channel()
        name = "negotiated.cancel"
        other.call("queue.declare", queue=name)
        other.expect("queue.declare-ok")
        for peer in (plain, other):
            peer.call("basic.consume", queue=name, tag="c")
            peer.expect("basic.consume-ok")
        other.call("queue.delete", queue=name)
        heard = {other.hear().name, other.hear().name}
        assert heard == {"queue.delete-ok", "basic.cancel"}
        plain.round_trip()
        plain.leave()


def test_an_orderly_end_gives_back_what_was_out(broker: Broker) -> None:
    name = "negotiated.end"
    with Peer.tcp(broker.address) as first, Peer.tcp(broker.address) as second:
        for peer in (first, second):
            peer.open()
            peer.channel()
        second.call("queue.declare", queue=name, auto_delete=True)
        second.expect("queue.declare-ok")
        first.publish("", name, b"held")
        first.call("basic.consume", queue=name, tag="c")
        first.expect("basic.consume-ok")
        first.expect("basic.deliver")
        second.call("basic.consume", queue=name, tag="c")
        second.expect("basic.consume-ok")
        first.leave()
        delivered = second.expect("basic.deliver")
        assert (delivered["redelivered"], delivered.body) == (True, b"held")


def test_pipelined(broker: Broker) -> None:
    """A client need not wait for answers: they come in the order of the questions."""
    with Peer.tcp(broker.address) as peer:
        peer.open()
        peer.call("channel.open", 1)
        peer.call("queue.declare", queue="negotiated.pipelined", exclusive=True)
        peer.call("confirm.select")
        for number in range(100):
            peer.publish("", "negotiated.pipelined", str(number).encode())
        peer.call("basic.consume", queue="negotiated.pipelined", tag="c", no_ack=True)
        for name in ("channel.open-ok", "queue.declare-ok", "confirm.select-ok"):
            peer.expect(name)
        bodies: list[int] = []
        confirmed = 0
        while len(bodies) < 100 or confirmed < 100:
            method = peer.hear()
            if method.name == "basic.deliver":
                bodies.append(int(method.body))
            elif method.name == "basic.ack":
                confirmed = max(confirmed, method["delivery"])
        assert bodies == list(range(100))


def test_messages_of_many_sizes_between_clients(broker: Broker) -> None:
    """Every length around the bounds of buffers and frames arrives as it was sent."""
    with Peer.tcp(broker.address) as peer:
        peer.open()
        peer.channel()
        queue = queue_of(peer)
        peer.call("basic.consume", queue=queue, no_ack=True)
        peer.expect("basic.consume-ok")
        for exponent in range(8, 21):
            for size in (2**exponent - 9, 2**exponent - 8, 2**exponent - 7, 2**exponent):
                body = size.to_bytes(4, "big") * (size // 4) + b"!" * (size % 4)
                peer.publish("", queue, body)
                assert peer.expect("basic.deliver").body == body
