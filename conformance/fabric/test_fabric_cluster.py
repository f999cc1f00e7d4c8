"""Files and output of `crosstie cluster`: servers and nodes are started from nothing else."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from pathlib import Path

import pytest
from rig import certificates, config
from rig.nats import PROGRAM, NatsServer
from rig.ports import free_ports
from rig.router import Router, binary

from fabric.stage import await_neighbours

REALMS = ("realm1", "com.example")
NODES = ("a", "b", "c")
AUTHORITY = ("--authority", "ca.pem")
SERVER = ("--server", "n1.example.com:4222")


def cluster(
    *arguments: object, path: str = os.environ["PATH"], directory: Path | None = None
) -> subprocess.CompletedProcess:
    """Run a command of `crosstie cluster`."""
    command = [str(binary()), "cluster", *map(str, arguments)]
    environment = os.environ | {"PATH": path}
    return subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=120
    )


def pages(node: Router) -> str:
    """Return where a node shows its pages."""
    host, port = node.address("tcp")
    return f"http://{host}:{port}"


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, list[int]]:
    """Make a cluster with TLS; return its directory and its servers' ports."""
    certificates.write(tmp_path)
    realms = [{"name": name, "roles": [config.role("anonymous")]} for name in REALMS]
    node = config.node(realms, [config.universal("tcp", config.tcp())])
    (tmp_path / "nodes.json").write_text(json.dumps(node))
    ports = free_ports(6)
    arguments: list[object] = ["init", tmp_path / "cluster", "--config", tmp_path / "nodes.json"]
    for name in REALMS:
        arguments += ["--realm", name]
    for name in NODES:
        arguments += ["--node", name]
    for server, route in zip(ports[:3], ports[3:], strict=True):
        arguments += ["--server", f"localhost:{server}", "--route-port", route]
    arguments += ["--certificate", tmp_path / "server.pem", "--key", tmp_path / "server.key"]
    arguments += ["--single", "strict"]
    done = cluster(*arguments, "--authority", tmp_path / "ca.pem")
    assert done.returncode == 0, done.stderr
    return tmp_path / "cluster", ports[:3]


def test_created_files_work(made, session, request) -> None:
    directory, ports = made
    servers = []
    for place, port in enumerate(ports, 1):
        servers.append(NatsServer.configured(directory / f"nats{place}", port))
        request.addfinalizer(servers[-1].close)
    found = []
    for name in NODES:
        found.append(Router(directory / name, "--cbdir", "."))
        request.addfinalizer(found[-1].kill)
    for realm in REALMS:
        await_neighbours(found, realm=realm)
    # Each has its own name, whose it is on the page of another.
    named = set(re.findall(r"node_\w/worker1", found[0].page("/")))
    assert named == {"node_b/worker1", "node_c/worker1"}
    here, there, doomed = found
    for realm in REALMS:
        callee, caller, other = (session(node, realm) for node in found)
        callee.register("com.a")
        # One callee for all nodes, which a majority of the servers has granted.
        assert callee.not_registered("com.a") == "wamp.error.procedure_already_exists"
        assert other.not_registered("com.a") == "wamp.error.procedure_already_exists"
        granted = here.metric("fabric_claims_total", outcome="granted", realm=realm)
        assert granted == 1
        other.subscribe("com.b")
        caller.call("com.a")
        callee.answer(callee.invocation(), realm)
        assert caller.result()[3] == [realm]
        caller.publish("com.b", realm)
        assert other.event()[4] == [realm]
    well = cluster("status", *map(pages, found))
    assert (well.returncode, well.stderr) == (0, ""), well.stdout
    assert len(re.findall(r"(?m)^127\.0\.0\.1:\d+ +worker1 +\S+ +attached +2 ", well.stdout)) == 6
    # A client without a node's key is admitted by no server.
    with pytest.raises(AssertionError, match="Authorization"):
        servers[0].client(authority=directory / "a/ca.pem")
    gone = pages(doomed)
    doomed.kill()
    await_neighbours([here, there], 1)
    ill = cluster("status", pages(here), gone)
    assert ill.returncode == 1
    assert re.search(rf"(?m)^{gone.removeprefix('http://')}: .*refused", ill.stdout), ill.stdout


