"""Autobahn's session, cut twice and resumed: `python -m puppets.resumed HOST PORT`.

It says what WELCOME said and which events came, a line of JSON for each connection. Of the second
event on the first connection the handler never ends, so that Autobahn does not acknowledge it.
"""

from __future__ import annotations

import asyncio
import json
import sys

from autobahn.asyncio.rawsocket import WampRawSocketClientFactory
from autobahn.asyncio.wamp import ApplicationSession
from autobahn.wamp import message
from autobahn.wamp.serializer import CBORSerializer
from autobahn.wamp.types import ComponentConfig

TOPIC = "com.resumed.topic"


class Resumed(ApplicationSession):
    """A session that joins as the one before, if there was one."""

    def __init__(self, welcomed: dict | None) -> None:
        super().__init__(ComponentConfig("realm1"))
        self.before, self.welcomed = welcomed, asyncio.Event()
        self.said: dict = {}
        self.events: list[int] = []
        self.news = asyncio.Event()

    def onConnect(self) -> None:
        """Say HELLO."""
        before = self.before or {}
        session, token = before.get("session"), before.get("token")
        self.join("realm1", resumable=True, resume_session=session, resume_token=token)

    def onMessage(self, msg: message.Message) -> None:
        """Keep what Autobahn does not."""
        if isinstance(msg, message.Welcome):
            token = msg.resume_token
            self.said = {"session": msg.session, "token": token, "resumed": msg.resumed}
            self.welcomed.set()
        if isinstance(msg, message.Event):
            self.events.append(msg.args[0])
            self.news.set()
            if self.before is not None:
                # It has no subscription here that it knows of, and acknowledges itself.
                self._transport.send(message.EventReceived(msg.publication))
                return
        super().onMessage(msg)

    def onDisconnect(self) -> None:
        """Do not leave the loop."""


async def connected(address: tuple[str, str], before: dict | None) -> Resumed:
    """Open a connection, and wait for WELCOME."""
    session = Resumed(before)
    factory = WampRawSocketClientFactory(lambda: session, serializer=CBORSerializer())
    await asyncio.get_running_loop().create_connection(factory, *address)
    await session.welcomed.wait()
    return session


async def heard(session: Resumed, count: int) -> None:
    """Wait for so many events."""
    while len(session.events) < count:
        session.news.clear()
        await session.news.wait()


def said(session: Resumed) -> None:
    """Tell what there was."""
    print(json.dumps({**session.said, "events": session.events}), flush=True)


async def main() -> None:
    """Subscribe, be cut with an event in hand, and come again."""
    address = (sys.argv[1], sys.argv[2])
    first = await connected(address, None)

    async def handler(number: int) -> None:
        if number == 2:
            await asyncio.Event().wait()

    await first.subscribe(handler, TOPIC)
    said(first)
    await heard(first, 2)
    # The acknowledgement of the first has come, when this is answered.
    await first.call("wamp.session.count")
    first._transport.transport.abort()
    said(first)
    # The reader of this line publishes meanwhile.
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    second = await connected(address, first.said)
    await heard(second, 2)
    said(second)
    second._transport.transport.abort()


if __name__ == "__main__":
    asyncio.run(main())
