"""Autobahn's clients log in every way that they can, by the file and by a procedure."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import where
from rig import config
from rig.links import Link, only
from rig.puppet import WampError
from rig.rawsocket import RawSocket
from rig.router import ROOT, Router
from rig.session import INVOCATION, YIELD
from rig.waiting import DEADLINE_S
from wamp.test_authentication import NOT_AUTHORIZED, TICKETS, USERS
from wamp.test_tokens import AUTH as TOKENS
from wamp.test_tokens import Issuer, publish

PROCEDURE = "com.example.authenticate"
WAMPY = ROOT / "conformance/js/wampy.mjs"

# Of the specification's test vectors, and another.
KEY = "4d57d97a68f555696620a6d849c0ce582568518d729eb753dc7c732de2804510"
PUBLIC_KEY = "1adfc8bfe1d35616e64dffbd900096f23b066f914c8c2ffbb66f6075b96e116d"
OTHER_KEY = "d511fe78e23934b3dadb52fcd022974b80bd92bccc7c5cf404e46cc0a8a2f5cd"
KEYS = {
    "type": "static",
    "principals": {"joe": {"authorized_keys": [PUBLIC_KEY.upper()], "role": "user"}},
}

ISSUER = Issuer("first")

# The method, the authid, the secret, and what an authenticator answers about it.
KNOWN = [
    ("ticket", "joe", "hunter2", "user"),
    ("wampcra", "joe", "secret1", {"secret": "secret1", "role": "user"}),
    ("cryptosign", "joe", KEY, {"pubkey": PUBLIC_KEY, "role": "user"}),
    (
        "wampcra",
        "ann",
        "secret2",
        {"secret": "secret2", "role": "user", "salt": "salt123", "iterations": 100, "keylen": 16},
    ),
]


@pytest.fixture(scope="module")
def node(tmp_path_factory, certificate_directory: Path) -> Iterator[Router]:
    """A router with every transport, each of which asks its configuration or a procedure."""
    dynamic = {"type": "dynamic", "authenticator": PROCEDURE, "authenticator-realm": "auth"}
    static = {"ticket": {**TICKETS, "principals": {"joe": TICKETS["principals"]["joe"]}}}
    static["wampcra"] = USERS
    static["cryptosign"] = KEYS
    static |= TOKENS
    asked = dict.fromkeys(("anonymous", "ticket", "wampcra", "cryptosign"), dynamic)
    paths = {"ws": {"auth": static}, "dynamic": {"auth": asked}}
    requests = {
        name: {"type": "longpoll", "auth": auth}
        for name, auth in (("lp", static), ("lp-dynamic", asked))
    }

    def guarded(name: str, endpoint: dict) -> dict:
        return config.universal(
            name, endpoint, rawsocket={"auth": static}, websocket=paths, web={"paths": requests}
        )

    transports = [
        guarded("tcp", config.tcp()),
        guarded("unix", config.unix()),
        guarded("tls", config.tls(certificate_directory)),
        config.universal("asked", config.tcp(), rawsocket={"auth": asked}, websocket=paths),
        config.universal("open", config.tcp()),
    ]
    realms = [
        {"name": "realm1", "roles": [config.role("user"), config.role("anonymous")]},
        {"name": "auth", "roles": [config.role("anonymous")]},
    ]
    limits = {"login_delay_ms_max": 0}
    directory = tmp_path_factory.mktemp("guarded")
    publish(directory, ISSUER)
    running = Router(directory, config=config.node(realms, transports, limits=limits))
    yield running
    running.stop()


@pytest.fixture
def log_in(node, new_session, certificate_directory) -> Callable:
    """Log in over a link."""

    def log_in(link: Link, method: str, authid: str, secret: str, is_asked: bool = False):
        place = where(node, link, "/ws", certificate_directory)
        if is_asked:
            place = where_asked(node, link, certificate_directory)
        auth = {"method": method, "authid": authid, "secret": secret}
        return new_session(link.client).open(place, auth=auth)

    return log_in


def where_asked(node: Router, link: Link, certificate_directory: Path) -> dict:
    """Return where a procedure is asked: of RawSocket a listener of its own."""
    if link.kind != "rs":
        return where(node, link, "/dynamic", certificate_directory)
    assert link.over == "tcp"
    _, port = node.address("asked")
    return {**where(node, link, "", certificate_directory), "port": port}


@pytest.mark.parametrize(("method", "authid", "secret", "_answer"), KNOWN)
def test_by_the_file(link, log_in, method, authid, secret, _answer):
    details = log_in(link, method, authid, secret).details
    assert (details["authid"], details["authrole"]) == (authid, "user")
    assert (details["authmethod"], details["authprovider"]) == (method, "static")
    with pytest.raises(WampError) as raised:
        log_in(link, method, authid, OTHER_KEY)
    assert raised.value.uri == NOT_AUTHORIZED


def test_by_a_token(link, log_in):
    details = log_in(link, "jwt", None, ISSUER.token()).details
    assert (details["authid"], details["authrole"]) == ("joe", "user")
    assert (details["authmethod"], details["authprovider"]) == ("jwt", "static")
    with pytest.raises(WampError) as raised:
        log_in(link, "jwt", "ann", ISSUER.token())
    assert raised.value.uri == NOT_AUTHORIZED


@only(lambda link: link.kind == "ws")
def test_a_key_needs_no_authid(link, log_in):
    details = log_in(link, "cryptosign", None, KEY).details
    assert (details["authid"], details["authrole"]) == ("joe", "user")


@only(lambda link: link.kind == "ws" or link.over == "tcp")
@pytest.mark.parametrize(("method", "authid", "secret", "answer"), KNOWN)
def test_by_a_procedure(link, node, log_in, start_thread, method, authid, secret, answer):
    with RawSocket.tcp(node.address("open")).shake_hands().join("auth") as authenticator:
        authenticator.register(PROCEDURE)

        def serve() -> None:
            invocation = authenticator.hear(INVOCATION)
            authenticator.say(YIELD, invocation[1], {}, [answer])

        serving = start_thread(serve)
        details = log_in(link, method, authid, secret, is_asked=True).details
        serving.join()
    assert (details["authid"], details["authrole"]) == (authid, "user")
    assert (details["authmethod"], details["authprovider"]) == (method, "dynamic")


@only(lambda link: link.kind == "ws" or link.over == "tcp")
def test_anonymously_by_a_procedure(link, node, new_session, start_thread, certificate_directory):
    with RawSocket.tcp(node.address("open")).shake_hands().join("auth") as authenticator:
        authenticator.register(PROCEDURE)

        def serve() -> None:
            invocation = authenticator.hear(INVOCATION)
            authenticator.say(YIELD, invocation[1], {}, ["user"])

        serving = start_thread(serve)
        place = where_asked(node, link, certificate_directory)
        details = new_session(link.client).open(place).details
        serving.join()
    assert (details["authrole"], details["authmethod"]) == ("user", "anonymous")
    assert details["authprovider"] == "dynamic"


def wampy(address: tuple[str, int], path: str, method: str, authid: str, secret: str) -> dict:
    """Log in with wampy; return what it was told."""
    host, port = address
    command = ["node", str(WAMPY), f"ws://{host}:{port}/{path}", method, authid, secret]
    if method == "cryptosign":
        command.append(PUBLIC_KEY)
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize(("method", "authid", "secret", "_answer"), KNOWN)
def test_wampy_by_the_file(node, method, authid, secret, _answer):
    told = wampy(node.address("tcp"), "ws", method, authid, secret)
    assert told == {"authid": authid, "authrole": "user", "authmethod": method}
    told = wampy(node.address("tcp"), "ws", method, authid, OTHER_KEY)
    assert told == {"refused": NOT_AUTHORIZED}


def test_wampy_by_a_token_and_by_nothing(node):
    told = wampy(node.address("tcp"), "ws", "jwt", "joe", ISSUER.token())
    assert told == {"authid": "joe", "authrole": "user", "authmethod": "jwt"}
    told = wampy(node.address("open"), "ws", "anonymous", "", "")
    assert (told["authrole"], told["authmethod"]) == ("anonymous", "anonymous")


@pytest.mark.parametrize(("method", "authid", "secret", "answer"), KNOWN)
def test_wampy_by_a_procedure(node, start_thread, method, authid, secret, answer):
    with RawSocket.tcp(node.address("open")).shake_hands().join("auth") as authenticator:
        authenticator.register(PROCEDURE)

        def serve() -> None:
            invocation = authenticator.hear(INVOCATION)
            authenticator.say(YIELD, invocation[1], {}, [answer])

        serving = start_thread(serve)
        told = wampy(node.address("tcp"), "dynamic", method, authid, secret)
        serving.join()
    assert told == {"authid": authid, "authrole": "user", "authmethod": method}


@pytest.fixture
def start_thread() -> Callable:
    """Run something beside the test."""

    def start(target: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=target, daemon=True)
        thread.start()
        return thread

    return start
