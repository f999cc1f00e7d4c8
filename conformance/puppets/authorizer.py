"""An authorizer as an application has one: a component of Autobahn|Python that decides by the URI.

It takes the URL of its router and the kind of transport, says `ready` when it can be asked, and
goes on until it is ended.
"""

import os
import sys

from autobahn.twisted.component import Component, run
from autobahn.wamp.exception import ApplicationError
from twisted.internet.defer import Deferred, inlineCallbacks

SERIALIZER = {"rawsocket": {"serializer": "cbor"}, "websocket": {"serializers": ["cbor"]}}

transport = {"url": sys.argv[1], "type": sys.argv[2], **SERIALIZER[sys.argv[2]]}
component = Component(transports=[transport], realm="realm1")
asked: list = []


def authorize(session, uri, action, options):
    """Answer in every form that there is."""
    assert isinstance(session["session"], int)
    assert isinstance(options, dict)
    asked.append((session["authrole"], uri, action))
    answers = {
        "com.example.true": True,
        "com.example.false": False,
        "com.example.dict": {"allow": True, "disclose": True},
        "com.example.cached": {"allow": True, "cache": True},
        "com.example.nonsense": ["true"],
    }
    if uri == "com.example.error":
        raise ApplicationError("com.example.denied", "nope")
    if uri == "com.example.hang":
        return Deferred()
    return answers.get(uri, action == "publish")


def authorize_briefly(session, uri, action):
    """Answer as an authorizer does that was written before there were options."""
    return uri == "com.example.true"


@component.on_join
@inlineCallbacks
def joined(session, details):
    """Register, and say so."""
    yield session.register(authorize, "com.example.authorize")
    yield session.register(authorize_briefly, "com.example.authorize_briefly")
    yield session.register(lambda uri: [a for a in asked if a[1] == uri], "com.example.asked")
    yield session.register(lambda: None, "com.example.true")
    yield session.register(lambda: None, "com.example.dict")
    yield session.register(lambda: None, "com.example.cached")
    # Printed text goes to the log.
    os.write(1, b"ready\n")


run([component], log_level="warn")
