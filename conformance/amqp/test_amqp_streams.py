"""Streams over AMQP 0-9-1: the same answers on both brokers, and what only Crosstie promises."""

from __future__ import annotations

import datetime
import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest
from rig.broker import Broker, Crosstie
from rig.streams import STREAM, bodies, channel_of, declare, publish, read, refused
from rig.waiting import await_true

NAMES = itertools.count()


@pytest.fixture
def stream(broker: Broker) -> Iterator[str]:
    """Declare a stream of the test's own."""
    name = f"stream.{next(NAMES)}"
    with channel_of(broker) as channel:
        channel.queue_declare(name, durable=True, arguments=STREAM)
    yield name
    with channel_of(broker) as channel:
        channel.queue_delete(name)


REFUSED_DECLARATIONS = [
    (
        declare(durable=False),
        "invalid property 'non-durable' for queue 'refused' in vhost '/'",
    ),
    (
        declare(auto_delete=True, exclusive=True),
        "invalid property 'auto-delete' for queue 'refused' in vhost '/'",
    ),
    (
        declare(exclusive=True),
        "invalid property 'exclusive-owner' for queue 'refused' in vhost '/'",
    ),
    (declare(queue=""), "Cannot declare a server-named queue for type rabbit_stream_queue"),
    *(
        (
            declare(arguments={name: value}),
            f"invalid arg '{name}' for queue 'refused' in vhost '/' of queue type "
            "rabbit_stream_queue",
        )
        for name, value in {
            "x-max-length": 5,
            "x-overflow": "drop-head",
            "x-message-ttl": 1000,
            "x-expires": 1000,
            "x-dead-letter-exchange": "amq.direct",
            "x-max-priority": 3,
            "x-single-active-consumer": True,
            "x-queue-mode": "lazy",
            "x-delivery-limit": 3,
        }.items()
    ),
    *(
        (
            declare(arguments={"x-max-age": age}),
            f"invalid arg 'x-max-age' for queue 'refused' in vhost '/': {why}",
        )
        for age, why in {
            "7Q": "invalid_max_age",
            "0s": "invalid_max_age",
            "1H": "invalid_max_age",
            "1.5h": "invalid_max_age",
            "1h30m": "invalid_max_age",
            5: "{unacceptable_type,signedint}",
        }.items()
    ),
    (
        declare(arguments={"x-stream-max-segment-size-bytes": 3_000_000_001}),
        "Exceeded max value for x-stream-max-segment-size-bytes",
    ),
    (
        declare(arguments={"x-stream-max-segment-size-bytes": "many"}),
        "invalid arg 'x-stream-max-segment-size-bytes' for queue 'refused' in vhost '/': "
        '"expected integer, got longstr"',
    ),
    (
        declare(arguments={"x-max-length-bytes": -1}),
        "invalid arg 'x-max-length-bytes' for queue 'refused' in vhost '/': {value_negative,-1}",
    ),
    (
        declare(arguments={"x-queue-leader-locator": "nowhere"}),
        "invalid arg 'x-queue-leader-locator' for queue 'refused' in vhost '/': "
        "invalid_queue_locator_arg",
    ),
    (
        declare(arguments={"x-initial-cluster-size": 0}),
        "invalid arg 'x-initial-cluster-size' for queue 'refused' in vhost '/': {value_zero,0}",
    ),
]


def test_declarations_are_refused(broker):
    for ask, why in REFUSED_DECLARATIONS:
        assert refused(broker, ask) == ("channel", 406, f"PRECONDITION_FAILED - {why}")


def test_a_stream_is_declared_again_with_equal_arguments(broker):
    name = f"stream.{next(NAMES)}"
    arguments = {"x-max-age": "1h", "x-max-length-bytes": 1000, "x-foo": 1}
    with channel_of(broker) as channel:
        declare(queue=name, arguments=arguments)(channel)
        declare(queue=name, arguments={**arguments, "x-foo": 2})(channel)
    other = {**arguments, "x-max-age": "60m"}
    where = f"queue '{name}' in vhost '/'"
    assert refused(broker, declare(queue=name, arguments=other))[1:] == (
        406,
        f"PRECONDITION_FAILED - inequivalent arg 'x-max-age' for {where}: received '60m' but "
        "current is '1h'",
    )
    other = {"x-max-length-bytes": 1000}
    assert refused(broker, declare(queue=name, arguments=other))[1:] == (
        406,
        f"PRECONDITION_FAILED - inequivalent arg 'x-max-age' for {where}: received none but "
        "current is the value '1h' of type 'longstr'",
    )
    with channel_of(broker) as channel:
        channel.queue_delete(name)


