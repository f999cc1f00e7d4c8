"""State that an attack leaves or sends in circles: rings of links, files, re-routed calls."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

import pytest
from rig import config
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.session import (
    CALL,
    ERROR,
    EVENT,
    INVOCATION,
    PUBLISH,
    PUBLISHED,
    REGISTER,
    REGISTERED,
    ROLES,
)
from rig.waiting import await_true
from rlinks.linked import await_there, node, open_at, to

from hostile.stage import MIB, Stage

NOT_RECORDED = "crosstie.error.not_recorded"
REROUTES = {"roles": {**ROLES, "callee": {"features": {"call_reroute": True}}}}
SOMEBODY = {"session": 7, "authid": "far", "authrole": "trusted"}


@pytest.fixture
def ring(attacked, start_router) -> tuple[Stage, list[tuple[Router, str]]]:
    """A node under attack in a ring of three, and the links of the others."""
    stage = attacked()
    address = stage.router.address("tcp")
    second = start_router(node(to(address, "to_first")))
    both = [to(address, "to_first"), to(second.address("tcp"), "to_second")]
    third = start_router(node(*both))
    links = [(second, "to_first"), (third, "to_first"), (third, "to_second")]
    for router, link in links:
        await_there(router, link)
    return stage, links


def test_links_that_form_a_ring(ring):
    """Flooded events come once to each node of a ring, and forged origins are not forwarded."""
    stage, links = ring
    (second, _), _, (third, _) = links
    with (
        stage.session() as flood,
        stage.session() as near,
        open_at(second) as one,
        open_at(third) as other,
    ):
        heard = (near, one, other)
        for peer in heard:
            peer.subscribe("com.flood")
        for router, link in links:
            for side in ("local", "remote"):
                held = {"side": side, "kind": "subscription", "link": link}
                await_true(
                    f"{link} has the topic",
                    lambda router=router, held=held: router.metric("rlink_mirrors", **held) > 0,
                )
        # Each a window's worth, so that no queue bounds it.
        for first in range(0, 2_000, 200):
            for number in range(first, first + 200):
                flood.ask(PUBLISH, {}, "com.flood", [number, "x" * 500])
            for peer in heard:
                came = [peer.hear(EVENT)[4][0] for _ in range(200)]
                assert came == list(range(first, first + 200))
        # A publication that claims to have gone far, and one that claims to be from here.
        far = [SOMEBODY] * 5_000
        own = [{"session": near.id, "authid": "me", "authrole": "anonymous"}]
        flood.ask(PUBLISH, {"forward_for": far}, "com.flood", ["far"])
        flood.ask(PUBLISH, {"forward_for": own}, "com.flood", ["own"])
        flood.ask(PUBLISH, {"acknowledge": True}, "com.flood", ["last"])
        assert flood.hear(PUBLISHED)
        assert [near.hear(EVENT)[4] for _ in range(2)] == [["far"], ["last"]]
        for peer in (one, other):
            assert peer.hear(EVENT)[4] == ["last"]
        stage.everybody_else_is_served()
        # Subscriptions that come and go are mirrored, or were, and nothing stays of them.
        churn = stage.session()
        for turn in range(10):
            for number in range(100):
                churn.subscribe(f"com.churn{turn}.n{number}")
        churn.close()
    held = {"side": "remote", "kind": "subscription", "link": "to_first"}
    few = "nothing stays mirrored but of those who stay"
    await_true(few, lambda: second.metric("rlink_mirrors", **held) < 20)
    stage.everybody_else_is_served()
    stage.grew_at_most(64)
    stage.nothing_is_held()


@pytest.fixture
def kept(attacked, tmp_path: Path, request) -> Stage:
    """A node whose realm records events in a file, on a disk of so many MiB if that is said."""
    folder = tmp_path / "kept"
    folder.mkdir()
    if size := getattr(request, "param", None):
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}m", "tmpfs", str(folder)]
        mounted = subprocess.run(mount, capture_output=True, check=False)
        if mounted.returncode:
            pytest.skip(f"mount: {mounted.stderr.decode().strip()}")
        unmount = ["umount", "--lazy", str(folder)]
        request.addfinalizer(lambda: subprocess.run(unmount, check=True))  # noqa: PT021 (if mounted)
    store = {
        "type": "sqlite",
        "path": str(folder / "events.db"),
        "bytes_max": 4 * MIB,
        "buffer_bytes_max": 1 * MIB,
        "sync": False,
        "event-history": [{"uri": "com.kept", "limit": 100_000}],
    }
    realm = {"name": "realm1", "roles": [config.role("anonymous")], "store": store}
    return attacked(realm=realm)


def flood(publisher: RawSocket, reader: RawSocket, count: int) -> list[str]:
    """Publish so many kilobytes that are to be recorded; each is heard; return the refusals."""
    refusals = []
    for _ in range(0, count, 100):
        for number in range(100):
            publisher.ask(PUBLISH, {"acknowledge": True}, "com.kept", [number, "x" * 8_000])
        answers = [publisher.hear_any() for _ in range(100)]
        refusals += [answer[4] for answer in answers if answer[0] == ERROR]
        assert [reader.hear(EVENT)[4][0] for _ in range(100)] == list(range(100))
    return refusals


@pytest.mark.parametrize("kept", [3], indirect=True)
def test_a_history_that_fills_its_disk(kept: Stage, tmp_path: Path):
    """A publisher with acknowledge gets the error; subscribers get events; memory is bounded."""
    with kept.session() as publisher, kept.session() as reader:
        reader.subscribe("com.kept")
        refusals = flood(publisher, reader, 1_500)
        assert refusals
        assert set(refusals) == {NOT_RECORDED}
        assert kept.metric("realm_store_failing", realm="realm1") == 1
        assert kept.metric("realm_store_waiting_bytes", realm="realm1") <= MIB
        kept.everybody_else_is_served()
        remount = ["mount", "-o", "remount,size=64m", str(tmp_path / "kept")]
        subprocess.run(remount, check=True)
        await_true(
            "it is written again",
            lambda: kept.metric("realm_store_failing", realm="realm1") == 0,
        )
        assert flood(publisher, reader, 100) == []
    kept.grew_at_most(32)


def test_a_history_at_its_bytes(kept: Stage, tmp_path: Path):
    """The oldest go, and their room in the file is used again."""
    with kept.session() as publisher, kept.session() as reader:
        reader.subscribe("com.kept")
        # Five times what the file may have.
        assert flood(publisher, reader, 2_500) == []
        assert MIB < kept.metric("realm_recorded_bytes", realm="realm1") <= 4 * MIB
        kept.everybody_else_is_served()
    files = [file.stat().st_size for file in (tmp_path / "kept").iterdir()]
    assert sum(files) <= 24 * MIB
    kept.grew_at_most(32)


def test_a_call_that_new_callees_send_on_for_ever(attacked):
    """However many new callees there are at each refusal, a call goes to eight of them."""
    stage = attacked()
    with contextlib.ExitStack() as stack:

        def one_more() -> RawSocket:
            callee = stack.enter_context(stage.session(**REROUTES))
            callee.ask(REGISTER, {"invoke": "roundrobin"}, "com.nobody")
            callee.hear(REGISTERED)
            return callee

        caller = stack.enter_context(stage.session())
        # In turn, so that it is known who is next.
        callees = [one_more(), one_more()]
        for _ in range(6):
            request = caller.ask(CALL, {}, "com.nobody", ["x" * 1_000])
            for _ in range(8):
                invocation = callees[0].hear(INVOCATION)
                callees.append(one_more())
                callee = callees.pop(0)
                callee.say(ERROR, INVOCATION, invocation[1], {}, "wamp.error.unavailable")
            error = caller.hear(ERROR)
            assert (error[2], error[4]) == (request, "wamp.error.no_available_callee")
            # The next one was asked nothing.
            callees[0].round_trip()
        stage.everybody_else_is_served()
        assert stage.metric("realm_kept_call_bytes", realm="realm1") == 0
    stage.nothing_is_held()
