"""Upgrade a node under load, and print what was refused and lost, and how long a client waits.

export CROSSTIE=PROGRAM PYTHONPATH=conformance
target/venv/bin/python conformance/scripts/upgrade_figures.py

pika publishes confirmed messages, Autobahn calls and publishes, and a RawSocket client joins again
and again. `--light` leaves AMQP out: the router has no store, and moves first.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from rig import config
from rig.router import Router
from rig.upgrade_load import Callers, Knocker, Publisher
from rig.upgrades import Upgrades


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upgrades", type=int, default=20)
    parser.add_argument("--light", action="store_true")
    given = parser.parse_args()
    amqp = {"type": "amqp", "id": "amqp", "endpoint": config.tcp()}
    transports = [config.universal("tcp", config.tcp()), *([] if given.light else [amqp])]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(config.plain(*transports)))
        router = Router(Path(folder), "--cbdir", folder)
        node = Upgrades(router)
        url = next(url for url in router.urls("tcp") if url.startswith("ws://"))
        callers = Callers(url)
        publisher = None if given.light else Publisher(router.address("amqp"))
        knocker = Knocker(router.address("tcp"))
        gaps, took = [], []
        for _ in range(given.upgrades):
            time.sleep(0.5)
            before, begun = len(knocker.took_s), time.perf_counter()
            node.upgrade()
            took.append(time.perf_counter() - begun)
            time.sleep(0.2)
            gaps.append(max(knocker.took_s[before:]))
        knocker.end()
        ledger = callers.end()
        lost = publisher.end() if publisher else []
        node.stop()
    ordered = sorted(knocker.took_s)
    usual = ordered[len(ordered) // 2]
    refused = len(ledger["refused"]) + len(knocker.refused)
    print(f"upgrades {given.upgrades}; an upgrade at most {max(took):.2f} s", end="; ")
    gaps.sort()
    print(f"a new session waits {usual * 1e3:.1f} ms", end=", ")
    print(f"during an upgrade {gaps[len(gaps) // 2] * 1e3:.0f} ms, {gaps[-1] * 1e3:.0f} at most")
    print(f"sessions {len(knocker.took_s)}, tried again {knocker.tried_again}", end="; ")
    if publisher:
        refused += len(publisher.refused)
        print(f"confirmed {len(publisher.confirmed)}, lost {len(lost)}", end="; ")
    print(f"calls {ledger['answered']}, wrong {ledger['wrong']}, repeated {ledger['repeated']}")
    print(f"events {ledger['published']}, heard {ledger['heard']}", end="; ")
    print(f"refused connections {refused}")


if __name__ == "__main__":
    main()
