"""The host of Python components, with the test in the controller's place."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from rig import config
from rig.container import HOSTED, Container, RefusedError
from rig.hosting import BOUND, of_class
from rig.router import ROOT, Router
from rig.session import CALL, ERROR
from rig.waiting import await_true


def test_says_what_it_is(start_container):
    container = start_container("--title", "my components")
    said = container.says("Worker process starting")
    assert Path(f"/proc/{container.process.pid}/comm").read_text() == "my components\n"
    assert said.level == 6
    assert said.text == "Worker process starting (CPython-EPollReactor) .."
    assert container.call("get_components") == []
    info = container.call("get_process_info")
    assert info["pid"] == container.process.pid
    assert info["resident"] > 1 << 20
    assert any(each["type"] == "unix" for each in info["sockets"])


JSON_WAYS = (
    "rs-tcp-json",
    "ws-tcp-json",
    "ws-unix-json",
    "ws-tcp-deflate",
    "ws-tls-json",
    "ws-tcp-json.batched",
)
VALUES = [
    [],
    [1, -1, 2**53, 0.5, "text", None, True],
    ["ä€🎂", "\\u0000", '"', "\n"],
    ["\x00text"],
    [{"a": [1, {"b": []}]}, [[]]],
    ["x" * 125, "y" * 126, "z" * 70000],
]


@pytest.mark.parametrize(
    "way",
    [
        "rs-unix-msgpack",
        "rs-unix-cbor",
        "rs-tcp-json",
        "ws-tcp-json",
        "ws-tcp-msgpack",
        "ws-tcp-cbor",
        "ws-tcp-url",
        "ws-unix-json",
        "ws-tcp-deflate",
        "rs-tls-msgpack",
        "ws-tls-json",
        "ws-tcp-json.batched",
        "ws-tcp-cbor.batched",
    ],
)
def test_every_way(container, over, way):
    container.run(of_class("Echo", over(way)))
    serializer, framing, role = container.node.call("com.hosted.way")
    expected = {"serializers": None, "serializer": None, **over(way)}
    named = expected["serializer"] or (expected["serializers"] or ["cbor"])[0]
    # As Autobahn numbers them.
    assert (serializer, framing) == (named, {"ws": 2, "rs": 3}[way[:2]])
    assert role == "anonymous"
    for values in VALUES:
        if way in JSON_WAYS and "\x00text" in values:
            # In JSON that is how bytes are written.
            continue
        given = container.node.call("com.hosted.echo", *values, key=values)
        assert given == {"args": values, "kwargs": {"key": values}}
    octets = container.node.call("com.hosted.echo", b"\x00\xff")
    assert octets["args"] == [b"\x00\xff"]
    assert [line for line in container.log if line.level != 6] == []


@pytest.mark.parametrize("way", ["rs-unix-msgpack", "ws-tcp-json"])
def test_bursts_keep_their_order(container, over, way):
    container.run(of_class("Echo", over(way)))
    node = container.node
    node.listen("com.hosted.event")
    for count, size in ((1, 10), (500, 10), (300, 2000), (3, 200_000)):
        node.call("com.hosted.burst", count, size)
        for number in range(count):
            assert node.await_event("com.hosted.event") == [number, "x" * size]


@pytest.mark.parametrize("way", ["rs-unix-msgpack", "ws-tcp-json", "ws-tcp-msgpack"])
def test_big_messages(container, over, way):
    container.run(of_class("Echo", over(way)))
    big = "b" * 3_000_000
    assert container.node.call("com.hosted.echo", big)["args"] == [big]


@pytest.mark.parametrize("way", ["rs-unix-msgpack", "ws-tcp-json", "ws-tcp-deflate"])
def test_too_long_messages_are_told(container, hub, over, way):
    transport = over(way)
    if way == "rs-unix-msgpack":
        transport["endpoint"] = {"type": "unix", "path": str(hub.directory / "narrow.sock")}
    else:
        transport["options"] = {**transport.get("options", {}), "max_message_size": BOUND}
    container.run(of_class("TooLong", transport))
    for what in ("result", "error"):
        with pytest.raises(RefusedError) as refused:
            container.node.call("com.hosted.long", what, BOUND + 1)
        assert refused.value.uri == "wamp.error.payload_size_exceeded", what
        assert len(refused.value.text) < 500
    container.node.ask(CALL, {"receive_progress": True}, "com.hosted.long", ["progress", BOUND + 1])
    assert "(YIELD)" in container.node.hear(ERROR)[5][0]
    for what in ("publish", "call"):
        told = container.node.call("com.hosted.long", what, BOUND + 1)
        assert re.search(rf"a message of \d+ bytes \({what.upper()}\)", told)
    container.says(r"Not sent to .* \(CALL\)")
    warnings = [line for line in container.log if line.text.startswith("Not sent to ")]
    assert [line.level for line in warnings] == [4] * 5
    assert "YIELD" in warnings[0].text
    # The connection goes on, what is compressed too.
    assert container.node.call("com.hosted.long", "result", 1000) == "x" * 1000


def test_why_the_router_aborts(container, hub, over):
    transport = over("ws-unix-json")
    transport["endpoint"] = {"type": "unix", "path": str(hub.directory / "narrow.sock")}
    container.run(of_class("TooLong", transport))
    with pytest.raises(RefusedError):
        container.node.call("com.hosted.long", "publish", BOUND + 1)
    container.says(rf"connection ended: wamp\.error\.\w+: .*{BOUND}.*; trying again")
    container.event("on_component_ready")
    assert not any("cannot be handled" in line.text for line in container.log)


def test_the_preferred_serializer_is_no_demand(container, hub):
    host, port = hub.address("cbor")
    container.run(
        of_class(
            "Echo",
            {
                "type": "websocket",
                "url": f"ws://{host}:{port}/ws",
                "endpoint": {"type": "tcp", "host": host, "port": port},
                "serializers": ["json"],
            },
        )
    )
    assert container.node.call("com.hosted.way")[0] == "cbor"


def test_relative_paths_and_working_directory(container, hub, unix):
    own = container.directory / "here.sock"
    own.symlink_to(hub.directory / "router.sock")
    transport = {**unix, "endpoint": {"type": "unix", "path": "here.sock"}}
    container.run(of_class("Echo", transport, extra={"one": 1}))
    places = container.node.call("com.hosted.places")
    assert places[0] == str(container.directory)
    assert places[1].endswith("conformance/hosted")
    assert container.node.call("com.hosted.extra") == {
        "one": 1,
        "cbdir": str(container.directory),
    }


def test_the_role_of_its_transport(container, hub, unix):
    red = {**unix, "endpoint": {"type": "unix", "path": str(hub.directory / "red.sock")}}
    container.run(of_class("Echo", red))
    assert container.node.call("com.hosted.way")[2] == "red"


@pytest.mark.parametrize(
    ("name", "procedure", "answer"),
    [
        ("Modern", "modern", "modern"),
        ("parts:Modern", "modern", "modern"),
        ("parts:component", "decorated", "decorated"),
        ("parts.component", "decorated", "decorated"),
    ],
)
def test_kinds_of_classes(container, unix, name, procedure, answer):
    container.run(of_class(name, unix))
    assert container.node.call(f"com.hosted.{procedure}") == answer


def test_function_components(container, unix):
    callbacks = {"join": "parts.joined", "leave": "parts.left"}
    definition = {
        "type": "function",
        "realm": "realm1",
        "transport": unix,
        "callbacks": callbacks,
    }
    container.run(definition)
    assert container.node.call("com.hosted.function") == "function"
    assert container.says("joined by function").level == 6
    container.call("stop_component", "component1")
    container.says("left by function: wamp.close")


def test_a_main_that_ends_ends_its_component(container, unix):
    container.node.listen("com.hosted.main")
    container.start(of_class("parts:once", unix))
    assert container.node.await_event("com.hosted.main") == ["ran"]
    container.event("on_component_stopped")
    assert container.call("get_components") == []


def test_start_stop_restart(container, unix):
    container.run(of_class("Echo", unix))
    (described,) = container.call("get_components")
    assert described == container.call("get_component", "component1")
    assert (described["id"], described["state"]) == ("component1", "ready")
    with pytest.raises(RefusedError) as refused:
        container.start(of_class("Echo", unix))
    assert refused.value.uri == "crossbar.error.already_running"
    restarted = container.call("restart_component", "component1")
    container.event("on_component_ready")
    assert set(restarted) == {"id", "stopped", "started"}
    assert described["started"] <= restarted["stopped"] <= restarted["started"]
    (described,) = container.call("get_components")
    assert described["started"] == restarted["started"]
    assert container.node.call("com.hosted.echo", 1)["args"] == [1]
    assert container.call("stop_component", "component1")["id"] == "component1"
    container.event("on_component_stopped")
    with pytest.raises(RefusedError) as refused:
        container.node.call("com.hosted.echo", 1)
    assert refused.value.uri == "wamp.error.no_such_procedure"
    for procedure in ("stop_component", "restart_component", "get_component"):
        with pytest.raises(RefusedError) as refused:
            container.call(procedure, "component1")
        assert refused.value.uri == "crossbar.error.no_such_object"


def test_restart_reads_changed_modules_when_asked_to(container, unix):
    own = container.directory / "changing.py"
    text = (HOSTED / "parts.py").read_text()
    own.write_text(text)
    container.run(of_class("changing.Version", unix))
    assert container.node.call("com.hosted.version") == 1
    own.write_text(text.replace("VERSION = 1", "VERSION = 22"))
    container.call("restart_component", "component1")
    container.event("on_component_ready")
    assert container.node.call("com.hosted.version") == 1
    container.call("restart_component", "component1", reload_modules=True)
    container.event("on_component_ready")
    assert container.node.call("com.hosted.version") == 22


def test_an_endless_on_join_blocks_no_other_component(container, unix):
    container.node.listen("com.hosted.tick")
    container.start(of_class("Endless", unix), "endless")
    container.start(of_class("Looping", unix), "looping")
    container.run(of_class("Echo", unix), "echo")
    container.node.await_event("com.hosted.tick")
    assert container.node.call("com.hosted.endless") == "here"
    states = {each["id"]: each["state"] for each in container.call("get_components")}
    assert states == {"endless": "joined", "looping": "joined", "echo": "ready"}
    assert container.terminate() == 0


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        (
            {"classname": "nowhere.Class"},
            "class_import_failed",
            ["'nowhere.Class'", "ModuleNotFoundError", "conformance/hosted"],
        ),
        (
            {"classname": "parts.Missing"},
            "class_import_failed",
            ["'parts.Missing'", "AttributeError"],
        ),
        (
            {"classname": "broken.Class"},
            "class_import_failed",
            ["RuntimeError: broken on purpose", "broken.py, line 3"],
        ),
        ({"classname": "parts.not_a_component"}, "class_import_failed", ["42", "ApplicationSess"]),
        (
            {"classname": "autobahn.asyncio.wamp.ApplicationSession"},
            "class_import_failed",
            ["asyncio"],
        ),
        (
            {"classname": "parts.Unmakeable"},
            "class_import_failed",
            ["parts.Unmakeable", "RuntimeError: cannot be made"],
        ),
        (
            {"classname": "elsewhere.Elsewhere"},
            "class_import_failed",
            ["for asyncio", "on Twisted", "elsewhere.py, line 3"],
        ),
        ({"classname": "noname"}, "invalid_configuration", ["module.Name", "'noname'"]),
        ({"classname": 7}, "invalid_configuration", ["7"]),
        ({"type": "wamplet"}, "invalid_configuration", ["'wamplet'"]),
        ({"realm": None}, "invalid_configuration", ["'realm'"]),
        ({"transport": None}, "invalid_configuration", ["'transport'"]),
        ({"transport": {"type": "web"}}, "invalid_configuration", ["'web'"]),
        ({"transport": {"type": "websocket"}}, "invalid_configuration", ["'url'"]),
        (
            {"transport": {"type": "websocket", "url": "http://x"}},
            "invalid_configuration",
            ["its transport"],
        ),
        (
            {"transport": {"type": "rawsocket", "serializer": "json"}},
            "invalid_configuration",
            ["'endpoint'"],
        ),
        (
            {"transport": {"type": "rawsocket", "serializer": "xml", "endpoint": {}}},
            "invalid_configuration",
            ["'xml'", "cbor"],
        ),
        (
            {"type": "function", "callbacks": {"join": "parts.nothing"}},
            "class_import_failed",
            ["'parts.nothing'"],
        ),
        (
            {"type": "function", "callbacks": {"arrive": "parts.joined"}},
            "invalid_configuration",
            ["'arrive'", "join"],
        ),
        (
            {"type": "function", "auth": {"magic": {}}},
            "class_import_failed",
            ["magic"],
        ),
        (
            {"extraa": 1, "transport": {"type": "rawsocket", "endpont": {}}},
            "invalid_configuration",
            [
                "no key 'extraa' in a class component (did you mean 'extra'?); there are type,",
                "no key 'endpont' in its rawsocket transport (did you mean 'endpoint'?)",
            ],
        ),
        (
            {"type": "function", "main": "parts.main"},
            "invalid_configuration",
            ["no key 'main' in a function component; there are", "callbacks"],
        ),
        (
            {"transport": {"type": "rawsocket", "options": {"max_size": 1}}},
            "invalid_configuration",
            ["'max_size'", "max_message_size"],
        ),
        (
            {
                "transport": {
                    "type": "websocket",
                    "endpoint": {"type": "tcp", "hots": "localhost", "tls": {"hostnam": "x"}},
                    "options": {"compression": {"deflate": {"level": 3}, "brotli": {}}},
                }
            },
            "invalid_configuration",
            ["'hots'", "'hostnam'", "'level'", "'brotli'", "did you mean 'host'"],
        ),
    ],
)
def test_a_component_that_cannot_start_says_why(container, unix, changes, error, says):
    definition = {**of_class("Echo", unix), **changes}
    if definition["type"] == "function":
        del definition["classname"]
    with pytest.raises(RefusedError) as refused:
        container.start(definition)
    assert refused.value.uri == f"crossbar.error.{error}"
    for words in says:
        assert words in refused.value.text
    assert refused.value.text in container.event("on_component_failed")["reason"]
    assert container.says("cannot start").level == 3
    container.run(of_class("Echo", unix))


@pytest.mark.parametrize(
    ("procedure", "args", "kwargs", "says"),
    [
        ("stop_component", [], {}, "missing a required argument: 'component_id'"),
        ("get_component", [["a"]], {}, "'component_id' is a string, not a list"),
        ("restart_component", ["a", 1], {}, "'reload_modules' is a boolean, not an integer"),
        ("start_component", ["a"], {}, "the arguments are component_id, definition"),
        ("start_component", ["a", "b"], {}, "'definition' is an object, not a string"),
        ("get_components", [1], {}, "the arguments are none"),
        ("restart_component", ["a"], {"now": True}, "component_id, [reload_modules]"),
    ],
)
def test_wrong_arguments_are_the_callers(container, procedure, args, kwargs, says):
    with pytest.raises(RefusedError) as refused:
        container.call(procedure, *args, **kwargs)
    assert refused.value.uri == "wamp.error.invalid_argument"
    assert says in refused.value.text
    assert container.terminate() == 0
    container.says("closed cleanly")
    assert not any(line.level < 6 for line in container.log)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Raising", "onJoin: ValueError: not today"),
        ("RaisingLate", "onJoin: ValueError: not tomorrow either"),
        ("Beyond", "onJoin: ImportError: no 'crossbar.router'"),
    ],
)
def test_raising_in_on_join(container, unix, name, says):
    container.start(of_class(name, unix))
    assert says in container.event("on_component_failed")["reason"]
    assert container.says(f"Component 'component1' failed in {says.split(':')[0]}").level in (2, 3)
    assert container.says(r'File ".*hosted/parts.py"').level in (2, 3)
    assert container.call("get_components") == []
    # It said goodbye.
    assert not any("session closed with reason" in line.text for line in container.log)


def test_raising_listeners(container, unix):
    definition = {"type": "function", "realm": "realm1", "transport": unix}
    container.start({**definition, "callbacks": {"join": "parts.raising"}})
    assert "no listener" in container.event("on_component_failed")["reason"]
    container.run({**definition, "callbacks": {"leave": "parts.raising"}})
    container.call("stop_component", "component1")
    container.event("on_component_stopped")
    container.says("no listener")


def test_the_log(container, unix):
    container.run(of_class("Echo", unix))
    container.node.call("com.hosted.speak")
    container.says("surrogate")
    said = [(line.level, line.text) for line in container.log]
    expected = [
        (6, "by self.log"),
        (3, "two"),
        (3, "lines"),
        (6, "by print"),
        (6, "without an end!"),
        (4, "by logging"),
        (4, "by standard error"),
    ]
    at = said.index(expected[0])
    assert said[at : at + len(expected)] == expected
    assert not any("never seen" in text for _, text in said)


def test_a_flood_stops_no_other_component(container, unix):
    container.start(of_class("Flooding", unix))
    container.says("flood")
    container.run(of_class("Echo", unix), "echo")
    assert container.node.call("com.hosted.echo", 1)["args"] == [1]
    assert container.terminate() == 0


def test_the_end_by_signal(start_container, unix):
    container = start_container()
    container.run(of_class("Echo", unix))
    assert container.terminate() == 0
    container.says("closed cleanly")
    said = [line.text for line in container.log]
    expected = [
        "Native worker received SIGTERM - shutting down ..",
        "Shutdown of worker requested!",
        "Connection to node controller closed cleanly",
    ]
    assert [text for text in said if text in expected] == expected
    with pytest.raises(RefusedError):
        container.node.call("com.hosted.echo", 1)


@pytest.mark.parametrize("name", ["Blocking", "Clinging"])
def test_the_end_of_those_who_would_not(container, unix, name):
    container.start(of_class(name, unix))
    if name == "Blocking":
        container.says("blocking now")
    else:
        container.event("on_component_ready")
    assert container.terminate() == 0
    container.says("cut off")


def test_the_end_by_a_component(container, unix):
    container.run(of_class("Echo", unix))
    container.start(of_class("Stopping", unix), "stopping")
    assert container.exit_code() == 0
    container.says("Connection to node controller closed cleanly")


def test_the_end_before_it_has_begun(hub, tmp_path):
    container = Container(tmp_path, hub.directory / "router.sock")
    # Its handler of the signal is its first act; the interpreter's own start has none.
    await_true("it handles the signal", lambda: handles(container.process.pid, signal.SIGTERM))
    assert container.terminate() == 0
    container.close()


def handles(pid: int, number: signal.Signals) -> bool:
    """Whether a process has a handler for a signal."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = re.search(r"SigCgt:\s*([0-9a-f]+)", status)
    return bool(caught and int(caught[1], 16) >> (number - 1) & 1)


