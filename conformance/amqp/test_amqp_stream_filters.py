"""Filters of streams over AMQP 0-9-1: consumers are sent the messages with the values they want."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import amqp
import pytest
from rig.broker import Crosstie
from rig.streams import bodies, channel_of, declare, publish, read, refused


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Crosstie]:
    """Start a broker that may be killed."""
    running = Crosstie(tmp_path, amqp={"store": str(tmp_path / "amqp.store")})
    yield running
    if running.router.process.poll() is None:
        running.stop()


COLOURS = [None, "red", "green", "blue"]


def publish_coloured(channel, stream: str, count: int) -> None:
    """Publish messages by turns without a value to filter by, and with each."""
    for number in range(count):
        colour = COLOURS[number % len(COLOURS)]
        headers = {} if colour is None else {"x-stream-filter-value": colour}
        publish(channel, stream, f"{colour} {number}", headers=headers)


def coloured(count: int, *wanted: str | None) -> list[str]:
    """Return the bodies of those messages that have wanted values."""
    colours = ((COLOURS[number % len(COLOURS)], number) for number in range(count))
    return [f"{colour} {number}" for colour, number in colours if colour in wanted]


FILTERS = [
    ({"x_stream_filter": "red"}, ("red",)),
    ({"x_stream_filter": ["green", "blue"]}, ("green", "blue")),
    ({"x_stream_filter": "red", "x_stream_match_unfiltered": True}, ("red", None)),
    ({"x_stream_filter": ["red"], "x_stream_match_unfiltered": False}, ("red",)),
    # Without a filter all messages match, whether they have a value or not.
    ({"x_stream_match_unfiltered": True}, tuple(COLOURS)),
]


def test_a_filter_chooses_messages_by_their_values(own):
    with channel_of(own) as channel:
        declare(queue="log", arguments={"x-stream-filter-size-bytes": 32})(channel)
        publish_coloured(channel, "log", 200)
    for _ in range(2):
        with channel_of(own) as channel:
            for arguments, wanted in FILTERS:
                expected = coloured(200, *wanted)
                # A message that does not match would come in between.
                got = read(channel, "log", len(expected), "first", prefetch=7, **arguments)
                assert bodies(got) == expected
                (offset, *_), *_ = read(channel, "log", 1, 100, **arguments)
                assert offset == next(
                    int(body.split()[1]) for body in expected if int(body.split()[1]) >= 100
                )
        own.restart(kill=True)


def test_a_reader_that_waits_is_sent_the_matching_messages(own):
    got: dict[str, list[str]] = {"red": [], "green": []}
    with channel_of(own) as channel, channel_of(own) as reader:
        declare(queue="log")(channel)
        for colour in got:
            reader.basic_consume(
                "log",
                lambda _channel, _method, _properties, body, c=colour: got[c].append(body.decode()),
                arguments={"x-stream-filter": colour, "x-stream-offset": "next"},
            )
        publish_coloured(channel, "log", 40)
        deadline = time.monotonic() + 30
        while len(got["red"]) + len(got["green"]) < 20:
            assert time.monotonic() < deadline, f"only {got} came"
            reader.connection.process_data_events(time_limit=0.1)
        assert got == {colour: coloured(40, colour) for colour in got}


def test_a_filter_of_another_client_chooses_too(own):
    """py-amqp writes lists and truth values in its own way."""
    got: list[str] = []
    expected = coloured(60, "blue", "red", None)
    with channel_of(own) as channel:
        declare(queue="log")(channel)
        publish_coloured(channel, "log", 60)
    where = f"{own.host}:{own.port}"
    with amqp.Connection(where, userid="test", password="test") as connection:
        channel = connection.channel()
        channel.basic_qos(0, 100, a_global=False)
        channel.basic_consume(
            "log",
            callback=lambda message: got.append(message.body.decode()),
            arguments={
                "x-stream-offset": "first",
                "x-stream-filter": ["blue", "red"],
                "x-stream-match-unfiltered": True,
            },
        )
        while len(got) < len(expected):
            connection.drain_events(timeout=30)
    assert got == expected


def test_filters_that_mean_nothing_are_refused(own):
    with channel_of(own) as channel:
        declare(queue="log")(channel)
        channel.queue_declare("plain", durable=True)

    def asked(queue: str, **arguments: object) -> tuple[str, int, str]:
        named = {name.replace("_", "-"): value for name, value in arguments.items()}
        return refused(
            own, lambda channel: channel.basic_consume(queue, lambda *_: None, arguments=named)
        )

    def invalid(name: str, why: str) -> tuple[str, int, str]:
        text = f"PRECONDITION_FAILED - invalid arg '{name}' for queue 'log' in vhost '/': {why}"
        return ("channel", 406, text)

    name = "x-stream-filter"
    for value, why in {
        5: "expected a text or a list of texts, got signedint",
        (): "expected 1 to 1024 values, got 0",
        ("red", 5): "expected a list of texts, got signedint in it",
    }.items():
        value = list(value) if isinstance(value, tuple) else value
        assert asked("log", x_stream_filter=value) == invalid(name, why)
    other = {"x_stream_filter": "red", "x_stream_match_unfiltered": "yes"}
    expected = invalid("x-stream-match-unfiltered", "expected a boolean, got longstr")
    assert asked("log", **other) == expected
    for name in ("x_stream_filter", "x_stream_match_unfiltered"):
        named = name.replace("_", "-")
        assert asked("plain", **{name: "red"})[1:] == (
            406,
            f"PRECONDITION_FAILED - invalid arg '{named}' for queue 'plain' in vhost '/' of queue "
            "type rabbit_classic_queue",
        )
