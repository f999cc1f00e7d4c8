"""`python -m crosstie.web`: started by a node for a router's web service, not by people.

Standard input is a socket. The router writes there what is to be served, a line of JSON, and reads
`ready` once it is, or why it is not; the socket's end is the end of this process.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import threading
from pathlib import Path

# Beyond this the process ends, whatever its program is still doing.
SHUTDOWN_MOST_S = 3.0


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="crosstie.web", description=__doc__)
    parser.add_argument("--socket", required=True, type=Path, help="where to listen")
    parser.add_argument("--directory", required=True, type=Path, help="the node directory")
    parser.add_argument("--pythonpath", action="append", default=[], help="more to import from")
    parser.add_argument("--loglevel", default="info")
    return parser.parse_args()


class Line:
    """The socket to the router."""

    def __init__(self):
        self._socket = socket.socket(fileno=os.dup(0))
        # Nothing that the program starts keeps it open, or reads from it.
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        self._lines = self._socket.makefile("rb")

    def definition(self) -> dict:
        """Return what is to be served."""
        return json.loads(self._lines.readline())

    def say(self, text: str) -> None:
        """Tell the router, in one line."""
        self._socket.sendall(" ".join(text.split()).encode()[:8192] + b"\n")

    def await_end(self) -> None:
        """Return when the router is gone, or does not want this process any more."""
        while self._lines.read(1):
            pass


def main() -> int:
    """Serve until the router has gone; return the exit code."""
    said = arguments()
    directory = said.directory.resolve()
    # In the order of the configuration, and before what is installed.
    sys.path[:0] = [os.path.normpath(directory / path) for path in said.pythonpath]
    line = Line()
    definition = line.definition()
    try:
        import txaio

        txaio.use_twisted()
        from crosstie.container import logging
        from crosstie.web.site import NotLoadedError, listen
    except ImportError as error:
        line.say(f"{error}: install Twisted and txaio for {sys.executable}")
        return 1
    logging.start(said.loglevel)
    try:
        listen(definition, said.socket)
    except NotLoadedError as error:
        line.say(str(error))
        return 1
    line.say("ready")
    serve(line)
    logging.finish()
    return 0


def serve(line: Line) -> None:
    """Serve until the router or a signal says that it is enough."""
    from twisted.internet import reactor

    def watch():
        line.await_end()
        reactor.callFromThread(reactor.stop)

    def end_in_time():
        timer = threading.Timer(SHUTDOWN_MOST_S, os._exit, [0])
        timer.daemon = True
        timer.start()

    threading.Thread(target=watch, name="router", daemon=True).start()
    # A program that hangs in a thread would keep the process.
    reactor.addSystemEventTrigger("before", "shutdown", end_in_time)
    reactor.run()


if __name__ == "__main__":
    sys.exit(main())
