"""Costs of a realm with the advanced profile, one command for each figure.

    target/venv/bin/python scripts/realm_figures.py history [--events 1000000]
    target/venv/bin/python scripts/realm_figures.py deaf [--clients 999] [--seconds 60]
    target/venv/bin/python scripts/realm_figures.py mixed [--seconds 600]

`history`: a publication that is recorded on disk beside one that is not, in processor time of the
router with its store, and `get_events` of the last 100 of all. `deaf`: `crosstie bench pubsub
--saturate` without and with one more subscriber that never reads. `mixed`: calls, acknowledged
events, definitions, testaments and cut connections, every answer checked; the memory at a fifth of
the time and at the end.

CROSSTIE is the binary (target/debug/crosstie). The exit code is 1 where something was lost,
an answer was wrong, or an aim is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "conformance"))

from rig import config  # noqa: E402
from rig.rawsocket import RawSocket  # noqa: E402
from rig.router import Router, binary  # noqa: E402
from rig.session import (  # noqa: E402
    CALL,
    EVENT,
    INVOCATION,
    PUBLISH,
    PUBLISHED,
    RESULT,
    ROLES,
    SUBSCRIBE,
    SUBSCRIBED,
    YIELD,
)

WINDOW = 512
EVENT_RECEIVED = 337
TOPICS_RETAINED = 100
MIB = 1 << 20
SHOWN_MAX = 3


def main() -> int:
    """Measure one figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    figures = parser.add_subparsers(dest="figure", required=True)
    history = figures.add_parser("history")
    history.add_argument("--events", type=int, default=1_000_000)
    history.add_argument("--directory", help="where the file lies; it decides which disk that is")
    deaf = figures.add_parser("deaf")
    deaf.add_argument("--clients", type=int, default=999)
    deaf.add_argument("--seconds", type=int, default=60)
    mixed = figures.add_parser("mixed")
    mixed.add_argument("--seconds", type=int, default=600)
    mixed.add_argument("--clients", type=int, default=4)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=getattr(asked, "directory", None)) as directory:
        measure = {"history": of_history, "deaf": of_deaf, "mixed": of_mixed}[asked.figure]
        return 0 if measure(asked, Path(directory)) else 1


@contextlib.contextmanager
def router(directory: Path, **realm: object):
    """Run a node whose realm allows everything to all clients."""
    shared = {"name": "realm1", "roles": [config.role("anonymous")], **realm}
    node = config.node([shared], [config.universal("tcp", config.tcp())])
    started = Router(directory, config=node)
    try:
        yield started
    finally:
        started.stop()


def joined(node: Router, **details: object) -> RawSocket:
    """Return a session."""
    return RawSocket.tcp(node.address("tcp")).shake_hands("json").join(**details)


