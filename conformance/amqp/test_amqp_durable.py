"""Durability: confirmed messages after kills and losses of power, full disks, torn stores."""

from __future__ import annotations

import json
import random
import resource
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pika
import pika.exceptions
import pytest
from rig import disk
from rig.amqp_peer import Peer
from rig.broker import Broker, Crosstie
from rig.router import binary
from rig.waiting import DEADLINE_S, await_true

PERSISTENT = pika.BasicProperties(delivery_mode=2)
TRANSIENT = pika.BasicProperties(delivery_mode=1)
KILLS = 20
PUBLISHERS = 3
CRASHES = 24
STORE = "amqp.store"
# How many messages are published at once: one after the other, and then so many that several
# share a sync.
WINDOWS = [1] * 10 + [25] * 4
needs_strace = pytest.mark.skipif(not disk.is_available(), reason="strace is not installed")


@pytest.fixture
def start_with(tmp_path: Path, monkeypatch) -> Iterator[Callable[..., Crosstie]]:
    """Start brokers in directories of their own, with another program if one is given."""
    running: list[Crosstie] = []

    def start(
        directory: Path | None = None, program: Path | None = None, **limits: int
    ) -> Crosstie:
        directory = directory or tmp_path / f"durable{len(running)}"
        directory.mkdir(exist_ok=True)
        with monkeypatch.context() as changed:
            if program:
                changed.setenv("CROSSTIE", str(program))
            started = Crosstie(directory, amqp={"store": str(directory / STORE), "limits": limits})
        running.append(started)
        return started

    yield start
    for each in running:
        if each.router.process.poll() is None:
            each.stop()


def connect(broker: Broker) -> pika.BlockingConnection:
    """Connect as pika's users do."""
    parameters = pika.URLParameters(broker.url("test"))
    parameters.socket_timeout = DEADLINE_S
    parameters.blocked_connection_timeout = DEADLINE_S
    return pika.BlockingConnection(parameters)


def declare(broker: Broker, queue: str = "kept") -> None:
    """Make a durable queue."""
    with connect(broker) as connection:
        connection.channel().queue_declare(queue, durable=True)


def pika_exchange(channel, name: str) -> None:
    """Ask whether there is an exchange."""
    channel.exchange_declare(name, passive=True)


def pika_queue(channel, name: str) -> None:
    """Ask whether there is a queue."""
    channel.queue_declare(name, passive=True)


def drain(broker: Broker, queue: str = "kept") -> list[tuple[bytes, bool]]:
    """Take everything out of a queue, in its order, and whether it is marked as redelivered."""
    found = []
    with connect(broker) as connection:
        channel = connection.channel()
        count = channel.queue_declare(queue, passive=True).method.message_count
        for _ in range(count):
            method, _, body = channel.basic_get(queue)
            assert method is not None, f"{len(found)} of {count} messages are there"
            found.append((body, method.redelivered))
            channel.basic_ack(method.delivery_tag)
        assert channel.basic_get(queue)[0] is None
    return found


def await_stored(broker: Broker) -> None:
    """Wait until all acknowledgements are on the disk: a later confirm tells that."""
    with connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("settled", durable=True)
        channel.confirm_delivery()
        channel.basic_publish("", "settled", b"", PERSISTENT)


@dataclass
class Load:
    """Publishers that wait for confirms, and a consumer, until their broker is gone."""

    broker: Broker
    published: set[bytes] = field(default_factory=set)
    confirmed: set[bytes] = field(default_factory=set)
    acknowledged: set[bytes] = field(default_factory=set)

    def run_until(self, confirms: int, end: Callable[[], None]) -> None:
        """Go on until so many messages are confirmed, and `end` the broker meanwhile."""
        threads = [
            threading.Thread(target=self._publish, args=(number,)) for number in range(PUBLISHERS)
        ]
        threads.append(threading.Thread(target=self._consume))
        for thread in threads:
            thread.start()
        try:
            await_true(
                f"{confirms} messages are confirmed", lambda: len(self.confirmed) >= confirms
            )
        finally:
            end()
            for thread in threads:
                thread.join(DEADLINE_S)
        assert not any(thread.is_alive() for thread in threads)

    def _publish(self, number: int) -> None:
        try:
            channel = connect(self.broker).channel()
            channel.confirm_delivery()
            for sequence in range(1_000_000):
                body = b"%d %d" % (number, sequence)
                self.published.add(body)
                channel.basic_publish("", "kept", body, PERSISTENT)
                self.confirmed.add(body)
        except (pika.exceptions.AMQPError, OSError):
            # As it should be: the broker was killed.
            pass

    def _consume(self) -> None:
        try:
            channel = connect(self.broker).channel()
            channel.basic_qos(prefetch_count=20)
            for taken, (method, _, body) in enumerate(channel.consume("kept")):
                # It goes slower than the others, so that there is always something in the queue.
                if taken % 2:
                    channel.basic_ack(method.delivery_tag)
                    self.acknowledged.add(body)
        except (pika.exceptions.AMQPError, OSError):
            pass


