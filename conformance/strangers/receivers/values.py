"""Subscribes with Autobahn|Python, once for each serializer, and tells what arguments come.

python values.py URL
"""

from __future__ import annotations

import asyncio
import datetime
import decimal
import json
import sys
from typing import Any

from autobahn.asyncio.wamp import ApplicationRunner, ApplicationSession
from autobahn.wamp.serializer import CBORSerializer, JsonSerializer, MsgPackSerializer

TOPIC = "com.value"
SERIALIZERS = {"json": JsonSerializer, "msgpack": MsgPackSerializer, "cbor": CBORSerializer}


def told(value: Any) -> str:
    """Return a value in the notation of the tables."""
    match value:
        case None | bool():
            return json.dumps(value)
        case int():
            return str(value) if abs(value) < 10**40 else f"an integer of {len(str(value))} digits"
        case float():
            return repr(value)
        case str():
            return json.dumps(value, ensure_ascii=False)
        case bytes():
            return f"h'{value.hex()}'"
        case decimal.Decimal():
            return f"Decimal {value}"
        case datetime.datetime():
            return f"date {value.isoformat()}"
        case list() | tuple():
            return f"[{', '.join(told(each) for each in value)}]"
        case dict():
            return f"{{{', '.join(f'{told(key)}: {told(each)}' for key, each in value.items())}}}"
        case _:
            return type(value).__name__


def say(serializer: str, what: str, *rest: object) -> None:
    """Write one line."""
    print(json.dumps([serializer, what, *rest]), flush=True)


def receiver(serializer: str) -> type[ApplicationSession]:
    """Return a session that tells what it receives."""

    class Receiver(ApplicationSession):
        async def onJoin(self, details: Any) -> None:
            await self.subscribe(self.received, TOPIC)
            say(serializer, "ready")

        def received(self, number: int, value: Any) -> None:
            say(serializer, "value", number, told(value))

        def onDisconnect(self) -> None:
            say(serializer, "lost")

    return Receiver


async def main(url: str) -> None:
    """Open all sessions and keep them."""
    for name, serializer in SERIALIZERS.items():
        runner = ApplicationRunner(url, "realm1", serializers=[serializer()])
        await runner.run(receiver(name), start_loop=False)
    await asyncio.Event().wait()


asyncio.run(main(sys.argv[1]))
