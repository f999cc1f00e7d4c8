"""A component made by a function, which asks for what its worker was given."""

from autobahn.twisted.wamp import ApplicationSession
from crosstie import container


class Asking(ApplicationSession):
    """Tells the worker's extra."""

    async def onJoin(self, details):
        """Register it."""
        await self.register(lambda: container.extra, "com.hosted.shared")


def make(config):
    """Make the session."""
    return Asking(config)