def test_kills_under_load_lose_no_confirmed_message(start_with):
    broker = start_with()
    chance = random.Random(1)
    for kill in range(KILLS):
        declare(broker)
        load = Load(broker)
        load.run_until(chance.randrange(1, 300), broker.router.kill)
        broker.restart(kill=True)
        found = [body for body, _ in drain(broker)]
        await_stored(broker)
        assert len(found) == len(set(found)), f"kill {kill}: doubled"
        missing = load.confirmed - load.acknowledged - set(found)
        assert not missing, f"kill {kill}: lost {sorted(missing)}"
        invented = set(found) - load.published
        assert not invented, f"kill {kill}: invented {sorted(invented)}"
        for publisher in range(PUBLISHERS):
            pairs = [tuple(map(int, body.split())) for body in found]
            sequences = [sequence for number, sequence in pairs if number == publisher]
            assert sequences == sorted(sequences), f"kill {kill}: out of order"


def test_everything_durable_comes_back_and_nothing_else(start_with):
    broker = start_with()
    with connect(broker) as connection:
        channel = connection.channel()
        channel.exchange_declare("x.kept", "topic", durable=True)
        channel.exchange_declare("gone", "topic")
        for name, durable in (("kept", True), ("gone", False)):
            arguments = {"x-message-ttl": 3_600_000} if durable else {}
            channel.queue_declare(name, durable=durable, arguments=arguments)
            for exchange in ("x.kept", "gone"):
                channel.queue_bind(name, exchange, "a.#", {"by": name})
        channel.confirm_delivery()
        headers = {"text": "ünï", "number": -(2**40), "table": {"inner": [1, True, None]}}
        properties = pika.BasicProperties(
            delivery_mode=2, content_type="text/plain", headers=headers, message_id="m"
        )
        channel.basic_publish("x.kept", "a.b", b"one", properties)
        channel.basic_publish("x.kept", "a.b", b"transient", TRANSIENT)
        channel.basic_publish("x.kept", "a.b", bytes(300_000), properties)
        channel.basic_publish("x.kept", "a.b", b"acknowledged", properties)
        for _ in range(4):
            method, _, body = channel.basic_get("kept")
            if body == b"acknowledged":
                channel.basic_ack(method.delivery_tag)
    broker.restart()
    with connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("kept", durable=True, arguments={"x-message-ttl": 3_600_000})
        channel.exchange_declare("x.kept", "topic", durable=True)
        method, properties, body = channel.basic_get("kept")
        assert (method.exchange, method.routing_key, body) == ("x.kept", "a.b", b"one")
        assert method.redelivered
        assert properties.headers == headers
        assert (properties.content_type, properties.message_id) == ("text/plain", "m")
        _, _, body = channel.basic_get("kept")
        assert body == bytes(300_000)
        assert channel.basic_get("kept")[0] is None
        channel.confirm_delivery()
        channel.basic_publish("x.kept", "a.c", b"by the binding that is kept", mandatory=True)
        with pytest.raises(pika.exceptions.UnroutableError):
            channel.basic_publish("x.kept", "b", b"there is no other", mandatory=True)
        for declare_passively in (pika_exchange, pika_queue):
            with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
                declare_passively(connection.channel(), "gone")
            assert closed.value.reply_code == 404


def publish_window(broker: Broker, bodies: list[bytes]) -> None:
    """Publish all at once on channel 1, and wait until all are confirmed."""
    with Peer.tcp(broker.address) as peer:
        peer.open()
        peer.channel()
        peer.call("confirm.select")
        peer.expect("confirm.select-ok")
        for body in bodies:
            peer.publish("", "kept", body, {"delivery_mode": 2})
        waiting = set(range(1, len(bodies) + 1))
        while waiting:
            ack = peer.expect("basic.ack")
            waiting -= named_by(waiting, ack["delivery"], ack["multiple"])
        peer.leave()


def named_by(waiting: set[int], tag: int, multiple: bool) -> set[int]:
    """Return the tags of those that wait that a confirm means."""
    return {each for each in waiting if each == tag or (multiple and each <= tag)}


