"""A WebSocket echo server on Autobahn for Python and asyncio, as small as it can be written.

Usage: autobahn_echo.py HOST PORT
"""

import asyncio
import sys

from autobahn.asyncio.websocket import WebSocketServerFactory, WebSocketServerProtocol


class Echo(WebSocketServerProtocol):
    """Send every message back as it came."""

    def onMessage(self, payload, is_binary):  # noqa: D102
        self.sendMessage(payload, is_binary)


async def main(host, port):
    factory = WebSocketServerFactory(f"ws://{host}:{port}")
    factory.protocol = Echo
    loop = asyncio.get_running_loop()
    server = await loop.create_server(factory, host, port, backlog=4096)
    await server.serve_forever()


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
