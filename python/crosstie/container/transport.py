"""The way from a component to its router, as a configuration describes it.

In goes the `transport` of a definition; out come an endpoint to connect to, a factory of protocols,
and words that say where that leads. A fault in it raises ValueError with a sentence.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from twisted.internet.endpoints import (
    HostnameEndpoint,
    TCP4ClientEndpoint,
    TCP6ClientEndpoint,
    UNIXClientEndpoint,
)

from crosstie.container.rawsocket import RawSocketFactory
from crosstie.container.serializers import available, serializer
from crosstie.container.websocket import WebSocketFactory

CONNECT_TIMEOUT_S = 10
# Autobahn drops a connection, and warns, when a close is not answered within a second, which a busy
# machine may take. A container that ends waits no longer than for a component to leave.
CLOSE_TIMEOUT_S = 10


@dataclass
class Way:
    """The address to connect to, and the protocol there."""

    endpoint: object
    new_factory: Callable
    text: str


def way(transport: dict, directory: Path, reactor) -> Way:
    """Read a `transport`; paths in it are relative to the directory."""
    if not isinstance(transport, dict):
        raise ValueError("the component has no 'transport' object")
    kind = transport.get("type")
    if kind == "rawsocket":
        new_factory = rawsocket(transport)
    elif kind == "websocket":
        new_factory = websocket(transport)
    else:
        raise ValueError(f"a transport's type is 'websocket' or 'rawsocket', not {kind!r}")
    endpoint, place = connecting(endpoint_of(transport), directory, reactor)
    return Way(endpoint, new_factory, f"{kind} at {place}")


def rawsocket(transport: dict) -> Callable:
    """Return what makes RawSocket factories: one serializer, the first where several are named."""
    name = transport.get("serializer")
    if name is None:
        name = next(iter(transport.get("serializers") or available()))
    chosen = serializer(name)
    length_max = transport.get("options", {}).get("max_message_size")

    def new_factory(make_session, on_lost):
        factory = RawSocketFactory(make_session, chosen, on_lost)
        factory.setProtocolOptions(maxMessagePayloadSize=length_max)
        return factory

    return new_factory


def websocket(transport: dict) -> Callable:
    """Return what makes WebSocket factories.

    The serializers named come first, and all others after them: a router that does not speak the
    one asked for is no reason not to talk.
    """
    url = transport.get("url")
    if not isinstance(url, str):
        raise ValueError("a WebSocket transport needs a 'url', such as ws://127.0.0.1:8080/ws")
    named = list(transport.get("serializers") or [])
    names = named + [name for name in available() if name not in named]
    options = websocket_options(transport.get("options", {}))

    def new_factory(make_session, on_lost):
        offered = [serializer(name) for name in names]
        factory = WebSocketFactory(make_session, url, offered, on_lost)
        factory.setProtocolOptions(**options)
        return factory

    # Faults in it are found now, not when a connection exists.
    new_factory(None, None)
    return new_factory


# Names in a configuration and Autobahn's; times that a configuration has in milliseconds.
OPTIONS = {
    "max_frame_size": "maxFramePayloadSize",
    "max_message_size": "maxMessagePayloadSize",
    "auto_fragment_size": "autoFragmentSize",
    "fail_by_drop": "failByDrop",
    "echo_close_codereason": "echoCloseCodeReason",
    "tcp_nodelay": "tcpNoDelay",
    "auto_ping_size": "autoPingSize",
    "auto_ping_restart_on_any_traffic": "autoPingRestartOnAnyTraffic",
    "validate_utf8": "utf8validateIncoming",
    "apply_mask": "applyMask",
}
OPTIONS_MS = {
    "open_handshake_timeout": "openHandshakeTimeout",
    "close_handshake_timeout": "closeHandshakeTimeout",
    "auto_ping_interval": "autoPingInterval",
    "auto_ping_timeout": "autoPingTimeout",
}


def websocket_options(options: dict) -> dict:
    """Return a configuration's options as Autobahn takes them."""
    taken = {
        "tcpNoDelay": True,
        "openHandshakeTimeout": CONNECT_TIMEOUT_S,
        "closeHandshakeTimeout": CLOSE_TIMEOUT_S,
    }
    for name, value in options.items():
        if name in OPTIONS:
            taken[OPTIONS[name]] = value
        elif name in OPTIONS_MS:
            taken[OPTIONS_MS[name]] = value / 1000
        elif name == "compression":
            taken |= compression(value)
        else:
            known = ", ".join(sorted([*OPTIONS, *OPTIONS_MS, "compression"]))
            raise ValueError(f"no option '{name}' of a component's WebSocket; there are {known}")
    return taken