def test_methods_are_refused(broker, stream):
    where = f"queue '{stream}' in vhost '/'"

    def consume(channel, **options: object) -> None:
        channel.basic_consume(stream, lambda *_: None, **options)

    def consume_globally(channel) -> None:
        channel.basic_qos(prefetch_count=5, global_qos=True)
        consume(channel)

    def turn_down(how: str, **options: object):
        def ask(channel) -> None:
            publish(channel, stream, "m")
            for method, _, _ in channel.consume(
                stream, arguments={"x-stream-offset": "first"}, inactivity_timeout=10
            ):
                getattr(channel, how)(method.delivery_tag, **options)
                return

        return ask

    nacks = f"NOT_IMPLEMENTED - basic.nack and basic.reject not supported by stream queues {where}"
    asked = [
        (lambda channel: channel.basic_get(stream), "connection", 540, "basic.get"),
        (lambda channel: channel.queue_purge(stream), "connection", 540, "queue.purge"),
    ]
    for ask, what, code, name in asked:
        text = f"NOT_IMPLEMENTED - {name} not supported by stream queues {where}"
        assert refused(broker, ask) == (what, code, text)
    for how in ("basic_nack", "basic_reject"):
        for requeue in (True, False):
            asked = refused(broker, turn_down(how, requeue=requeue))
            assert asked == ("connection", 540, nacks)
    missing = f"PRECONDITION_FAILED - consumer prefetch count is not set for '{where}'"
    for options in ({}, {"auto_ack": True}):
        asked = refused(broker, lambda channel, o=options: consume(channel, **o), prefetch=0)
        assert asked == ("channel", 406, missing)
    assert refused(broker, consume_globally, prefetch=0) == ("channel", 406, missing)
    assert refused(broker, consume_globally) == (
        "connection",
        540,
        f"NOT_IMPLEMENTED - {where} does not support global qos",
    )
    assert refused(broker, lambda channel: consume(channel, auto_ack=True)) == (
        "connection",
        540,
        f"NOT_IMPLEMENTED - automatic acknowledgement not supported by stream queues {where}",
    )
    for name in ("x-priority", "x-cancel-on-ha-failover"):
        asked = refused(broker, lambda channel, n=name: consume(channel, arguments={n: 1}))
        assert asked == (
            "channel",
            406,
            f"PRECONDITION_FAILED - invalid arg '{name}' for {where} of queue type "
            "rabbit_stream_queue",
        )
    asked = refused(broker, lambda channel: consume(channel, arguments={"x-stream-offset": "5"}))
    assert asked == (
        "channel",
        406,
        f"PRECONDITION_FAILED - invalid arg 'x-stream-offset' for {where}: "
        '{invalid_stream_offset_arg,{longstr,<<"5">>}}',
    )


def test_each_offset_begins_where_it_says(broker, stream):
    with channel_of(broker) as channel:
        publish(channel, stream, *map(str, range(20)))
        whole = read(channel, stream, 20, "first")
        assert bodies(whole) == list(map(str, range(20)))
        offsets = [offset for offset, _, _ in whole]
        assert bodies(read(channel, stream, 1, "last")) == ["19"]
        for asked, first in ((offsets[7], 7), (-1, 0), (0, 0), (offsets[19], 19)):
            assert bodies(read(channel, stream, 1, asked)) == [str(first)]
        hour = datetime.timedelta(hours=1)
        now = datetime.datetime.now(tz=datetime.UTC)
        assert bodies(read(channel, stream, 20, now - hour)) == bodies(whole)
        assert bodies(read(channel, stream, 20, "1h")) == bodies(whole)


