"""Benches of `crosstie-lab`, run to their ends, and the results files that they write."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from rig.router import binary


def bench(*arguments: object, timeout: float = 240, **variables: str):
    """Run a bench to its end, with these variables beside those of the environment."""
    return subprocess.run(
        [str(binary()), "bench", *map(str, arguments)],
        text=True,
        capture_output=True,
        timeout=timeout,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
    )


def summaries(path: Path, name: str | None = None) -> dict[tuple[str, str], dict]:
    """Return the rows of a bench's results file that stand for all rounds, by case and subject."""
    frame = json.loads(path.read_text())
    assert name in (None, frame["bench"])
    rows = (row for row in frame["results"] if "round" not in row)
    return {(row["case"], row["subject"]): row for row in rows}
