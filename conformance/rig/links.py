"""Ways to reach the router: which client, over which transport, with which serializer."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

SERIALIZERS = ("json", "msgpack", "cbor")
BATCHED = tuple(f"{serializer}.batched" for serializer in SERIALIZERS)


@dataclass(frozen=True)
class Link:
    """One way; `kind` is `ws` or `rs`, `over` is `tcp`, `unix` or `tls`."""

    client: str
    kind: str
    over: str
    serializer: str

    def __str__(self) -> str:
        return f"{self.client}-{self.kind}-{self.over}-{self.serializer}"

    @property
    def is_javascript(self) -> bool:
        """Whether the client is autobahn-js."""
        return self.client == "javascript"

    @property
    def holds_binary(self) -> bool:
        """Whether the client sends and receives octet strings as such.

        autobahn-js does not know WAMP's convention for octets inside JSON.
        """
        return not (self.is_javascript and self.serializer.startswith("json"))


def python_links() -> list[Link]:
    """Return everything autobahn-python can do, on both of its event loops."""
    ways = [("ws", "tcp", serializer) for serializer in BATCHED]
    ways += itertools.product(("ws", "rs"), ("tcp", "unix", "tls"), SERIALIZERS)
    return [Link(client, *way) for client in ("asyncio", "twisted") for way in ways]


def javascript_links() -> list[Link]:
    """Return everything autobahn-js can do: its RawSocket knows JSON only, and no TLS."""
    ways = list(itertools.product(("ws",), ("tcp", "unix", "tls"), SERIALIZERS))
    ways += [("rs", "tcp", "json"), ("rs", "unix", "json")]
    return [Link("javascript", *way) for way in ways]


ALL = python_links() + javascript_links()
