"""A node that has something for every metric, and its metrics."""

from __future__ import annotations

import re
import urllib.request

from rig import config
from rig.router import fresh


def everything() -> dict:
    """Return a node that has something for every metric."""
    testee = {"type": "stream.testee", "id": "testee", "endpoint": config.tcp()}
    amqp = {"type": "amqp", "id": "amqp", "endpoint": config.tcp()}
    caller = {"type": "caller", "realm": "realm1", "role": "anonymous", "options": {}}
    web = {"type": "web", "endpoint": config.tcp(), "paths": {"/": caller}}
    mqtt = {"type": "mqtt", "endpoint": config.tcp(), "options": {"realm": "realm1"}}
    node = config.plain(config.universal("tcp", config.tcp()), testee, amqp, web, mqtt)
    joint = {"type": "exchange-to-topic", "realm": "realm1", "role": "anonymous", "user": "guest"}
    node["workers"][0]["joints"] = [{**joint, "exchange": "amq.topic", "topic": "com.joined"}]
    nowhere = {"type": "rawsocket", "endpoint": {"type": "unix", "path": "nobody.sock"}}
    link = {"realm": "realm1", "auth": {"anonymous": {}}, "transport": nowhere}
    store = {"type": "sqlite", "path": "events.db"}
    node["workers"][0]["realms"][0] |= {"rlinks": [link], "store": store}
    return node


def ask(router, accept: str | None) -> tuple[str, str]:
    """Return the content type and the text of the metrics."""
    host, port = router.address("tcp")
    headers = {} if accept is None else {"Accept": accept}
    request = urllib.request.Request(f"http://{host}:{port}/metrics", headers=headers)
    received, text = fresh(request)
    return received["Content-Type"], text


def described(text: str) -> dict[str, str]:
    """Return each metric's type by its name."""
    return dict(re.findall(r"(?m)^# TYPE (\S+) (\S+)$", text))