@pytest.mark.parametrize("offset", ["next", None, "end", "later", "time", "far"])
def test_an_offset_at_the_end_waits_for_the_next_message(broker, stream, offset):
    with channel_of(broker) as channel, channel_of(broker) as publisher:
        publish(publisher, stream, *map(str, range(5)))
        end = read(channel, stream, 5, "first")[-1][0] + 1
        later = datetime.datetime.now(tz=datetime.UTC) + datetime.timedelta(hours=1)
        asked = {"end": end, "later": end + 2, "time": later, "far": 2**63 - 1}.get(offset, offset)
        got: list[str] = []

        def on_message(channel, method, properties, body) -> None:
            got.append(body.decode())
            channel.basic_ack(method.delivery_tag)

        arguments = {} if asked is None else {"x-stream-offset": asked}
        channel.basic_consume(stream, on_message, arguments=arguments)
        publish(publisher, stream, "5", "6", "7", "8")
        expected = {"later": ["7", "8"], "far": []}.get(offset, ["5", "6", "7", "8"])
        deadline = time.monotonic() + 30
        while len(got) < len(expected) and time.monotonic() < deadline:
            channel.connection.process_data_events(time_limit=0.1)
        # By now, others have had all of them.
        assert len(read(publisher, stream, 9, "first")) == 9
        channel.connection.process_data_events(time_limit=0.1)
        assert got == expected


def test_readers_have_places_and_limits_of_their_own(broker, stream):
    with channel_of(broker) as one, channel_of(broker) as other:
        publish(one, stream, *map(str, range(40)))
        # Unacknowledged messages bound one reader and no other; acknowledgements move nothing.
        assert bodies(read(one, stream, 3, "first")) == ["0", "1", "2"]
        assert bodies(read(other, stream, 40, "first", prefetch=3)) == list(map(str, range(40)))
        assert bodies(read(other, stream, 40, "first", prefetch=7)) == list(map(str, range(40)))


def test_a_message_comes_back_as_it_was(broker, stream):
    with channel_of(broker) as channel:
        headers = {"text": "a", "number": 5, "yes": True, "x-stream-offset": "mine"}
        properties = {
            "content_type": "text/plain",
            "headers": headers,
            "delivery_mode": 1,
            "priority": 3,
            "correlation_id": "c",
            "reply_to": "r",
            "expiration": "1",
            "message_id": "m",
            "timestamp": 1_700_000_000,
            "type": "t",
            "user_id": "test",
            "app_id": "a",
        }
        publish(channel, stream, "m", **properties)
        ((offset, body, found),) = read(channel, stream, 1, "first")
        assert body == "m"
        assert found.headers == {**headers, "x-stream-offset": offset}
        for name, value in properties.items():
            if name != "headers":
                assert getattr(found, name) == value


def test_a_deleted_stream_cancels_its_readers_and_is_gone(broker):
    name = f"stream.{next(NAMES)}"
    with channel_of(broker) as channel, channel_of(broker) as other:
        declare(queue=name)(channel)
        publish(channel, name, "1", "2")
        cancelled: list[str] = []
        channel.add_on_cancel_callback(lambda frame: cancelled.append(frame.method.consumer_tag))
        channel.basic_consume(name, lambda *_: None, consumer_tag="reader")
        # Neither condition means anything for a stream.
        assert other.queue_delete(name, if_unused=True, if_empty=True).method.message_count == 0
        await_true(
            "the reader is cancelled",
            lambda: bool(channel.connection.process_data_events(time_limit=0.1) or cancelled),
        )
        assert cancelled == ["reader"]
        declare(queue=name)(channel)
        publish(channel, name, "3")
        assert bodies(read(channel, name, 1, "first")) == ["3"]
        channel.queue_delete(name)


def test_a_transaction_appends_at_its_commit(broker, stream):
    connection = pika.BlockingConnection(pika.URLParameters(broker.url()))
    with connection, channel_of(broker) as reader:
        channel = connection.channel()
        channel.tx_select()
        publish(channel, stream, "rolled back")
        channel.tx_rollback()
        publish(channel, stream, "1", "2")
        channel.tx_commit()
        assert bodies(read(reader, stream, 2, "first")) == ["1", "2"]


