"""The places where scripts/needs.py installs the tools."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "rabbitmq-tools"
PYTHON = PLACE / "venv/bin/python"
# Compiled tests of modules in Go.
GO = PLACE / "go"