def marked(number: int) -> bytes:
    """Return a body that occurs nowhere else in a trace."""
    return b"<body %04d>" % number


@pytest.fixture(scope="module")
def traced(tmp_path_factory) -> tuple[disk.Trace, str, int]:
    """Trace a broker that confirms; return the trace, its store's file, how many bodies."""
    directory = tmp_path_factory.mktemp("traced")
    program, trace = disk.tracing(directory, binary())
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("CROSSTIE", str(program))
        broker = Crosstie(directory, amqp={"store": str(directory / STORE)})
    declare(broker)
    count = 0
    for window in WINDOWS:
        publish_window(broker, [marked(number) for number in range(count, count + window)])
        count += window
    broker.router.kill()
    # The tracer writes what it has, and ends after whom it traced.
    await_true("the trace is whole", lambda: "+++ killed by SIGKILL +++" in tail(trace))
    return disk.Trace(trace), str(directory / STORE), count


def tail(path: Path) -> str:
    """Return the last bytes of a text."""
    return path.read_bytes()[-4096:].decode(errors="replace")


def confirmed_at(trace: disk.Trace) -> dict[int, int]:
    """Return the line of the trace where each body's confirm began to be sent."""
    lines: dict[int, int] = {}
    confirms = iter(trace.confirms())
    for window in WINDOWS:
        # A connection for each, so that tags begin with one.
        first = len(lines)
        waiting = set(range(1, window + 1))
        while waiting:
            line, tag, multiple = next(confirms)
            for each in named_by(waiting, tag, multiple):
                lines[first + each - 1] = line
                waiting.remove(each)
    return lines


@needs_strace
def test_a_confirm_is_sent_after_the_sync_of_its_message(traced):
    trace, store, count = traced
    lines = confirmed_at(trace)
    assert sorted(lines) == list(range(count))
    for number, line in lines.items():
        synced = trace.synced_at(marked(number), store)
        assert synced < line, f"body {number}: synced at {synced}, confirmed at {line}"


@needs_strace
def test_a_loss_of_power_at_any_moment_loses_no_confirmed_message(traced, tmp_path, start_with):
    trace, store, _ = traced
    lines = confirmed_at(trace)
    moments = trace.moments(store)
    chance = random.Random(2)
    # The last ones, when most is confirmed, and others over the whole run.
    chosen = [moments[-1] + 1, *chance.sample(moments, min(CRASHES, len(moments)))]
    for crash, moment in enumerate(chosen):
        directory = tmp_path / f"crash{crash}"
        trace.crash(moment, store, directory, chance)
        broker = start_with(directory)
        confirmed = {marked(number) for number, line in lines.items() if line < moment}
        declare(broker)
        found = [body for body, _ in drain(broker)]
        missing = confirmed - set(found)
        assert not missing, f"power lost at line {moment}: lost {sorted(missing)}"
        assert found == [marked(number) for number in range(len(found))], "in their order"
        broker.stop()


def limited(tmp_path: Path, blocks: int) -> Path:
    """Return the program with files that may not grow beyond so many blocks of 512 bytes."""
    program = tmp_path / "limited"
    program.write_text(
        f"#!/bin/sh\ntrap '' XFSZ\nulimit -S -f {blocks}\nexec '{binary()}' \"$@\"\n"
    )
    program.chmod(0o755)
    return program


def mount(*words: object) -> None:
    """Run `mount`, or skip the test where that is not allowed."""
    ended = subprocess.run(["mount", *map(str, words)], capture_output=True, check=False)
    if ended.returncode:
        pytest.skip(f"mount: {ended.stderr.decode().strip()}")


@pytest.fixture(params=["a small disk", "a limit on files"])
def cramped(request, tmp_path) -> Iterator[tuple[Path, Path | None, Callable[[int], None]]]:
    """Two mebibytes: a directory, a program if not the usual one, and how to make room for it."""
    directory = tmp_path / "cramped"
    directory.mkdir()
    if request.param == "a limit on files":

        def lift(process: int) -> None:
            unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            resource.prlimit(process, resource.RLIMIT_FSIZE, unlimited)

        yield directory, limited(tmp_path, 4096), lift
        return
    mount("-t", "tmpfs", "-o", "size=2m", "tmpfs", directory)
    yield directory, None, lambda _: mount("-o", "remount,size=64m", directory)
    subprocess.run(["umount", "--lazy", str(directory)], check=True)


