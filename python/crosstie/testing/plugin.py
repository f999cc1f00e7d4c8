"""Fixtures for pytest. The package registers them: a test names them and imports nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from crosstie.testing import Router


@pytest.fixture(scope="session")
def crosstie_config() -> dict | None:
    """The configuration of `crosstie_router`; override it in `conftest.py`."""
    return None


@pytest.fixture(scope="session")
def crosstie_router(crosstie_config: dict | None) -> Iterator[Router]:
    """One router for all tests of a run."""
    with Router(crosstie_config) as router:
        yield router
