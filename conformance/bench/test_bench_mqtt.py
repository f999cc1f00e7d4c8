"""`bench mqtt`: each case, a mosquitto beside, a broker at a URL, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from rig import benches
from rig import mosquitto as judge
from rig.benches import summaries
from rig.mosquitto import Mosquitto

needs_mosquitto = pytest.mark.skipif(
    not judge.is_installed(), reason="there is no mosquitto: apt-get install mosquitto"
)
# As short as a round can be: nothing here looks at how fast anything is.
SHORT = ("--runs", 1, "--seconds", 0.1, "--warm-up", 0.02, "--placement", "same-core")
SMALL = ("--fan", 20, "--clients", 600, "--settle", 0)
KEPT = ("durable", "durable-kept")
WITHOUT_FLOOR = (*KEPT, "connections-tls", "idle")
MESSAGES = ("fan-out", "fan-out-paced", "fan-in", "qos-0", "qos-1", "qos-2", *KEPT)
CASES = (*MESSAGES, "connections", "connections-tls", "idle")


bench = partial(benches.bench, "mqtt")


def check(case: str, metrics: dict) -> None:
    """Expect the figures of a case."""
    if case in MESSAGES:
        assert metrics["published"] > 0
        assert metrics["messages_per_s"] > 0
        assert metrics["broker_cpu_us_per_message"] > 0
        assert metrics["driver_calls_per_message"] > 0
        has_acknowledgements = case in ("qos-1", "qos-2", *KEPT)
        assert ("acknowledged_per_s" in metrics) == has_acknowledgements
    elif case == "idle":
        assert metrics["clients"] == 600
    else:
        assert metrics["connections"] > 0
        assert metrics["connect_p50_us"] <= metrics["connect_max_us"]
    if case == "fan-out-paced":
        assert 0 < metrics["latency_p50_us"] <= metrics["latency_max_us"]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("protocol", ["3.1.1", "5"])
@needs_mosquitto
def test_every_case_has_its_subjects_and_figures(tmp_path: Path, case: str, protocol: str) -> None:
    path = tmp_path / "mqtt.json"
    load = ("--case", case, "--protocol", protocol, "--peer", "mosquitto")
    ended = bench(*load, *SHORT, *SMALL, "--rate", 200, "--json", path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    rows = summaries(path)
    floor = () if case in WITHOUT_FLOOR else ("floor",)
    assert [subject for _, subject in rows] == ["crosstie", *floor, "mosquitto"]
    for row in rows.values():
        assert row["valid"], row
        check(case, row["metrics"])
    if case == "durable-kept":
        assert "mosquitto acknowledges without a sync" in " ".join(ended.stdout.split())


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[Mosquitto]:
    """A broker that was running before the bench."""
    running = Mosquitto(tmp_path)
    yield running
    running.stop()


@needs_mosquitto
def test_a_broker_at_a_url_is_measured_alike(tmp_path: Path, foreign: Mosquitto) -> None:
    path = tmp_path / "mqtt.json"
    url = f"mqtt://{foreign.address[0]}:{foreign.address[1]}"
    ended = bench(
        *("--url", url, "--pid", foreign.process.pid, "--case", "qos-1", "--case", "idle"),
        *(*SHORT, *SMALL, "--json", path),
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    name = f"mqtt {foreign.address[0]}:{foreign.address[1]}"
    rows = summaries(path)
    assert set(rows) == {("qos-1", name), ("qos-1", "floor"), ("idle", name)}
    for (case, _), row in rows.items():
        check(case, row["metrics"])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--payload", 11), "--payload is 12 to 1,000,000"),
        (("--case", "qos-3"), "a case is fan-out"),
        (("--url", "rabbit://127.0.0.1"), "a broker is mqtt://"),
        (("--url", "mqtt://127.0.0.1:1"), "Connection refused"),
        (("--url", "mqtt://127.0.0.1", "--case", "connections-tls"), "connections-tls for mqtts"),
        (("--url", "mqtt://127.0.0.1", "--case", "idle"), "needs --pid and --runs 1"),
        (("--protocol", "5", "--peer", "rabbitmq"), "rabbitmq speaks 3.1.1"),
    ],
)
def test_senseless_options_are_refused(arguments: tuple, expected: str) -> None:
    ended = bench(*arguments)
    assert ended.returncode == 2, ended.stdout
    assert expected in ended.stderr, ended.stderr