def test_a_full_disk_refuses_and_recovers(cramped, start_with):
    directory, program, make_room = cramped
    broker = start_with(directory, program, disk_free_bytes_min=0)
    declare(broker)
    confirmed = []
    refused = None
    # It is not closed before there is room: a blocked publisher is not read.
    full = connect(broker)
    channel = full.channel()
    channel.confirm_delivery()
    for number in range(200):
        body = b"%d " % number + bytes(50_000)
        try:
            channel.basic_publish("", "kept", body, PERSISTENT)
        except pika.exceptions.NackError:
            refused = number
            break
        confirmed.append(body)
    assert refused, "the disk is full before 10 MB"
    broker.router.await_log(lambda line: STORE in f"{line.text} {line.fields}")
    make_room(broker.router.process.pid)
    with connect(broker) as connection:
        channel = connection.channel()
        channel.confirm_delivery()

        def is_kept() -> bool:
            try:
                channel.basic_publish("", "kept", b"later", PERSISTENT)
            except pika.exceptions.NackError:
                return False
            return True

        await_true("messages are kept again", is_kept)
    full.close()
    broker.restart(kill=True)
    found = [body for body, _ in drain(broker)]
    assert found[: len(confirmed)] == confirmed
    assert found[-1] == b"later"
    assert not [body for body in found if body.startswith(b"%d " % refused)]


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A directory with 24 mebibytes."""
    directory = tmp_path / "small"
    directory.mkdir()
    mount("-t", "tmpfs", "-o", "size=24m", "tmpfs", directory)
    yield directory
    subprocess.run(["umount", "--lazy", str(directory)], check=True)


def is_confirmed(broker: Broker, queue: str, body: bytes) -> bool:
    """Whether a message is taken, and not refused."""
    with connect(broker) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        try:
            channel.basic_publish("", queue, body, PERSISTENT)
        except pika.exceptions.NackError:
            return False
        return True


def fill(broker: Broker) -> tuple[pika.BlockingConnection, list[bytes]]:
    """Publish until the disk is full; returns who did, and what was confirmed."""
    # It is blocked from here on, and closes when there is room.
    full = connect(broker)
    channel = full.channel()
    channel.confirm_delivery()
    confirmed = []
    for number in range(10_000):
        body = b"%d " % number + bytes(6_000)
        try:
            channel.basic_publish("", "kept", body, PERSISTENT)
        except pika.exceptions.NackError:
            return full, confirmed
        confirmed.append(body)
    raise AssertionError("60 MB are no more than 24 MB")


@pytest.mark.parametrize("way", ["a purge", "acknowledgements", "a deletion"])
@pytest.mark.parametrize("rounds", [1, 3])
def test_a_full_disk_is_left_by_consuming(small_disk, start_with, way, rounds):
    broker = start_with(small_disk, disk_free_bytes_min=0)
    for number in range(rounds):
        declare(broker)
        declare(broker, "other")
        full, confirmed = fill(broker)
        assert len(confirmed) > 1_500
        with connect(broker) as connection:
            channel = connection.channel()
            if way == "a purge":
                channel.queue_purge("kept")
            elif way == "a deletion":
                channel.queue_delete("kept")
            else:
                while tag := getattr(channel.basic_get("kept")[0], "delivery_tag", None):
                    last = tag
                channel.basic_ack(last, multiple=True)
        await_true("messages are kept again", lambda: is_confirmed(broker, "other", b"later"))
        full.close()
        if number == rounds - 1:
            broker.restart(kill=True)
        if way != "a deletion":
            assert drain(broker) == []
        assert b"later" in [body for body, _ in drain(broker, "other")]


def test_a_low_disk_blocks_publishers_only(small_disk, start_with):
    broker = start_with(small_disk)
    declare(broker)
    told = []
    publisher = connect(broker)
    publisher.add_on_connection_blocked_callback(lambda _, blocked: told.append(blocked))
    publisher.add_on_connection_unblocked_callback(lambda _, unblocked: told.append(unblocked))
    channel = publisher.channel()
    for number in range(10_000):
        channel.basic_publish("", "kept", b"%d " % number + bytes(6_000), PERSISTENT)
        if number % 50 == 0:
            publisher.process_data_events(0.01)
        if told:
            break
    assert told[0].method.reason == "low on disk"
    # Those who take messages away go on, and make room.
    with connect(broker) as connection:
        consumer = connection.channel()
        consumer.queue_declare("transient", exclusive=True)
        consumer.basic_publish("", "transient", b"still here")
        await_true("it comes", lambda: consumer.basic_get("transient", True)[2] == b"still here")
        consumer.queue_purge("kept")
    await_true(
        "publishers go on",
        lambda: publisher.process_data_events(0.1) or len(told) > 1,
    )
    assert is_confirmed(broker, "kept", b"later")
    publisher.close()


def test_transient_traffic_goes_on_while_the_disk_is_full(tmp_path, start_with):
    broker = start_with(program=limited(tmp_path, 64))
    with connect(broker) as consumer:
        channel = consumer.channel()
        channel.queue_declare("transient", exclusive=True)
        # It stays blocked, and so does not close. Nobody waits for a confirm, so the message stays.
        publishing = connect(broker).channel()
        publishing.queue_declare("kept", durable=True)
        publishing.basic_publish("", "kept", bytes(200_000), PERSISTENT)
        broker.router.await_log(lambda line: "cannot write to the store" in line.text)
        channel.basic_publish("", "transient", b"still here")
        await_true("it comes", lambda: channel.basic_get("transient", True)[2] == b"still here")
    broker.router.signal(signal.SIGTERM)
    broker.router.await_log(lambda line: "could not store all durable messages" in line.text)
    assert broker.router.exit_code() == 1


def refused_start(directory: Path) -> str:
    """Return what a broker says that does not start in the directory of an earlier one."""
    command = [str(binary()), "start", "--config", str(directory / "config.json")]
    ended = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert ended.returncode != 0, ended.stderr
    return ended.stderr


@pytest.fixture
def left_behind(start_with, tmp_path) -> Path:
    """Return the directory of a broker that has ended, with messages in its store."""
    broker = start_with()
    declare(broker)
    publish_window(broker, [marked(number) for number in range(500)])
    broker.stop()
    return broker.directory


def files(store: Path) -> dict[str, bytes]:
    """Return the files of a store."""
    return {file.name: file.read_bytes() for file in store.iterdir()}


def test_a_store_with_a_loss_is_refused_and_left_as_it_is(left_behind):
    store = left_behind / STORE
    segment = next(store.glob("*.segment"))
    whole = segment.read_bytes()
    torn = {
        "half of it": whole[: len(whole) // 65536 * 100],
        "a sector of nothing": whole[:8192] + bytes(512) + whole[8704:],
        "nothing at all": b"",
    }
    for what, octets in torn.items():
        segment.write_bytes(octets)
        before = files(store)
        said = refused_start(left_behind)
        assert str(store) in said, what
        assert "is damaged, and confirmed data is missing" in said, what
        assert files(store) == before, what


def test_a_damaged_message_stops_its_queue_alone(start_with):
    broker = start_with()
    declare(broker)
    declare(broker, "other")
    with connect(broker) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        for number in range(10):
            channel.basic_publish("", "kept", marked(number), PERSISTENT)
            channel.basic_publish("", "other", marked(100 + number), PERSISTENT)
    broker.stop()
    segment = next((broker.directory / STORE).glob("*.segment"))
    octets = bytearray(segment.read_bytes())
    octets[octets.index(marked(7))] ^= 1
    segment.write_bytes(octets)
    broker.restart()
    broker.router.await_log(lambda line: "queue 'kept' of vhost '/': 1 message" in line.text)
    assert [body for body, _ in drain(broker, "other")] == [marked(100 + n) for n in range(10)]
    with connect(broker) as connection:
        channel = connection.channel()
        for number in range(7):
            assert channel.basic_get("kept", True)[2] == marked(number)
    broker.router.await_log(lambda line: "cannot read messages of queue 'kept'" in line.text)
    assert is_confirmed(broker, "other", b"later")


def test_a_file_of_something_else_is_refused_and_left_as_it_is(left_behind):
    store = left_behind / STORE
    shutil.rmtree(store)
    store.write_bytes(b"my thesis\n" * 1000)
    said = refused_start(left_behind)
    assert str(store) in said
    assert "is not a store of Crosstie" in said
    assert store.read_bytes() == b"my thesis\n" * 1000


def test_a_store_belongs_to_one_broker_at_a_time(start_with, tmp_path):
    broker = start_with()
    declare(broker)
    publish_window(broker, [b"kept"])
    second = tmp_path / "second"
    second.mkdir()
    configuration = json.loads((broker.directory / "config.json").read_text())
    (second / "config.json").write_text(json.dumps(configuration))
    said = refused_start(second)
    assert "is in use by another process" in said
    assert drain(broker) == [(b"kept", False)]


def test_nothing_durable_leaves_no_file(start_with):
    broker = start_with()
    with connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("gone", exclusive=True)
        channel.basic_publish("", "gone", b"gone", PERSISTENT)
        assert channel.basic_get("gone", True)[2] == b"gone"
    assert not list(broker.directory.glob(f"{STORE}*"))
