"""A component of Autobahn|Python, as documented: `component.py URL asyncio|twisted`."""

from __future__ import annotations

import importlib
import sys

url, framework = sys.argv[1:]
module = importlib.import_module(f"autobahn.{framework}.component")
component = module.Component(transports=url, realm="realm1")


def say(what: str) -> None:
    """Write a line where Twisted's log does not take it."""
    print(what, file=sys.__stdout__, flush=True)


@component.subscribe("com.returning")
def heard(token: str) -> None:
    """Say what has come."""
    say(f"got {token}")


@component.on_ready
def ready(_session: object) -> None:
    """Say that everything is subscribed."""
    say("there")


module.run([component], log_level="error")
say("away")
