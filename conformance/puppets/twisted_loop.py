"""autobahn on Twisted: running, connecting."""

import sys
import threading
from collections.abc import Callable
from pathlib import Path

import txaio

txaio.use_twisted()

from autobahn.twisted.rawsocket import WampRawSocketClientFactory  # noqa: E402
from autobahn.twisted.wamp import ApplicationSession  # noqa: E402
from autobahn.twisted.websocket import WampWebSocketClientFactory  # noqa: E402
from twisted.internet import reactor, ssl  # noqa: E402
from twisted.internet.endpoints import (  # noqa: E402
    TCP4ClientEndpoint,
    UNIXClientEndpoint,
    wrapClientTLS,
)

from puppets.compression import compression  # noqa: E402
from puppets.serializers import serializer_of  # noqa: E402

__all__ = ["ApplicationSession", "connect", "later", "run"]


def run(commands: Callable[[str], None]) -> None:
    """Hand every line of the input to `commands`, on the event loop."""

    def read() -> None:
        for line in sys.stdin:
            reactor.callFromThread(commands, line)
        reactor.callFromThread(reactor.stop)

    thread = threading.Thread(target=read, daemon=True)
    reactor.callWhenRunning(thread.start)
    reactor.run(installSignalHandlers=False)


def later(work: Callable[[], None]) -> None:
    """Do `work` in a later turn of the event loop."""
    reactor.callLater(0, work)


def connect(place: dict, make_session: Callable[[], object], failed: Callable[[str], None]) -> None:
    """Connect to the place; `make_session` is asked for a session once that is done."""
    serializer = serializer_of(place["serializer"])
    if place["kind"] == "ws":
        factory = WampWebSocketClientFactory(
            make_session, url=place["url"], serializers=[serializer]
        )
        factory.setProtocolOptions(**compression(place))
    else:
        factory = WampRawSocketClientFactory(make_session, serializer=serializer)
    if place["over"] == "unix":
        endpoint = UNIXClientEndpoint(reactor, place["path"])
    else:
        endpoint = TCP4ClientEndpoint(reactor, place["host"], place["port"])
    if place["over"] == "tls":
        authority = ssl.Certificate.loadPEM(Path(place["authority"]).read_bytes())
        own = None
        if shown := place.get("certificate"):
            both = [Path(f"{shown}.{end}").read_bytes() for end in ("key", "pem")]
            own = ssl.PrivateCertificate.loadPEM(b"".join(both))
        options = ssl.optionsForClientTLS("localhost", authority, own)
        endpoint = wrapClientTLS(options, endpoint)
    endpoint.connect(factory).addErrback(lambda failure: failed(failure.getErrorMessage()))
