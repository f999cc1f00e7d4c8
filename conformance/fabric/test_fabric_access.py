"""Admission of nodes: accounts, nkeys, TLS; and configurations that are refused."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from rig import certificates, config
from rig.router import binary

from fabric.stage import await_neighbours, node_config

# A pair for these tests alone.
SEED = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
PUBLIC = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"

ACCOUNTS = """
accounts {
  one { users: [{ nkey: %s }] }
  two { users: [{ user: two, password: pw }] }
}
"""


def test_accounts_keep_realms_apart(nats, start, session, tmp_path: Path) -> None:
    (server,) = nats(1, ACCOUNTS % PUBLIC)
    (tmp_path / "user.nk").write_text(SEED + "\n")
    link = {"nats": {"urls": [server.url], "credentials": str(tmp_path / "user.nk")}}
    found = [start(node_config([server.url], {"fabric": link})) for _ in range(2)]
    await_neighbours(found)
    here, there = session(found[0]), session(found[1])
    with server.client("two") as stranger:
        stranger.subscribe(">")
        stranger.flush()
        there.subscribe("com.a")
        here.publish("com.a", 1)
        assert there.event()[4] == [1]
        assert stranger.messages == []
        stranger.publish("W1.realm1.e.com.a", b"x")
        stranger.flush()
    assert found[1].metric("fabric_frames_refused_total") == 0


def test_realms_do_not_hear_each_other(nats, start, session) -> None:
    (server,) = nats()
    node = node_config([server.url])
    realms = node["workers"][0]["realms"]
    realms.append({**realms[0], "name": "realm2"})
    found = [start(node) for _ in range(2)]
    for each in found:
        assert each.metric("fabric_attached") == 2
    first, second = session(found[1], "realm1"), session(found[1], "realm2")
    for each in (first, second):
        each.subscribe("com", match="prefix")
    session(found[0], "realm2").publish("com.a", 2)
    session(found[0], "realm1").publish("com.a", 1)
    assert (first.event()[4], second.event()[4]) == ([1], [2])


def test_tls_is_verified(nats, start, session, tmp_path: Path) -> None:
    certificates.write(tmp_path)
    tls = f'tls {{ cert_file: "{tmp_path}/server.pem", key_file: "{tmp_path}/server.key" }}\n'
    (server,) = nats(1, tls + ACCOUNTS % PUBLIC)
    url = f"tls://localhost:{server.port}"
    (tmp_path / "user.nk").write_text(SEED + "\n")
    key = {"credentials": str(tmp_path / "user.nk")}
    authorities = {"urls": [url], "ca_certificates": [str(tmp_path / "ca.pem")]}
    trusting = node_config([], {"fabric": {"nats": authorities | key}})
    found = [start(trusting) for _ in range(2)]
    await_neighbours(found)
    here, there = session(found[0]), session(found[1])
    there.subscribe("com.a")
    here.publish("com.a", "x" * 100_000)
    assert there.event()[4] == ["x" * 100_000]
    # The system trusts no such authority, and the server nobody without a key: that node starts
    # all the same, and serves alone.
    lacking = node_config([], {"fabric": {"nats": {"urls": [url]} | key}})
    realms = lacking["workers"][0]["realms"]
    realms.append({**realms[0], "name": "realm2", "fabric": {"nats": authorities}})
    other = start(lacking)
    assert other.metric("fabric_neighbours", state="active") == 0
    # Each is said once, however often it is tried; and none was on the server at any time.
    for realm, why in [("realm1", "UnknownIssuer"), ("realm2", "Authorization Violation")]:
        said = [line.text for line in other.log if f"Realm '{realm}': " in line.text]
        (trying,) = [line for line in said if "no NATS server is reached" in line]
        assert why in trying
        assert "StageFailed" not in trying
        assert not any("is lost" in line or "on NATS server" in line for line in said)
    alone = session(other)
    alone.subscribe("com.a")
    session(other).publish("com.a", 1)
    assert alone.event()[4] == [1]
    assert other.metric("fabric_attached") == 0


@pytest.mark.parametrize(
    ("fabric", "complaint"),
    [
        ({"nats": {"urls": []}}, "urls"),
        ({"nats": {"urls": ["http://a:1"]}}, "nats://host:port or tls://host:port"),
        ({"nats": {"urls": ["nats://u:p@a:1"]}}, "credentials"),
        ({"nats": {"urls": ["nats://a:0"]}}, "expected nats://host:port"),
        ({"nats": {"urls": ["nats://a:1"]}, "single": "both"}, "strict"),
        ({"nats": {"urls": ["nats://a:1"]}, "single": "strict", "single_replicas": 2}, "replicas"),
        ({"nats": {"urls": ["nats://a:1"]}, "locality": "near"}, "prefer"),
        ({"nats": {"urls": ["nats://a:1"]}, "detached": "wait"}, "refuse"),
        ({}, "nats"),
    ],
)
def test_invalid_configurations_are_refused(fabric, complaint, tmp_path: Path) -> None:
    realm = {"name": "realm1", "roles": [config.role("anonymous")], "fabric": fabric}
    node = config.node([realm], [config.universal("tcp", config.tcp())])
    (tmp_path / "config.json").write_text(json.dumps(node, indent=1))
    done = subprocess.run(
        [binary(), "check", "--config", "config.json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert complaint in done.stdout + done.stderr
