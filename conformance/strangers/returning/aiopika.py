"""A robust connection of aio-pika as its documentation shows it: `aiopika.py URL QUEUE`."""

from __future__ import annotations

import asyncio
import json
import sys

import aio_pika

ANSWERS = "returning.answers"


async def main() -> None:
    """Consume, and answer each message."""
    url, name = sys.argv[1:]
    connection = await aio_pika.connect_robust(url)
    channel = await connection.channel()
    queue = await channel.declare_queue(name, durable=True)

    async def heard(message: aio_pika.abc.AbstractIncomingMessage) -> None:
        async with message.process():
            token = json.loads(message.body)["data"]
            answer = aio_pika.Message(f"aio-pika {token}".encode())
            await channel.default_exchange.publish(answer, ANSWERS)

    await queue.consume(heard)
    print("there", flush=True)
    await asyncio.Future()


asyncio.run(main())
