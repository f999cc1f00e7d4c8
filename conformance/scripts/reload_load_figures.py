"""Reload a node under load; print what was lost, what was closed, and how long answers took.

export CROSSTIE=PROGRAM PYTHONPATH=conformance
target/venv/bin/python conformance/scripts/reload_load_figures.py

The laboratory's drivers call, publish events and publish confirmed messages, each over connections
that stay; a connection that ends is a failure of the run. `crosstie-lab` is beside the program. The
same load runs twice as long as all reloads take: first without any, then with them. Each reload
changes a role's permissions, a listener, an AMQP user, a vhost and limits.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from rig import config
from rig.lab_load import Counted, Drivers, calls, confirms, events
from rig.node import management
from rig.router import Router

ALL = {"call": True, "register": True, "publish": True, "subscribe": True}
# Rest between two reloads.
REST_S = 0.1
# Longest time of a reload, for the length of the window.
RELOAD_S = 0.1


def configuration(number: int) -> dict:
    """Return one that differs by the number, and in nothing that the load uses."""
    tcp = config.universal("tcp", config.tcp())
    amqp = {"type": "amqp", "id": "amqp", "endpoint": config.tcp()}
    amqp["max_connections"] = 1000 + number
    made = config.plain(tcp, amqp)
    worker = made["workers"][0]
    permissions = [{"uri": f"com.other.v{number}", "allow": ALL}]
    worker["realms"][0]["roles"].append({"name": "other", "permissions": permissions})
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    names = ["guest", f"user{number}"]
    worker["amqp"] = {
        "users": [{"name": name, "password": name} for name in names],
        "vhosts": [
            {"name": "/", "permissions": [{"user": "guest", **everything}]},
            {"name": f"vhost{number}"},
        ],
        "limits": {"queues_max": 1000 + number},
    }
    return made


def run(router: Router, pairs: int, seconds: float, during) -> dict[str, Counted]:
    """Have the drivers work while something happens; return what they counted."""
    orders = []
    for number in range(pairs):
        orders += calls(router.address("tcp"), number)
    orders += [events(router.address("tcp"), 1000), confirms(router.address("amqp"), 0)]
    drivers = Drivers(*orders)
    drivers.begin(seconds)
    during()
    return drivers.end()


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reloads", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=2, help="callers, each with its callee")
    given = parser.parse_args()
    seconds = given.reloads * (REST_S + RELOAD_S)
    took: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.json"
        path.write_text(json.dumps(configuration(0)))
        router = Router(Path(folder), "--cbdir", folder)
        operator = management(router.directory)
        operator.socket.settimeout(60)

        def reload_all() -> None:
            for number in range(1, given.reloads + 1):
                time.sleep(REST_S)
                path.write_text(json.dumps(configuration(number)))
                begun = time.perf_counter()
                told = operator.call("crossbar.reload")
                took.append(time.perf_counter() - begun)
                assert told["applied"], told

        before = run(router, given.pairs, seconds, lambda: None)
        during = run(router, given.pairs, seconds, reload_all)
        router.stop()
    took.sort()
    print(f"reloads {given.reloads}, each {took[len(took) // 2] * 1e3:.0f} ms", end=" ")
    print(f"({took[-1] * 1e3:.0f} at most)")
    for kind, name in {"Caller": "calls", "Events": "events", "Confirms": "confirms"}.items():
        usual, found = before[kind], during[kind]
        ratio = found.p99_ms() / max(usual.p99_ms(), 1e-6)
        print(f"{name} a second: {usual.answered / seconds:.0f}", end=", ")
        print(f"while reloads go on {found.answered / seconds:.0f}", end="; ")
        print(f"p99 {usual.p99_ms():.2f} ms and {found.p99_ms():.2f} ms ({ratio:.2f})", end="; ")
        print(f"answered {found.answered}, faults {found.faults or 'none'}")


if __name__ == "__main__":
    main()
