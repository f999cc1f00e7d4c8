"""Declare, publish, consume and acknowledge by aioamqp: host, port, queue."""

import asyncio
import sys

import aioamqp

HOST, PORT, QUEUE = sys.argv[1], int(sys.argv[2]), sys.argv[3]


async def session() -> None:
    """Print what is consumed."""
    transport, protocol = await aioamqp.connect(HOST, PORT, "test", "test", virtualhost="/")
    channel = await protocol.channel()
    await channel.queue_declare(QUEUE, auto_delete=True)
    done = asyncio.get_running_loop().create_future()

    async def consumed(channel, body, envelope, _properties) -> None:
        print(body.decode())
        await channel.basic_client_ack(envelope.delivery_tag)
        if body == b"3":
            done.set_result(None)

    await channel.basic_consume(consumed, queue_name=QUEUE)
    for number in range(1, 4):
        await channel.basic_publish(b"%d" % number, exchange_name="", routing_key=QUEUE)
    await asyncio.wait_for(done, 10)
    await protocol.close()
    transport.close()
    print("closed")


asyncio.run(session())
