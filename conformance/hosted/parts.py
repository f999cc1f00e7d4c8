"""Components, good and bad. Each tells what it does by calls and events that tests listen to."""

import logging
import os
import sys
import time
import weakref

from autobahn.exception import PayloadExceededError
from autobahn.twisted.component import Component
from autobahn.twisted.util import sleep
from autobahn.twisted.wamp import ApplicationSession, Session
from autobahn.wamp.exception import ApplicationError
from autobahn.wamp.types import RegisterOptions
from twisted.internet import reactor
from twisted.internet.defer import Deferred, inlineCallbacks

VERSION = 1
# Sessions of `Dropping`.
ALIVE = weakref.WeakSet()


class Echo(ApplicationSession):
    """Registers what gives back its arguments, and what tells of itself."""

    @inlineCallbacks
    def onJoin(self, details):
        """Register everything."""
        extra = self.config.extra
        prefix = extra.get("prefix", "com.hosted")
        yield self.register(self.echo, f"{prefix}.echo")
        yield self.register(lambda: dict(os.environ), f"{prefix}.environment")
        yield self.register(lambda: extra, f"{prefix}.extra")
        yield self.register(lambda: [os.getcwd(), *sys.path], f"{prefix}.places")
        yield self.register(self.burst, f"{prefix}.burst")
        yield self.register(self.speak, f"{prefix}.speak")
        yield self.register(lambda *_: self.leave(), f"{prefix}.leave")
        transport = details.transport
        yield self.register(
            lambda: [details.serializer, transport.channel_framing, details.authrole],
            f"{prefix}.way",
        )
        yield self.publish(f"{prefix}.joined", details.session)

    def echo(self, *args, **kwargs):
        """Give back the arguments."""
        return {"args": list(args), "kwargs": kwargs}

    def burst(self, count, size):
        """Publish so many events of such a size."""
        for number in range(count):
            self.publish("com.hosted.event", number, "x" * size)

    def speak(self):
        """Say something in every way there is."""
        self.log.info("by {how}", how="self.log")
        self.log.error("two\nlines")
        self.log.debug("never seen")
        print("by print")
        print("without", "an end", end="")
        print("!")
        logging.getLogger("hosted").warning("by logging")
        print("by standard error", file=sys.stderr)
        sys.stdout.write("surrogate \udcff\n")


class TooLong(ApplicationSession):
    """Sends messages of any length on request."""

    async def onJoin(self, details):
        """Register."""
        await self.register(
            self.long, "com.hosted.long", options=RegisterOptions(details_arg="details")
        )

    async def long(self, what, octets, details=None):
        """Put so many bytes into a message; return what that raised."""
        text = "x" * octets
        if what == "result":
            return text
        if what == "error":
            raise ApplicationError("com.hosted.error", text)
        if what == "progress":
            details.progress(text)
        try:
            if what == "publish":
                self.publish("com.hosted.event", text)
            else:
                await self.call("com.hosted.nothing", text)
        except PayloadExceededError as error:
            return str(error)


class Dropping(ApplicationSession):
    """Drops its connection on request, and counts its sessions in memory."""

    async def onJoin(self, details):
        """Register."""
        ALIVE.add(self)
        await self.register(lambda: len(ALIVE), "com.hosted.alive")
        await self.register(lambda: self._transport.abort(), "com.hosted.drop")


class Endless(ApplicationSession):
    """Its onJoin never returns."""

    async def onJoin(self, details):
        """Register, then wait for ever."""
        await self.register(lambda: "here", "com.hosted.endless")
        await Deferred()


class Looping(ApplicationSession):
    """Works in a loop inside onJoin, as examples do."""

    async def onJoin(self, details):
        """Publish again and again."""
        while True:
            await sleep(0.01)
            self.publish("com.hosted.tick", details.session)


class Raising(ApplicationSession):
    """Fails when it has joined."""

    def onJoin(self, details):
        """Fail."""
        raise ValueError("not today")


class RaisingLate(ApplicationSession):
    """Fails after a while."""

    async def onJoin(self, details):
        """Fail in a later turn."""
        await sleep(0.01)
        raise ValueError("not tomorrow either")


class Unmakeable(ApplicationSession):
    """Fails when it is made."""

    def __init__(self, config):
        super().__init__(config)
        raise RuntimeError("cannot be made")


class Blocking(ApplicationSession):
    """Keeps the thread for itself."""

    def onJoin(self, details):
        """Block."""
        print("blocking now")
        time.sleep(3600)


class Clinging(ApplicationSession):
    """Never finishes leaving."""

    def onLeave(self, details):
        """Wait for ever."""
        return Deferred()


class Leaving(ApplicationSession):
    """Leaves as soon as it has joined."""

    def onJoin(self, details):
        """Leave."""
        self.leave()


class Stopping(ApplicationSession):
    """Stops the reactor, as components do that were written to run alone."""

    def onJoin(self, details):
        """Stop it."""
        reactor.stop()


class Flooding(ApplicationSession):
    """Logs without end."""

    async def onJoin(self, details):
        """Flood, but let others have their turn."""
        while True:
            for _ in range(1000):
                print("flood " * 20)
            await sleep(0)


class Modern(Session):
    """The newer names of the same."""

    async def on_join(self, details):
        """Register one procedure."""
        await self.register(
            lambda details=None: "modern",
            "com.hosted.modern",
            options=RegisterOptions(invoke="roundrobin"),
        )


class Shimmed(ApplicationSession):
    """Uses what components import from Crossbar.io."""

    async def onJoin(self, details):
        """Register what the process knows of itself."""
        from crossbar._util import hl
        from crossbar.common.processinfo import ProcessInfo

        process = ProcessInfo()
        await self.register(
            lambda: {
                "stats": process.get_stats(),
                "info": process.get_info(),
                "hl": hl("text", color="magenta", bold=True),
            },
            "com.hosted.process",
        )


class Beyond(ApplicationSession):
    """Uses what only Crossbar.io has."""

    def onJoin(self, details):
        """Import it."""
        from crossbar.router.router import Router

        print(Router)


class Version(ApplicationSession):
    """Tells the version of this file."""

    async def onJoin(self, details):
        """Register it."""
        await self.register(lambda: VERSION, "com.hosted.version")


component = Component()


@component.register("com.hosted.decorated")
def decorated():
    """Answer."""
    return "decorated"


async def main(reactor, session):
    """Run once, then be done."""
    session.publish("com.hosted.main", "ran")


once = Component(main=main)

not_a_component = 42


async def joined(session, details):
    """Register, for a function component."""
    await session.register(lambda: "function", "com.hosted.function")
    session.log.info("joined by function")


def left(session, details):
    """Say so."""
    print(f"left by function: {details.reason}")


def raising(session, details):
    """Fail."""
    raise ValueError("no listener")