def test_the_end_by_request(container):
    assert container.call("shutdown") is None
    assert container.exit_code() == 0


@pytest.mark.parametrize(
    ("policy", "component", "code"),
    [
        ("last-component-stopped", "Leaving", 0),
        ("any-component-stopped", "Leaving", 0),
        ("any-component-failed", "Raising", 1),
        ("any-component-stopped", "Raising", 1),
        ("last-component-stopped", "Raising", 1),
        ("any-component-failed", "nowhere.Class", 1),
        ("last-component-stopped", "nowhere.Class", 1),
    ],
)
def test_policies(start_container, unix, policy, component, code):
    container = start_container("--shutdown", policy)
    if policy != "last-component-stopped":
        container.run(of_class("Echo", unix), "other")
    if component == "nowhere.Class":
        with pytest.raises(RefusedError):
            container.start(of_class(component, unix))
    else:
        container.start(of_class(component, unix))
    assert container.exit_code() == code
    container.says("shutting down.")


@pytest.mark.parametrize("first", ["nowhere.Class", "Leaving", "Raising"])
def test_the_first_that_ends_is_not_the_last(start_container, unix, first):
    container = start_container("--shutdown", "last-component-stopped")
    if first == "nowhere.Class":
        with pytest.raises(RefusedError):
            container.start(of_class(first, unix), "first")
    else:
        container.start(of_class(first, unix), "first")
        container.event(f"on_component_{'stopped' if first == 'Leaving' else 'failed'}")
    # The controller asks for the next as soon as it has its answer.
    container.run(of_class("Echo", unix))
    assert container.node.call("com.hosted.echo", 1)["args"] == [1]
    container.call("stop_component", "component1")
    assert container.exit_code() == (0 if first == "Leaving" else 1)
    container.says("Container is hosting no more components: shutting down.")


