"""Reload a node under load; print what was lost, what was closed, and how long others waited.

export CROSSTIE=PROGRAM PYTHONPATH=conformance
target/venv/bin/python conformance/scripts/reload_load_figures.py

pika publishes confirmed messages, Autobahn calls and publishes, and a witness calls the node's
meta API. Each reload changes a role's permissions, a listener, an AMQP user, a vhost and limits.
The load is what these clients reach on the machine, and is printed.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from pathlib import Path

from rig import config
from rig.node import management
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.upgrade_load import Callers, Publisher

ALL = {"call": True, "register": True, "publish": True, "subscribe": True}
# Rest between two reloads. As long as all rests together, the load runs without a reload first.
REST_S = 0.1


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


class Witness(threading.Thread):
    """Calls one after another, and notes when each began and how long it took."""

    def __init__(self, address: tuple[str, int]):
        """Begin at once."""
        super().__init__(daemon=True)
        self.peer = RawSocket.tcp(address).shake_hands().join()
        self.waits: list[tuple[float, float]] = []
        self.is_over = threading.Event()
        self.start()

    def run(self) -> None:
        """Call until the end."""
        while not self.is_over.wait(0.0005):
            begun = time.perf_counter()
            self.peer.round_trip()
            self.waits.append((begun, time.perf_counter() - begun))

    def end(self) -> list[tuple[float, float]]:
        """End it."""
        self.is_over.set()
        self.join()
        return self.waits


def p99(waits: list[float]) -> float:
    """Return the wait that one of a hundred exceeds, in milliseconds."""
    return sorted(waits)[len(waits) * 99 // 100] * 1e3


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reloads", type=int, default=100)
    reloads = parser.parse_args().reloads
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.json"
        path.write_text(json.dumps(configuration(0)))
        router = Router(Path(folder), "--cbdir", folder)
        callers = Callers(next(url for url in router.urls("tcp") if url.startswith("ws://")))
        publisher = Publisher(router.address("amqp"))
        witness = Witness(router.address("tcp"))
        operator = management(router.directory)
        operator.socket.settimeout(60)
        began, took = time.perf_counter(), []
        time.sleep(reloads * REST_S)
        reloading = time.perf_counter()
        for number in range(1, reloads + 1):
            time.sleep(REST_S)
            path.write_text(json.dumps(configuration(number)))
            begun = time.perf_counter()
            told = operator.call("crossbar.reload")
            took.append(time.perf_counter() - begun)
            assert told["applied"], told
        seconds = time.perf_counter() - began
        waits = witness.end()
        ledger = callers.end()
        lost = publisher.end()
        router.stop()
    before = [wait for begun, wait in waits if begun < reloading]
    during = [wait for begun, wait in waits if begun >= reloading]
    took.sort()
    print(f"reloads {reloads}, each {took[len(took) // 2] * 1e3:.0f} ms", end=" ")
    print(
        f"({took[-1] * 1e3:.0f} at most); a second: calls {ledger['answered'] / seconds:.0f},",
        end=" ",
    )
    print(f"events {ledger['published'] / seconds:.0f}", end=", ")
    print(f"confirms {len(publisher.confirmed) / seconds:.0f}, witness {len(waits) / seconds:.0f}")
    print(f"confirmed {len(publisher.confirmed)}, lost {len(lost)}", end="; ")
    print(f"calls {ledger['answered']}, wrong {ledger['wrong']}, repeated {ledger['repeated']}")
    print(f"events {ledger['published']}, heard {ledger['heard']}", end="; ")
    print(f"AMQP connections opened {publisher.connected}, refused {len(publisher.refused)}")
    print(f"p99 of the witness: {p99(before):.1f} ms, while reloads go on {p99(during):.1f} ms")


if __name__ == "__main__":
    main()
