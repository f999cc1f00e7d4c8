"""RabbitMQ's own client for Go, which is told how its connections end, on both brokers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from rig.broker import Broker

ROOT = Path(__file__).resolve().parents[2]
# scripts/needs.py builds it there.
CLIENT = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "amqp-go-client/client"
PATIENCE_S = 120

DONE = {
    "closes": "300 graceful closes, of which none reports an error",
    "forced": "the broker's own close is reported with its reason",
    "large": "a frame of more than 4096 bytes before tuning is refused",
    "transactions": "publications and acknowledgements, given back and committed",
}


@pytest.mark.parametrize("what", DONE)
def test_the_client_for_go(what: str, broker: Broker) -> None:
    command = [CLIENT, what, broker.url()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), DONE[what]