def test_policies_that_do_not_fire(start_container, unix):
    container = start_container("--shutdown", "last-component-stopped")
    container.run(of_class("Echo", unix), "other")
    container.start(of_class("Raising", unix))
    container.event("on_component_failed")
    container.call("restart_component", "other")
    container.event("on_component_ready", "other")
    assert container.node.call("com.hosted.echo", 1)["args"] == [1]
    container.call("stop_component", "other")
    # One of them failed.
    assert container.exit_code() == 1
    container.says("Container is hosting no more components: shutting down.")


def with_a_node_of_its_own(start_router, tmp_path: Path) -> tuple[Router, Container]:
    """Start a host with a management realm of its own."""
    realms = [
        {"name": name, "roles": [config.role("anonymous")]} for name in ("crossbar", "realm1")
    ]
    router = start_router(config.node(realms, [config.universal("unix", config.unix())]))
    (tmp_path / "own").mkdir()
    container = Container(tmp_path / "own", router.directory / "router.sock")
    container.ready()
    return router, container


def test_the_node_is_gone(start_router, tmp_path):
    router, container = with_a_node_of_its_own(start_router, tmp_path)
    router.stop()
    assert container.exit_code() == 1
    container.close()


def test_a_node_that_does_not_answer(start_router, tmp_path):
    router, container = with_a_node_of_its_own(start_router, tmp_path)
    router.process.send_signal(signal.SIGSTOP)
    try:
        assert container.terminate() == 0
    finally:
        router.process.send_signal(signal.SIGCONT)
    container.says("Connection to node controller closed uncleanly")
    assert not any("closed cleanly" in line.text for line in container.log)
    container.close()


