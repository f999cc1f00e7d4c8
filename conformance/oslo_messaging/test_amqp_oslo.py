"""oslo.messaging's own functional tests, which come with it, over Crosstie.

They run in an environment of their own, several classes at once: most of their time is waiting.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from rig.broker import Crosstie
from rig.router import ROOT

# At once. There are few classes that take long.
RUNS_MAX = 4
# The longest class takes two minutes.
RUN_S = 500
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
PYTHON = TARGET / "oslo-messaging/venv/bin/python"
# What needs a cluster of three nodes that are stopped and started.
CLUSTER = {"RabbitMQFailoverTests"}
pytestmark = pytest.mark.timeout(RUN_S + 60)


def run(*arguments: object, url: str) -> subprocess.CompletedProcess:
    """Run testtools in the environment."""
    environment = {
        **os.environ,
        "PATH": f"{PYTHON.parent}:{os.environ['PATH']}",
        "RPC_TRANSPORT_URL": url,
        "NOTIFY_TRANSPORT_URL": url,
    }
    return subprocess.run(
        [PYTHON, "-m", "testtools.run", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=RUN_S,
    )


def slices() -> dict[str, list[str]]:
    """Return what testtools takes, for each class."""
    if not PYTHON.exists():
        return {}
    (packages,) = PYTHON.parents[1].glob("lib/python3*/site-packages")
    discover = ["discover", "-s", f"{packages}/oslo_messaging/tests/functional", "-t", packages]
    listed = run(*discover, "--list", url="rabbit://").stdout
    found = re.findall(r"^(oslo_messaging\S+)\.(\w+)\.\w+(\(.*\))?$", listed, re.MULTILINE)
    assert found, listed
    # A test with parentheses has scenarios, which only whoever discovers it knows of.
    return {
        name: [*discover, "-p", f"{module.rpartition('.')[2]}.py"]
        if scenario
        else [f"{module}.{name}"]
        for module, name, scenario in sorted(set(found))
    }


SLICES = slices()


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Iterator[dict[str, Future]]:
    """Run all classes, as many at once as is good."""
    broker = Crosstie(tmp_path_factory.mktemp("oslo"))
    url = broker.url("test", scheme="rabbit")
    with ThreadPoolExecutor(RUNS_MAX) as pool:
        yield {name: pool.submit(run, *what, url=url) for name, what in SLICES.items()}
        pool.shutdown(cancel_futures=True)
    broker.stop()


@pytest.mark.skipif(not SLICES, reason=f"oslo.messaging is not installed: no {PYTHON}")
@pytest.mark.parametrize("name", SLICES)
def test_functional(name: str, runs: dict[str, Future], tmp_path: Path) -> None:
    done = runs[name].result()
    (tmp_path / "output").write_text(done.stdout)
    assert done.returncode == 0, done.stdout[-20_000:]
    ran = re.search(r"^Ran (\d+) tests?", done.stdout, re.MULTILINE)
    assert ran, done.stdout[-2000:]
    assert int(ran[1]) > 0
    skipped = re.search(r"^OK.*skip\w*=(\d+)", done.stdout, re.MULTILINE)
    if name in CLUSTER:
        pytest.skip("needs a cluster of three nodes")
    assert not skipped, done.stdout[-2000:]
