"""Clients of WAMP as documented: which get an event that is published after the restart."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

from rig.rawsocket import RawSocket
from rig.router import ROOT
from rig.session import EVENT, PUBLISH

from strangers.returning.place import Place
from strangers.returning.program import PATIENCE_S, Program, Run, mark

PROGRAMS = Path(__file__).parent
JS = ROOT / "conformance/js"
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
NEXUS = TARGET / "nexus-client/client"
XCONN = TARGET / "xconn-client/venv/bin/python"
CHROMIUM = [
    *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
    *("--disable-background-networking", "--disable-extensions", "--disable-sync"),
    *("--disable-component-update", "--disable-dev-shm-usage", "--remote-debugging-port=0"),
]


def start(run: Run, place: Place, directory: Path) -> list[Program]:
    """Start all clients that are installed."""
    component = [sys.executable, PROGRAMS / "component.py", place.url]
    clients = [
        run("Autobahn|JS in Node.js", "node", JS / "returning.js", place.url),
        run("wampy", "node", JS / "returning.mjs", place.url),
        run("Autobahn|Python, asyncio", *component, "asyncio"),
        run("Autobahn|Python, Twisted", *component, "twisted"),
        run("nexus", NEXUS, "returning", "json", place.url),
        run("xconn", XCONN, PROGRAMS / "xconn_session.py", place.url),
    ]
    if "browser" not in os.environ.get("CROSSTIE_WITHOUT", "") and shutil.which("chromium"):
        page = f"http://127.0.0.1:{place.wamp}/returning.html"
        profile = f"--user-data-dir={directory}/profile"
        clients.append(run("Autobahn|JS in Chromium", *CHROMIUM, profile, page))
    return clients


def publish_until_heard(place: Place, clients: list[Program], token: str) -> set[str]:
    """Publish until each client has the event or says that it stays away; return the former."""
    heard: set[str] = set()
    with RawSocket.tcp(place.router.address("tcp")).shake_hands().join() as publisher:
        publisher.subscribe("com.returning.page")
        pages = [client for client in clients if "Chromium" in client.name]
        deadline = time.monotonic() + PATIENCE_S
        left = list(clients)
        publisher.socket.settimeout(0.1)
        while left and time.monotonic() < deadline:
            publisher.say(PUBLISH, next(publisher.requests), {}, "com.returning", [token])
            try:
                while True:
                    said = publisher.hear(EVENT)[4]
                    for page in pages:
                        page.lines += said
            except TimeoutError:
                pass
            heard |= {client.name for client in left if client.says(f"got {token}")}
            left = [each for each in left if each.name not in heard and not each.is_away()]
    return heard


def play(
    place: Place, run: Run, directory: Path
) -> tuple[dict[str, dict[str, bool]], dict[str, dict[str, str]]]:
    """Return the clients that are back after each end, and the errors that the others report."""
    clients = start(run, place, directory)
    silent = {client.name for client in clients} - publish_until_heard(place, clients, "first")
    assert not silent, f"these do not even hear an event before the end: {silent}"
    ways = {
        "stop": place.stop,
        "kill -9": place.kill,
        "realm restarted": place.restart_realm,
        # The last one: the page in Chromium does not start again.
        "killed by the meta API": place.kill_sessions,
    }
    outcomes: dict[str, dict[str, bool]] = {client.name: {} for client in clients}
    told: dict[str, dict[str, str]] = {}
    for way, end in ways.items():
        mark(clients)
        end()
        heard = publish_until_heard(place, clients, f"after-{way}")
        for client in clients:
            outcomes[client.name][way] = client.name in heard
            if ended := client.told_of_the_end():
                told.setdefault(client.name, {})[way] = ended
    return outcomes, told
