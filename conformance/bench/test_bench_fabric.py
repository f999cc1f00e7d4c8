"""`bench fabric`: whom it measures, what it counts, and what it says where there is no NATS."""

from __future__ import annotations

import json
import subprocess
from functools import partial
from pathlib import Path

from rig import benches
from rig.nats import PROGRAM
from rig.windows import widening

# As short as a round can be: nothing here looks at how fast anything is.
ROUND = ("--runs", 1, "--warm-up", 0.01, "--placement", "same-core")
SECONDS = 0.2

COUNTED = {
    "call": "call",
    "calls": "call",
    "events": "event",
    "subscribe": "subscription",
    "register": "registration",
    "confirm": "confirm",
    "confirms": "confirm",
}


bench = partial(benches.bench, "fabric")


def test_all_are_measured_with_nats_beside_them(tmp_path: Path):
    results = tmp_path / "results.json"

    def measure(seconds: float) -> subprocess.CompletedProcess[str]:
        window = (*ROUND, "--seconds", seconds)
        return bench(*window, "--nats-server", PROGRAM, "--json", results)

    def is_enough(done: subprocess.CompletedProcess[str]) -> bool:
        """Whether each router had its turn in each round."""
        rows = json.loads(results.read_text())["results"]
        used = [
            row["metrics"].get(f"router_cpu_us_per_{COUNTED[row['case']]}")
            for row in rows
            if "round" not in row
        ]
        return done.returncode == 0 and all(used)

    done = widening(SECONDS, measure, is_enough, (1, 10))
    assert done.returncode == 0, done.stdout + done.stderr
    frame = json.loads(results.read_text())
    assert frame["bench"] == "fabric"
    rows = [row for row in frame["results"] if "round" not in row]
    found = {(row["case"], row["subject"]): row["metrics"] for row in rows}
    of_a_realm = ("crosstie", "floor", "off", "alone")
    subjects = dict.fromkeys(COUNTED, of_a_realm)
    # To the owner of a vhost through another node, and without one.
    subjects["confirm"] = subjects["confirms"] = ("crosstie", "owner")
    assert set(found) == {(case, who) for case in COUNTED for who in subjects[case]}
    assert all(row["valid"] for row in rows), rows
    for (case, who), metrics in found.items():
        what = COUNTED[case]
        assert metrics[f"{what}s_per_s"] > 0
        assert metrics[f"router_cpu_us_per_{what}"] > 0, (case, who, metrics)
        # A server of NATS has a column where it is not the subject itself.
        assert (f"beside_cpu_us_per_{what}" in metrics) == (who in ("crosstie", "alone", "owner"))
        assert metrics["rtt_us"]["p50"] > 0
    assert found["call", "crosstie"]["p50_over_floor"] > 0
    for case in ("confirm", "confirms"):
        assert found[case, "crosstie"]["p50_over_owner"] > 0
        assert "p50_over_owner" not in found[case, "owner"]
    for goal in (
        "floor µs ≤ 60.0",
        "calls/s ≥ 60,000",
        "events/s ≥ 300,000",
        "p99 µs ≤ 2,000",
        "p50 µs ≤ 3,000",
    ):
        assert goal in done.stdout


def test_without_nats_server_it_says_how_to_get_it(tmp_path: Path):
    done = bench(*ROUND, PATH=str(tmp_path))
    assert done.returncode == 2
    assert "go install github.com/nats-io/nats-server/v2@v" in done.stderr
