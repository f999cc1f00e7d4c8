"""`crosstie amqp release`: a vhost goes into the worker's store, and its log is deleted."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.request
from pathlib import Path

from rig.nats import NatsServer
from rig.router import Router, binary
from rig.waiting import await_true

from ledger.created import ELECTION_S, Machine, made
from ledger.stage import STREAM, Publisher, at_owner, await_owner, check, declare, role, take_all

DELETES = f'"$JS.API.STREAM.DELETE.{STREAM}", '


def release(machine: Machine, *more: object, code: int = 0) -> str:
    """Release the vhost into the store of a machine's node."""
    store = machine.node.directory / "amqp.store"
    words = [binary(), "amqp", "release", "/", "--store", store, *more]
    done = subprocess.run(map(str, words), capture_output=True, text=True, timeout=60)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def streams(server: NatsServer) -> str:
    """Return what a server tells of its streams."""
    url = f"http://127.0.0.1:{server.port + 4000}/jsz?accounts=true&streams=true"
    with urllib.request.urlopen(url) as answer:
        return answer.read().decode()


def allow(machines: list[Machine], before: str, after: str) -> None:
    """Change permissions in all servers."""
    for machine in machines:
        text = machine.server.file.read_text()
        assert before in text
        machine.server.file.write_text(text.replace(before, after))
        machine.server.reload()


def test_a_released_vhost_has_no_log(tmp_path: Path, request) -> None:
    """It is deleted once the store has all of it, and no node uses it."""
    machines = made(tmp_path, request, "abc")
    nodes = [machine.node for machine in machines]
    at_owner(nodes, declare, ELECTION_S)
    first = Publisher(nodes, 1)
    first.await_more(20, ELECTION_S)
    first.stop()
    owner = await_owner(nodes, ELECTION_S)
    last = next(machine for machine in machines if machine.node is owner)
    assert "stop all nodes, the owner last" in release(last, code=1)
    for machine in machines:
        if machine is not last:
            machine.node.stop()
    last.node.stop()
    kept = last.node.directory / "amqp.store.replicated"
    (copy,) = kept.glob("*.store")
    stale = tmp_path / "stale.store"
    shutil.copytree(copy, stale)
    last.node = Router(last.node.directory, "--cbdir", ".")
    await_true("it owns the vhost again", lambda: role(last.node) == "owner", ELECTION_S)
    second = Publisher([last.node], 2)
    second.await_more(5, ELECTION_S)
    second.stop()
    last.node.stop()
    refused = release(last, "--copy", stale, code=1)
    assert f"{second.confirmed} are missing in it, and it has 0 others" in refused
    assert "Nothing was done" in refused
    assert not (last.node.directory / "amqp.store").exists()
    # A user of an earlier release may not delete a stream.
    allow(machines, DELETES, "")
    refused = release(last, code=1)
    assert f"Its log, stream {STREAM}, is not deleted: Permissions Violation" in refused
    assert "Repeat the command" in refused
    assert STREAM in streams(last.server)
    config = last.node.directory / "config.json"
    replicated = config.read_text()
    settings = json.loads(replicated)
    del settings["workers"][0]["amqp"]["vhosts"][0]["replicated"]
    config.write_text(json.dumps(settings))
    words = [str(binary()), "start", "--cbdir", str(last.node.directory)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "crosstie amqp release" in done.stdout + done.stderr
    assert "has no `replicated` for the vhost" not in done.stderr
    allow(machines, '"$JS.API.STREAM.PURGE', f'{DELETES}"$JS.API.STREAM.PURGE')
    # The configuration that the node has had.
    former = last.node.directory / "replicated.json"
    former.write_text(replicated)
    refused = release(last, "--config", config, code=2)
    assert "vhost '/' is not `replicated` in it" in refused
    count = first.confirmed + second.confirmed
    told = release(last, "--config", former)
    assert f"1 queues with {count} messages" in told
    assert f"Deleted its log, stream {STREAM} with " in told
    # Each server learns that by itself.
    for machine in machines:
        await_true("the log is gone", lambda server=machine.server: STREAM not in streams(server))
    assert f"The servers have no stream {STREAM}" in release(last, "--config", former)
    assert "note: the log stays in JetStream" in release(last)
    last.node = Router(last.node.directory, "--cbdir", ".")
    check(take_all([last.node]), [first, second])
