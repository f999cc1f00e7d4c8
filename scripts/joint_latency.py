"""How long a call of a server of oslo.messaging takes: through a joint, and by its own client.

    python3 scripts/joint_latency.py --oslo VENV/bin/python --wamp VENV/bin/python

One node and one server of oslo.messaging are started, and two clients of that server: Autobahn's
session, whose calls go through a joint, and oslo.messaging's own. They make calls in turn, round by
round, one call after the other; each answer is checked. The node runs on the first core that this
process may use, everything else on the second. CROSSTIE is the binary (target/release/crosstie).

`--oslo` is an interpreter with oslo.messaging, `--wamp` one with Autobahn; they may be the same.
The exit code is 1 where the joint takes more than `--at-most` times what oslo.messaging takes.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import ExitStack
from pathlib import Path

# Together with the node these are what the two ways have in common.
EXCHANGE, TOPIC, PREFIX = "nova", "compute", "com.compute."
PATIENCE_S = 60
WARM_UP_CALLS = 50


def main() -> int:
    """Measure, print a line for each way, and say what one is of the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--oslo", required=True, help="an interpreter with oslo.messaging")
    parser.add_argument("--wamp", required=True, help="an interpreter with Autobahn")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=1000, help="of each round")
    parser.add_argument("--at-most", type=float, default=1.1, help="joint ÷ oslo.messaging")
    asked = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url, port = start_node(stack, directory, cores[0])
        others = cores[-1]
        server = start(stack, [asked.oslo, __file__, "serve", url], others)
        hear(server)
        calls = str(asked.calls)
        ways = {
            "oslo.messaging": start(stack, [asked.oslo, __file__, "oslo", url, calls], others),
            "joint": start(stack, [asked.wamp, __file__, "wamp", str(port), calls], others),
        }
        for client in ways.values():
            hear(client)
        found: dict[str, list[dict]] = {way: [] for way in ways}
        for _ in range(asked.rounds):
            for way, client in ways.items():
                client.stdin.write("go\n")
                client.stdin.flush()
                found[way].append(hear(client))
    for way, rounds in found.items():
        print(f"{way:15}", *(written(rounds, name) for name in ("p50_us", "p99_us")), sep="  ")
    medians = {way: median(rounds, "p50_us") for way, rounds in found.items()}
    ratio = medians["joint"] / medians["oslo.messaging"]
    verdict = "met" if ratio <= asked.at_most else "missed"
    print(f"joint ÷ oslo.messaging, p50: {ratio:.2f}, at most {asked.at_most}: {verdict}")
    return int(verdict == "missed")


def median(rounds: list[dict], name: str) -> float:
    return statistics.median(found[name] for found in rounds)


def written(rounds: list[dict], name: str) -> str:
    values = [found[name] for found in rounds]
    return f"{name} {statistics.median(values):.0f} ({min(values):.0f}-{max(values):.0f})"


