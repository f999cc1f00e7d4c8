"""Permissions to store a vhost: accounts, nkeys as in docs/replicated-vhosts.md, TLS."""

from __future__ import annotations

from pathlib import Path

from rig import certificates
from rig.router import Router
from rig.waiting import await_true

from ledger.stage import ENDED, await_owner, refusal, role, survives_its_owner

# A pair for these tests alone.
SEED = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
PUBLIC = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"

PUBLISH = [
    *["A1.=2F.log", "A1.=2F.own", "A1.=2F.beat", "A1.=2F.term.*"],
    *["$JS.API.STREAM.INFO.A1_=2F", "$JS.API.STREAM.CREATE.A1_=2F"],
    *["$JS.API.STREAM.PURGE.A1_=2F", "$JS.API.DIRECT.GET.A1_=2F"],
]
SUBSCRIBE = ["A1.=2F.beat", "A1.=2F.term.*", "_INBOX.>"]


def account(publish: list[str], subscribe: list[str] = SUBSCRIBE) -> str:
    """Return a vhost's account with one user."""
    allowed = ", ".join(f'"{subject}"' for subject in publish)
    wanted = ", ".join(f'"{subject}"' for subject in subscribe)
    return (
        "accounts { vhost { jetstream: enabled, users: [{ "
        f"nkey: {PUBLIC}, permissions: {{ publish: [{allowed}], subscribe: [{wanted}] }}"
        " }] } }\n"
    )


def access(tmp_path: Path, port: int) -> dict:
    """Return how a node reaches the server."""
    (tmp_path / "user.nk").write_text(SEED + "\n")
    return {
        "urls": [f"tls://localhost:{port}"],
        "credentials": str(tmp_path / "user.nk"),
        "ca_certificates": [str(tmp_path / "ca.pem")],
    }


def tls(tmp_path: Path) -> str:
    """Return what the server says of its certificate."""
    certificates.write(tmp_path)
    return f'tls {{ cert_file: "{tmp_path}/server.pem", key_file: "{tmp_path}/server.key" }}\n'


def test_a_user_needs_what_the_manual_says(nats, start, tmp_path: Path) -> None:
    """With TLS, a key, and permissions for nothing else."""
    servers = nats(more=account(PUBLISH) + tls(tmp_path))
    link = access(tmp_path, servers[0].port)
    nodes = [start(servers, name, nats=link) for name in ("node_a", "node_b")]
    survives_its_owner(nodes, Router.kill)
    assert any(ENDED in line.text for node in nodes for line in node.log)


def test_an_owner_that_may_not_be_asked_is_missed_later(nats, start, tmp_path: Path) -> None:
    """As one of before the subject: no standby concludes from silence there that it has ended."""
    servers = nats(more=account(PUBLISH, SUBSCRIBE[::2]) + tls(tmp_path))
    link = access(tmp_path, servers[0].port)
    nodes = [start(servers, name, nats=link) for name in ("node_a", "node_b")]
    owner = await_owner(nodes)
    owner.await_log(
        lambda line: "NATS denies the subject on which nodes probe the owner" in line.text
    )
    (other,) = (node for node in nodes if node is not owner)
    await_true("it stands by", lambda: role(other) == "standby")
    owner.kill()
    assert await_owner([other]) is other
    assert not any(ENDED in line.text for line in other.log)


def test_denials_are_reported(nats, start, tmp_path: Path) -> None:
    """A user who may not ask for the stream is told what NATS says."""
    servers = nats(more=account(PUBLISH[:4]) + tls(tmp_path))
    node = start(servers, "node_a", nats=access(tmp_path, servers[0].port))
    node.await_log(lambda line: "on NATS server" in line.text)
    node.await_log(lambda line: "Permissions Violation" in line.text)
    assert "Permissions Violation" in refusal(node)
