"""Prometheus scrapes a node, and answers what the Grafana boards ask it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from urllib.parse import quote

import pytest
from rig.http import Http
from rig.ports import free_ports
from rig.waiting import await_true

from mgmt import boards, cases

pytestmark = pytest.mark.skipif(
    "CROSSTIE_WHOLE" not in os.environ or not shutil.which("prometheus"),
    reason="needs prometheus (apt-get install prometheus), and all of the suite (CROSSTIE_WHOLE)",
)


@pytest.fixture
def prometheus(stage, tmp_path):
    """Start a Prometheus that scrapes the node each second; return its API."""
    host, port = stage.router.address("prometheus")
    (own,) = free_ports(1)
    configuration = {
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [
            {"job_name": "rabbitmq", "static_configs": [{"targets": [f"{host}:{port}"]}]}
        ],
    }
    file = tmp_path / "prometheus.yml"
    file.write_text(json.dumps(configuration))
    command = [
        "prometheus",
        f"--config.file={file}",
        f"--storage.tsdb.path={tmp_path / 'data'}",
        f"--web.listen-address=127.0.0.1:{own}",
    ]
    with (tmp_path / "prometheus.log").open("wb") as log:
        running = subprocess.Popen(command, stdout=log, stderr=log)
    api = Http(("127.0.0.1", own))

    def is_ready() -> bool:
        try:
            return api.ask("GET", "/-/ready").status == 200
        except OSError:
            return False

    await_true("Prometheus is ready", is_ready)
    yield api
    running.terminate()
    running.wait(30)


def test_every_expression_of_the_boards_has_an_answer(stage, api, prometheus):
    connection = cases.prepare(api)
    cluster = api.json("overview")["cluster_name"]

    def answer(expression: str) -> list:
        asked = prometheus.ask("GET", f"/api/v1/query?query={quote(expression)}")
        found = json.loads(asked.body)
        assert found["status"] == "success", (expression, found)
        return found["data"]["result"]

    expressions = boards.expressions(cluster)

    def unanswered() -> list[str]:
        connection.process_data_events(0.1)
        return [expression for expression in expressions if not answer(expression)]

    await_true("every expression has an answer", lambda: unanswered() == [])
    (up,) = answer('up{job="rabbitmq"}')
    assert up["value"][1] == "1"
    connection.close()
