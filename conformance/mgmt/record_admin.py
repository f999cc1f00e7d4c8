"""Runs the commands of `admin.txt` by RabbitMQ's own rabbitmqadmin, and keeps what came of them.

    target/venv/bin/python conformance/mgmt/record_admin.py

starts the RabbitMQ of this machine, which takes a minute, and writes `admin.json`.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from rig.http import Http  # noqa: E402

from mgmt import cases, commands  # noqa: E402
from mgmt.admin import ORIGINAL, SCRIPT, Admin  # noqa: E402
from mgmt.record import Managed  # noqa: E402
from mgmt.record_commands import clear  # noqa: E402

OUTCOMES = HERE / "admin.json"
# RabbitMQ's statistics are so old at most, those of consumers included.
STATISTICS_S = 11


def main() -> None:
    """Record all commands."""
    outcomes: dict[str, dict] = {}
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as home:
        running = Managed(Path(directory))
        try:
            clear(cases.Api(Http(("127.0.0.1", running.management)), running.address))
            admin = Admin(Path(home), running.management, sys.executable, ORIGINAL[0])
            broker = commands.Broker(
                running.address,
                running.management,
                running.environment["RABBITMQ_NODENAME"],
                admin.run,
                lambda: settle(broker),
                admin.file,
            )
            broker.play(outcomes, SCRIPT)
        finally:
            running.stop()
    OUTCOMES.write_text(json.dumps(outcomes, indent=1, ensure_ascii=False) + "\n")


def settle(broker: commands.Broker) -> None:
    """Wait for the statistics, and keep the clients alive."""
    until = time.monotonic() + STATISTICS_S
    while time.monotonic() < until:
        for connection in broker.connections:
            if connection.is_open:
                connection.process_data_events(0.5)


if __name__ == "__main__":
    main()
