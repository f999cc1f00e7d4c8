"""A client or a server of oslo.messaging, driven by `crosstie bench oslo`.

One argument: what to be, as JSON. It says `"Ready"` and, at the end, what it found, each in a line
of JSON.
"""

import json
import sys
import threading
import time
import warnings
from collections import Counter

# What it thinks of eventlet is said once for each process otherwise.
warnings.simplefilter("ignore")

import oslo_messaging  # noqa: E402
from oslo_config import cfg  # noqa: E402

ORDER = json.loads(sys.argv[1])
NAMES = ORDER["names"]
PATIENCE_S = 60
# A late message is waited for this long before it counts as lost.
LATE_S = 5


def say(report) -> None:
    sys.stdout.write(json.dumps(report) + "\n")
    sys.stdout.flush()


def transport():
    cfg.CONF([], project="crosstie-bench", default_config_files=[])
    return oslo_messaging.get_rpc_transport(cfg.CONF, url=ORDER["url"])


class Endpoint:
    """Answers echo; keeps account of what came."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.seen: Counter = Counter()
        self.total: int | None = None
        self.changed = threading.Event()

    def echo(self, ctxt, a):
        """Return what the document's server returns."""
        with self.lock:
            self.seen[a] += 1
        return {"method": "echo", "context": ctxt, "args": {"a": a}}

    def end(self, ctxt, total):
        """Take how many requests there were, this one apart."""
        with self.lock:
            self.total = total
        self.changed.set()


def faults(**found: int) -> dict:
    return {"failed": 0, "wrong": 0, "reordered": 0, "doubled": 0, "lost": 0} | found


def serve() -> None:
    endpoint = Endpoint()
    target = oslo_messaging.Target(
        exchange=NAMES["exchange"], topic=NAMES["topic"], server=NAMES["server"]
    )
    server = oslo_messaging.get_rpc_server(transport(), target, [endpoint])
    server.start()
    say("Ready")
    endpoint.changed.wait()
    # Threads may still be at work on what came before the end.
    deadline = time.monotonic() + LATE_S
    while len(endpoint.seen) < endpoint.total and time.monotonic() < deadline:
        time.sleep(0.01)
    seen = endpoint.seen
    found = faults(
        lost=endpoint.total - len(seen), doubled=sum(count - 1 for count in seen.values())
    )
    say({"Served": {"faults": found, "traffic": {"reads": 0, "messages": len(seen)}}})
    server.stop()
    server.wait()


class Client:
    """One operation after the other, each with a number of its own."""

    def __init__(self) -> None:
        target = oslo_messaging.Target(exchange=NAMES["exchange"], topic=NAMES["topic"])
        self.client = oslo_messaging.get_rpc_client(transport(), target, timeout=PATIENCE_S)
        self.is_call = ORDER["operation"] == "call"
        self.number = 0
        self.faults = Counter()

    def operate(self) -> bool:
        """Call or cast once; whether it went right."""
        number = self.number
        self.number += 1
        try:
            if not self.is_call:
                self.client.cast({}, "echo", a=number)
                return True
            answer = self.client.call({}, "echo", a=number)
        except oslo_messaging.MessagingException:
            self.faults["failed"] += 1
            return False
        if answer["args"] != {"a": number}:
            self.faults["wrong"] += 1
            return False
        return True

    def finish(self) -> None:
        """Tell the server that it was all."""
        self.client.cast({}, "end", total=self.number)


def drive() -> None:
    begun_ns = time.monotonic_ns()
    client = Client()
    # It connects when it is first used.
    client.operate()
    setup_ns = time.monotonic_ns() - begun_ns
    say("Ready")
    line = sys.stdin.readline()
    if not line:
        return
    go = json.loads(line)
    first, elapsed_ns = run(client, go["window"], go["operations_max"])
    steady = None
    if go["steady_operations"]:
        driven, steady_ns = run(client, go["window"], go["steady_operations"])
        steady = {"driven": driven, "elapsed_ns": steady_ns}
    client.finish()
    found = {
        "driven": first,
        "elapsed_ns": elapsed_ns,
        "steady": steady,
        "setup_ns": setup_ns,
        "setup_operations": 1,
    }
    say({"Driven": found})


def run(client: Client, window: dict, operations_max: int) -> tuple[dict, int]:
    """Operate until the window or the number is over; what was found, and how long it took."""
    counts: Counter = Counter()
    sum_ns = right = 0
    first_ns = last_ns = time.monotonic_ns()
    for _ in range(operations_max):
        before_ns = time.monotonic_ns()
        if before_ns >= window["end_ns"]:
            break
        is_right = client.operate()
        last_ns = time.monotonic_ns()
        if is_right:
            right += 1
            if window["start_ns"] <= last_ns < window["end_ns"]:
                took_ns = last_ns - before_ns
                sum_ns += took_ns
                counts[took_ns // 1000 * 1000] += 1
    driven = {
        "recorded": {"counts": sorted(counts.items()), "sum_ns": sum_ns},
        "right": right,
        "faults": faults(**client.faults),
        "traffic": {"reads": 0, "messages": 0},
    }
    return driven, last_ns - first_ns


if __name__ == "__main__":
    try:
        if ORDER["is_server"]:
            serve()
        else:
            drive()
    except Exception as error:
        say({"Failed": {"why": f"{type(error).__name__}: {error}"}})
        raise
    say("Finished")
