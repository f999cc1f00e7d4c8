"""`bench http`: its requests, its servers, and its report of absent ones."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest
from rig import benches

# As short as a round can be: nothing here looks at how fast anything is.
SHORT = ("--runs", 1, "--seconds", 0.05, "--warm-up", 0.01, "--placement", "same-core")


bench = partial(benches.bench, "http")
rows = partial(benches.summaries, name="http")


def test_each_case_is_asked_for(tmp_path: Path):
    results = tmp_path / "results.json"
    few = ("--connections", 4, "--clients", 600, "--settle", 0.1)
    done = bench(*SHORT, *few, "--json", results)
    assert done.returncode == 0, done.stdout + done.stderr
    found = rows(results)
    requests, events = ("file", "call", "publish"), ("websocket", "longpoll")
    assert set(found) == {(case, "crosstie") for case in (*requests, *events, "waiting")}
    assert all(row["valid"] for row in found.values()), found
    waiting = found["waiting", "crosstie"]["metrics"]
    assert waiting["clients"] == 600
    assert waiting["pss_bytes_per_client"] > 0
    for case in events:
        metrics = found[case, "crosstie"]["metrics"]
        # Ten publications at least, to each subscriber.
        assert metrics["events"] >= 40
        assert metrics["event_p50_us"] <= metrics["event_p99_us"]
    assert "p99 ÷ WebSocket's ≤ 2.00" in done.stdout
    for case in requests:
        metrics = found[case, "crosstie"]["metrics"]
        assert metrics["requests"] >= 4
        assert metrics["server_cpu_us_per_request"] > 0
        assert metrics["driver_cpu_us_per_request"] > 0
        assert metrics["request_p50_us"] <= metrics["request_max_us"]


@pytest.mark.skipif(
    shutil.which("nginx") is None and not Path("/usr/sbin/nginx").exists(),
    reason="there is no nginx",
)
def test_a_web_server_is_asked_for_the_file_alone(tmp_path: Path):
    results = tmp_path / "results.json"
    cases = ("--case", "file", "--case", "publish")
    done = bench(*cases, "--peer", "nginx", *SHORT, "--json", results)
    assert done.returncode == 0, done.stdout + done.stderr
    found = rows(results)
    assert set(found) == {("file", "crosstie"), ("file", "nginx"), ("publish", "crosstie")}
    assert all(row["valid"] for row in found.values()), found
    assert found["file", "crosstie"]["metrics"]["requests_per_s_over_nginx"] > 0
    assert "requests/s ÷ nginx ≥ 1.00" in done.stdout
    assert "server CPU ÷ nginx ≤ 1.00" in done.stdout


def test_absent_peers_are_named(tmp_path: Path):
    done = bench("--case", "file", "--peer", "crossbar", *SHORT, PATH=str(tmp_path))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "crossbar: absent from PATH; to get it: pip install crossbar" in done.stdout


def test_senseless_options_are_refused():
    done = bench("--connections", 0)
    assert done.returncode == 2
    assert "--connections is 1 to 1,000" in done.stderr
    done = bench("--peer", "apache")
    assert done.returncode == 2
    assert "the peers that can be started are crossbar and nginx" in done.stderr
