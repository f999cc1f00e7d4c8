"""A worker ends: the node ends too, or goes on, as Crossbar.io's does.

`crossbar/worker_ends.json` has Crossbar.io's answers. The table in the book is made of them and of
the differences below; `BLESS=1` writes it anew. `WORKER_ENDS=all` plays every case.
"""

from __future__ import annotations

import json
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from crossbar.worker_ends import (
    ANY_FAILED,
    CANNOT_CONNECT,
    CANNOT_LOAD,
    CASES,
    CONTAINER,
    DEFAULT,
    EMBEDDED,
    ENDS,
    ENDS_0,
    ENDS_1,
    GUEST,
    KILLED,
    LAST_STOPPED,
    LEAVES,
    RAISES,
    REQUESTED,
    ROUTER,
    TRIGGERS,
    WITH_ERROR,
    Case,
)
from rig import config
from rig.node import Node
from rig.router import ROOT
from rig.waiting import await_true

ANSWERS = json.loads((ROOT / "conformance/crossbar/worker_ends.json").read_text())
PAGE = ROOT / "docs/operating.md"
BEGIN, END = "<!-- begin: workers that end -->\n", "<!-- end: workers that end -->\n"

# A component that raises has failed here, and its container ends with 1; Crossbar.io counts that as
# a component that has left.
DIFFERENT = {
    Case(ANY_FAILED, RAISES, DEFAULT): 1,
    Case(ANY_FAILED, RAISES, WITH_ERROR): 1,
    Case(LAST_STOPPED, RAISES, WITH_ERROR): 1,
}
# A router is threads of the node here: it has no end of its own.
WITHOUT_PROCESS = [case for case in CASES if case.kind == ROUTER and case.end in (ENDS_0, KILLED)]
# Triggers count for containers alone, and the modes of containers for ends of their components, so
# that these stand for all others.
SAMPLE = [
    *(
        Case(kind, end, DEFAULT)
        for kind in (GUEST, CONTAINER, EMBEDDED, ROUTER)
        for end in ENDS[kind]
    ),
    *(Case(kind, end, DEFAULT) for kind in (LAST_STOPPED, ANY_FAILED) for end in (LEAVES, RAISES)),
    Case(GUEST, CANNOT_LOAD, REQUESTED),
    Case(GUEST, ENDS_1, WITH_ERROR),
    Case(CONTAINER, ENDS_0, WITH_ERROR),
    Case(CONTAINER, ENDS_1, REQUESTED),
    Case(CONTAINER, CANNOT_CONNECT, REQUESTED),
]


def expected(case: Case) -> int | None:
    """Return the node's exit code, or None where it goes on."""
    return DIFFERENT.get(case, ANSWERS[case.name])


def chosen() -> list[Case]:
    """Return the cases to play."""
    cases = CASES if os.environ.get("WORKER_ENDS") == "all" else SAMPLE
    return [case for case in cases if case not in WITHOUT_PROCESS]


def play(case: Case, directory: Path, taken: int) -> str | None:
    """Have a worker end so; return what was not as expected."""
    directory.mkdir()
    case.write(directory)
    node = Node(directory, case.configuration(taken))
    code = expected(case)
    try:
        if code is None or not case.is_at_start:
            node.says("Ready; to stop")
            (directory / "go").touch()
        if code is not None:
            ended = node.exit_code()
            return None if ended == code else f"{case.name}: exit code {ended}\n{node.text()}"
        goes_on(case, node)
        ended = node.stop()
        return None if ended == 0 else f"{case.name}: stopped with {ended}\n{node.text()}"
    except (AssertionError, OSError) as error:
        return f"{case.name}: {error}\n{node.text()}"
    finally:
        node.close()


def goes_on(case: Case, node: Node) -> None:
    """Wait until the node has taken note of the end, and see that it does not end."""
    with_process = case.kind == GUEST or case.end in (ENDS_0, ENDS_1, KILLED)
    with_mode = case.kind == LAST_STOPPED or (case.kind == ANY_FAILED and case.end == RAISES)
    if with_process or with_mode:
        node.says("Node worker worker2 ended")
        with node.management() as session:
            assert "worker2" not in session.call("crossbar.get_workers")
    else:
        worker = "worker1" if case.kind == EMBEDDED else "worker2"
        with node.management() as session:
            await_true(
                "the component's end is known",
                lambda: state(session, worker) == ("stopped" if case.end == LEAVES else "failed"),
            )
    assert not any("hutting down node" in line.text for line in node.log)


