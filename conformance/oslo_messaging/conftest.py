"""The real oslo.messaging, which has an environment of its own."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pytest
from rig.router import ROOT


@pytest.fixture(scope="session")
def python() -> Path:
    """The interpreter that has oslo.messaging."""
    found = Path(os.environ.get("OSLO_PYTHON", ROOT / "target/oslo-messaging/venv/bin/python"))
    if not found.exists():
        pytest.skip(f"no oslo.messaging: {found} is not there")
    return found


@pytest.fixture
def topic() -> str:
    """A topic of the test's own."""
    return f"topic-{uuid.uuid4().hex[:12]}"
