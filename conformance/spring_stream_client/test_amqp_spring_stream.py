"""Spring Cloud Stream's topologies by its binder for RabbitMQ, on both brokers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from rig.broker import Broker

ROOT = Path(__file__).resolve().parents[2]
# scripts/needs.py builds it there.
BUILT = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "amqp-spring-stream-client"
PATIENCE_S = 600

CASES = [
    "anonymous",
    "batched",
    "grouped",
    "partitioned",
    "polled",
    "prioritized",
    "quorum",
    "rejected",
    "republished",
    "required",
    "retried",
    "routed",
]


def test_each_topology_of_spring_cloud_stream(broker: Broker) -> None:
    classes = f"{BUILT}/classes:{(BUILT / 'classpath').read_text()}"
    # Spring Boot does not decode a vhost, and takes "/" without one.
    url = broker.url().removesuffix("/%2F")
    # One process for all cases: most of its time is that of its start.
    command = ["java", "-cp", classes, "client.Client", url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.stdout.splitlines() == [f"{case}: done" for case in CASES], done.stderr