def compression(value: dict) -> dict:
    """Offer permessage-deflate as the configuration wants it."""
    from autobahn.websocket.compress import (
        PerMessageDeflateOffer,
        PerMessageDeflateResponse,
        PerMessageDeflateResponseAccept,
    )

    deflate = value.get("deflate")
    if deflate is None:
        raise ValueError("'compression' has one kind, 'deflate'")
    offer = PerMessageDeflateOffer(
        request_no_context_takeover=deflate.get("request_no_context_takeover", False),
        request_max_window_bits=deflate.get("request_max_window_bits", 0),
    )

    def accept(response):
        if isinstance(response, PerMessageDeflateResponse):
            return PerMessageDeflateResponseAccept(
                response,
                no_context_takeover=deflate.get("no_context_takeover"),
                window_bits=deflate.get("max_window_bits"),
                mem_level=deflate.get("memory_level"),
            )
        return None

    return {"perMessageCompressionOffers": [offer], "perMessageCompressionAccept": accept}


def endpoint_of(transport: dict) -> dict:
    """Return the endpoint, from the URL where a WebSocket transport has none of its own."""
    if "endpoint" in transport:
        return transport["endpoint"]
    if transport["type"] != "websocket":
        raise ValueError("a RawSocket transport needs an 'endpoint'")
    from autobahn.websocket.util import parse_url

    is_secure, host, port, *_ = parse_url(transport["url"])
    tls = {"tls": {"hostname": host}} if is_secure else {}
    return {"type": "tcp", "host": host, "port": port, **tls}


def connecting(endpoint: dict, directory: Path, reactor) -> tuple[object, str]:
    """Return Twisted's endpoint, and what to call it."""
    kind = endpoint.get("type")
    timeout = endpoint.get("timeout", CONNECT_TIMEOUT_S)
    if kind == "unix":
        path = directory / os.path.expandvars(endpoint["path"])
        return UNIXClientEndpoint(reactor, shortest(path), timeout=timeout), str(path)
    if kind != "tcp":
        raise ValueError(f"a component's endpoint is of type 'tcp' or 'unix', not {kind!r}")
    host, port = endpoint["host"], int(endpoint["port"])
    by_version = {4: TCP4ClientEndpoint, 6: TCP6ClientEndpoint, None: HostnameEndpoint}
    connected = by_version[endpoint.get("version")](reactor, host, port, timeout=timeout)
    if "tls" in endpoint:
        connected = secured(connected, endpoint["tls"], host, directory)
    return connected, f"{host}:{port}"


def shortest(path: Path) -> str:
    """Return the path as the kernel may take it: 107 bytes, counted from where we stand."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) else str(path)


def secured(endpoint, tls: dict, host: str, directory: Path):
    """Wrap an endpoint in TLS."""
    try:
        from twisted.internet import ssl
        from twisted.internet.endpoints import wrapClientTLS
    except ImportError as error:
        raise ValueError(
            f"TLS for components needs pyOpenSSL and service-identity ({error});"
            " pip install 'twisted[tls]' brings them"
        ) from error
    authorities = None
    if "ca_certificates" in tls:
        authorities = ssl.trustRootFromCertificates(
            [
                ssl.Certificate.loadPEM((directory / path).read_bytes())
                for path in tls["ca_certificates"]
            ]
        )
    own = None
    if "certificate" in tls:
        own = ssl.PrivateCertificate.loadPEM(
            (directory / tls["key"]).read_bytes()
            + b"\n"
            + (directory / tls["certificate"]).read_bytes()
        )
    context = ssl.optionsForClientTLS(
        tls.get("hostname", host), trustRoot=authorities, clientCertificate=own
    )
    return wrapClientTLS(context, endpoint)
