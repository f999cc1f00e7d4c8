"""`crosstie conformance`: Crosstie by its own scenarios; what it says of others, of bad input."""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path

import pytest
from rig import config
from rig.router import Router, binary

HISTORY = "com.history.topic"

# As long as the tests' other waits: nothing here is silent.
# One play of each scenario: whether verdicts are stable is another test's.
PATIENCE = ("--patience", "30s", "--scenario-max", "60s", "--plays", "1")


def conformance(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    command = [str(binary()), "conformance", *map(str, arguments)]
    return subprocess.run(command, text=True, capture_output=True, timeout=300)


def configuration(certificates: Path) -> dict:
    """Return a node with every transport, event history, and tickets."""
    permission = {**config.permission("*", disclose=True), "trustlevel": 2}
    role = config.role("anonymous", permission)
    history = {"type": "memory", "event-history": [{"uri": HISTORY, "limit": 100}]}
    realm = {
        "name": "realm1",
        "roles": [role],
        "store": history,
        "options": {"request_id_check": "strict", "on_leave": "specified"},
    }
    auth = {
        **config.static("anonymous"),
        "ticket": {"type": "static", "principals": {"joe": {"ticket": "t1", "role": "anonymous"}}},
        "wampcra": {"type": "static", "users": {"ann": {"secret": "s1", "role": "anonymous"}}},
    }
    spoken = {"rawsocket": {"auth": auth}, "websocket": {"ws": {"auth": auth}}}
    return config.node(
        [realm],
        [
            config.universal("tcp", config.tcp(), **spoken),
            config.universal("tls", config.tls(certificates), **spoken),
            config.universal("unix", config.unix(), **spoken),
        ],
    )


@pytest.fixture(scope="module")
def node(tmp_path_factory, certificate_directory: Path):
    """Start one router for all tests here."""
    directory = tmp_path_factory.mktemp("conformance")
    router = Router(directory, config=configuration(certificate_directory))
    yield router
    router.stop()


def url_of(node, transport: str, scheme: str) -> str:
    """Return the URL of a transport that has the scheme."""
    return next(url for url in node.urls(transport) if url.startswith(f"{scheme}:"))


def failures(judgement: dict) -> list[tuple]:
    """Return what did not pass of what was played."""
    return [
        (feature["file"], each["line"], each["scenario"], each["verdict"], each.get("came"))
        for feature in judgement["features"]
        for each in feature["scenarios"]
        if each["verdict"] in ("fails", "undecided", "unstable")
    ]


@pytest.mark.parametrize(
    ("transport", "scheme", "more"),
    [
        ("tcp", "ws", ("--serializer", "json")),
        ("tcp", "ws", ("--serializer", "cbor", "--batched")),
        ("tcp", "rs", ("--serializer", "msgpack")),
        ("tls", "wss", ("--serializer", "json")),
        ("unix", "rs+unix", ("--serializer", "cbor")),
    ],
)
def test_crosstie(node, certificate_directory: Path, tmp_path: Path, transport, scheme, more):
    """All that is announced passes, over every transport and serializer."""
    ticket, secret = tmp_path / "ticket", tmp_path / "secret"
    ticket.write_text("t1\n")
    secret.write_text("s1\n")
    given = {"ticket_authid": "joe", "ticket": f"@{ticket}", "wampcra_authid": "ann"}
    given |= {"history_topic": HISTORY, "kill_all": "yes", "links": "yes"}
    url = url_of(node, transport, scheme)
    if scheme == "wss":
        url = url.replace("127.0.0.1", "localhost")
        more = (*more, "--ca", certificate_directory / "ca.pem")
    settings = [word for name, value in given.items() for word in ("--set", f"{name}={value}")]
    ran = conformance(url, *more, *settings, *PATIENCE, "--json")
    judgement = json.loads(ran.stdout)
    assert failures(judgement) == []
    assert ran.returncode == 0
    counts = judgement["counts"]
    assert counts["passes"] > 180
    # By the specification wherever an option says which: one thing is left as Crossbar.io does it.
    assert counts["as_crossbar"] == 1
    assert judgement["own_counts"]["passes"] == 20
    assert judgement["router"].startswith("Crosstie-")


def test_with_a_login(node, tmp_path: Path):
    """Every session logs in, and the method's own scenarios are played."""
    secret = tmp_path / "secret"
    secret.write_text("s1\n")
    login = ("--authid", "ann", "--authmethod", "wampcra", "--secret-file", secret)
    ran = conformance(
        url_of(node, "tcp", "ws"), *login, "--only", "authentication", "--only", "listing"
    )
    assert ran.returncode == 0, ran.stdout
    # Two sessions with one authid can show nothing about lists of authids.
    assert "undecided: exclude_authid" in ran.stdout
    assert "wampcra: the right" not in ran.stdout
    assert "it needs --authmethod scram" in ran.stdout


def test_a_scenario_of_ones_own(node, tmp_path: Path):
    """A directory is played instead; a failure names file, line, what was expected, what came."""
    (tmp_path / "mine.txt").write_text(
        "feature Mine\nsection mine\n\n== fails\nA: join\n"
        "A> SUBSCRIBE 1 {} #u.t\nA< SUBSCRIBED 2 *id\n"
    )
    url = url_of(node, "tcp", "ws")
    ran = conformance(url, "--scenarios", tmp_path, "--set", "topic=x", *PATIENCE)
    assert ran.returncode == 1
    assert "--set topic: no scenario needs that" in ran.stderr
    assert f"{tmp_path}/mine.txt:7: fails: fails" in ran.stdout
    assert "A< SUBSCRIBED 2 *id" in ran.stdout
    assert "SUBSCRIBED 1 " in ran.stdout
    assert "1 instead of 2" in ran.stdout
    ran = conformance(url_of(node, "tcp", "ws"), "--scenarios", tmp_path, "--json", *PATIENCE)
    [scenario] = json.loads(ran.stdout)["features"][0]["scenarios"]
    assert scenario["transcript"][-1].startswith("A< SUBSCRIBED 1 ")


def test_bad_input(tmp_path: Path):
    """A fault in a file or an option is reported, with exit code 2."""
    (tmp_path / "bad.txt").write_text("feature F\nsection x\n== one\nA: joins\n")
    for arguments, said in [
        (("--scenarios", tmp_path), f"{tmp_path}/bad.txt:4: expected join"),
        (("--scenarios", tmp_path / "none"), "No such file"),
        (("--only", "nothing"), "no file has that in its name"),
        (("--set", "x"), "expected NAME=VALUE"),
        (("--serializer", "xml"), "expected json, msgpack or cbor"),
    ]:
        ran = conformance("ws://127.0.0.1:1/", *arguments)
        assert ran.returncode == 2
        assert said in ran.stderr


def test_no_router():
    """A router that is not there, or says nothing, is told of in one line."""
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        port = unheard.getsockname()[1]
        ran = conformance(f"ws://127.0.0.1:{port}/")
        assert ran.returncode == 2
        assert "no connection" in ran.stderr
        unheard.listen()
        ran = conformance(f"ws://127.0.0.1:{port}/", "--patience", "0.1s", "--scenario-max", "1s")
        assert ran.returncode == 2
        assert "nothing within" in ran.stderr


def test_list():
    """The scenarios are listed without a router."""
    ran = conformance("--list")
    assert ran.returncode == 0
    assert "call_canceling.txt: Call canceling (advanced/rpc_call_canceling)" in ran.stdout
