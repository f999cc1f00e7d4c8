"""A short run of what `make chaos` does for minutes."""

from __future__ import annotations

from pathlib import Path

from ledger.chaos import run


def test_nothing_confirmed_is_lost(tmp_path: Path):
    """Any order of kills and stops."""
    run(tmp_path, 1, seed=7)