def test_keys_are_their_owners_and_nothing_is_overwritten(made) -> None:
    directory, _ = made
    secrets = [
        *directory.glob("*/*.nk"),
        *directory.glob("*/nats.conf"),
        *directory.glob("*/*.key"),
    ]
    assert len(secrets) == 12
    assert {stat.S_IMODE(path.stat().st_mode) for path in secrets} == {0o600}
    again = cluster("init", directory, "--node", "a")
    assert again.returncode == 2
    assert "is there already; it is not overwritten" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--server", "host"], "--server host: expected HOST:PORT"),
        (["--realm", "a b"], "--realm a b: expected letters"),
        (["--node", "x", "--node", "x"], "--node x: that name is in use"),
        (["--server", "n1:4222", "--single", "strict"], "expected three servers"),
        (["--server", "n1:4222", "--route-port", "4222"], "port 4222 of n1 is taken twice"),
        (["--server", "n1:4222", "--route-port", "1", "--route-port", "2"], "one for each"),
        (["--certificate", "/dev/null"], "--key"),
        (["--certificate", "server.pem", *AUTHORITY, "--key", "other.key"], "KeyMismatch"),
        (["--certificate", "other.pem", *AUTHORITY, "--key", "other.key"], "CaUsedAsEndEntity"),
        (
            [*SERVER, "--certificate", "server.pem", *AUTHORITY, "--key", "server.key"],
            "n1.example.com",
        ),
        (["--certificate", "server.pem", "--authority", "other.key", "--key", "server.key"], "PEM"),
        (["--config", "none.json"], "none.json"),
        (["--config", "other.json"], "there is no realm 'realm1' in it"),
    ],
)
def test_clusters_that_cannot_be_made_are_refused(arguments, complaint, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"version": 2, "workers": []}')
    certificates.write_self_signed(tmp_path, ["localhost"]).rename(tmp_path / "other.pem")
    (tmp_path / "server.key").rename(tmp_path / "other.key")
    certificates.write(tmp_path)
    done = cluster("init", "cluster", *arguments, directory=tmp_path)
    assert done.returncode != 0
    assert complaint in done.stderr
    assert not (tmp_path / "cluster").exists()


def test_without_tls_one_is_warned_of_the_network(tmp_path: Path) -> None:
    done = cluster("init", tmp_path / "here")
    assert (done.returncode, done.stderr) == (0, "")
    done = cluster("init", tmp_path / "there", "--server", "n1.example.com:4222")
    assert done.returncode == 0
    assert "in the clear" in done.stderr
    (tmp_path / "named.json").write_text(
        '{"controller": {"id": "edge"}, "workers": [{"realms": [{"name": "realm1"}]}]}'
    )
    done = cluster("init", tmp_path / "named", "--config", tmp_path / "named.json")
    assert (done.returncode, "all nodes have the name 'edge'" in done.stderr) == (0, True)


def test_the_demonstration_shows_what_it_says_and_leaves_nothing(tmp_path: Path) -> None:
    done = cluster("demo", path=f"{PROGRAM.parent}:{os.environ['PATH']}", directory=tmp_path)
    assert done.returncode == 0, done.stderr
    before, after = done.stdout.split("node1 is killed.")
    assert "calls it: node1 answers." in before
    assert "calls it: node2 answers." in before
    assert "hears 1." in before
    assert "hears 2." in after
    assert after.count("calls: node2 answers.") == 2
    (place,) = re.findall(r"nodes, in (\S+):", before)
    assert not Path(place).exists()
    for address in re.findall(r"http://(\S+)", before):
        assert cluster("status", address).returncode == 1


def test_without_nats_server_the_demonstration_says_how_to_get_it(tmp_path: Path) -> None:
    done = cluster("demo", path=str(tmp_path))
    assert done.returncode == 2
    assert "go install github.com/nats-io/nats-server/v2@v" in done.stderr
    named = cluster("demo", "--nats-server", tmp_path / "none")
    assert named.returncode == 2
    assert str(tmp_path / "none") in named.stderr
