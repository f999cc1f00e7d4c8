"""AMQP brokers to test: RabbitMQ, which is the judge, and Crosstie, with the same people in both.

How a test uses them:

- `broker` runs the test once on each of the two; `broker.address`, `broker.url(...)`.
- `rabbitmq`, `crosstie_broker`: one of them alone; both are shared by the whole session, so names
  of queues and exchanges must be the test's own, and what it declares it deletes.
- `start_broker(amqp={...}, transport={...})`: a Crosstie of the test's own, which it may restart
  (`broker.restart()`), kill, or fill up.

The users are in `USERS`, the vhosts and who may do what there in `VHOSTS`.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from rig import config
from rig.router import Router

# Name: password. `guest` may come from loopback only, which is where all tests are.
USERS = {
    "guest": "guest",
    "test": "test",
    "reader": "näive p@ss:wörd",
    "limited": "limited",
    "nobody": "nobody",
}
ALL = {"configure": ".*", "write": ".*", "read": ".*"}
VHOSTS = {
    "/": [
        {"user": "guest", **ALL},
        {"user": "test", **ALL},
        {"user": "reader", "configure": "", "write": "", "read": ".*"},
        {
            "user": "limited",
            "configure": "^mine",
            "write": "^(mine|shared\\.write)",
            "read": "^(mine|shared\\.read)",
        },
    ],
    "second": [{"user": "test", **ALL}],
    "empty": [],
}
SALT = b"salt"
# Policies of both brokers, by the names of queues and exchanges: pattern, definition, priority.
POLICIES = {
    "cap": (r"policed\.cap", {"max-length": 3}, 0),
    "mixed": (r"policed\.mixed", {"max-length": 1, "delivery-limit": 9}, 7),
    "mixed-after": (r"policed\.mixed", {"max-length": 2}, 1.5),
    "reject": (r"policed\.reject", {"max-length": 1, "overflow": "reject-publish"}, -3),
    "ttl": (r"policed\.ttl", {"message-ttl": 0}, 0),
    "alternate": (r"policed\.alternate", {"alternate-exchange": "policed.unrouted"}, 0),
}
OPERATOR_POLICIES = {"operated": (r"policed\..*operated$", {"max-length": 2}, 0)}


@dataclass
class Broker:
    """Address of a broker."""

    name: str
    host: str
    port: int

    @property
    def address(self) -> tuple[str, int]:
        """Return host and port."""
        return self.host, self.port

    @property
    def is_rabbitmq(self) -> bool:
        """Whether this is the judge."""
        return self.name == "rabbitmq"

    def url(
        self,
        user: str = "test",
        password: str | None = None,
        vhost: str = "/",
        scheme: str = "amqp",
    ) -> str:
        """Return the URL that clients take; `scheme` is `rabbit` for oslo.messaging."""
        secret = quote(USERS[user] if password is None else password, safe="")
        path = "" if vhost == "/" and scheme == "rabbit" else quote(vhost, safe="")
        return f"{scheme}://{user}:{secret}@{self.host}:{self.port}/{path}"


class Crosstie(Broker):
    """A router process whose only transport speaks AMQP."""

    def __init__(
        self,
        directory: Path,
        amqp: dict | None = None,
        transport: dict | None = None,
        beside: Sequence[dict] = (),
    ) -> None:
        self.directory = directory
        self.configuration = configuration(amqp, transport, beside)
        self.router = Router(directory, config=self.configuration)
        super().__init__("crosstie", *self.router.address("amqp"))

    def restart(self, *, kill: bool = False) -> None:
        """Stop it, or kill it, and start it again in the same directory, on the same port."""
        if kill:
            self.router.kill()
        else:
            self.router.stop()
        (worker,) = self.configuration["workers"]
        worker["transports"][0]["endpoint"]["port"] = self.port
        self.router = Router(self.directory, config=self.configuration)

    def stop(self) -> None:
        """End it as an operator would; that must be a clean end."""
        self.router.stop()


def configuration(
    amqp: dict | None = None, transport: dict | None = None, beside: Sequence[dict] = ()
) -> dict:
    """Return a node with an AMQP transport named `amqp`, pages on one named `tcp`, and others."""
    people = {
        "users": [{"name": name, "password": password} for name, password in USERS.items()],
        "vhosts": [
            {"name": name, "permissions": permissions} for name, permissions in VHOSTS.items()
        ],
    }
    spoken = {"type": "amqp", "id": "amqp", "endpoint": config.tcp(), **(transport or {})}
    node = config.plain(spoken, config.universal("tcp", config.tcp()), *beside)
    node["workers"][0]["amqp"] = {**people, **(amqp or {})}
    return node


def definitions() -> dict:
    """Return the same people in the form in which RabbitMQ exports and imports them."""
    return {
        "rabbit_version": "3.10.8",
        "users": [
            {
                "name": name,
                "password_hash": password_hash(password),
                "hashing_algorithm": "rabbit_password_hashing_sha256",
                "tags": ["administrator"] if name == "guest" else [],
                "limits": {},
            }
            for name, password in USERS.items()
        ],
        "vhosts": [{"name": name} for name in VHOSTS],
        "permissions": [
            {"vhost": name, **permission}
            for name, permissions in VHOSTS.items()
            for permission in permissions
        ],
        **policies(POLICIES, OPERATOR_POLICIES),
    }


def policies(of_users: dict, of_operators: dict) -> dict:
    """Return policies of the vhost `/` in the form of RabbitMQ's definitions."""

    def parts(pattern: str, definition: dict, priority: float) -> dict:
        return {
            "pattern": pattern,
            "apply-to": "all",
            "definition": definition,
            "priority": priority,
        }

    return {
        "policies": [
            {"vhost": "/", "name": name, **parts(*policy)} for name, policy in of_users.items()
        ],
        "parameters": [
            {"component": "operator_policy", "vhost": "/", "name": name, "value": parts(*policy)}
            for name, policy in of_operators.items()
        ],
    }


def password_hash(password: str) -> str:
    """Return RabbitMQ's salted hash of a password."""
    return base64.b64encode(SALT + hashlib.sha256(SALT + password.encode()).digest()).decode()
