"""Peers that break AMQP's rules: they get RabbitMQ's errors, and other clients are not affected.

Most are rows: how far the connection has come, and the bytes that follow. The answers of the two
brokers are compared.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

import pytest
from rig import amqp_wire as wire
from rig.amqp_peer import Peer, amqplain, plain
from rig.amqp_wire import BODY, CONTENT_HEADER, HEARTBEAT, METHOD, frame, method_payload
from rig.broker import Broker, Crosstie
from rig.plain import ClosedError
from rig.rabbitmq import RabbitMq

CODES = {
    406: "PRECONDITION_FAILED",
    501: "FRAME_ERROR",
    502: "SYNTAX_ERROR",
    503: "COMMAND_INVALID",
    504: "CHANNEL_ERROR",
    530: "NOT_ALLOWED",
    540: "NOT_IMPLEMENTED",
}
# How long an answer to a fault is awaited before something else is asked.
SOON_S = 0.5
# How far a connection has come before its fault.
STAGES = ("connected", "started", "tuned", "opened", "in channel")


def method(name: str, channel: int = 1, **arguments: object) -> bytes:
    """Return a method's frame."""
    return frame(METHOD, channel, method_payload(name, **arguments))


def header(class_id: int = 60, weight: int = 0, size: int = 3, flags: bytes = b"\0\0") -> bytes:
    """Return a content header's payload."""
    return struct.pack("!HHQ", class_id, weight, size) + flags


PUBLISH = method("basic.publish", routing_key="nowhere")
QOS = method_payload("basic.qos")
OPEN = method_payload("channel.open")
DECLARE = method_payload("queue.declare", queue="q")[:-4]
TUNED = method_payload("connection.tune-ok", channel_max=2047, frame_max=131072)

