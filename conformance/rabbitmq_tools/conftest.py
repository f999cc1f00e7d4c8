"""A node with the management API."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rig import config
from rig.router import Router


@pytest.fixture
def router(tmp_path_factory) -> Iterator[Router]:
    """Return a node."""
    transports = [
        {"type": "amqp", "id": "amqp", "endpoint": config.tcp()},
        {"type": "amqp.management", "id": "management", "endpoint": config.tcp()},
    ]
    configuration = config.plain(*transports)
    configuration["workers"][0]["amqp"] = {}
    router = Router(tmp_path_factory.mktemp("node"), config=configuration)
    yield router
    router.stop()
