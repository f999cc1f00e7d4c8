"""Suites of Go libraries whose tests use the management API, beside the embedded default.

They run in a network of their own, because their tests name the ports 5672 and 15672.
"""

from __future__ import annotations

import os
import re

import pytest

from rabbitmq_tools.alone import needs_network, run
from rabbitmq_tools.place import GO

FEDERATION = "there is no federation"
SHOVELS = "there are no shovels"
SAMPLES = "an answer has no samples of the past"
UPSTREAM = "GET /api/parameters/federation-upstream"
# Tests of rabbit-hole that Crosstie does not pass.
LEFT_OUT = {
    "GET /queues with arguments returns decoded response": SAMPLES,
    "GET /queues/{vhost} with arguments returns decoded response": SAMPLES,
    f"{UPSTREAM} when there are upstreams": FEDERATION,
    f"{UPSTREAM}/{{vhost}} when there are upstreams": FEDERATION,
    f"{UPSTREAM}/{{vhost}}/{{upstream}} when the upstream exists": FEDERATION,
    "PUT /api/parameters/federation-upstream/{vhost}/{upstream} when the upstream does": FEDERATION,
    "PUT /api/parameters/federation-upstream/{vhost}/{upstream} when the upstream e": FEDERATION,
    "DELETE /api/parameters/federation-upstream/{vhost}/{name} when the upstream e": FEDERATION,
    "GET /api/federation-links when": FEDERATION,
    "GET /api/federation-links/{vhost} when there are no": FEDERATION,
    "GET /api/federation-links/{vhost} when there are links": FEDERATION,
    "{vhost}/{name} declares a shovel using": SHOVELS,
    "{vhost}/{name} declares a shovel with": SHOVELS,
    "PUT /parameters/shovel/{vhost}/{name} declares a shovel": SHOVELS,
    "reports status of Shovels in target virtual host": SHOVELS,
    "PUT /api/parameters/{component}/{vhost}/{name} when the parameter does": FEDERATION,
    "GET /api/parameters when there are runtime parameters": FEDERATION,
}


@needs_network
@pytest.mark.timeout(600)
def test_rabbit_hole(tmp_path):
    skipped = "|".join(re.escape(name) for name in LEFT_OUT)
    options = ["-ginkgo.noColor", f"-ginkgo.skip={skipped}"]
    said = run(tmp_path, "rabbit/hole", GO / "rabbit-hole", *options)
    found = re.search(r"(\d+) Passed \| 0 Failed \| \d+ Pending \| (\d+) Skipped", said)
    assert found, said[-2_000:]
    assert (int(found[1]) + int(found[2]), int(found[2])) == (132, len(LEFT_OUT))


@needs_network
@pytest.mark.skipif("CROSSTIE_WHOLE" not in os.environ, reason="takes two minutes (CROSSTIE_WHOLE)")
@pytest.mark.timeout(600)
def test_recovery_of_amqp091_go(tmp_path):
    said = run(tmp_path, "", GO / "amqp091-go", "-test.v", "-test.run", "Recover")
    passed = re.findall(r"(?m)^--- PASS: (\w+)", said)
    assert len(passed) >= 18, said[-2_000:]
    assert "--- SKIP" not in said
