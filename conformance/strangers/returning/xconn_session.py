"""A session of xconn's client for Python whose application dials: `xconn_session.py URL`."""

from __future__ import annotations

import os
import sys
import threading
import time

from wampproto import auth, serializers
from xconn.client import Client

PAUSE_S = 0.1


def say(what: str) -> None:
    """Write a line at once."""
    print(what, flush=True)


def dial(ended: threading.Event) -> None:
    """Join and subscribe."""
    client = Client(auth.AnonymousAuthenticator(""), serializers.JSONSerializer())
    session = client.connect(sys.argv[1], "realm1", disconnect_callback=ended.set)
    session.subscribe("com.returning", lambda event: say(f"got {event.args[0]}"))
    say("there")


while os.getppid() != 1:
    over = threading.Event()
    try:
        dial(over)
    except Exception as error:
        print(repr(error), file=sys.stderr, flush=True)
        time.sleep(PAUSE_S)
        continue
    over.wait()
    say("ended: the disconnect callback, without a reason")
