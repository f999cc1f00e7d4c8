"""`bench hostile`: the attacks on web services, small, on a node of its own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from rig.router import binary

ATTACKS = ("slowheads", "slowbodies", "unread", "resets", "ranges", "silent")


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_on_web_services(tmp_path: Path, attack: str):
    results = tmp_path / "results.json"
    command = [
        *(binary(), "bench", "hostile", "--attack", attack, "--scale", "0.01"),
        *("--limit", "1", "--after", "0.1", "--json", results),
    ]
    done = subprocess.run(
        command, text=True, capture_output=True, timeout=240, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {row["case"]: row for row in json.loads(results.read_text())["results"]}
    assert set(rows) == {"idle", attack}
    metrics = rows[attack]["metrics"]
    assert rows[attack]["valid"], rows[attack]
    assert metrics["lost"] == 0
    assert metrics["rss_most_bytes"] > 0
    # It did something, whatever was refused.
    assert any(count > 0 for _what, count in metrics["made"]), metrics
