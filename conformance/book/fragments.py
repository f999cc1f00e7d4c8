"""Parts of configurations, as pages show them, in a whole configuration that can be checked."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from rig.router import binary

ROLE = {"name": "anonymous", "permissions": [{"uri": "*", "allow": {"call": True}}]}
NAMES = ("user", "backend", "api", "web", "joint", "anonymous")


def read(language: str, text: str, directory: Path) -> object:
    """Return the value of a block; members without their braces are a map."""
    if language == "yaml":
        # The program reads YAML, so that the tests need no library for it.
        file = directory / "part.yaml"
        file.write_text(f"part:\n{text}" if text.startswith("-") else text)
        command = [str(binary()), "convert", "--output", "-", "--config", str(file)]
        text = subprocess.run(command, text=True, capture_output=True, check=True).stdout
        value = json.loads(text)
        return value.get("part", value)
    text = text.strip().rstrip(",")
    return json.loads(f"{{{text}}}" if text.startswith('"') else text)


def whole(part: object) -> dict:
    """Return a node's configuration that has this part in its place."""
    if isinstance(part, list):
        return _listed(part)
    if "workers" in part:
        return {"version": 2, **part}
    if part.get("type") in ("router", "container", "guest"):
        return _node(part)
    if "paths" in part or part.get("type") in (
        "websocket",
        "rawsocket",
        "universal",
        "web",
        "amqp",
    ):
        return _node({"transports": [part]})
    if "realms" in part or "amqp" in part or "joints" in part or "components" in part:
        return _node(part)
    if "transports" in part:
        return _node(part)
    if "endpoint" in part:
        return _node({"transports": [{"type": "amqp", **part}]})
    if "roles" in part:
        return _node({"realms": [part]})
    if "permissions" in part or "allow-by-default" in part or "authorizer" in part:
        return _node({"realms": [{"name": "realm1", "roles": [part]}]})
    if "store" in part or "rlinks" in part or "fabric" in part:
        return _node({"realms": [{"name": "realm1", "roles": [ROLE], **part}]})
    if "payload_mapping" in part:
        options = {"realm": "realm1", **part}
        return _node({"transports": [{"type": "mqtt", "endpoint": _port(), "options": options}]})
    if "auth" in part:
        return _node({"transports": [{"type": "websocket", "endpoint": _port(), **part}]})
    if set(part) & {"limits", "admin", "console", "controller", "audit_log", "otlp"}:
        return {"version": 2, "workers": [], **part}
    values = list(part.values())
    if values and all(isinstance(value, dict) for value in values):
        if set(part) & {"jwt", "cryptosign", "ticket", "wampcra", "scram", "tls", "anonymous"}:
            return whole({"auth": part})
        if "type" in values[0]:
            return whole(
                {"type": "web", "endpoint": _port(), "paths": {"/": {"type": "none"}, **part}}
            )
    raise AssertionError(f"no place for {sorted(part)}")


def _listed(part: list) -> dict:
    if "endpoint" in part[0]:
        return _node({"transports": part})
    if "roles" in part[0]:
        return _node({"realms": part})
    return {"version": 2, "workers": part}


def _port() -> dict:
    return {"type": "tcp", "port": 8080}


def _node(worker: dict) -> dict:
    roles = [{**ROLE, "name": name} for name in NAMES]
    realms = [{"name": "realm1", "roles": roles}]
    return {"version": 2, "workers": [{"type": "router", "realms": realms, **worker}]}


def variables(text: str) -> set[str]:
    """Return the names of the environment variables in a block."""
    return set(re.findall(r"\$\{?([A-Z][A-Z0-9_]*)", text))
