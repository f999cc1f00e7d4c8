"""autobahn on asyncio: running, connecting."""

import asyncio
import ssl
import sys
import threading
from collections.abc import Callable

import txaio

txaio.use_asyncio()

from autobahn.asyncio.rawsocket import WampRawSocketClientFactory  # noqa: E402
from autobahn.asyncio.wamp import ApplicationSession  # noqa: E402
from autobahn.asyncio.websocket import WampWebSocketClientFactory  # noqa: E402

from puppets.compression import compression  # noqa: E402
from puppets.serializers import serializer_of  # noqa: E402

__all__ = ["ApplicationSession", "connect", "later", "run"]

_loop = asyncio.new_event_loop()
_tasks: set = set()


def run(commands: Callable[[str], None]) -> None:
    """Hand every line of the input to `commands`, on the event loop."""
    asyncio.set_event_loop(_loop)
    txaio.config.loop = _loop
    # A reply without a waiting call is no reason to fill standard error.
    _loop.set_exception_handler(lambda loop, context: None)

    def read() -> None:
        for line in sys.stdin:
            _loop.call_soon_threadsafe(commands, line)
        _loop.call_soon_threadsafe(_loop.stop)

    threading.Thread(target=read, daemon=True).start()
    _loop.run_forever()


def later(work: Callable[[], None]) -> None:
    """Do `work` in a later turn of the event loop."""
    _loop.call_soon(work)


def connect(place: dict, make_session: Callable[[], object], failed: Callable[[str], None]) -> None:
    """Connect to the place; `make_session` is asked for a session once that is done."""

    async def connecting() -> None:
        serializer = serializer_of(place["serializer"])
        if place["kind"] == "ws":
            factory = WampWebSocketClientFactory(
                make_session, url=place["url"], serializers=[serializer]
            )
            factory.setProtocolOptions(**compression(place))
        else:
            factory = WampRawSocketClientFactory(make_session, serializer=serializer)
        try:
            if place["over"] == "unix":
                await _loop.create_unix_connection(factory, place["path"])
            else:
                secure = {}
                if place["over"] == "tls":
                    context = ssl.create_default_context(cafile=place["authority"])
                    if shown := place.get("certificate"):
                        context.load_cert_chain(f"{shown}.pem", f"{shown}.key")
                    secure = {"ssl": context, "server_hostname": "localhost"}
                await _loop.create_connection(factory, place["host"], place["port"], **secure)
        except OSError as error:
            failed(str(error))

    task = _loop.create_task(connecting())
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