def test_no_node_at_all(tmp_path, hub):
    container = Container(tmp_path, hub.directory / "router.sock", "--management", "unix:none.sock")
    assert container.exit_code() == 1
    container.says("the node is gone")
    container.close()


def test_connections_are_tried_again(container, start_router, unix):
    realm = {"name": "realm1", "roles": [config.role("anonymous")]}
    settled = config.node([realm], [config.universal("unix", config.unix("late.sock"))])
    path = container.directory / "node0/late.sock"
    transport = {**unix, "endpoint": {"type": "unix", "path": str(path)}}
    container.start(of_class("Echo", transport))
    container.says("No such file.*trying again")
    container.start(of_class("Endless", transport), "endless")
    router = start_router(settled)
    container.event("on_component_ready", "component1")
    router.stop()
    container.says("trying again", since=len(container.log) - 1)
    again = Router(router.directory, config=settled)
    try:
        container.event("on_component_ready", "component1")
        container.says("connected again")
    finally:
        again.stop()
    assert container.terminate() == 0


def test_lost_sessions_leave_the_memory(container, unix):
    container.run(of_class("Dropping", unix))
    for _ in range(5):
        # Whether the answer is still sent is not told.
        with contextlib.suppress(RefusedError):
            container.node.call("com.hosted.drop")
        container.event("on_component_ready")
    # One may still be held by what was its last act.
    await_true("they are gone", lambda: container.node.call("com.hosted.alive") <= 2)


