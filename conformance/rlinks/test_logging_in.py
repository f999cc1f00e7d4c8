"""Links that log in by each method, over TLS and without, and what is said of those that cannot."""

from __future__ import annotations

from pathlib import Path

import pytest
from rig import config
from rig.rawsocket import RawSocket
from rig.router import Router
from wamp.test_logging_in import KEY, PUBLIC_KEY
from wamp.test_scram import PASSWORD, PRINCIPALS

from rlinks.linked import await_there, everybody, hear_event, mirrors, node, open_at, publish

ROLE = "link"
SALTED = {"secret": "salted", "salt": "salt123", "iterations": 100, "keylen": 32, "role": ROLE}
AUTH = {
    "ticket": {"type": "static", "principals": {"tom": {"ticket": "t1", "role": ROLE}}},
    "wampcra": {"type": "static", "users": {"ann": {"secret": "s1", "role": ROLE}, "sue": SALTED}},
    "scram": {
        "type": "static",
        "principals": {name: {**known, "role": ROLE} for name, known in PRINCIPALS.items()},
    },
    "cryptosign": {
        "type": "static",
        "principals": {"joe": {"authorized_keys": [PUBLIC_KEY], "role": ROLE}},
    },
}

# The link's own identity, and that of its event.
KNOWN = [
    pytest.param("ticket", "tom", {"ticket": "t1"}, id="ticket"),
    pytest.param("wampcra", "ann", {"secret": "s1"}, id="wampcra"),
    pytest.param("wampcra", "sue", {"secret": "salted"}, id="wampcra-salted"),
    pytest.param("scram", "joe", {"password": PASSWORD}, id="scram-argon2id"),
    pytest.param("scram", "bob", {"password": PASSWORD}, id="scram-pbkdf2"),
    pytest.param("cryptosign", "joe", {"privkey": KEY}, id="cryptosign"),
]
WRONG = [
    pytest.param("ticket", "tom", {"ticket": "t2"}, id="ticket"),
    pytest.param("wampcra", "nobody", {"secret": "s1"}, id="wampcra-unknown"),
    pytest.param("scram", "joe", {"password": "wrong"}, id="scram"),
    pytest.param("cryptosign", "joe", {"privkey": "11" * 32}, id="cryptosign"),
]


def guarded(certificates: Path, auth: dict) -> dict:
    """Return a node whose links log in, over TLS and over a Unix socket, and others need not."""
    proven = {"rawsocket": {"auth": auth}, "websocket": {"ws": {"auth": auth}}}
    role = config.role(ROLE, config.permission("*", disclose=True))
    return config.node(
        [{"name": "realm1", "roles": [everybody(), role]}],
        [
            config.universal("tcp", config.tcp()),
            config.universal("tls", config.tls(certificates), **proven),
            config.universal("unix", config.unix(), **proven),
        ],
        limits={"shutdown_timeout_ms": 100, "login_delay_ms_max": 0},
    )


@pytest.fixture(scope="module")
def remote(tmp_path_factory, certificate_directory: Path):
    """Start the node that all links of this file lead to."""
    directory = tmp_path_factory.mktemp("guarded")
    router = Router(directory, config=guarded(certificate_directory, AUTH))
    yield router
    router.stop()


def over(kind: str, remote: Router, authority: Path) -> dict:
    """Return a transport of a link."""
    if kind == "unix":
        endpoint: dict = {"type": "unix", "path": str(remote.directory / "router.sock")}
        return {"type": "rawsocket", "endpoint": endpoint, "serializer": "msgpack"}
    host, port = remote.address("tls")
    tls = {"hostname": "localhost", "ca_certificates": [str(authority)]}
    endpoint = {"type": "tcp", "host": host, "port": port, "tls": tls}
    if kind == "rawsocket":
        return {"type": "rawsocket", "endpoint": endpoint, "serializer": "cbor"}
    url = f"wss://localhost:{port}/ws"
    return {"type": "websocket", "endpoint": endpoint, "url": url, "serializers": ["json"]}


def link(transport: dict, **more: object) -> dict:
    """Return a link by this transport."""
    return {
        "id": "rlink1",
        "realm": "realm1",
        "transport": transport,
        "reconnect_delay_ms_max": 500,
        **more,
    }


def expect_event(local: Router, remote: Router, by: str) -> None:
    """An event crosses, and comes from who the link is on the other node."""
    await_there(local)
    here, there = open_at(local), open_at(remote)
    there.subscribe("com.topic")
    mirrors(local, "local", "subscription", 1)
    publish(here, "com.topic", "crossed")
    details = hear_event(there, "crossed")
    assert details["publisher_authid"] == by
    assert details["publisher_authrole"] == ROLE
    for session in (here, there):
        assert isinstance(session, RawSocket)
        session.close()


@pytest.mark.parametrize("kind", ["websocket", "rawsocket", "unix"])
@pytest.mark.parametrize(("method", "authid", "proof"), KNOWN)
def test_a_method(start_router, certificate_directory, remote, kind, method, authid, proof):
    transport = over(kind, remote, certificate_directory / "ca.pem")
    local = start_router(node(link(transport, authid=authid, auth={method: proof})))
    expect_event(local, remote, authid)


def test_the_nodes_own_key(start_router, certificate_directory, tmp_path):
    """Without `auth` it is the node's key, as Crossbar.io's links have it."""
    first = start_router(node())
    lines = (first.directory / "key.pub").read_text().splitlines()
    key = next(line.split()[-1] for line in lines if line.startswith("public-key-ed25519"))
    known = {"edge": {"authorized_keys": [key], "role": ROLE}}
    auth = {"cryptosign": {"type": "static", "principals": known}}
    remote = start_router(guarded(certificate_directory, auth))
    first.stop()
    transport = over("websocket", remote, certificate_directory / "ca.pem")
    local = Router(first.directory, config=node(link(transport)))
    try:
        expect_event(local, remote, "edge")
    finally:
        local.stop()


@pytest.mark.parametrize(("method", "authid", "proof"), WRONG)
def test_refused_logins(start_router, certificate_directory, remote, method, authid, proof):
    transport = over("rawsocket", remote, certificate_directory / "ca.pem")
    local = start_router(node(link(transport, authid=authid, auth={method: proof})))
    line = local.await_log(lambda line: line.level == "WARN" and "rlink1" in line.text)
    assert "wamp.error.not_authorized" in f"{line.text} {line.fields}"
    assert local.metric("rlink_connected", link="rlink1") == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param({"hostname": "other.example"}, "other.example", id="another-name"),
        pytest.param({"ca_certificates": None}, "no trusted authority", id="an-unknown-authority"),
    ],
)
def test_a_certificate_that_is_not_trusted(
    start_router, certificate_directory, remote, change, said
):
    transport = over("rawsocket", remote, certificate_directory / "ca.pem")
    tls = transport["endpoint"]["tls"] | change
    transport["endpoint"]["tls"] = {key: value for key, value in tls.items() if value}
    proof = {"authid": "tom", "auth": {"ticket": {"ticket": "t1"}}}
    local = start_router(node(link(transport, **proof)))
    line = local.await_log(lambda line: line.level == "WARN" and "rlink1" in line.text)
    assert said in f"{line.text} {line.fields}".lower()