def spent_s(node: Router) -> float:
    """Return the processor time of all of the node's threads."""
    tasks = Path(f"/proc/{node.process.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def memory(node: Router, field: str = "VmRSS") -> int:
    """Return bytes of the node's memory."""
    status = Path(f"/proc/{node.process.pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith(f"{field}:")]
    return int(line.split()[1]) * 1024


def of_history(asked: argparse.Namespace, directory: Path) -> bool:
    """Publish to a topic that is not recorded, then to one that is; ask for the last."""
    kept = {"uri": "com.kept", "limit": asked.events}
    store = {"type": "sqlite", "path": "events.db", "event-history": [kept]}
    with router(directory, store=store) as node:
        publisher = joined(node)
        flood(publisher, "com.plain", min(asked.events, 20_000))
        plain = cost_us(node, publisher, "com.plain", min(asked.events, 200_000))
        recorded = cost_us(node, publisher, "com.kept", asked.events)
        publisher.ask(CALL, {}, "wamp.subscription.lookup", ["com.kept"])
        subscription = publisher.hear(RESULT)[3][0]
        waits_ms = []
        for _ in range(200):
            begun = time.perf_counter()
            last = {"reverse": True, "limit": 100}
            publisher.ask(CALL, {}, "wamp.subscription.get_events", [subscription], last)
            events = publisher.hear(RESULT)[3][0]
            waits_ms.append((time.perf_counter() - begun) * 1e3)
            numbers = [event["args"][0] for event in events]
            assert numbers == list(range(asked.events - 1, asked.events - 101, -1)), numbers[:3]
        there = node.metric("realm_recorded_events", realm="realm1")
        missing = asked.events - there
    middle, worst = statistics.median(waits_ms), max(waits_ms)
    print(f"a publication: {plain:.2f} µs, recorded {recorded:.2f} µs (+{recorded - plain:.2f})")
    print(f"get_events of the last 100 of {there:.0f}: {middle:.2f} ms, at most {worst:.2f} ms")
    print(f"not recorded: {missing:.0f}")
    return missing == 0 and recorded - plain <= 2 and middle <= 2


def flood(publisher: RawSocket, topic: str, count: int) -> None:
    """Publish numbers, a window of them unanswered."""
    framed = []
    for number in range(count):
        request = next(publisher.requests)
        octets = json.dumps([PUBLISH, request, {"acknowledge": True}, topic, [number]]).encode()
        framed.append(len(octets).to_bytes(4, "big") + octets)
        if len(framed) == WINDOW or number == count - 1:
            publisher.socket.sendall(b"".join(framed))
            for _ in framed:
                publisher.hear(PUBLISHED)
            framed.clear()


def cost_us(node: Router, publisher: RawSocket, topic: str, count: int) -> float:
    """Return the node's processor time for each of so many publications."""
    before = spent_s(node)
    flood(publisher, topic, count)
    return (spent_s(node) - before) / count * 1e6


def of_deaf(asked: argparse.Namespace, directory: Path) -> bool:
    """Have the load driver publish at full speed, without and with one that never reads."""
    found = []
    for is_there in (False, True):
        place = directory / str(is_there)
        place.mkdir()
        with router(place) as node:
            topic = "com.flood"
            if is_there:
                address = node.address("tcp")
                deaf = RawSocket.tcp(address, receive_buffer=4_096).shake_hands("json").join()
                deaf.subscribe(topic)
            row = bench(asked, node, topic, place / "result.json")
            grown = memory(node, "VmHWM") / MIB
            dropped = node.metric("events_dropped_full_total")
            print(
                f"{'with' if is_there else 'without'} one that never reads: "
                f"{row['metrics']['events_per_s']:.0f} events/s, p99 "
                f"{row['metrics']['latency_p99_us']:.0f} µs, {row['why'] or 'nothing lost'}, "
                f"dropped by the router {dropped:.0f}, at most {grown:.0f} MiB resident"
            )
            found.append(row)
    alone, beside = found
    p99_us = [row["metrics"]["latency_p99_us"] for row in found]
    return alone["valid"] and beside["valid"] and p99_us[1] <= 2 * p99_us[0]


def bench(asked: argparse.Namespace, node: Router, topic: str, result: Path) -> dict:
    """Run the load driver; return its row, which is not valid where an event was lost."""
    host, port = node.address("tcp")
    command = [binary(), "bench", "pubsub", "--url", f"ws://{host}:{port}/ws", "--topic", topic]
    command += ["--pid", str(node.process.pid), "--saturate", "--clients", str(asked.clients)]
    command += ["--seconds", str(asked.seconds), "--runs", "1", "--no-floor", "--json", result]
    subprocess.run([str(word) for word in command], check=False, stdout=subprocess.DEVNULL)
    rows = json.loads(result.read_text())["results"]
    return next(row for row in rows if row.get("round") is None)


def of_mixed(asked: argparse.Namespace, directory: Path) -> bool:
    """Have several processes do everything, and look at the node's memory meanwhile."""
    store = {"type": "memory", "event-history": [{"uri": "com.kept", "limit": 1_000}]}
    resumption = {"window_ms": 2_000, "sessions_max": 100}
    with router(directory, store=store, resumption=resumption) as node:
        ends = time.monotonic() + asked.seconds
        address, counts = node.address("tcp"), multiprocessing.Queue()
        clients = [
            multiprocessing.Process(target=do_everything, args=(address, number, ends, counts))
            for number in range(asked.clients)
        ]
        for client in clients:
            client.start()
        time.sleep(asked.seconds / 5)
        there, early = kept(node), memory(node)
        print(f"after {asked.seconds / 5:.0f} s: {early / MIB:.1f} MiB, {there}", flush=True)
        found = [counts.get(timeout=asked.seconds + 60) for _ in clients]
        for client in clients:
            client.join()
        there, late = kept(node), memory(node)
    done, wrong = (sum(column) for column in zip(*found, strict=True))
    print(f"after {asked.seconds} s: {late / MIB:.1f} MiB, {there}: {late / early:.3f} times that")
    print(f"{done} answers and events, {wrong} wrong")
    return wrong == 0 and late <= 1.05 * early


def kept(node: Router) -> str:
    """Print the realm's state that stays until its bound."""
    events = node.metric("realm_retained_events", realm="realm1")
    octets = node.metric("realm_retained_bytes", realm="realm1")
    definitions = node.metric("realm_definitions", realm="realm1")
    return f"{events:.0f} retained events of {octets / MIB:.1f} MiB, {definitions:.0f} definitions"


def do_everything(address: tuple, number: int, ends: float, counts) -> None:
    """Come and go until it ends; say how many answers there were, and how many were wrong."""
    chance, done, wrong = random.Random(number), 0, 0
    while time.monotonic() < ends:
        try:
            done += one_session(address, chance)
        except AssertionError as error:
            wrong += 1
            if wrong <= SHOWN_MAX:
                print(f"client {number}: {error}", file=sys.stderr)
    counts.put((done, wrong))


def one_session(address: tuple, chance: random.Random) -> int:
    """Do some of everything, check each answer, and leave or be cut; how many answers that was."""
    acknowledging = {**ROLES, "subscriber": {"features": {"x_acknowledged_event_delivery": True}}}
    with RawSocket.tcp(address) as peer:
        peer.shake_hands(chance.choice(["json", "msgpack", "cbor"]))
        peer.join(roles=acknowledging, resumable=chance.random() < 0.2)
        own = f"com.mixed.n{peer.id}"
        registration = peer.register(f"{own}.add")
        peer.ask(SUBSCRIBE, {"x_acknowledged_delivery": True}, f"{own}.topic")
        subscription = peer.hear(SUBSCRIBED)[2]
        peer.ask(CALL, {}, "wamp.reflect.define", [f"{own}.add", {"args": "x" * 200}])
        assert peer.hear(RESULT)[3][0] in (True, False)
        peer.ask(CALL, {}, "wamp.session.add_testament", [f"{own}.left", [1], {}])
        peer.hear(RESULT)
        rounds = chance.randrange(1, 60)
        for turn in range(rounds):
            text = "x" * chance.choice([0, 100, 5_000])
            call = peer.ask(CALL, {}, f"{own}.add", [turn, text])
            invocation = peer.hear(INVOCATION)
            assert (invocation[2], invocation[4]) == (registration, [turn, text]), invocation[:4]
            peer.say(YIELD, invocation[1], {}, [turn + 1])
            result = peer.hear(RESULT)
            assert (result[1], result[3]) == (call, [turn + 1]), result
            options = {"acknowledge": True, "exclude_me": False}
            request = peer.ask(PUBLISH, options, f"{own}.topic", [turn, text])
            published = peer.hear(PUBLISHED)
            assert published[1] == request, published
            event = peer.hear(EVENT)
            assert event[1:3] == [subscription, published[2]], event[:4]
            assert event[4] == [turn, text], event[:4]
            peer.say(EVENT_RECEIVED, event[2])
            peer.publish("com.kept", turn)
        # A topic of one's own would be retained when its session is long gone: that is a realm's
        # state, of which there is more with each session, and no leak.
        retain = {"acknowledge": True, "retain": True}
        topic = f"com.retained.n{peer.id % TOPICS_RETAINED}"
        request = peer.ask(PUBLISH, retain, topic, ["x" * 1_000])
        published = peer.hear(PUBLISHED)
        assert published[1] == request, published
        return 4 * rounds + 6


if __name__ == "__main__":
    os.environ.setdefault("CROSSTIE", str(ROOT / "target/debug/crosstie"))
    sys.exit(main())
