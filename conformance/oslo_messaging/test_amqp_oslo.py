"""oslo.messaging's own functional tests, which come with it, over Crosstie.

They run in an environment of their own, several classes at once: most of their time is waiting.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from rig.broker import Crosstie
from rig.nats import cluster, jetstream
from rig.router import ROOT, binary

# At once. There are few classes that take long.
RUNS_MAX = 4
# The longest class takes two minutes.
RUN_S = 900
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
PYTHON = TARGET / "oslo-messaging/venv/bin/python"
# It has nodes of its own, which it makes by programs of RabbitMQ's names.
FAILOVER = "RabbitMQFailoverTests"
pytestmark = pytest.mark.timeout(RUN_S + 60)


def run(
    *arguments: object, url: str = "rabbit://", runner: list | None = None, **more: str
) -> subprocess.CompletedProcess:
    """Run testtools in the environment."""
    environment = {
        **os.environ,
        "PATH": f"{PYTHON.parent}:{os.environ['PATH']}",
        "RPC_TRANSPORT_URL": url,
        "NOTIFY_TRANSPORT_URL": url,
        **more,
    }
    programs = more.get("STAND_IN_PROGRAMS")
    if programs:
        environment["PATH"] = f"{programs}:{environment['PATH']}"
    return subprocess.run(
        [PYTHON, *(runner or ["-m", "testtools.run"]), *arguments],
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
    listed = run(*discover, "--list").stdout
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
        others = {name: what for name, what in SLICES.items() if name != FAILOVER}
        yield {name: pool.submit(run, *what, url=url) for name, what in others.items()}
        pool.shutdown(cancel_futures=True)
    broker.stop()


@pytest.mark.skipif(not SLICES, reason=f"oslo.messaging is not installed: no {PYTHON}")
@pytest.mark.parametrize("name", SLICES.keys() - {FAILOVER})
def test_functional(name: str, runs: dict[str, Future], tmp_path: Path) -> None:
    judge(runs[name].result(), tmp_path)


@pytest.mark.skipif(not SLICES, reason=f"oslo.messaging is not installed: no {PYTHON}")
def test_failover(tmp_path: Path, request) -> None:
    """Client and server go from one node of a vhost to the next, which are killed under calls."""
    (server,) = cluster(tmp_path, 1, each=jetstream)
    request.addfinalizer(server.close)
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, what in (("rabbitmq-server", "server"), ("rabbitmqctl", "control")):
        program = programs / name
        command = f"{sys.executable} {Path(__file__).with_name('rabbit.py')} {what}"
        program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        program.chmod(0o755)
    more = {
        "TRANSPORT_DRIVER": "rabbit",
        "STAND_IN_PROGRAMS": str(programs),
        "STAND_IN_NATS": server.url,
        "CROSSTIE": str(binary().absolute()),
    }
    runner = [Path(__file__).with_name("failover.py")]
    judge(run(*SLICES[FAILOVER], runner=runner, **more), tmp_path)


def judge(done: subprocess.CompletedProcess, tmp_path: Path) -> None:
    """Hold that tests ran, all of them, and passed."""
    (tmp_path / "output").write_text(done.stdout)
    assert done.returncode == 0, done.stdout[-20_000:]
    ran = re.search(r"^Ran (\d+) tests?", done.stdout, re.MULTILINE)
    assert ran, done.stdout[-2000:]
    assert int(ran[1]) > 0
    skipped = re.search(r"^OK.*skip\w*=(\d+)", done.stdout, re.MULTILINE)
    assert not skipped, done.stdout[-2000:]
