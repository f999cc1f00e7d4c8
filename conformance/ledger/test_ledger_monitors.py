"""Monitors that hang, fail or lie: the majority of their answers decides, and the log itself."""

from __future__ import annotations

from rig.ports import free_ports
from rig.waiting import await_true

from ledger.monitors import NO_SYNC, SILENCE, TRUTH, Monitor
from ledger.stage import (
    Publisher,
    at_owner,
    await_alarm,
    await_owner,
    check,
    declare,
    role,
    take_all,
)

# What the three say while another node takes over.
TAKING_OVER = [
    (SILENCE, "an error", "garbage"),
    ("a page without JetStream", "a server that came up empty", NO_SYNC),
    (NO_SYNC, TRUTH, "garbage"),
]


def test_monitors_that_lie(nats, start, request) -> None:
    """None of them keeps the vhost from another node, unless most deny that their server syncs."""
    (port,) = free_ports(1)
    servers = nats(monitor=port)
    monitors = [Monitor("127.0.0.1", f"http://127.0.0.1:{port}") for _ in range(3)]
    for monitor in monitors:
        request.addfinalizer(monitor.close)
    urls = [monitor.url for monitor in monitors]
    nodes = [start(servers, name, monitor=urls) for name in ("node_a", "node_b")]
    at_owner(nodes, declare)
    publisher = Publisher(nodes, 1)

    def kill_owner(*answers: str) -> None:
        """Kill the owner, once the other one stands by and the monitors lie; have it back."""
        owner = await_owner(nodes)
        (standby,) = [node for node in nodes if node is not owner]
        await_true("it stands by", lambda: role(standby) == "standby")
        for monitor, answer in zip(monitors, answers, strict=True):
            monitor.saying = answer
        owner.kill()
        if answers.count(NO_SYNC) > 1:
            await_alarm(standby, 'sync_interval must be "always"')
            monitors[0].saying = TRUTH
        publisher.await_more(10)
        nodes[nodes.index(owner)] = start(servers, owner.directory.name, monitor=urls)

    for answers in TAKING_OVER:
        kill_owner(*answers)
    kill_owner(NO_SYNC, NO_SYNC, TRUTH)
    publisher.stop()
    check(take_all(nodes), [publisher])
