"""One node for all tests that make objects with names of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mgmt.cases import Api
from mgmt.stage import Stage


@pytest.fixture(scope="module")
def api(tmp_path_factory) -> Iterator[Api]:
    """Return the management API of a node of this module's own."""
    stage = Stage(tmp_path_factory.mktemp("node"))
    yield stage.api
    stage.stop()
