"""Web programs that nodes under test serve: WSGI applications and Twisted resources."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from wsgiref.validate import validator

from twisted.internet import reactor
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET

NOT_CALLABLE = 42


def told(environ, start_response):
    """Say what it is told, held to PEP 3333 by Python's own judge."""
    body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"] or 0))
    said = {name: value for name, value in environ.items() if isinstance(value, str)}
    said["wsgi.multithread"] = environ["wsgi.multithread"]
    answer = json.dumps({"told": said, "body": body.decode("latin-1")}).encode()
    length = ("Content-Length", str(len(answer)))
    start_response("200 OK", [("Content-Type", "application/json"), length])
    return [answer]


validated = validator(told)

#: Those that hang wait for it.
released = threading.Event()


def application(environ, start_response):
    """Do what the path says."""
    what = environ["PATH_INFO"].strip("/")
    if what == "dies":
        os._exit(3)
    if what == "raises":
        raise RuntimeError("what a pity")
    if what == "release":
        released.set()
    if what == "hangs":
        released.wait(1000)
    headers = [("Content-Type", "text/plain"), ("X-Pid", str(os.getpid()))]
    if what == "injects":
        headers.append(("X-A", "b\r\nSet-Cookie: stolen=1"))
    if what == "prints":
        print("said by a program")
        print("complained by a program", file=sys.stderr)
    if what == "half":
        start_response("200 OK", [*headers, ("Content-Length", "100")])
        return [b"half"]
    if what == "parts":
        start_response("200 OK", headers)
        return parts()
    start_response("200 OK", headers)
    if what == "echo":
        return [environ["wsgi.input"].read()]
    return [threading.current_thread().name.encode()]


def parts():
    """Give an answer in parts, the last when the first has come."""
    yield b"first"
    released.wait(1000)
    yield b"last"


class Tree(Resource):
    """A resource with children, made with what the configuration has."""

    def __init__(self, extra):
        super().__init__()
        self.extra = extra
        self.putChild(b"leaf", Leaf())
        self.putChild(b"later", Later())

    def getChild(self, path, request):
        """Stand for itself with a slash behind."""
        return self if path == b"" else super().getChild(path, request)

    def render_GET(self, request):
        """Say how it was asked."""
        request.setHeader(b"content-type", b"application/json")
        host = request.getHost()
        said = {
            "extra": self.extra,
            "client": request.getClientAddress().host,
            "host": [request.getRequestHostname().decode(), host.port],
            "secure": request.isSecure(),
            "prepath": [part.decode() for part in request.prepath],
            "told": [name.decode() for name, _ in request.requestHeaders.getAllRawHeaders()],
        }
        return json.dumps(said).encode()


class Leaf(Resource):
    """The rest of the path is its own."""

    def __init__(self):
        super().__init__()
        self.isLeaf = True

    def render_GET(self, request):
        """Say the rest."""
        return b"|".join(request.postpath)

    def render_POST(self, request):
        """Say the body."""
        return request.content.read()


class Later(Resource):
    """An answer that comes by and by."""

    def __init__(self):
        super().__init__()
        self.isLeaf = True

    def render_GET(self, request):
        """Begin now, end in the next turn."""
        request.write(b"now ")
        reactor.callLater(0, self.end, request)
        return NOT_DONE_YET

    def end(self, request):
        """End it."""
        request.write(b"then")
        request.finish()


class Slow:
    """It never comes to be."""

    def __init__(self, _extra):
        time.sleep(1000)


def fails(_extra):
    """Do not make a resource."""
    raise ValueError("what a pity")
