"""The line protocol of `rig.puppet`, from the puppet's side."""

import base64
import json
import sys
import threading

_lock = threading.Lock()


def say(**what: object) -> None:
    """Write one line."""
    line = json.dumps(what, default=_octets)
    with _lock:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def read(line: str) -> dict:
    """Read one line."""
    return json.loads(line, object_hook=_from_octets)


def _octets(value: object) -> object:
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    raise TypeError(f"cannot be said in JSON: {value!r}")


def _from_octets(value: dict) -> object:
    return base64.b64decode(value["$bytes"]) if value.keys() == {"$bytes"} else value
