"""Values between serializers: what real receivers get, and what is refused before it reaches them.

The tables of docs/values.md are what these tests find; `BLESS=1` writes them anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import cbor2
import msgpack
import pytest
from rig import config
from rig.rawsocket import RawSocket
from rig.receivers import COMMANDS, SERIALIZERS, Receivers
from rig.router import Router
from rig.session import CALL, ERROR, EVENT, INVOCATION, PUBLISH, PUBLISHED

BOOK = Path(__file__).resolve().parents[2] / "docs" / "values.md"
TOPIC = "com.value"
INVALID = "wamp.error.invalid_argument"
NOTHING = "\N{EN DASH}"
DATE = "c1 1a5e0be100"
# Each: the publisher's serializer, what is published in words, and its octets (JSON: its text).
VALUES = [
    ("json", "`null`", "null"),
    ("json", "`-0`", "-0"),
    ("json", "`1.5`", "1.5"),
    ("json", "`18446744073709551617` (2⁶⁴ + 1)", "18446744073709551617"),
    ("json", "`1` and 30 zeros", "1" + "0" * 30),
    ("json", '`"\\u0000AQI="`, which is bytes', '"\\u0000AQI="'),
    ("json", '`{"1":2}`', '{"1":2}'),
    ("msgpack", "2⁶⁴ - 1", "cf ffffffffffffffff"),
    ("msgpack", "-2⁶³", "d3 8000000000000000"),
    ("msgpack", "a float of 32 bits, 1.5", "ca 3fc00000"),
    ("msgpack", "NaN", "cb 7ff8000000000000"),
    ("msgpack", "bytes", "c4 02 0102"),
    ("msgpack", "text that begins with NUL", "a5 00 4151493d"),
    ("msgpack", "a timestamp", "d6 ff 5e0be100"),
    ("cbor", "undefined", "f7"),
    ("cbor", "a float of 16 bits, 1.5", "f9 3e00"),
    ("cbor", "a float of 32 bits, 2⁵³ (JavaScript's)", "fa 5a000000"),
    ("cbor", "NaN", "f9 7e00"),
    ("cbor", "a map with the key 1", "a1 01 02"),
    ("cbor", "a map with the key null", "a1 f6 02"),
    ("cbor", "2⁶⁴ (bignum)", "c2 49 010000000000000000"),
    ("cbor", "-2⁶⁴ - 1 (bignum)", "c3 49 010000000000000000"),
    ("cbor", "123 (bignum, JavaScript's `123n`)", "c2 41 7b"),
    ("cbor", "1.12 (decimal fraction)", "c4 82 21 18 70"),
    ("cbor", "7 that is marked as CBOR (tag 55799)", "d9 d9f7 07"),
    ("cbor", "bytes", "42 0102"),
    ("cbor", "JavaScript's `Uint8Array` (tag 64)", "d8 40 42 0102"),
    ("cbor", "text that begins with NUL", "65 00 4151493d"),
    ("cbor", "a date (tag 1)", DATE),
]
REFUSED = [
    ("json", "`NaN`", "NaN"),
    ("json", "`-Infinity`", "[-Infinity]"),
    ("json", '`"\\u0000abc"`', '"\\u0000abc"'),
    ("json", "an integer of 4,301 digits", "9" * 4301),
    ("msgpack", "a map with the key 1", "81 01 02"),
    ("msgpack", "extension type 1", "d4 01 00"),
    ("msgpack", "a timestamp of one byte", "d4 ff 00"),
    ("msgpack", "a timestamp with 10⁹ nanoseconds", "d7 ff ee6b2800 00000000"),
    ("cbor", "tag 0 with a word", "c0 63 616263"),
    ("cbor", "tag 1 with text", "c1 60"),
    ("cbor", "tag 2 with text", "c2 60"),
    ("cbor", "tag 4 with one number", "c4 81 01"),
    ("cbor", "tag 25", "d8 19 00"),
    ("cbor", "tag 29 that refers to nothing", "d8 1d 00"),
    ("cbor", "tag 30 with the divisor 0", "d8 1e 82 01 00"),
    ("cbor", "tag 35 with `(`", "d8 23 61 28"),
    ("cbor", "tag 36 with bytes", "d8 24 41 61"),
    ("cbor", "tag 37 with one byte", "d8 25 41 00"),
    ("cbor", "tag 52 with one byte", "d8 34 41 01"),
    ("cbor", "tag 70 with two bytes", "d8 46 42 0102"),
    ("cbor", "tag 100 with text", "d8 64 60"),
    ("cbor", "tag 258 with text", "d9 0102 61 61"),
    ("cbor", "tag 1004 with a word", "d9 03ec 61 61"),
    ("cbor", "a simple value without a meaning", "e0"),
]


def octets_of(serializer: str, value: str) -> bytes:
    """Return the bytes of a value of the tables."""
    return value.encode() if serializer == "json" else bytes.fromhex(value)


def request(serializer: str, head: list, number: int, value: bytes) -> bytes:
    """Return a message whose arguments are a number and the octets."""
    if serializer == "json":
        return json.dumps(head).encode()[:-1] + b",[%d," % number + value + b"]]"
    write = {"msgpack": msgpack.packb, "cbor": cbor2.dumps}[serializer]
    lists = 0x90 if serializer == "msgpack" else 0x80
    whole = bytes([lists | len(head) + 1]) + b"".join(write(each) for each in head)
    return whole + bytes([lists | 2]) + write(number) + value


class Sender:
    """A session of its own that says what it is told to, octet by octet."""

    def __init__(self, router: Router, serializer: str):
        self.serializer = serializer
        self.session = RawSocket.tcp(router.address("tcp")).shake_hands(serializer).join()

    def publish(self, number: int, value: bytes, **options: object) -> None:
        """Publish a value with its number."""
        ask = next(self.session.requests)
        head = [PUBLISH, ask, {"acknowledge": True, **options}, TOPIC]
        self.session.send_frame(request(self.serializer, head, number, value))

    def answer(self) -> tuple[int, str]:
        """Return the answer: PUBLISHED, or ERROR with its text."""
        answer = self.session.hear_any()
        if answer[0] == ERROR:
            assert answer[4] == INVALID
            return ERROR, answer[5][0]
        return answer[0], ""


@pytest.fixture
def senders(router) -> Iterator[dict[str, Sender]]:
    """Return a sender for each serializer."""
    senders = {serializer: Sender(router, serializer) for serializer in SERIALIZERS}
    yield senders
    for sender in senders.values():
        sender.session.close()


@pytest.fixture(scope="module")
def receivers(router) -> Iterator[dict[str, Receivers]]:
    """Return the sessions of real clients that subscribe."""
    host, port = router.address("tcp")
    found = {library: Receivers(library, f"ws://{host}:{port}/ws") for library in COMMANDS}
    yield found
    for each in found.values():
        each.close()


def blessed(name: str, table: list[str]) -> None:
    """Hold the book to a table, or write it there."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    book = BOOK.read_text(encoding="utf-8")
    front, rest = book.split(begin)
    _, back = rest.split(end)
    written = front + begin + "\n".join(table) + "\n" + end + back
    if os.environ.get("BLESS"):
        BOOK.write_text(written, encoding="utf-8")
    assert book == written or os.environ.get("BLESS"), f"docs/values.md: {name}: use BLESS=1"