def test_stopped_while_it_waits(container, unix):
    transport = {**unix, "endpoint": {"type": "unix", "path": "none.sock"}}
    container.start(of_class("Echo", transport))
    container.says("trying again")
    container.call("stop_component", "component1")
    container.event("on_component_stopped")
    assert container.terminate() == 0


def test_a_realm_that_is_not_there(container, unix):
    container.start({**of_class("Echo", unix), "realm": "nowhere"})
    container.says("wamp.error.no_such_realm.*trying again")
    assert container.call("get_component", "component1")["state"] in ("waiting", "connecting")


def test_modules_that_components_import_from_crossbar(container, unix):
    container.run(of_class("Shimmed", unix))
    process = container.node.call("com.hosted.process")
    assert process["hl"] == "text"
    stats = process["stats"]
    assert stats["pid"] == container.process.pid
    for field in ("user", "system", "mem_percent", "voluntary", "time", "resident", "virtual"):
        assert stats[field] >= 0, field
    assert stats["status"] in ("running", "sleeping")
    assert process["info"]["threads"] >= 1


def test_options_of_the_worker(start_container, unix):
    container = start_container("--extra", json.dumps({"a": 1}))
    container.run(of_class("asking:make", unix))
    assert container.node.call("com.hosted.shared") == {"a": 1}


def test_many_at_once(start_container, unix):
    container = start_container()
    for number in range(20):
        extra = {"prefix": f"com.hosted{number}"}
        container.start(of_class("Echo", unix, extra=extra), f"component{number}")
    for number in range(20):
        container.event("on_component_ready", f"component{number}")
    for number in range(20):
        assert container.node.call(f"com.hosted{number}.echo", number)["args"] == [number]
    assert container.terminate() == 0


def test_without_autobahn(tmp_path):
    done = subprocess.run(
        [
            *["python3", "-S", "-m", "crosstie.container", "--worker", "w"],
            *["--management", "unix:x", "--directory", str(tmp_path)],
        ],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("<3>Autobahn|Python cannot be imported by ")
