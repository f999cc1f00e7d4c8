"""From a definition to a site that listens.

Input: the definition of a `wsgi` or `resource` service. A failed import raises `NotLoadedError`
with the name, the fault, and the path of Python.
"""

from __future__ import annotations

import importlib
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote_to_bytes

from twisted.internet import reactor
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.python.threadpool import ThreadPool
from twisted.web import resource, server
from twisted.web.wsgi import WSGIResource

from crosstie.container.explaining import explain

# The router's data of a request.
BASE = b"x-crosstie-base"
CLIENT = b"x-crosstie-client"
SERVER = b"x-crosstie-server"


class NotLoadedError(Exception):
    """A program that cannot be had."""


def listen(definition: dict, path: Path) -> None:
    """Load what is defined, and listen for the router."""
    root = load(definition)
    site = Site(root, requestFactory=Request)
    site.displayTracebacks = False
    site.noisy = False
    reactor.listenUNIX(str(path), site, mode=0o600)


def load(definition: dict) -> resource.IResource:
    """Load what a definition names."""
    if definition["type"] == "wsgi":
        return load_wsgi(definition)
    return load_resource(definition)


def load_wsgi(definition: dict) -> WSGIResource:
    """Load an application, with the threads that it is called in."""
    application = found(definition["module"], definition["object"])
    if not callable(application):
        name = f"{definition['module']}.{definition['object']}"
        raise NotLoadedError(f"'{name}' is {application!r}, and no WSGI application")
    pool = ThreadPool(definition["minthreads"], definition["maxthreads"], name="wsgi")
    pool.start()
    reactor.addSystemEventTrigger("after", "shutdown", pool.stop)
    return WSGIResource(reactor, pool, strict(application))


def strict(application: Callable) -> Callable:
    """Return the application, called with what PEP 3333 has in its environment alone."""

    def call(environ, start_response):
        for name in ("HTTP_CONTENT_TYPE", "HTTP_CONTENT_LENGTH"):
            environ.pop(name, None)
        return application(environ, start_response)

    return call


def load_resource(definition: dict) -> resource.IResource:
    """Load a class, and make its one resource."""
    name = definition["classname"]
    module, _, attribute = name.rpartition(".")
    make = found(module, attribute)
    extra = definition["extra"]
    try:
        made = make({} if extra is None else extra)
    except Exception as error:
        traceback.print_exc()
        raise NotLoadedError(f"'{name}' raised {type(error).__name__}: {error}") from error
    if not resource.IResource.providedBy(made):
        raise NotLoadedError(f"'{name}' makes {made!r}, and no resource of Twisted's")
    return made


def found(module: str, attribute: str) -> object:
    """Import what a module has."""
    try:
        return getattr(importlib.import_module(module), attribute)
    except (Exception, SystemExit) as error:
        raise NotLoadedError(explain(f"{module}.{attribute}", error)) from error


class Request(server.Request):
    """A request as it came to the router."""

    _is_secure = False
    _written = 0

    def process(self):
        """Take what the router says of the request, and answer it."""
        headers = self.requestHeaders
        base, client, came = (self._told(name) for name in (BASE, CLIENT, SERVER))
        for name, _values in list(headers.getAllRawHeaders()):
            # A name with an underscore would pass for another: `X_Y` for `X-Y`.
            if b"_" in name or name.lower() in (BASE, CLIENT, SERVER):
                headers.removeHeader(name)
        self._measure()
        self.base = [unquote_to_bytes(part) for part in base.split("/") if part]
        self.client = address(client or " 0")
        scheme, _, port = came.partition(" ")
        self._is_secure = scheme == "https"
        name = self.getRequestHostname().decode("latin-1")
        self.host = IPv4Address("TCP", name, int(port or 80))
        super().process()

    def write(self, data):
        """Count what is written."""
        self._written += len(data)
        super().write(data)

    def finish(self):
        """End the answer; one that is not as long as it says ends its connection too."""
        said = self.responseHeaders.getRawHeaders(b"content-length", [b""])[-1]
        has_body = self.method != b"HEAD" and self.code not in (204, 304)
        channel = self.channel
        super().finish()
        if said.isdigit() and has_body and int(said) != self._written and channel:
            channel.loseConnection()

    def _measure(self):
        """Say the length of a body that came in chunks: programs read no further than that."""
        length = self.content.seek(0, os.SEEK_END)
        self.content.seek(0)
        if length and not self.requestHeaders.hasHeader(b"content-length"):
            self.requestHeaders.setRawHeaders(b"content-length", [b"%d" % length])

    def _told(self, name: bytes) -> str:
        return self.requestHeaders.getRawHeaders(name, [b""])[-1].decode("utf-8")

    def getClientAddress(self):
        """Return where the client is, and not the router."""
        return self.client

    def getHost(self):
        """Return what the client has asked."""
        return self.host

    def isSecure(self):
        """Whether the client came over TLS."""
        return self._is_secure


def address(text: str) -> IPv4Address | IPv6Address:
    """Return the address of `127.0.0.1 4711`."""
    host, _, port = text.partition(" ")
    kind = IPv6Address if ":" in host else IPv4Address
    return kind("TCP", host, int(port))


class Site(server.Site):
    """A site that stands below a path of the router's."""

    def getResourceFor(self, request: Request):
        """Find the resource, behind the components that lead to the service."""
        depth = len(request.base)
        request.prepath, request.postpath = request.postpath[:depth], request.postpath[depth:]
        request.site = self
        request.sitepath = list(request.prepath)
        return resource.getChildForRequest(self.resource, request)
