"""A backend that adds up what pages send, and tells all pages the sum."""

from autobahn.twisted.wamp import ApplicationSession


class Backend(ApplicationSession):
    """Serves `com.example.add`, and publishes `com.example.total`."""

    async def onJoin(self, details):
        """Register, then serve."""
        self.total = 0
        await self.register(self.add, "com.example.add")
        await self.register(lambda: self.total, "com.example.get_total")
        self.log.info("Ready!")

    def add(self, number):
        """Add a number; return the sum."""
        self.total += number
        self.publish("com.example.total", self.total)
        return self.total
