"""Autobahn clients that stay while their router is upgraded, and keep a ledger.

    upgrade_clients.py URL

A callee and a caller reconnect by themselves. Each call is repeated until it is answered. The first
line of output says that they have met. When standard input ends, the last line is the ledger.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys

import txaio
from autobahn.asyncio.component import Component
from autobahn.exception import Disconnected
from autobahn.wamp.exception import ApplicationError, TransportLost

CALL, TOPIC = "com.ledger.call", "com.ledger.topic"


class Ledger:
    """What became of calls, events and connections."""

    def __init__(self) -> None:
        """Nothing so far."""
        self.answered = 0
        self.wrong = 0
        self.repeated = 0
        self.published = 0
        self.heard: dict[int, int] = {}
        self.joined = 0
        self.refused: list[str] = []

    def told(self) -> dict:
        """Return it as JSON."""
        return {
            "answered": self.answered,
            "wrong": self.wrong,
            "repeated": self.repeated,
            "published": self.published,
            "heard": len(self.heard),
            "heard_twice": sum(count > 1 for count in self.heard.values()),
            "joined": self.joined,
            "refused": self.refused,
        }


def component(url: str, ledger: Ledger) -> Component:
    """Return a client that comes back as soon as it can."""
    transport = {
        "type": "websocket",
        "url": url,
        "max_retries": -1,
        "initial_retry_delay": 0.01,
        "max_retry_delay": 0.05,
        "retry_delay_growth": 1.0,
        "retry_delay_jitter": 0.0,
    }
    made = Component(transports=[transport], realm="realm1")

    def failed(_component: Component, error: BaseException) -> None:
        if isinstance(error, ConnectionRefusedError):
            ledger.refused.append(str(error))

    made.on("connectfailure", failed)
    return made


async def call_until(session, number: int, ledger: Ledger) -> None:
    """Have one call answered, however often it takes; a lost session is the caller's to see."""
    while True:
        try:
            answer = await session.call(CALL, number)
        except ApplicationError:
            # The callee has not come back, or left with the call.
            ledger.repeated += 1
            await asyncio.sleep(0.002)
            continue
        ledger.answered += 1
        ledger.wrong += answer != number
        return


async def until_done(request) -> None:
    """Repeat a request until it is not refused."""
    while True:
        try:
            await request()
        except ApplicationError:
            await asyncio.sleep(0.002)
        else:
            return


async def main(url: str) -> None:
    """Call, publish and hear until standard input ends."""
    ledger, over, met = Ledger(), asyncio.Event(), asyncio.Event()
    callee, caller = component(url, ledger), component(url, ledger)
    number = 0

    @callee.on_join
    async def serve(session, _details) -> None:
        ledger.joined += 1

        def hear(event: int) -> None:
            ledger.heard[event] = ledger.heard.get(event, 0) + 1

        with contextlib.suppress(TransportLost, Disconnected):
            await until_done(lambda: session.subscribe(hear, TOPIC))
            # The former session of this client may not have left yet.
            await until_done(lambda: session.register(lambda called: called, CALL))

    @caller.on_join
    async def ask(session, _details) -> None:
        nonlocal number
        ledger.joined += 1
        try:
            while not over.is_set():
                await call_until(session, number, ledger)
                event = number
                await until_done(lambda: session.publish(TOPIC, event, options=ACKNOWLEDGED))  # noqa: B023
                ledger.published += 1
                number += 1
                met.set()
        except (TransportLost, Disconnected):
            # The present call is repeated by the next session.
            ledger.repeated += 1
        except asyncio.CancelledError:
            # So do requests of a session that is lost.
            ledger.repeated += 1
            raise

    loop = asyncio.get_running_loop()
    for each in (callee, caller):
        each.start(loop=loop)
    await met.wait()
    print("met", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    # The last session answers one more call.
    met.clear()
    await met.wait()
    over.set()
    print(json.dumps(ledger.told()), flush=True)


if __name__ == "__main__":
    from autobahn.wamp.types import PublishOptions

    ACKNOWLEDGED = PublishOptions(acknowledge=True, exclude_me=False)
    txaio.use_asyncio()
    asyncio.run(main(sys.argv[1]))
