"""Runs a program in its place, and passes it sockets, as systemd does.

    socket_activation.py [NAME=tcp | NAME=PATH | NAME=datagram]... -- PROGRAM [ARGUMENT]...

A number behind a name is not part of it, so that several sockets can have one name.
"""

from __future__ import annotations

import os
import socket
import sys

# The first descriptor that a service is passed.
FIRST = 3


def listening(kind: str) -> socket.socket:
    """Return a new socket of a kind."""
    if kind == "datagram":
        return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    if kind == "tcp":
        made = socket.socket()
        made.bind(("127.0.0.1", 0))
    else:
        made = socket.socket(socket.AF_UNIX)
        made.bind(kind)
    made.listen()
    return made


def main() -> None:
    """Become the program, with the sockets."""
    end = sys.argv.index("--")
    described = [each.partition("=") for each in sys.argv[1:end]]
    sockets = [listening(kind) for _, _, kind in described]
    # Numbers beyond all that are passed, so that none is overwritten before it was copied.
    high = [os.dup2(each.fileno(), FIRST + 100 + at) for at, each in enumerate(sockets)]
    for at, number in enumerate(high):
        os.dup2(number, FIRST + at, inheritable=True)
        os.close(number)
    os.environ["LISTEN_PID"] = str(os.getpid())
    os.environ["LISTEN_FDS"] = str(len(sockets))
    names = [name.rstrip("0123456789") for name, _, _ in described]
    os.environ["LISTEN_FDNAMES"] = ":".join(names)
    os.execvp(sys.argv[end + 1], sys.argv[end + 1 :])


if __name__ == "__main__":
    main()