def state(session, worker: str) -> str:
    """Return the state of a worker's one component."""
    return session.call("crossbar.get_worker", worker)["components"][0]["state"]


# Thirty nodes, most of them with an interpreter of Python.
def test_the_node_ends_with_a_worker_or_goes_on_as_crossbar_does(tmp_path):
    cases = chosen()
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(4) as pool:
        taken = server.getsockname()[1]
        directories = [tmp_path / f"node{number}" for number, _ in enumerate(cases)]
        played = pool.map(lambda case, directory: play(case, directory, taken), cases, directories)
        wrong = [text for text in played if text]
    assert not wrong, "\n\n".join(wrong)


def test_a_node_can_do_without_a_component(tmp_path):
    """`needs_components: false`: the component tries again, and is seen not to be there."""
    case = Case(CONTAINER, CANNOT_CONNECT, DEFAULT)
    case.write(tmp_path)
    configuration = case.configuration(0)
    configuration["workers"][1]["options"]["needs_components"] = False
    node = Node(tmp_path, configuration)
    try:
        node.says("Ready; to stop")
        with node.management() as session:
            await_true("it waits", lambda: state(session, "worker2") == "waiting")
        assert node.stop() == 0
    finally:
        node.close()


AUTHENTICATOR = """
from autobahn.twisted.util import sleep
from autobahn.twisted.wamp import ApplicationSession


class Authenticator(ApplicationSession):
    async def onJoin(self, details):
        await sleep(1)
        await self.register(lambda *_: "anonymous", "com.authenticate")
"""


def test_a_component_may_start_before_the_authenticator_that_lets_it_in(tmp_path):
    """Crossbar.io starts one after the other, so that such a configuration is right there."""
    (tmp_path / "authenticator.py").write_text(AUTHENTICATOR)
    Case(CONTAINER, LEAVES, DEFAULT).write(tmp_path)
    configuration = Case(CONTAINER, LEAVES, DEFAULT).configuration(0)
    router, asked = configuration["workers"]
    dynamic = {"type": "dynamic", "authenticator": "com.authenticate"}
    router["transports"].append(
        {
            "type": "rawsocket",
            "endpoint": config.unix("asks.sock"),
            "auth": {"anonymous": {**dynamic, "authenticator-realm": "realm1"}},
        }
    )
    asked["components"][0]["transport"]["endpoint"]["path"] = "asks.sock"
    first = Case(CONTAINER, KILLED, DEFAULT).workers(0)[1]
    first["components"][0]["classname"] = "authenticator.Authenticator"
    configuration["workers"] = [router, asked, first]
    node = Node(tmp_path, configuration)
    try:
        node.says("trying again", "Container")
        with node.management() as session:
            await_true("it is let in", lambda: state(session, "worker2") == "started")
            (tmp_path / "go").touch()
            await_true("it has left", lambda: state(session, "worker2") == "stopped")
        assert node.stop() == 0
    finally:
        node.close()


def test_the_book_has_the_table():
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    whole = f"{before}{BEGIN}{table()}{END}{after}"
    if os.environ.get("BLESS"):
        PAGE.write_text(whole)
    assert text == whole, f"{PAGE} has another table: BLESS=1 writes this one"


def table() -> str:
    """Return the table of all cases."""
    titles = [trigger if trigger == DEFAULT else f"`{trigger}`" for trigger in TRIGGERS]
    lines = [f"| worker | how it ends | {' | '.join(titles)} |", "|---" * 6 + "|"]
    for kind, ends in ENDS.items():
        for end in ends:
            cells = [cell(Case(kind, end, trigger)) for trigger in TRIGGERS]
            lines.append(f"| {kind} | {end} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def cell(case: Case) -> str:
    """Return what the node does, and where Crossbar.io's does something else."""
    there = "goes on" if ANSWERS[case.name] is None else f"ends, {ANSWERS[case.name]}"
    if case in WITHOUT_PROCESS:
        return f"has no process (there: {there})"
    if case not in DIFFERENT:
        return there
    return f"ends, {DIFFERENT[case]} (there: {there})"


@pytest.fixture(scope="module", autouse=True)
def _all_are_known():
    assert set(ANSWERS) == {case.name for case in CASES}
