"""A component that calls a procedure again and again, one call after the other."""

from time import perf_counter

from autobahn.twisted.util import sleep
from autobahn.twisted.wamp import ApplicationSession
from autobahn.wamp.exception import ApplicationError, TransportLost
from twisted.internet import reactor
from twisted.internet.defer import ensureDeferred

CALLS = 1000
RETRY_S = 0.05
NOT_THERE = (ApplicationError.NO_SUCH_PROCEDURE, ApplicationError.CANCELED)


class AppSession(ApplicationSession):
    """Prints the average round-trip time of every thousand calls."""

    def onJoin(self, details):
        """Start calling; a node may wait for this to return before it starts the next component."""
        reactor.callLater(0, lambda: ensureDeferred(self.run()))

    async def run(self):
        """Measure until the session ends."""
        try:
            while self.is_attached():
                try:
                    await self.measure()
                except ApplicationError as error:
                    # The callee may start later, and leave earlier.
                    if error.error not in NOT_THERE:
                        raise
                    await sleep(RETRY_S)
        except TransportLost:
            # The session ends, and this with it.
            pass
        except Exception:
            # So does a call that was under way then; anything else is news.
            if self.is_attached():
                self.log.failure()
                self.leave()

    async def measure(self):
        """Make the calls and print what one took on average."""
        procedure = self.config.extra["procedure"]
        # The first finds out whether the procedure is there.
        await self.call(procedure, 0)
        began = perf_counter()
        for number in range(CALLS):
            result = await self.call(procedure, number)
            if result != number:
                raise ValueError(f"{procedure} gave {result!r} for {number}")
        average_ms = 1000 * (perf_counter() - began) / CALLS
        title = self.config.extra["title"]
        print(f"[{title}] - average round-trip time (ms): {average_ms}", flush=True)
