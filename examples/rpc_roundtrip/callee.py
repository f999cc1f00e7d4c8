"""A component that gives back what it is called with."""

from autobahn.twisted.wamp import ApplicationSession


class AppSession(ApplicationSession):
    """Registers the procedure that its configuration names."""

    async def onJoin(self, details):
        """Register, then serve."""
        await self.register(echo, self.config.extra["procedure"])
        self.log.info("Ready!")


def echo(value):
    """Give back the argument."""
    return value
