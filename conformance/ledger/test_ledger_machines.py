"""Machines whose links are lost silently: no connection ends, and a new owner confirms soon."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pika.exceptions
import pytest

from ledger.machines import await_settled, started
from ledger.stage import (
    WATCHFUL,
    Publisher,
    at_owner,
    await_end,
    await_owner,
    check,
    connect,
    declare,
    take_all,
)

# Servers elect who leads the stream, and a node claims the vhost.
PATIENCE_S = 120.0


def test_a_machine_whose_link_is_lost(network, tmp_path: Path) -> None:
    """Another node has the vhost, and an owner that hears nothing closes its clients meanwhile."""
    with contextlib.ExitStack() as closing:
        machines = started(tmp_path, network, closing)
        at_owner([machine.node for machine in machines], declare, PATIENCE_S)
        publisher = Publisher(machines, 1, is_told=False, **WATCHFUL)
        for way in ("in", "both"):
            publisher.await_more(10, PATIENCE_S)
            await_settled(machines, PATIENCE_S)
            owner = await_owner([machine.node for machine in machines], PATIENCE_S)
            machine = next(each for each in machines if each.node is owner)
            others = [each.node for each in machines if each is not machine]
            cut, mend = machine.cut_way("in") if way == "in" else (machine.cut, machine.mend)
            with connect(owner) as idle:
                cut()
                await_owner(others, PATIENCE_S)
                publisher.await_more(10, PATIENCE_S)
                if way == "both":
                    mend()
                with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
                    await_end(idle)
                assert closed.value.reply_code == 320
            if way == "in":
                mend()
        publisher.stop()
        check(take_all([machine.node for machine in machines]), [publisher])
