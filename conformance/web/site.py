"""A node with one listener of web services."""

from __future__ import annotations

import re
from pathlib import Path

from rig import config
from rig.node import Node


class Site(Node):
    """A node, and where its listener is."""

    web: tuple[str, int]


def configuration(paths: dict, **options: object) -> dict:
    """Return what such a node is configured with."""
    web = {"type": "web", "id": "web", "endpoint": config.tcp(), "paths": paths}
    configured = config.plain(web)
    configured["controller"] = {"options": {"shutdown": ["shutdown_on_shutdown_requested"]}}
    configured["workers"][0]["options"] = options
    return configured


def start(directory: Path, paths: dict, **options: object) -> Site:
    """Start a node in a directory; `options` are the router worker's."""
    node = Site(directory, configuration(paths, **options))
    try:
        said = node.says(r"transport 'web' started at \S*://[\d.]+:\d+")
        found = re.search(r"://([\d.]+):(\d+)", said.text)
        assert found
        node.web = found[1], int(found[2])
        node.says("Ready")
    except BaseException:
        node.close()
        raise
    return node
