"""Components that need each other: one is ready when it is told to be, others ask it at once."""

from autobahn.twisted.wamp import ApplicationSession
from twisted.internet.defer import Deferred


class First(ApplicationSession):
    """Not ready before a client publishes."""

    async def onJoin(self, details):
        """Wait, then offer what others rely on."""
        told = Deferred()
        await self.subscribe(lambda: told.callback(None), "com.order.go")
        await told
        if self.config.shared is not None:
            self.config.shared["first"] = type(self.config.shared["reactor"]).__name__
        await self.register(lambda: "first", "com.order.first")


class Second(ApplicationSession):
    """Asks the first one in its `onJoin`, and would fail without it."""

    async def onJoin(self, details):
        """Ask."""
        answer = await self.call("com.order.first")
        shared = self.config.shared
        found = None if shared is None else shared.get("first")
        await self.register(lambda: [answer, found], "com.order.second")


async def joined(session, details):
    """Ask the second one, for a function component."""
    answer = await session.call("com.order.second")
    await session.register(lambda: answer, "com.order.third")