def test_one_limit_ends_streams_segment_by_segment(broker):
    """As RabbitMQ: the newest segment stays, and older ones while their sum is within the limit."""
    name = f"stream.{next(NAMES)}"
    limits = {"x-max-length-bytes": 5000, "x-stream-max-segment-size-bytes": 1000}
    with channel_of(broker) as channel:
        declare(queue=name, arguments=limits)(channel)
        publish(channel, name, *(f"{number:0100}" for number in range(200)))
        ((_, last, _),) = read(channel, name, 1, "last")
        assert int(last) == 199
        first = int(read(channel, name, 1, "first")[0][1])
        kept = 200 - first
        # 15 to 30 octets are added to each message, and the newest segment to the limit.
        assert 10 <= kept <= 60
        # An offset that is gone is the first one there.
        assert int(read(channel, name, 1, 1)[0][1]) == first
        channel.queue_delete(name)


# What only Crosstie promises.


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Crosstie]:
    """Start a broker that may be killed."""
    running = Crosstie(tmp_path, amqp={"store": str(tmp_path / "amqp.store")})
    yield running
    if running.router.process.poll() is None:
        running.stop()


def count_of(channel, queue: str) -> int:
    return channel.queue_declare(queue, passive=True).method.message_count


def files(tmp_path: Path, suffix: str) -> list[Path]:
    return sorted((tmp_path / "amqp.store.streams").rglob(f"*{suffix}"))


def test_confirmed_messages_survive_a_kill(own, tmp_path):
    with channel_of(own) as channel:
        channel.exchange_declare("letters", "fanout", durable=True)
        declare(queue="log")(channel)
        channel.queue_bind("log", "letters")
        arguments = {"x-dead-letter-exchange": "letters", "x-max-length": 0}
        channel.queue_declare("dying", durable=True, arguments=arguments)
        publish(channel, "log", *map(str, range(500)))
        # Dead letters arrive, too.
        publish(channel, "dying", "letter", delivery_mode=2)
        await_true("it is there", lambda: count_of(channel, "log") == 501)
        # Nobody is told that a letter is stored; what is confirmed after it stands behind it.
        publish(channel, "log", "after it")
    own.restart(kill=True)
    with channel_of(own) as channel:
        assert count_of(channel, "log") == 502
        expected = [*map(str, range(500)), "letter", "after it"]
        assert bodies(read(channel, "log", 502, "first")) == expected
        publish(channel, "log", "later")
        assert read(channel, "log", 1, "last")[0][:2] == (502, "later")
        channel.queue_delete("log")
    await_true("the files are removed", lambda: not files(tmp_path, ".segment"))


def test_a_dead_letter_is_kept_until_its_stream_can_be_written(own, tmp_path):
    streams = tmp_path / "amqp.store.streams"

    def reject(channel) -> None:
        """Make a dead letter that cannot be written."""
        assert not streams.exists(), "a stream without a message has no file"
        streams.write_text("in the way")
        method, _, _ = channel.basic_get("dying")
        channel.basic_reject(method.delivery_tag, requeue=False)
        own.router.await_log(lambda line: "cannot write to streams" in line.text)
        # A publication that can be refused is refused.
        with pytest.raises(pika.exceptions.NackError):
            publish(channel, "log", "refused")
        # Publishers to other queues are neither refused nor held up.
        publish(channel, "other", *("confirmed" for _ in range(100)), delivery_mode=2)

    with channel_of(own) as channel:
        channel.exchange_declare("letters", "fanout", durable=True)
        declare(queue="log")(channel)
        channel.queue_bind("log", "letters")
        channel.queue_declare("other", durable=True)
        arguments = {"x-dead-letter-exchange": "letters"}
        channel.queue_declare("dying", durable=True, arguments=arguments)
        publish(channel, "dying", "letter", delivery_mode=2)
        reject(channel)
        own.router.kill()
    streams.unlink()
    own.restart(kill=True)
    with channel_of(own) as channel:
        assert count_of(channel, "dying") == 1, "the original is not gone before the letter is kept"
        reject(channel)
        streams.unlink()
        await_true("the letter is in the stream", lambda: count_of(channel, "log") == 1)
        publish(channel, "log", "after it")
    own.restart(kill=True)
    with channel_of(own) as channel:
        assert count_of(channel, "dying") == 0
        assert bodies(read(channel, "log", 2, "first")) == ["letter", "after it"]


def unreadable(offset: int) -> str:
    return f"stream 'log': the messages from offset {offset} to {offset} cannot be read"


