"""Asks RabbitMQ, and keeps what it answers, for the tests to compare with.

    target/venv/bin/python conformance/mgmt/record.py

starts the RabbitMQ of this machine with its management plugin and writes `answers.json`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from rig.http import Http  # noqa: E402
from rig.ports import free_ports  # noqa: E402
from rig.rabbitmq import RabbitMq  # noqa: E402
from rig.waiting import await_true  # noqa: E402

from mgmt import cases  # noqa: E402

ANSWERS = HERE / "answers.json"


class Managed(RabbitMq):
    """A RabbitMQ with its management plugin."""

    def __init__(self, directory: Path) -> None:
        """Start it."""
        (self.management,) = free_ports(1)
        super().__init__(directory)

    def configuration(self) -> tuple[list[str], str]:
        """Return its plugins, and lines of its configuration."""
        plugins, lines = super().configuration()
        lines += f"management.tcp.port = {self.management}\nmanagement.tcp.ip = 127.0.0.1\n"
        lines += f"management.cors.allow_origins.1 = {cases.ORIGIN}\n"
        return [*plugins, "rabbitmq_management"], lines


def main() -> None:
    """Record all cases."""
    with tempfile.TemporaryDirectory() as directory:
        running = Managed(Path(directory))
        try:
            api = cases.Api(Http(("127.0.0.1", running.management)), running.address)
            answers = recorded(api)
        finally:
            running.stop()
    ANSWERS.write_text(json.dumps(answers, indent=1, ensure_ascii=False) + "\n")


def recorded(api: cases.Api) -> dict[str, dict]:
    """Make the objects, and ask for them."""
    people(api)
    connection = cases.prepare(api)
    channel = connection.channel()

    def is_counted() -> bool:
        # The client answers heartbeats.
        connection.process_data_events(0.1)
        queues = api.json("queues")
        stats = [api.json("vhosts/%2F").get("message_stats", {})]
        listed = api.json("channels?sort=name")[:1]
        stats += [channel.get("message_stats", {}) for channel in listed]
        return (
            all("messages" in queue and "policy" in queue for queue in queues)
            and all({"publish", "deliver_get"} <= counted.keys() for counted in stats)
            and len(api.json("channels")) == 2
            and len(api.json("consumers")) == 1
        )

    assert channel.is_open
    await_true("RabbitMQ has counted everything", is_counted)
    channel.close()
    await_true("the second channel is gone", lambda: len(api.json("channels")) == 1)
    found = cases.names(api)
    answers = {case.name: cases.outcome(api, case, found) for case in cases.cases()}
    connection.close()
    return answers


def people(api: cases.Api) -> None:
    """Make the users and vhosts that Crosstie has in its configuration."""
    for vhost in cases.VHOSTS:
        path = vhost.replace("/", "%2F")
        assert api.ask("PUT", f"vhosts/{path}", {}).status in (201, 204)
    for name, tags in cases.USERS.items():
        if name == "guest":
            continue
        body = {"password": name, "tags": ",".join(tags)}
        assert api.ask("PUT", f"users/{name}", body).status in (201, 204)
    for vhost, permissions in cases.VHOSTS.items():
        path = vhost.replace("/", "%2F")
        for user, permission in permissions.items():
            assert api.ask("PUT", f"permissions/{path}/{user}", permission).status in (201, 204)
    for kind in ("policies", "operator-policies"):
        for policy in api.json(kind):
            path = f"{kind}/{quote(policy['vhost'], safe='')}/{policy['name']}"
            assert api.ask("DELETE", path).status == 204
    for name in ("test", "reader", "limited", "nobody"):
        assert api.ask("DELETE", f"users/{name}").status == 204
    for name in ("second", "empty"):
        assert api.ask("DELETE", f"vhosts/{name}").status == 204


if __name__ == "__main__":
    main()
