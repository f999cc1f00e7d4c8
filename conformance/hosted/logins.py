"""Authenticators that are functions: what configurations name as `create`."""

import os

from autobahn.twisted.util import sleep
from autobahn.wamp.exception import ApplicationError

ASKED = []


def tickets(config, controller):
    """Return one that knows the tickets of its configuration."""
    assert controller is None

    def authenticate(realm, authid, details):
        ASKED.append(
            (realm, authid, details["authmethod"], details["transport"]["channel_framing"])
        )
        if authid == "history":
            return {
                "role": "user",
                "extra": {"pid": os.getpid(), "asked": [list(a) for a in ASKED]},
            }
        if config.get(authid) != details["ticket"]:
            raise ApplicationError("com.example.denied", f"no such ticket of {authid}")
        return config["role"]

    return authenticate


async def users(config, _controller):
    """Return one that takes its time, and was made in some."""
    await sleep(0.01)

    async def authenticate(_realm, authid, _details):
        await sleep(0.01)
        if authid == "nobody":
            return None
        return {"secret": config["secrets"][authid], "role": "user"}

    return authenticate


def known(config, _controller):
    """Return one that answers by the method that it is asked about."""
    return lambda _realm, _authid, details: config[details["authmethod"]]


def certificates(config, _controller):
    """Return one that knows clients by their certificates."""

    def authenticate(_realm, _authid, details):
        shown = details["transport"]["client_cert"]
        if shown["sha256"] not in config:
            raise ApplicationError("com.example.denied", f"nobody knows {shown['subject']['cn']}")
        return {"role": "user", "authid": config[shown["sha256"]]}

    return authenticate


def nonsense(_config, _controller):
    """Return what cannot be called."""
    return "nonsense"


def joined(session, details):
    """Tell who it is that has joined."""
    return session.register(
        lambda: [details.authid, details.authrole, details.authmethod], "com.hosted.who"
    )
