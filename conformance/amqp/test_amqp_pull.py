"""`crosstie amqp pull`: messages move from RabbitMQ, once each unless the command is killed."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path

import pika
import pytest
from rig.broker import Crosstie
from rig.brokers import connect
from rig.rabbitmq import RabbitMq, is_installed
from rig.router import binary
from rig.waiting import await_true

COUNT = 1_000


def url(broker) -> str:
    """Return a broker's URL."""
    host, port = broker.address
    return f"amqp://guest:guest@{host}:{port}/"


def pull(source, target, *more: object, **options) -> subprocess.Popen:
    """Start the command."""
    command = [binary(), "amqp", "pull", "--to", url(target), *more]
    environment = {"PATH": "/usr/bin:/bin", "CROSSTIE_PULL_FROM": url(source)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [str(word) for word in command]
    return subprocess.Popen(command, env=environment, text=True, **pipes, **options)


def ended(pulling: subprocess.Popen) -> tuple[int, str, str]:
    """Return how it ended, and what it said."""
    out, err = pulling.communicate(timeout=60)
    return pulling.returncode, out, err


def fill(broker, queue: str, count: int) -> None:
    """Declare a queue and put numbered messages into it."""
    with connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare(queue, durable=True)
        channel.confirm_delivery()
        for number in range(count):
            properties = pika.BasicProperties(
                delivery_mode=2, headers={"number": number}, correlation_id=str(number)
            )
            channel.basic_publish("", queue, b"body %d" % number, properties)


def declare(broker, queue: str) -> None:
    """Declare an empty queue."""
    with connect(broker) as connection:
        connection.channel().queue_declare(queue, durable=True)


def taken(broker, queue: str) -> list[tuple[int, bytes, int]]:
    """Take everything out of a queue."""
    found = []
    with connect(broker) as connection:
        channel = connection.channel()
        while True:
            method, properties, body = channel.basic_get(queue, auto_ack=True)
            if method is None:
                return found
            found.append((properties.headers["number"], body, properties.delivery_mode))


def expected(count: int) -> list[tuple[int, bytes, int]]:
    """Return what `fill` has put there."""
    return [(number, b"body %d" % number, 2) for number in range(count)]


def depth(broker, queue: str) -> int:
    """Return the number of ready messages."""
    with connect(broker) as connection:
        declared = connection.channel().queue_declare(queue, passive=True)
        return declared.method.message_count


def test_all_messages_of_a_queue_move_in_order_with_their_properties(
    rabbitmq: RabbitMq, start_broker: Callable[..., Crosstie]
) -> None:
    queue, other = f"pulled.{uuid.uuid4().hex}", f"empty.{uuid.uuid4().hex}"
    target = start_broker()
    fill(rabbitmq, queue, COUNT)
    declare(rabbitmq, other)
    declare(target, queue)
    declare(target, other)
    code, out, err = ended(pull(rabbitmq, target, "--window", 100, "--json", queue, other))
    assert (code, err) == (0, "")
    first, second = json.loads(out)
    assert first == {
        "queue": queue,
        "there_before": COUNT,
        "moved": COUNT,
        "there_after": 0,
        "here_before": 0,
        "here_after": COUNT,
    }
    assert (second["queue"], second["moved"]) == (other, 0)
    assert depth(rabbitmq, queue) == 0
    assert taken(target, queue) == expected(COUNT)


def test_nothing_moves_while_a_queue_is_missing_here(
    rabbitmq: RabbitMq, start_broker: Callable[..., Crosstie]
) -> None:
    queue, missing = f"pulled.{uuid.uuid4().hex}", f"missing.{uuid.uuid4().hex}"
    target = start_broker()
    fill(rabbitmq, queue, 3)
    declare(rabbitmq, missing)
    declare(target, queue)
    code, out, err = ended(pull(rabbitmq, target, queue, missing))
    assert (code, out) == (2, "")
    assert f"nothing was moved: queues are missing: '{missing}' here" in err
    assert (depth(rabbitmq, queue), depth(target, queue)) == (3, 0)


def test_a_refused_message_stays_there(
    rabbitmq: RabbitMq, start_broker: Callable[..., Crosstie]
) -> None:
    queue = f"pulled.{uuid.uuid4().hex}"
    target = start_broker()
    fill(rabbitmq, queue, 10)
    with connect(target) as connection:
        full = {"x-max-length": 4, "x-overflow": "reject-publish"}
        connection.channel().queue_declare(queue, durable=True, arguments=full)
    code, out, err = ended(pull(rabbitmq, target, queue))
    assert (code, out) == (2, "")
    assert f"queue '{queue}'" in err
    assert "a message was refused here" in err
    await_true("six messages are ready there again", lambda: depth(rabbitmq, queue) == 6)
    assert [number for number, *_ in taken(target, queue)] == [0, 1, 2, 3]


def test_nothing_is_lost_if_the_command_is_killed_and_repeated(
    rabbitmq: RabbitMq, start_broker: Callable[..., Crosstie]
) -> None:
    queue = f"pulled.{uuid.uuid4().hex}"
    target = start_broker()
    fill(rabbitmq, queue, COUNT)
    declare(target, queue)
    pulling = pull(rabbitmq, target, "--window", 50, queue)
    await_true("the first messages have moved", lambda: depth(target, queue) > 0)
    pulling.kill()
    pulling.communicate()
    code, _, err = ended(pull(rabbitmq, target, "--window", 50, queue))
    assert code == 0, err
    numbers = [number for number, *_ in taken(target, queue)]
    assert set(numbers) == set(range(COUNT))
    # Those that were on their way when it was killed.
    assert len(numbers) <= COUNT + 50


@pytest.mark.parametrize("source_kind", ["crosstie", "rabbitmq"])
def test_nothing_is_lost_if_both_brokers_are_killed(
    source_kind: str, start_broker: Callable[..., Crosstie], tmp_path: Path, request
) -> None:
    queue, window = f"pulled.{uuid.uuid4().hex}", 50
    target = start_broker()
    if source_kind == "crosstie":
        source = start_broker()
    elif is_installed():
        source = RabbitMq(tmp_path)
        request.addfinalizer(source.stop)
    else:
        pytest.skip("there is no RabbitMQ")

    def kill(broker) -> None:
        if isinstance(broker, Crosstie):
            broker.restart(kill=True)
        else:
            broker.kill()
            broker.start()

    fill(source, queue, COUNT)
    declare(target, queue)
    kills = [source, target, source, target] if source_kind == "crosstie" else [source, target]
    for broker in kills:
        before = depth(target, queue)
        pulling = pull(source, target, "--window", window, queue)
        await_true(
            "more messages have moved",
            lambda before=before, pulling=pulling: (
                depth(target, queue) > before or pulling.poll() is not None
            ),
        )
        kill(broker)
        code, _, err = ended(pulling)
        # On a quick machine it may have moved everything before.
        assert code == 0 or err, code
    code, _, err = ended(pull(source, target, "--window", window, queue))
    assert code == 0, err
    assert depth(source, queue) == 0
    numbers = [number for number, *_ in taken(target, queue)]
    assert set(numbers) == set(range(COUNT))
    # How many are there twice is up to the killed source: it had not stored their acknowledgements.