def test_a_damaged_message_is_named_and_the_others_are_served(own, tmp_path):
    with channel_of(own) as channel:
        declare(queue="log")(channel)
        publish(channel, "log", *(f"message {number}" for number in range(100)))
    own.router.kill()
    (segment,) = files(tmp_path, ".segment")
    written = bytearray(segment.read_bytes())
    written[written.index(b"message 50")] ^= 1
    written[written.index(b"message 99")] ^= 1
    segment.write_bytes(written)
    own.restart(kill=True)
    own.router.await_log(lambda line: unreadable(99) in line.text)
    with channel_of(own) as channel:
        expected = [f"message {number}" for number in range(99) if number != 50]
        assert bodies(read(channel, "log", 98, "first")) == expected
        own.router.await_log(lambda line: unreadable(50) in line.text)
        publish(channel, "log", "later")
        assert read(channel, "log", 1, "last")[0][:2] == (100, "later")
        assert "cannot be read" in own.router.health()[1]
        # The alarm goes with the stream, and is not that of the next one of its name.
        channel.queue_delete("log")
        declare(queue="log")(channel)
        await_true("it is forgotten", lambda: "cannot be read" not in own.router.health()[1])


def test_a_reader_whose_segment_has_gone_continues_at_the_first_one_there(own):
    limits = {"x-max-length-bytes": 500_000, "x-stream-max-segment-size-bytes": 50_000}
    published = itertools.count()
    got: list[int] = []
    held: list[int] = []
    with channel_of(own) as declaring, channel_of(own, prefetch=2) as reader:
        declare(queue="log", arguments=limits)(declaring)
        # Without confirms, so that it is much faster than the reader.
        publisher = declaring.connection.channel()

        def publish_more(count: int) -> None:
            for _ in range(count):
                publisher.basic_publish("", "log", f"{next(published):08}" + 10_000 * "x")

        def is_overtaken() -> bool:
            # It has gone on behind a gap.
            return len(got) > 20 and got[-20] != got[0] + len(got) - 20

        def on_message(channel, method, properties, body) -> None:
            assert int(body[:8]) == properties.headers["x-stream-offset"]
            got.append(int(body[:8]))
            if is_overtaken():
                held.append(method.delivery_tag)
                return
            # Its segment, and the next ones, are about to go.
            publish_more(20)
            channel.basic_ack(method.delivery_tag)

        publish_more(20)
        reader.basic_consume("log", on_message, arguments={"x-stream-offset": "first"})
        deadline = time.monotonic() + 50
        # The last two are not acknowledged, and so no other is on its way.
        while len(held) < 2:
            assert time.monotonic() < deadline, f"it was never overtaken: {got[-1:]}"
            reader.connection.process_data_events(time_limit=0.1)
        assert got == sorted(set(got))
    assert "cannot be read" not in own.router.page("/health")


# A hundred thousand take minutes.
MANY = 100_000 if os.environ.get("CROSSTIE_WHOLE") else 2_000


@pytest.mark.timeout(300 + MANY // 50)
def test_many_streams_take_few_files_and_little_memory(tmp_path):
    own = Crosstie(tmp_path, amqp={"limits": {"queues_max": MANY + 1, "bindings_max": MANY + 10}})
    with channel_of(own) as channel:
        before = resident_bytes(own)
        for number in range(MANY):
            declare(queue=f"many.{number}")(channel)
            if number % 10 == 0:
                channel.queue_bind(f"many.{number}", "amq.fanout")
        channel.basic_publish("amq.fanout", "", "to all")
        for number in range(0, MANY, MANY // 50):
            assert bodies(read(channel, f"many.{number}", 1, "first")) == ["to all"]
        open_files = len(list(Path(f"/proc/{own.router.process.pid}/fd").iterdir()))
        assert open_files < 400
        assert resident_bytes(own) - before < (64 << 20) + MANY * 5_000
    own.restart(kill=True)
    with channel_of(own) as channel:
        assert bodies(read(channel, "many.0", 1, "first")) == ["to all"]
        assert channel.queue_declare(f"many.{MANY - 1}", passive=True).method.message_count == 0
    own.stop()


def resident_bytes(own: Crosstie) -> int:
    """Return the resident memory of a broker's process."""
    pages = Path(f"/proc/{own.router.process.pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
