"""A component that greets who calls it, and counts for who listens."""

from autobahn.twisted.util import sleep
from autobahn.twisted.wamp import ApplicationSession


class AppSession(ApplicationSession):
    """Registers `com.example.hello` and publishes to `com.example.counter`."""

    async def onJoin(self, details):
        """Register, then publish for as long as the session lasts."""
        await self.register(self.hello, "com.example.hello")
        self.log.info("Registered com.example.hello")
        count = 0
        while self.is_attached():
            self.publish("com.example.counter", count)
            count += 1
            await sleep(self.config.extra["interval"])

    def hello(self, name="World"):
        """Greet the named person."""
        return f"{self.config.extra['greeting']}, {name}!"
