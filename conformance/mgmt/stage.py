"""A Crosstie with the users and vhosts of the cases, and its management API."""

from __future__ import annotations

from pathlib import Path

from rig import config
from rig.http import Http
from rig.router import Router

from mgmt import cases


class Stage:
    """A running node with a management transport."""

    def __init__(self, directory: Path, **changes: object) -> None:
        """Start it; `changes` are keys of its AMQP."""
        self.configuration = configuration(**changes)
        self.directory = directory
        self.router = Router(directory, config=self.configuration)

    @property
    def api(self) -> cases.Api:
        """Return its API."""
        return cases.Api(Http(self.router.address("management")), self.router.address("amqp"))

    @property
    def metrics(self) -> Http:
        """Return its metrics."""
        return Http(self.router.address("prometheus"))

    def stop(self) -> None:
        """End it as an operator would."""
        self.router.stop()


def configuration(**changes: object) -> dict:
    """Return a node with AMQP and the management API."""
    node = config.plain(
        {"type": "amqp", "id": "amqp", "endpoint": config.tcp()},
        {
            "type": "amqp.management",
            "id": "management",
            "endpoint": config.tcp(),
            "cors": {"allow_origins": [cases.ORIGIN]},
        },
        {"type": "amqp.prometheus", "id": "prometheus", "endpoint": config.tcp()},
    )
    users = [
        {"name": name, "password": name, **({"tags": tags} if tags else {})}
        for name, tags in cases.USERS.items()
    ]
    vhosts = [
        {
            "name": name,
            "permissions": [{"user": user, **rights} for user, rights in permissions.items()],
        }
        for name, permissions in cases.VHOSTS.items()
    ]
    node["workers"][0]["amqp"] = {"users": users, "vhosts": vhosts, **changes}
    return node
