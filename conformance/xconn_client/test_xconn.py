"""xconn's client logs in by every method that it speaks, by the file and by a procedure."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rig import config
from rig.rawsocket import RawSocket
from rig.router import ROOT, Router
from rig.session import INVOCATION, YIELD
from wamp.test_authentication import NOT_AUTHORIZED
from wamp.test_logging_in import KNOWN, OTHER_KEY, PROCEDURE, node, start_thread  # noqa: F401

TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
PYTHON = TARGET / "xconn-client/venv/bin/python"


@pytest.fixture(scope="module")
def ask() -> Iterator[Callable[..., dict]]:
    """Have the client log in; return what it was told."""
    command = [PYTHON, Path(__file__).with_name("puppet.py")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def ask(**asked: str) -> dict:
            process.stdin.write(json.dumps(asked) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield ask
        process.stdin.close()


@pytest.fixture
def log_in(node, ask) -> Callable[..., dict]:  # noqa: F811
    """Log in."""

    def log_in(kind: str, transport: str, path: str, *who: str, serializer: str = "cbor") -> dict:
        host, port = node.address(transport)
        url = f"ws://{host}:{port}/{path}" if kind == "ws" else f"rs://{host}:{port}"
        method, authid, secret = who
        return ask(url=url, serializer=serializer, method=method, authid=authid, secret=secret)

    return log_in


@pytest.mark.parametrize("serializer", ["json", "msgpack", "cbor"])
@pytest.mark.parametrize("kind", ["ws", "rs"])
@pytest.mark.parametrize(("method", "authid", "secret", "_answer"), KNOWN)
def test_by_the_file(log_in, kind, serializer, method, authid, secret, _answer):
    assert log_in(kind, "tcp", "ws", method, authid, secret, serializer=serializer) == {
        "authid": authid,
        "authrole": "user",
        "authmethod": method,
        "authprovider": "static",
    }
    told = log_in(kind, "tcp", "ws", method, authid, OTHER_KEY)
    assert NOT_AUTHORIZED in told["refused"]


@pytest.mark.parametrize("kind", ["ws", "rs"])
@pytest.mark.parametrize(
    ("method", "authid", "secret", "answer"),
    [*KNOWN, ("anonymous", "ann", "", {"role": "user", "authid": "ann"})],
)
def test_by_a_procedure(log_in, node, start_thread, kind, method, authid, secret, answer):  # noqa: F811
    with RawSocket.tcp(node.address("open")).shake_hands().join("auth") as authenticator:
        authenticator.register(PROCEDURE)

        def serve() -> None:
            invocation = authenticator.hear(INVOCATION)
            authenticator.say(YIELD, invocation[1], {}, [answer])

        serving = start_thread(serve)
        told = log_in(kind, "asked", "dynamic", method, authid, secret)
        serving.join()
    assert told == {
        "authid": authid,
        "authrole": "user",
        "authmethod": method,
        "authprovider": "dynamic",
    }


@pytest.mark.parametrize("kind", ["ws", "rs"])
def test_anonymously(log_in, kind):
    told = log_in(kind, "open", "ws", "anonymous", "", "")
    assert (told["authrole"], told["authmethod"]) == ("anonymous", "anonymous")


@pytest.mark.parametrize(("scheme", "serializer"), [("ws", "json"), ("rs", "cbor")])
def test_every_feature_that_it_passes_on(tmp_path_factory, scheme, serializer):
    """Sharded calls and events, retained events, history, testaments, timeouts, the meta API."""
    store = {"type": "memory", "event-history": [{"uri": "com.history.topic", "limit": 100}]}
    realm = {"name": "realm1", "roles": [config.role("anonymous")], "store": store}
    settings = config.node([realm], [config.universal("tcp", config.tcp())])
    running = Router(tmp_path_factory.mktemp("xconn"), config=settings)
    host, port = running.address("tcp")
    url = f"{scheme}://{host}:{port}" + ("/ws" if scheme == "ws" else "")
    command = [PYTHON, Path(__file__).with_name("features.py"), serializer, url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    running.stop()
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
