"""A Prometheus that scrapes a node each second."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from rig.http import Http
from rig.ports import free_ports
from rig.waiting import await_true

needed = pytest.mark.skipif(
    "CROSSTIE_WHOLE" not in os.environ or not shutil.which("prometheus"),
    reason="needs prometheus (apt-get install prometheus), and all of the suite (CROSSTIE_WHOLE)",
)


class Prometheus:
    """The API of a running Prometheus."""

    def __init__(self, port: int) -> None:
        """Name its port."""
        self.api = Http(("127.0.0.1", port))

    def is_ready(self) -> bool:
        """Return whether it answers queries."""
        try:
            return self.api.ask("GET", "/-/ready").status == 200
        except OSError:
            return False

    def answer(self, expression: str) -> list:
        """Return the series that an expression has now."""
        asked = self.api.ask("GET", f"/api/v1/query?query={quote(expression)}")
        found = json.loads(asked.body)
        assert found["status"] == "success", (expression, found)
        return found["data"]["result"]


@contextmanager
def scraping(job: str, address: tuple[str, int], folder: Path) -> Iterator[Prometheus]:
    """Run a Prometheus that scrapes this address under that job's name."""
    host, port = address
    (own,) = free_ports(1)
    configuration = {
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [{"job_name": job, "static_configs": [{"targets": [f"{host}:{port}"]}]}],
    }
    file = folder / "prometheus.yml"
    file.write_text(json.dumps(configuration))
    command = [
        "prometheus",
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{own}",
    ]
    with (folder / "prometheus.log").open("wb") as log:
        running = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        prometheus = Prometheus(own)
        await_true("Prometheus is ready", prometheus.is_ready)
        yield prometheus
    finally:
        running.terminate()
        running.wait(30)
