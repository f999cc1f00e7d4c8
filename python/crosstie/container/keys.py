"""The keys that a component's definition may have, as in a node's configuration.

Keys of a file were checked with it; those of the management realm come here unchecked.
Nothing is ignored in silence: `refuse_unknown` raises ValueError with every key that is not known.
"""

from __future__ import annotations

import difflib

OF_ALL = ("type", "id", "realm", "transport", "references", "extra")
# The role is that of a component beside a router, whose controller makes its transport of it.
COMPONENT = {
    "class": (*OF_ALL, "classname", "role"),
    "function": (*OF_ALL, "callbacks", "auth", "role"),
}
# `id` and `debug`, and RawSocket's `url`, are Crossbar.io's and say nothing here.
TRANSPORT = {
    "rawsocket": ("type", "id", "endpoint", "serializer", "serializers", "options", "url", "debug"),
    "websocket": ("type", "id", "endpoint", "serializers", "options", "url", "debug"),
}
RAWSOCKET_OPTIONS = ("max_message_size",)
ENDPOINT = {
    "tcp": ("type", "host", "port", "version", "timeout", "tls"),
    "unix": ("type", "path", "timeout"),
}
TLS = ("hostname", "ca_certificates", "certificate", "key")
COMPRESSION = ("deflate",)
DEFLATE = (
    "request_no_context_takeover",
    "request_max_window_bits",
    "no_context_takeover",
    "max_window_bits",
    "memory_level",
)


def refuse_unknown(definition: dict) -> None:
    """Raise ValueError for unknown keys.

    Values that are no object, or of an unknown type, are left to their readers.
    """
    transport = member(definition, "transport")
    endpoint = member(transport, "endpoint")
    options = member(transport, "options")
    compression = member(options, "compression")
    kind, way = definition.get("type"), transport.get("type")
    problems = [
        *unknown(definition, COMPONENT.get(kind), f"a {kind} component"),
        *unknown(transport, TRANSPORT.get(way), f"its {way} transport"),
        *unknown(endpoint, ENDPOINT.get(endpoint.get("type")), "its transport's endpoint"),
        *unknown(member(endpoint, "tls"), TLS, "its endpoint's 'tls'"),
        *unknown(compression, COMPRESSION, "its transport's 'compression'"),
        *unknown(member(compression, "deflate"), DEFLATE, "its transport's 'deflate'"),
    ]
    # Those of WebSocket are checked where they are taken.
    if way == "rawsocket":
        problems += unknown(options, RAWSOCKET_OPTIONS, "its transport's 'options'")
    if problems:
        raise ValueError("; ".join(problems))


def member(owner: dict, key: str) -> dict:
    """Return the object at a key; an empty one where there is none."""
    found = owner.get(key)
    return found if isinstance(found, dict) else {}


def unknown(given: dict, known: tuple | None, owner: str) -> list[str]:
    """Return a sentence for each key that is not known."""
    if known is None:
        return []
    problems = []
    for key in given:
        if key in known:
            continue
        near = difflib.get_close_matches(str(key), known, 1)
        meant = f" (did you mean '{near[0]}'?)" if near else ""
        problems.append(f"no key '{key}' in {owner}{meant}; there are {', '.join(known)}")
    return problems