ROWS: dict[str, tuple[str, bytes]] = {
    "http": ("connected", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    "amqp 0-10": ("connected", b"AMQP\x01\x01\x00\x0a"),
    "amqp 1.0": ("connected", b"AMQP\x00\x01\x00\x00"),
    "amqp 1.0 with sasl": ("connected", b"AMQP\x03\x01\x00\x00"),
    "tls": ("connected", b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03"),
    "zeros": ("connected", bytes(8)),
    "no amqp": ("connected", b"AMQX\0\0\x09\x01"),
    # Before the connection is open.
    "tune-ok instead of start-ok": ("started", method("connection.tune-ok", 0)),
    "open instead of start-ok": ("started", method("connection.open", 0, vhost="/")),
    "channel.open instead of start-ok": ("started", frame(METHOD, 1, OPEN)),
    "unknown mechanism": ("started", method("connection.start-ok", 0, mechanism="X", response="")),
    "empty mechanism": ("started", method("connection.start-ok", 0)),
    "plain of nothing": (
        "started",
        method("connection.start-ok", 0, mechanism="PLAIN", response=b""),
    ),
    "plain of two": (
        "started",
        method("connection.start-ok", 0, mechanism="PLAIN", response=b"test\0test"),
    ),
    "amqplain of no table": (
        "started",
        method("connection.start-ok", 0, mechanism="AMQPLAIN", response=b"\x05LOGIN"),
    ),
    "amqplain without password": (
        "started",
        method(
            "connection.start-ok",
            0,
            mechanism="AMQPLAIN",
            response=wire.table({"LOGIN": "test"})[4:],
        ),
    ),
    "frame-max too small": (
        "tuned",
        method("connection.tune-ok", 0, channel_max=2047, frame_max=4095),
    ),
    "frame-max too large": (
        "tuned",
        method("connection.tune-ok", 0, channel_max=2047, frame_max=131073),
    ),
    "channel-max too large": (
        "tuned",
        method("connection.tune-ok", 0, channel_max=2048, frame_max=131072),
    ),
    "channel-max unlimited": (
        "tuned",
        method("connection.tune-ok", 0, channel_max=0, frame_max=131072),
    ),
    "frame-max unlimited": (
        "tuned",
        method("connection.tune-ok", 0, channel_max=2047, frame_max=0),
    ),
    "start-ok twice": ("tuned", method("connection.start-ok", 0, mechanism="PLAIN")),
    "open without tune-ok": ("tuned", method("connection.open", 0, vhost="/")),
    "unknown vhost": (
        "tuned",
        frame(METHOD, 0, TUNED) + method("connection.open", 0, vhost="none"),
    ),
    "vhost not in utf-8": (
        "tuned",
        frame(METHOD, 0, TUNED) + method("connection.open", 0, vhost=b"\xff\xfe"),
    ),
    # Frames.
    "wrong end": ("opened", frame(METHOD, 1, OPEN)[:-1] + b"\0"),
    "unknown type": ("opened", frame(5, 0, b"")),
    "type zero": ("opened", frame(0, 0, b"")),
    "type 255": ("opened", frame(255, 0, b"x")),
    "too large": ("in channel", struct.pack("!BHI", METHOD, 1, 131073) + bytes(100)),
    "far too large": ("in channel", struct.pack("!BHI", METHOD, 1, 2**32 - 1) + bytes(100)),
    "empty method": ("in channel", frame(METHOD, 1, b"")),
    "half a method": ("in channel", frame(METHOD, 1, b"\0\x3c\0")),
    "unknown class": ("in channel", frame(METHOD, 1, struct.pack("!HH", 99, 10))),
    "unknown method": ("in channel", frame(METHOD, 1, struct.pack("!HH", 60, 999))),
    "unknown method of channel 0": ("opened", frame(METHOD, 0, struct.pack("!HH", 10, 999))),
    "arguments cut off": ("in channel", frame(METHOD, 1, QOS[:-2])),
    "arguments and more": ("in channel", frame(METHOD, 1, QOS + b"more")),
    "table cut off": ("in channel", frame(METHOD, 1, DECLARE + b"\0\0\0\x09\x01a")),
    "table of an unknown type": ("in channel", frame(METHOD, 1, DECLARE + b"\0\0\0\x03\x01a?")),
    "table longer than it says": (
        "in channel",
        frame(METHOD, 1, DECLARE + b"\0\0\0\x04\x01at\x01\x01"),
    ),
    "heartbeat on a channel": ("opened", frame(HEARTBEAT, 1, b"")),
    # Channels.
    "channel not open": ("opened", frame(METHOD, 7, QOS)),
    "channel opened twice": ("in channel", frame(METHOD, 1, OPEN)),
    "channel beyond the maximum": ("opened", frame(METHOD, 2048, OPEN)),
    "channel.open on channel 0": ("opened", frame(METHOD, 0, OPEN)),
    "basic.qos on channel 0": ("opened", frame(METHOD, 0, QOS)),
    "connection.open on a channel": ("in channel", method("connection.open", 1, vhost="/")),
    "connection.open twice": ("opened", method("connection.open", 0, vhost="/")),
    "connection.close on a channel": ("in channel", method("connection.close", 1, code=200)),
    "what only brokers say": ("in channel", method("queue.declare-ok", queue="q")),
    "basic.deliver": ("in channel", method("basic.deliver", tag="c")),
    "channel.open-ok": ("in channel", method("channel.open-ok")),
    "update-secret without need": ("opened", method("connection.update-secret", 0, secret=b"x")),
    # Content.
    "header without publish": ("in channel", frame(CONTENT_HEADER, 1, header())),
    "body without publish": ("in channel", frame(BODY, 1, b"abc")),
    "body without header": ("in channel", PUBLISH + frame(BODY, 1, b"abc")),
    "method instead of header": ("in channel", PUBLISH + frame(METHOD, 1, QOS)),
    "method instead of body": (
        "in channel",
        PUBLISH + frame(CONTENT_HEADER, 1, header()) + frame(METHOD, 1, QOS),
    ),
    "header instead of body": (
        "in channel",
        PUBLISH + frame(CONTENT_HEADER, 1, header()) + frame(CONTENT_HEADER, 1, header()),
    ),
    "header of another class": (
        "in channel",
        PUBLISH + frame(CONTENT_HEADER, 1, header(class_id=50)),
    ),
    "header of an unknown class": (
        "in channel",
        PUBLISH + frame(CONTENT_HEADER, 1, header(class_id=99)),
    ),
    "header cut off": ("in channel", PUBLISH + frame(CONTENT_HEADER, 1, header()[:6])),
    "properties cut off": (
        "in channel",
        PUBLISH + frame(CONTENT_HEADER, 1, header(flags=b"\x80\0") + b"\x09abc"),
    ),
    "properties and more": (
        "in channel",
        PUBLISH + frame(CONTENT_HEADER, 1, header(flags=b"\x80\0") + b"\x01abc"),
    ),
    "flags without end": (
        "in channel",
        PUBLISH + frame(CONTENT_HEADER, 1, header(flags=b"\0\x01")),
    ),
    "body too long": (
        "in channel",
        PUBLISH + frame(CONTENT_HEADER, 1, header()) + frame(BODY, 1, b"abcd"),
    ),
    "message too large": (
        "in channel",
        PUBLISH + frame(CONTENT_HEADER, 1, header(size=2**63)),
    ),
    "heartbeat in the midst of content": (
        "in channel",
        PUBLISH
        + frame(CONTENT_HEADER, 1, header())
        + frame(HEARTBEAT, 0, b"")
        + frame(BODY, 1, b"abc"),
    ),
    "empty body frames": (
        "in channel",
        PUBLISH
        + frame(CONTENT_HEADER, 1, header())
        + frame(BODY, 1, b"") * 3
        + frame(BODY, 1, b"abc"),
    ),
    # Arguments without a meaning.
    "prefetch size": ("in channel", method("basic.qos", size=1)),
    "queue name not in utf-8": ("in channel", method("queue.declare", queue=b"\xff\xfe\xfd")),
    "exchange type not in utf-8": (
        "in channel",
        method("exchange.declare", exchange="x", type=b"\xff"),
    ),
    "queue name with zeros": ("in channel", method("queue.declare", queue="\0", passive=True)),
    "queue name of 255 bytes": (
        "in channel",
        method("queue.declare", queue="q" * 255, passive=True),
    ),
    "immediate": (
        "in channel",
        method("basic.publish", routing_key="nowhere", immediate=True)
        + frame(CONTENT_HEADER, 1, header(size=0)),
    ),
    "ack of nothing": ("in channel", method("basic.ack", delivery=2**64 - 1)),
}

# Answers that differ from RabbitMQ's: the code that AMQP names, and the reason.
SILENT = "RabbitMQ ends the socket without a word"
WORDING = "RabbitMQ shows a term of Erlang"
SYNTAX = "AMQP says 502 of malformed arguments; RabbitMQ says 501 with a term of Erlang, or nothing"
STUCK = "RabbitMQ never answers"
LENIENT = "RabbitMQ lets it pass"
DIFFERENCES: dict[str, tuple[int, str]] = {
    "tune-ok instead of start-ok": (503, SILENT),
    "open instead of start-ok": (503, SILENT),
    "channel.open instead of start-ok": (504, SILENT),
    "unknown mechanism": (503, SILENT),
    "empty mechanism": (503, SILENT),
    "frame-max too small": (530, SILENT),
    "frame-max too large": (530, SILENT),
    "channel-max too large": (530, SILENT),
    "channel-max unlimited": (530, SILENT),
    "frame-max unlimited": (530, SILENT),
    "start-ok twice": (503, SILENT),
    "open without tune-ok": (503, SILENT),
    "vhost not in utf-8": (502, SYNTAX),
    "wrong end": (501, WORDING),
    "unknown type": (501, WORDING),
    "type zero": (501, WORDING),
    "type 255": (501, WORDING),
    "too large": (501, WORDING),
    "far too large": (501, WORDING),
    "empty method": (502, SYNTAX),
    "half a method": (502, SYNTAX),
    "unknown class": (503, SILENT),
    "unknown method": (503, SILENT),
    "unknown method of channel 0": (503, SILENT),
    "arguments cut off": (502, SYNTAX),
    "arguments and more": (502, SYNTAX),
    "table cut off": (502, SYNTAX),
    "table of an unknown type": (502, SYNTAX),
    "table longer than it says": (502, SYNTAX),
    "channel not open": (504, STUCK),
    "connection.open on a channel": (503, WORDING),
    "connection.close on a channel": (503, STUCK),
    "what only brokers say": (503, STUCK),
    "basic.deliver": (503, LENIENT),
    "channel.open-ok": (503, STUCK),
    "header cut off": (502, SYNTAX),
    "properties cut off": (502, LENIENT),
    "properties and more": (502, LENIENT),
    "flags without end": (502, LENIENT),
    "body too long": (501, LENIENT),
    "message too large": (406, "RabbitMQ says so when all of it is there"),
    "queue name not in utf-8": (502, SYNTAX),
    "exchange type not in utf-8": (502, SYNTAX),
    "immediate": (540, STUCK),
}


def reach(peer: Peer, stage: str) -> None:
    """Bring a connection so far."""
    at = STAGES.index(stage)
    if at >= STAGES.index("tuned"):
        peer.start()
        peer.expect("connection.tune")
    elif at == STAGES.index("started"):
        peer.send(wire.HEADER)
        peer.expect("connection.start")
    if at >= STAGES.index("opened"):
        peer.send(frame(METHOD, 0, TUNED))
        peer.call("connection.open", 0, vhost="/")
        peer.expect("connection.open-ok")
    if at >= STAGES.index("in channel"):
        peer.channel(1)


def observe(peer: Peer, stage: str, octets: bytes) -> list[tuple]:
    """Send the bytes and return what comes of it."""
    if stage == "connected":
        peer.send(octets)
        return [("octets", peer.receive_all())]
    peer.send(octets)
    # If all is well, nothing comes but the answer to this. It is not asked together with the
    # fault: RabbitMQ may not come to closing then.
    is_asked = not peer.has_heard(SOON_S)
    if is_asked:
        ask(peer, stage)
    observed: list[tuple] = []
    while True:
        try:
            channel, told = peer.receive_method()
        except ClosedError as error:
            return [*observed, ("end", error.rest)]
        observed.append((channel, told.name, *told.arguments.values()))
        if told.name == "connection.close":
            peer.call("connection.close-ok", 0)
            return [*observed, ("end", peer.receive_all())]
        if told.name == "channel.close":
            peer.call("channel.close-ok", channel)
        if not is_asked:
            is_asked = True
            ask(peer, stage)
        if told.name in ("connection.open-ok", "connection.close-ok"):
            return observed
        if (channel, told.name) == (999, "channel.open-ok"):
            peer.round_trip(999)
            return observed


def ask(peer: Peer, stage: str) -> None:
    """Ask for what is answered if all is well."""
    if stage in ("opened", "in channel"):
        peer.call("channel.open", 999)
    elif stage == "tuned":
        peer.call("connection.open", 0, vhost="/")


@pytest.fixture
def witness(crosstie_broker: Crosstie) -> Iterator[Peer]:
    """A client that is served whatever others do."""
    since = len(crosstie_broker.router.log)
    with Peer.tcp(crosstie_broker.address) as peer:
        peer.open()
        peer.channel()
        peer.call("queue.declare", exclusive=True)
        queue = peer.expect("queue.declare-ok")["queue"]
        peer.publish("", queue, b"kept")
        yield peer
        peer.call("basic.get", queue=queue, no_ack=True)
        assert peer.expect("basic.get-ok").body == b"kept"
        peer.leave()
    panics = [line.text for line in crosstie_broker.router.log[since:] if "panicked" in line.text]
    assert not panics, panics


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.usefixtures("witness")
def test_bad_octets(row: str, rabbitmq: RabbitMq, crosstie_broker: Crosstie) -> None:
    stage, octets = ROWS[row]

    def observed(broker: Broker) -> list[tuple]:
        with Peer.tcp(broker.address) as peer:
            reach(peer, stage)
            return observe(peer, stage, octets)

    seen = observed(crosstie_broker)
    if row in DIFFERENCES:
        code, _ = DIFFERENCES[row]
        channel, name, told, text, *_ = seen[0]
        assert (told, name) == (code, f"{'channel' if channel else 'connection'}.close"), seen
        assert text.startswith(f"{CODES[code]} - "), seen
    else:
        assert seen == observed(rabbitmq)


@pytest.mark.parametrize("cut", [1, 7, 8, 9, 30])
def test_cut_off_anywhere(cut: int, crosstie_broker: Crosstie, witness: Peer) -> None:
    with Peer.tcp(crosstie_broker.address) as peer:
        reach(peer, "in channel")
        peer.send((PUBLISH + frame(CONTENT_HEADER, 1, header()))[:cut])
        peer.reset()
    witness.round_trip()


def test_octet_by_octet(broker: Broker) -> None:
    """How bytes are grouped means nothing."""
    with Peer.tcp(broker.address) as peer:
        peer.open()
        peer.channel()
        peer.call("queue.declare", exclusive=True)
        queue = peer.expect("queue.declare-ok")["queue"]
        publish = method("basic.publish", routing_key=queue)
        for octet in publish + wire.content({"type": "t"}, b"body", 1):
            peer.send(bytes([octet]))
        peer.call("basic.get", queue=queue, no_ack=True)
        got = peer.expect("basic.get-ok")
        assert (got.properties, got.body) == ({"type": "t"}, b"body")


def test_frames_of_many_channels_mixed(broker: Broker) -> None:
    """Contents of different channels may be interleaved, frame by frame."""
    with Peer.tcp(broker.address) as peer:
        peer.open()
        for number in (1, 2):
            peer.channel(number)
        peer.call("queue.declare", exclusive=True)
        queue = peer.expect("queue.declare-ok")["queue"]
        contents = {}
        for number in (1, 2):
            payload = wire.properties_payload({}, 6)
            contents[number] = [
                method("basic.publish", number, routing_key=queue),
                frame(CONTENT_HEADER, number, payload),
                frame(BODY, number, b"abc"),
                frame(BODY, number, b"def"),
            ]
        peer.send(b"".join(one + two for one, two in zip(*contents.values(), strict=True)))
        bodies = []
        for number in (1, 2):
            peer.round_trip(number)
            peer.call("basic.get", number, queue=queue, no_ack=True)
            bodies.append(peer.expect("basic.get-ok", number).body)
        assert bodies == [b"abcdef"] * 2


def test_after_a_channel_fault_all_is_ignored(broker: Broker) -> None:
    """Until `close-ok` the channel is deaf; the others are not."""
    with Peer.tcp(broker.address) as peer:
        peer.open()
        peer.channel(1)
        peer.channel(2)
        peer.call("queue.declare", 1, queue="not there", passive=True)
        close = peer.expect("channel.close", 1)
        assert close["code"] == 404
        peer.publish("", "anything", b"ignored", mandatory=True)
        peer.call("basic.qos", 1)
        peer.round_trip(2)
        peer.call("channel.close-ok", 1)
        peer.channel(1)
        peer.round_trip(1)


def test_after_a_connection_fault_all_is_ignored(broker: Broker) -> None:
    with Peer.tcp(broker.address) as peer:
        peer.open()
        peer.send_frame(METHOD, 0, QOS)
        close = peer.expect("connection.close")
        assert close["code"] == 504
        peer.send_frame(METHOD, 1, OPEN)
        peer.publish("", "anything", b"ignored")
        peer.call("connection.close-ok", 0)
        assert peer.receive_all() == b""


REFUSED: dict[str, Callable[[], bytes]] = {
    "PLAIN": lambda: plain("test", "wrong"),
    "AMQPLAIN": lambda: amqplain("test", "wrong"),
}


@pytest.mark.parametrize("mechanism", REFUSED)
def test_bad_credentials(mechanism: str, broker: Broker) -> None:
    with Peer.tcp(broker.address) as peer:
        peer.start(mechanism=mechanism, response=REFUSED[mechanism]())
        assert peer.expect_connection_close() == (
            403,
            f"ACCESS_REFUSED - Login was refused using authentication mechanism {mechanism}. "
            "For details see the broker logfile.",
            0,
            0,
        )


def test_bad_credentials_of_a_peer_that_expects_no_close(broker: Broker) -> None:
    """Without the capability the socket just ends."""
    with Peer.tcp(broker.address) as peer:
        peer.start("test", "wrong", properties={})
        assert peer.receive_all() == b""


def test_good_credentials(broker: Broker) -> None:
    for mechanism, response in (
        ("PLAIN", plain("test", "test")),
        ("AMQPLAIN", amqplain("test", "test")),
    ):
        with Peer.tcp(broker.address) as peer:
            peer.open(mechanism=mechanism, response=response)
            peer.channel()
            peer.leave()


def test_heartbeats_are_sent(broker: Broker) -> None:
    with Peer.tcp(broker.address) as peer:
        peer.open(heartbeat=1)
        for _ in range(2):
            beat = peer.receive_frame()
            assert (beat.kind, beat.channel, beat.payload) == (HEARTBEAT, 0, b"")
            peer.send_frame(HEARTBEAT, 0, b"")


def test_heartbeats_that_do_not_come(broker: Broker) -> None:
    """A peer that is silent for longer than negotiated is closed."""
    with Peer.tcp(broker.address) as peer:
        peer.open(heartbeat=1)
        rest = peer.receive_all()
        assert set(rest) <= set(frame(HEARTBEAT, 0, b"")), rest


def test_any_frame_is_a_heartbeat(broker: Broker) -> None:
    """The broker hears a peer that sends other frames."""
    with Peer.tcp(broker.address) as peer:
        peer.open(heartbeat=1)
        peer.channel()
        for _ in range(4):
            peer.receive_frame()
            peer.call("basic.qos", 1)


def test_the_brokers_server_properties(broker: Broker) -> None:
    with Peer.tcp(broker.address) as peer:
        start = peer.start()
        tune = peer.expect("connection.tune")
    assert (start["version_major"], start["version_minor"]) == (0, 9)
    assert set(start["mechanisms"].split()) == {"PLAIN", "AMQPLAIN"}
    assert start["locales"] == "en_US"
    said = start["properties"]
    assert {"version", "platform", "information", "cluster_name"} <= set(said)
    # kombu and others decide by it what they say.
    assert said["product"] == "RabbitMQ"
    assert [int(number) for number in said["version"].split(".")][:2] >= [3, 10]
    wanted = {
        "publisher_confirms": True,
        "exchange_exchange_bindings": True,
        "basic.nack": True,
        "consumer_cancel_notify": True,
        "connection.blocked": True,
        "consumer_priorities": True,
        "authentication_failure_close": True,
        "per_consumer_qos": True,
        "direct_reply_to": True,
    }
    assert said["capabilities"] == wanted
    assert tune.arguments == {"channel_max": 2047, "frame_max": 131072, "heartbeat": 60}


def test_a_consumer_that_never_acknowledges(start_broker) -> None:
    """Its channel is closed when the time is over; what it held goes to others."""
    broker = start_broker(amqp={"limits": {"consumer_timeout_ms": 1000}})
    with Peer.tcp(broker.address) as peer:
        peer.open()
        peer.channel()
        peer.call("queue.declare", queue="q")
        peer.expect("queue.declare-ok")
        peer.publish("", "q", b"held")
        peer.call("basic.consume", queue="q", tag="c")
        peer.expect("basic.consume-ok")
        peer.expect("basic.deliver")
        code, text, *_ = peer.expect_channel_close()
        assert (code, text) == (
            406,
            "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. "
            "Timeout value used: 1000 ms. This timeout value can be configured, "
            "see consumers doc guide to learn more",
        )
        peer.channel()
        peer.call("basic.get", queue="q")
        assert peer.expect("basic.get-ok")["redelivered"]


def test_a_consumer_that_only_holds(start_broker) -> None:
    """Publishers are told and held: what a consumer has stays in memory until it acknowledges."""
    limit = 4_000_000
    broker = start_broker(amqp={"limits": {"memory_bytes_max": limit}})
    body = bytes(100_000)
    held = limit // len(body)
    with Peer.tcp(broker.address) as publisher, Peer.tcp(broker.address) as consumer:
        for peer in (publisher, consumer):
            peer.open()
            peer.channel()
        publisher.call("queue.declare", queue="q")
        publisher.expect("queue.declare-ok")
        consumer.call("basic.consume", queue="q", tag="c")
        consumer.expect("basic.consume-ok")
        for _ in range(held + 2):
            publisher.publish("", "q", body)
        # Reading goes on meanwhile.
        for _ in range(held):
            assert consumer.expect("basic.deliver").body == body
        assert publisher.expect("connection.blocked")["reason"]
        consumer.call("basic.ack", delivery=held, multiple=True)
        publisher.expect("connection.unblocked")
        for _ in range(2):
            assert consumer.expect("basic.deliver").body == body
        publisher.round_trip()
        publisher.leave()


def test_a_peer_that_never_reads(crosstie_broker: Crosstie, witness: Peer) -> None:
    """It delays no other client: not who publishes, nor who consumes from the same queue."""
    with (
        Peer.tcp(crosstie_broker.address, receive_buffer=4096) as deaf,
        Peer.tcp(crosstie_broker.address) as other,
    ):
        for peer in (deaf, other):
            peer.open()
            peer.channel()
        other.call("queue.declare", queue="bad.deaf", auto_delete=True)
        other.expect("queue.declare-ok")
        deaf.call("basic.consume", queue="bad.deaf", tag="c", no_ack=True)
        deaf.expect("basic.consume-ok")
        for _ in range(200):
            other.publish("", "bad.deaf", bytes(100_000))
        other.round_trip()
        witness.round_trip()


def test_silence_before_the_header(start_broker) -> None:
    """A connection that sends nothing is closed."""
    broker = start_broker(transport={"options": {"handshake_timeout_ms": 300}})
    with Peer.tcp(broker.address) as silent:
        assert silent.receive_all() == b""
    with Peer.tcp(broker.address) as started:
        reach(started, "started")
        rest = started.receive_all()
        assert rest == b"" or wire.parse_method(rest[7:-1]).name == "connection.close"
