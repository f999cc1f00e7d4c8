"""Two references of definitions: one of many queues, one of several vhosts and users."""

from __future__ import annotations

from mgmt.cases import ALL

QUEUES = 658
# Of classic queues, in turn.
ARGUMENTS: list[dict] = [
    {},
    {"x-message-ttl": 60000, "x-expires": 900000},
    {"x-max-length": 10, "x-max-length-bytes": 5_000_000_000, "x-overflow": "reject-publish"},
    {"x-dead-letter-exchange": "dead", "x-dead-letter-routing-key": "letter"},
    {"x-max-priority": 5},
    {"x-single-active-consumer": True, "x-note": {"nested": [1, "two", True]}},
]
# One queue each: RabbitMQ makes them slowly.
OTHERS: list[dict] = [
    {"x-queue-type": "quorum", "x-delivery-limit": 3},
    {"x-queue-type": "stream", "x-max-age": "1D"},
]


def many() -> dict:
    """Return a vhost with many queues, exchanges and bindings."""
    vhost = "many"
    exchanges = ["direct", "fanout", "topic", "headers"]
    classic = [ARGUMENTS[n % len(ARGUMENTS)] for n in range(QUEUES - len(OTHERS))]
    queues = [queue(vhost, f"queue.{n:03}", a) for n, a in enumerate([*classic, *OTHERS])]
    return {
        "vhosts": [{"name": vhost}],
        "permissions": [{"user": "guest", "vhost": vhost, **ALL}],
        "exchanges": [exchange(vhost, name, name) for name in exchanges],
        "queues": queues,
        "bindings": [
            binding(vhost, exchanges[n % 4], queue["name"], f"key.{n}.*")
            for n, queue in enumerate(queues)
        ]
        + [{**binding(vhost, "topic", "fanout", "#"), "destination_type": "exchange"}],
    }


def several() -> dict:
    """Return three users and three vhosts, with what these may have."""
    vhosts = ["sales", "stock", "a/b %"]
    users = ["ada", "bob", "cy d"]
    policy = {"apply-to": "queues", "priority": 1}
    return {
        "users": [
            {"name": name, "password": name, "tags": tags, "limits": limits}
            for name, tags, limits in zip(
                users,
                (["administrator"], [], ["management", "own"]),
                ({}, {"max-connections": 5}, {"max-channels": 7}),
                strict=True,
            )
        ],
        "vhosts": [{"name": name} for name in vhosts],
        "permissions": [
            {"user": user, "vhost": vhost, "configure": "^a", "write": ".*", "read": ""}
            for user in users
            for vhost in vhosts
        ],
        "topic_permissions": [
            {
                "user": "bob",
                "vhost": "sales",
                "exchange": "amq.topic",
                "write": "^{username}",
                "read": ".*",
            }
        ],
        "policies": [
            {
                "vhost": vhost,
                "name": "bounds",
                "pattern": "^q",
                "definition": {"max-length": 10 + number, "overflow": "drop-head"},
                **policy,
            }
            for number, vhost in enumerate(vhosts)
        ],
        "parameters": [
            {
                "component": "operator_policy",
                "vhost": "stock",
                "name": "cap",
                "value": {"pattern": ".*", "definition": {"message-ttl": 5000}, **policy},
            },
            {
                "component": "vhost-limits",
                "vhost": "sales",
                "name": "limits",
                "value": {"max-queues": 77, "max-connections": -1},
            },
        ],
        "global_parameters": [{"name": "ports", "value": {"1883": "sales"}}],
        "queues": [queue(vhost, "q", {}) for vhost in vhosts],
        "exchanges": [exchange("a/b %", "kept back", "fanout", internal=True)],
        "bindings": [binding("a/b %", "kept back", "q", "")],
    }


def queue(vhost: str, name: str, arguments: dict) -> dict:
    """Return a durable queue."""
    about = {"durable": True, "auto_delete": False, "arguments": arguments}
    return {"name": name, "vhost": vhost, **about}


def exchange(vhost: str, name: str, kind: str, *, internal: bool = False) -> dict:
    """Return a durable exchange."""
    about = {"durable": True, "auto_delete": False, "internal": internal, "arguments": {}}
    return {"name": name, "vhost": vhost, "type": kind, **about}


def binding(vhost: str, source: str, destination: str, key: str) -> dict:
    """Return the binding of a queue."""
    ends = {"source": source, "destination": destination, "destination_type": "queue"}
    return {"vhost": vhost, **ends, "routing_key": key, "arguments": {}}
