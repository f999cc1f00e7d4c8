"""Ways to reach the router: which client, over which transport, with which serializer."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pytest

SERIALIZERS = ("json", "msgpack", "cbor")
TRANSPORTS = ("tcp", "unix", "tls")
BATCHED = tuple(f"{serializer}.batched" for serializer in SERIALIZERS)


@dataclass(frozen=True)
class Link:
    """One way; `kind` is `ws`, `rs` or `lp` (HTTP long-poll), `over` is `tcp`, `unix` or `tls`."""

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
        """Whether the client sends and receives byte strings as such.

        autobahn-js does not know WAMP's convention for bytes inside JSON.
        """
        return not (self.is_javascript and self.serializer.startswith("json"))


def python_links() -> list[Link]:
    """Return everything autobahn-python can do, on both of its event loops."""
    ways = [("ws", "tcp", serializer) for serializer in BATCHED]
    ways += itertools.product(("ws", "rs"), TRANSPORTS, SERIALIZERS)
    return [Link(client, *way) for client in ("asyncio", "twisted") for way in ways]


def javascript_links() -> list[Link]:
    """Return everything autobahn-js can do: RawSocket and long-poll know JSON only, and no TLS."""
    ways = list(itertools.product(("ws",), TRANSPORTS, SERIALIZERS))
    ways += [("rs", "tcp", "json"), ("rs", "unix", "json"), ("lp", "tcp", "json")]
    return [Link("javascript", *way) for way in ways]


def sample(links: Iterable[Link]) -> list[Link]:
    """Return links that have every pair of client, kind, transport and serializer that there is."""
    pairs = {
        link: set(itertools.combinations((link.client, link.kind, link.over, link.serializer), 2))
        for link in links
    }
    missing = set().union(*pairs.values())
    chosen = []
    while missing:
        chosen.append(max(pairs, key=lambda link: len(pairs[link] & missing)))
        missing -= pairs[chosen[-1]]
    return chosen


# If a client cannot be installed, the test run reports and omits it.
WITHOUT = os.environ.get("CROSSTIE_WITHOUT")


def available(links: Iterable[Link]) -> list[Link]:
    """Return the links whose client is there."""
    return [link for link in links if link.client != WITHOUT]


def sampled(links: Iterable[Link]) -> list[Link]:
    """Return links to test: `make test-all` takes every one, and `make test` a sample."""
    links = list(links)
    return available(links if os.environ.get("CROSSTIE_WHOLE") else sample(links))


EVERY = python_links() + javascript_links()
ALL = sampled(EVERY)
CLIENTS = sorted({link.client for link in ALL})


def only(condition: Callable[[Link], bool]) -> pytest.MarkDecorator:
    """Run a test over those links only; a docstring of the test says why."""
    links = sampled(link for link in EVERY if condition(link))
    return pytest.mark.parametrize("link", links, ids=str, indirect=True)
