#!/usr/bin/env python3
"""A program that a node hands over to, and that fails at a step of the test's choice.

    successor.py STEP WAY

It answers each of the node's messages up to STEP, and there it ends (`end`), is silent (`hang`),
says why it fails (`fail`) or something else (`nonsense`).
"""

from __future__ import annotations

import json
import signal
import socket
import sys

# The node's messages, with what is answered.
ANSWERS = {"all": "prepared", "accept": "accepting", "serve": "serving", "keep": "kept"}
PACKET = 65_536


def main() -> None:
    """Take what the node passes, and fail."""
    step, way = sys.argv[1], sys.argv[2]
    with socket.socket(fileno=0) as link:
        descriptors = []
        while True:
            text, passed, _, _ = socket.recv_fds(link, PACKET, 1)
            if not text:
                return
            descriptors += passed
            name = json.loads(text)["is"]
            if name == step:
                misbehave(link, way)
            if name in ANSWERS:
                answer = {"is": ANSWERS[name], "version": "9.9.9"}
                link.send(json.dumps(answer).encode())


def misbehave(link: socket.socket, way: str) -> None:
    """Fail in that way."""
    if way == "fail":
        link.send(json.dumps({"is": "failed", "why": "a reason of the test's"}).encode())
    elif way == "nonsense":
        link.send(b"\xff\xfe")
    if way != "end":
        signal.pause()
    sys.exit(3)


if __name__ == "__main__":
    main()
