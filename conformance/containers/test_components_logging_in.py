"""Function components in containers say who they are, as their `auth` has it."""

from __future__ import annotations

import pytest
from containers.test_container import start_node, wait_for
from rig import config
from rig.container import HOSTED

__all__ = ["start_node"]


@pytest.mark.parametrize("method", ["ticket", "wampcra", "anonymous"])
def test_a_component_logs_in(start_node, monkeypatch, method):
    monkeypatch.setenv("SECRET_OF_A_TEST", "hunter2")
    auth = {
        "ticket": {
            "type": "static",
            "principals": {"joe": {"ticket": "hunter2", "role": "user"}},
        },
        "wampcra": {"type": "static", "users": {"joe": {"secret": "hunter2", "role": "user"}}},
        "anonymous": config.static("user")["anonymous"],
    }
    ways = {
        "ticket": {"ticket": {"authid": "joe", "ticket": "$SECRET_OF_A_TEST"}},
        "wampcra": {"wampcra": {"authid": "joe", "secret": "$SECRET_OF_A_TEST"}},
        "anonymous": {"anonymous": {}},
    }
    transport = {
        "type": "rawsocket",
        "endpoint": {"type": "unix", "path": "guarded.sock"},
        "serializer": "msgpack",
    }
    component = {
        "type": "function",
        "realm": "realm1",
        "transport": transport,
        "auth": ways[method],
        "callbacks": {"join": "logins.joined"},
    }
    router = {
        "type": "router",
        "realms": [{"name": "realm1", "roles": [config.role("user"), config.role("anonymous")]}],
        "transports": [
            {"type": "rawsocket", "endpoint": config.unix("guarded.sock"), "auth": auth},
            config.universal("unix", config.unix("node.sock")),
        ],
    }
    container = {
        "type": "container",
        "options": {"pythonpath": [str(HOSTED)]},
        "components": [component],
    }
    started = start_node({"version": 2, "workers": [router, container]})
    started.says("^Ready")
    authid, authrole, authmethod = wait_for(started.join(), "com.hosted.who")
    assert (authrole, authmethod) == ("user", method)
    assert authid == "joe" or method == "anonymous"
