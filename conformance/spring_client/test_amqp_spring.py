"""Spring AMQP's transactions (`channelTransacted`, RabbitTransactionManager), on both brokers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from rig.broker import Broker

ROOT = Path(__file__).resolve().parents[2]
# scripts/needs.py builds it there.
BUILT = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "amqp-spring-client"
PATIENCE_S = 120


@pytest.mark.parametrize("what", ["local", "committed", "rolled-back", "received", "listener"])
def test_spring(what: str, broker: Broker) -> None:
    classes = f"{BUILT}/classes:{(BUILT / 'classpath').read_text()}"
    command = ["java", "-cp", classes, "client.Client", what, broker.url()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
