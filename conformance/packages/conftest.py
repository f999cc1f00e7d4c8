"""One release for all tests of packages."""

from __future__ import annotations

import pytest
from packages.made import Made, make


@pytest.fixture(scope="session")
def made(tmp_path_factory) -> Made:
    """Make a release once."""
    return make(tmp_path_factory.mktemp("programs"))
