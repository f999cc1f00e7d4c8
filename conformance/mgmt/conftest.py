"""One node for all tests that make objects with names of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mgmt.cases import Api
from mgmt.stage import Stage


@pytest.fixture(scope="module")
def stage(tmp_path_factory) -> Iterator[Stage]:
    """Return a node of this module's own."""
    stage = Stage(tmp_path_factory.mktemp("node"))
    yield stage
    stage.stop()


@pytest.fixture(scope="module")
def api(stage) -> Api:
    """Return its management API."""
    return stage.api