def start(stack: ExitStack, command: list[str], core: int) -> subprocess.Popen:
    """Start a process on a core, which is ended with the stack."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, [core]),
    )
    stack.callback(process.wait)
    # A client may wait for a word on a thread that nothing else ends.
    stack.callback(process.kill)
    return process


def hear(process: subprocess.Popen) -> dict:
    """Return what a process says next; one that says nothing is an error."""
    line = process.stdout.readline()
    if not line:
        sys.exit(f"{process.args[1:3]} ended instead of answering")
    return json.loads(line)


def start_node(stack: ExitStack, directory: Path, core: int) -> tuple[str, int]:
    """Start the node; where oslo.messaging finds it, and where Autobahn does."""
    allow = {"call": True, "register": True, "publish": True, "subscribe": True}
    permissions = [{"uri": PREFIX, "match": "prefix", "allow": allow}]
    roles = [{"name": name, "permissions": permissions} for name in ("anonymous", "joint")]
    joint = {
        "type": "procedure-to-target",
        "realm": "realm1",
        "role": "joint",
        "user": "joint",
        "procedure": PREFIX,
        "match": "prefix",
        "exchange": EXCHANGE,
        "topic": TOPIC,
    }
    ports = {"rawsocket": free_port(), "amqp": free_port()}
    worker = {
        "type": "router",
        "realms": [{"name": "realm1", "roles": roles}],
        "amqp": {"users": [{"name": "nova", "password": "secret"}, {"name": "joint"}]},
        "joints": [joint],
        "transports": [
            {"type": kind, "endpoint": {"type": "tcp", "interface": "127.0.0.1", "port": port}}
            for kind, port in ports.items()
        ],
    }
    file = directory / "config.json"
    file.write_text(json.dumps({"version": 2, "workers": [worker]}))
    binary = os.environ.get("CROSSTIE", "target/release/crosstie")
    options = ["--cbdir", str(directory), "--config", str(file), "--loglevel", "error"]
    node = start(stack, [binary, "start", *options], core)
    deadline = time.monotonic() + PATIENCE_S
    while not all(map(is_open, ports.values())):
        if node.poll() is not None or time.monotonic() > deadline:
            sys.exit("the node does not listen")
        time.sleep(0.05)
    return f"rabbit://nova:secret@127.0.0.1:{ports['amqp']}/", ports["rawsocket"]


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def say(what: dict) -> None:
    print(json.dumps(what), flush=True)


def summary(times: list[float]) -> dict:
    """Return the median and the 99th percentile, in microseconds."""
    times = sorted(times)
    return {"p50_us": times[len(times) // 2] * 1e6, "p99_us": times[len(times) * 99 // 100] * 1e6}


def transport(url: str):
    # Its warnings about eventlet are not wanted.
    warnings.simplefilter("ignore")
    import oslo_messaging
    from oslo_config import cfg

    cfg.CONF([], project="crosstie", default_config_files=[])
    return oslo_messaging.get_rpc_transport(cfg.CONF, url=url)


def serve(url: str) -> None:
    """Answer calls with what they are called with."""
    way = transport(url)
    import oslo_messaging

    class Endpoint:
        def echo(self, _: dict, a: int) -> int:
            return a

    target = oslo_messaging.Target(exchange=EXCHANGE, topic=TOPIC, server="one")
    server = oslo_messaging.get_rpc_server(way, target, [Endpoint()])
    server.start()
    say({})
    signal.pause()


def call_by_oslo(url: str, calls: int) -> None:
    way = transport(url)
    import oslo_messaging

    target = oslo_messaging.Target(exchange=EXCHANGE, topic=TOPIC)
    client = oslo_messaging.get_rpc_client(way, target)

    def timed(number: int) -> float:
        begun = time.perf_counter()
        assert client.call({}, "echo", a=number) == number
        return time.perf_counter() - begun

    for number in range(WARM_UP_CALLS):
        timed(number)
    say({})
    for _ in sys.stdin:
        say(summary([timed(number) for number in range(calls)]))


def call_by_wamp(port: int, calls: int) -> None:
    import asyncio

    from autobahn.asyncio.component import Component, run
    from autobahn.wamp.exception import ApplicationError

    way = {"type": "rawsocket", "url": f"rs://127.0.0.1:{port}", "serializer": "json"}
    way["endpoint"] = {"type": "tcp", "host": "127.0.0.1", "port": port}
    component = Component(transports=[way], realm="realm1")

    @component.on_join
    async def joined(session, _) -> None:
        async def timed(number: int) -> float:
            begun = time.perf_counter()
            assert await session.call(PREFIX + "echo", a=number) == number
            return time.perf_counter() - begun

        deadline = time.monotonic() + PATIENCE_S
        number = 0
        while number < WARM_UP_CALLS:
            try:
                await timed(number)
                number += 1
            except ApplicationError:
                # The joint is there a moment after its realm.
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.05)
        say({})
        loop = asyncio.get_running_loop()
        while await loop.run_in_executor(None, sys.stdin.readline):
            say(summary([await timed(number) for number in range(calls)]))

    run([component], log_level="error")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", url]:
            serve(url)
        case ["oslo", url, calls]:
            call_by_oslo(url, int(calls))
        case ["wamp", port, calls]:
            call_by_wamp(int(port), int(calls))
        case _:
            sys.exit(main())
