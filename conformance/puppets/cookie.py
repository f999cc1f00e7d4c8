"""Autobahn|Python as a client that keeps cookies: it logs in by ticket, and is known again.

    python -m puppets.cookie URL AUTHID TICKET

Prints who it is at each of four connections: with the ticket; with the cookie alone; with the
cookie, where it says goodbye for good; and with the cookie once more. For the last one the reason
of its refusal.
"""

from __future__ import annotations

import asyncio
import json
import sys
from urllib.parse import urlsplit

from autobahn.asyncio.wamp import ApplicationSession
from autobahn.asyncio.websocket import WampWebSocketClientFactory, WampWebSocketClientProtocol
from autobahn.wamp.types import ComponentConfig


class Browser:
    """State kept from one connection to the next."""

    def __init__(self, url: str, authid: str, ticket: str):
        self.url, self.authid, self.ticket = url, authid, ticket
        self.cookie = ""

    async def visit(self, methods: list[str], reason: str | None = None) -> dict:
        """Connect, join, leave; return who that was."""
        loop = asyncio.get_running_loop()
        told = loop.create_future()
        browser = self

        class Session(ApplicationSession):
            def onConnect(self):
                self.join("realm1", methods, browser.authid)

            def onChallenge(self, _challenge):
                return browser.ticket

            def onJoin(self, details):
                told.set_result(
                    {
                        "authid": details.authid,
                        "authrole": details.authrole,
                        "authmethod": details.authmethod,
                        "authprovider": details.authprovider,
                    }
                )
                self.leave(reason)

            def onLeave(self, details):
                if not told.done():
                    told.set_result({"refused": details.reason})
                self.disconnect()

            def onDisconnect(self):
                gone.set_result(None)

        class Protocol(WampWebSocketClientProtocol):
            def onConnect(self, response):
                given = response.headers.get("set-cookie")
                if given:
                    browser.cookie = given.split(";")[0]
                return super().onConnect(response)

        gone = loop.create_future()
        headers = {"Cookie": self.cookie} if self.cookie else {}
        make = lambda: Session(ComponentConfig("realm1"))  # noqa: E731
        factory = WampWebSocketClientFactory(make, url=self.url, headers=headers)
        factory.protocol = Protocol
        place = urlsplit(self.url)
        await loop.create_connection(factory, place.hostname, place.port)
        details = await told
        await gone
        return details


async def main() -> None:
    """Visit four times."""
    browser = Browser(*sys.argv[1:])
    for methods, reason in [
        (["cookie", "ticket"], None),
        (["cookie"], None),
        (["cookie"], "wamp.close.logout"),
        (["cookie"], None),
    ]:
        print(json.dumps(await browser.visit(methods, reason)), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