def test_every_receiver_gets_what_its_serializer_can_hold(senders, receivers):
    for number, (serializer, _, value) in enumerate(VALUES):
        senders[serializer].publish(number, octets_of(serializer, value))
        assert senders[serializer].answer()[0] == PUBLISHED
    senders["json"].publish(len(VALUES), b"true")
    senders["json"].answer()
    # No receiver's session ends: each has the last one.
    came = {library: each.until(len(VALUES)) for library, each in receivers.items()}
    columns = [(library, into) for into in SERIALIZERS for library in COMMANDS]
    table = [
        "| published in | value | "
        + " | ".join(f"{into}, {name}" for name, into in columns)
        + " |",
        "|" + "---|" * (2 + len(columns)),
    ]
    for number, (serializer, words, _) in enumerate(VALUES):
        cells = [came[library][into].get(number, NOTHING) for library, into in columns]
        shown = [NOTHING if cell == NOTHING else f"`{cell}`" for cell in cells]
        table.append(
            f"| {serializer} | {words} | " + " | ".join(shown).replace("\\u0000", "␀") + " |"
        )
    blessed("values that arrive", [line.replace("Autobahn|", "Autobahn\\|") for line in table])


def test_an_unreadable_value_is_refused_and_reaches_no_receiver(senders, receivers):
    table = ["| published in | value | the sender's error |", "|---|---|---|"]
    for serializer, words, value in REFUSED:
        senders[serializer].publish(1000, octets_of(serializer, value))
        kind, text = senders[serializer].answer()
        assert kind == ERROR, words
        assert text.startswith("arguments[1]"), text
        table.append(f"| {serializer} | {words} | {text} |")
    # Every sender goes on, and the receivers have nothing but what comes then.
    for number, sender in enumerate(senders.values(), 2000):
        sender.publish(number, {"json": b"1", "msgpack": b"\1", "cbor": b"\1"}[sender.serializer])
        assert sender.answer()[0] == PUBLISHED
    for each in receivers.values():
        for values in each.until(2002).values():
            assert values == {2000: "1", 2001: "1", 2002: "1"}
    blessed("values that are refused", table)


@pytest.mark.parametrize("serializer", SERIALIZERS)
def test_a_call_and_an_answer_that_cannot_be_read_fail_alone(router, serializer):
    value = octets_of(serializer, next(row[2] for row in REFUSED if row[0] == serializer))
    with (
        RawSocket.tcp(router.address("tcp")).shake_hands(serializer).join() as caller,
        RawSocket.tcp(router.address("tcp")).shake_hands(serializer).join() as callee,
    ):
        callee.register(f"com.value.{serializer}")
        number = next(caller.requests)
        caller.send_frame(
            request(serializer, [CALL, number, {}, f"com.value.{serializer}"], 1, value)
        )
        error = caller.hear(ERROR)
        assert (error[1], error[2], error[4]) == (CALL, number, INVALID)
        # The callee has heard nothing of it; then it answers with the same.
        number = caller.ask(CALL, {}, f"com.value.{serializer}")
        invocation = callee.hear(INVOCATION)[1]
        callee.send_frame(request(serializer, [70, invocation, {}], 1, value))
        error = caller.hear(ERROR)
        assert (error[1], error[2], error[4]) == (CALL, number, INVALID)
        assert error[5][0].startswith("arguments[1]")
        callee.round_trip()


def test_a_publication_without_acknowledgement_is_dropped_counted_and_logged(start_router):
    router = start_router(node())
    with RawSocket.tcp(router.address("tcp")).shake_hands("json").join() as sender:
        for number in (1, 2):
            sender.send_frame(b'[16,%d,{},"com.value",[NaN]]' % number)
            next(sender.requests)
        sender.round_trip()
    assert router.metric("unreadable_refused_total") == 2
    # One line for each kind and hour.
    assert router.told().count("cannot decode it: arguments[0]: NaN") == 1


def test_an_event_that_a_serializer_cannot_hold_is_dropped_counted_and_logged(start_router):
    router = start_router(node())
    with (
        RawSocket.tcp(router.address("tcp")).shake_hands("json").join() as sender,
        RawSocket.tcp(router.address("tcp")).shake_hands("msgpack").join() as other,
    ):
        other.subscribe(TOPIC)
        for _ in range(2):
            sender.ask(PUBLISH, {}, TOPIC, [2**64 + 1])
        sender.ask(PUBLISH, {}, TOPIC, ["end"])
        assert other.hear(EVENT)[4] == ["end"]
    assert router.metric("events_dropped_unrepresentable_total") == 2
    assert router.told().count("MessagePack has no integers beyond 64 bits") == 1


def test_a_realm_that_converts_serves_whom_it_can(start_router):
    router = start_router(node(unreadable_values="convert"))
    sessions = {
        name: RawSocket.tcp(router.address("tcp")).shake_hands(name).join() for name in SERIALIZERS
    }
    for session in sessions.values():
        session.subscribe(TOPIC)
    sender = Sender(router, "msgpack")
    sender.publish(1, bytes.fromhex("810102"))
    assert sender.answer()[0] == PUBLISHED
    assert sessions["json"].hear(EVENT)[4] == [1, {"1": 2}]
    assert sessions["msgpack"].hear(EVENT)[4] == [1, {"1": 2}]
    assert sessions["cbor"].hear(EVENT)[4] == [1, {1: 2}]
    # Values that no serializer can hold are refused.
    sender.publish(1, bytes.fromhex("d40100"))
    assert sender.answer()[0] == ERROR
    sender = Sender(router, "json")
    sender.publish(2, b"Infinity")
    sender.answer()
    sender.publish(3, b"0")
    sender.answer()
    assert sessions["json"].hear(EVENT)[4] == [3, 0]
    assert sessions["msgpack"].hear(EVENT)[4] == [2, float("inf")]
    assert sessions["cbor"].hear(EVENT)[4] == [2, float("inf")]


def test_a_realm_that_passes_values_on_behaves_as_crossbar_with_nan(start_router):
    router = start_router(node(unreadable_values="pass"))
    with (
        RawSocket.tcp(router.address("tcp")).shake_hands("json").join() as python,
        RawSocket.tcp(router.address("tcp")).shake_hands("cbor").join() as other,
    ):
        python.subscribe(TOPIC)
        other.subscribe(TOPIC)
        sender = Sender(router, "json")
        sender.publish(1, b"-Infinity")
        assert sender.answer()[0] == PUBLISHED
        for session in (python, other):
            assert session.hear(EVENT)[4] == [1, float("-inf")]


def node(**options: str) -> dict:
    """Return a node whose realm has these options."""
    realm = {"name": "realm1", "roles": [config.role("anonymous")], "options": options}
    return config.node([realm], [config.universal("tcp", config.tcp())])
