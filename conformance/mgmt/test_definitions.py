"""Definitions that are imported at run time: whole, for one vhost, by a form; or not at all."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
from collections.abc import Iterator

import pytest
from rig import config
from rig.broker import password_hash
from rig.http import Http
from rig.router import Router, binary
from rig.waiting import await_true

from mgmt.cases import ALL, Api
from mgmt.references import binding, exchange, queue
from mgmt.stage import configuration

PATTERN = {"pattern": "^q", "definition": {"max-length": 3}}


class Node:
    """A node that a test stops and starts."""

    def __init__(self, directory) -> None:
        """Start it."""
        self.directory = directory
        configuration = config.plain(
            {"type": "amqp", "id": "amqp", "endpoint": config.tcp()},
            {"type": "amqp.management", "id": "management", "endpoint": config.tcp()},
        )
        (directory / "config.json").write_text(json.dumps(configuration))
        self.start()

    def start(self) -> None:
        """Start it, for the first time or again."""
        self.router = Router(self.directory, "--cbdir", str(self.directory))
        self.api = Api(Http(self.router.address("management")), self.router.address("amqp"))


@pytest.fixture
def node(tmp_path) -> Iterator[Node]:
    """Return a node whose configuration names no users."""
    found = Node(tmp_path)
    yield found
    found.router.stop()


def refused(api: Api, definitions: object, path: str = "definitions") -> tuple[int, str]:
    """Return status and reason."""
    answer = api.ask("POST", path, definitions)
    return answer.status, json.loads(answer.body)["reason"]


def test_definitions_survive_a_kill(node):
    definitions = {
        "users": [{"name": "al", "password": "al", "tags": "management"}],
        "vhosts": [{"name": "v"}, {"name": "w", "metadata": {"description": "d", "tags": ["t"]}}],
        "permissions": [{"user": "al", "vhost": "v", **ALL}],
        "policies": [{"vhost": "v", "name": "p", **PATTERN}],
        "queues": [queue("v", "q", {"x-expires": 900000}), queue("/", "here", {})],
        "exchanges": [exchange("v", "e", "topic")],
        "bindings": [binding("v", "e", "q", "k.#")],
    }
    assert node.api.ask("POST", "definitions", definitions).status == 204
    assert node.api.ask("POST", "definitions", definitions).status == 204
    node.router.kill()
    node.start()
    api = node.api
    found = api.json("queues/v/q", user="al")
    assert (found["arguments"], found["policy"]) == ({"x-expires": 900000}, "p")
    assert [row["routing_key"] for row in api.json("bindings/v/e/e/q/q", user="al")] == ["k.#"]
    assert api.json("vhosts/w")["description"] == "d"
    assert [row["name"] for row in api.json("queues/%2F")] == ["here"]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"queues": [queue("nope", "q", {})]}, (400, "no_such_vhost: nope")),
        (
            {"permissions": [{"user": "nope", "vhost": "/", **ALL}]},
            (400, "no_such_user: nope"),
        ),
        ({"users": [{"name": "x", "password": "x"}]}, (400, "tags_not_present")),
        (
            {"policies": [{"vhost": "/", "name": "p", "pattern": "x", "definition": {"no": 1}}]},
            (
                400,
                'Validation failed\n\n[{&lt;&lt;"no"&gt;&gt;,1}] '
                "are not recognised policy settings\n (//p)",
            ),
        ),
        (
            {"queues": [queue("/", "q", {}), queue("/", "q", {"x-max-length": 5})]},
            (
                400,
                "inequivalent arg 'x-max-length' for queue 'q' in vhost '/': "
                "received the value '5' of type 'long' but current is none",
            ),
        ),
        (
            {"queues": [{**queue("/", "q", {}), "durable": "true"}]},
            (400, "/queues/1/durable: true or false is expected, found a text"),
        ),
        (
            {"global_parameters": [{"name": "x"}]},
            (400, "global parameter 'x': [{key_missing,value}]"),
        ),
    ],
)
def test_nothing_of_a_wrong_file_is_applied(api, more, expected):
    before = api.json("definitions")
    right = {
        "users": [{"name": "ok", "password": "x", "tags": ""}],
        "vhosts": [{"name": "ok"}],
        "queues": [queue("ok", "ok", {})],
    }
    wrong = {key: [*right.get(key, []), *more.get(key, [])] for key in {*right, *more}}
    assert refused(api, wrong) == expected
    assert api.json("definitions") == before


def test_entries_of_the_configuration_may_be_in_a_file_unchanged(api):
    exported = api.json("definitions")
    assert "plain" in [left_out["user"] for left_out in exported["left_out"]]
    assert {user["password_hash"] for user in exported["users"]} == {""}
    assert api.ask("POST", "definitions", exported).status == 204
    changed = {"users": [{"name": "plain", "password": "other", "tags": ""}]}
    status, reason = refused(api, changed)
    assert (status, '"amqp.users"' in reason) == (409, True)


def test_an_export_takes_no_passwords_away(api, node):
    user = {"password": "plain", "tags": "administrator"}
    assert node.api.ask("PUT", "users/plain", user).status == 201
    users = {"users": api.json("definitions")["users"], "left_out": [{"user": "plain"}]}
    answer = node.api.ask("POST", "definitions", users)
    left_out = {row["what"] for row in json.loads(answer.body)["skipped"]}
    assert "password of user 'management'" in left_out
    assert "password of user 'plain'" not in left_out
    assert node.api.ask("GET", "whoami", user="management").status == 401
    # Its tags are those of the file, which has none.
    assert node.api.ask("PUT", "users/plain", {**user, "password": "x"}, "plain").status == 401
    reason = json.loads(node.api.ask("GET", "whoami", user="plain").body)["reason"]
    assert reason == "Not management user"


def test_what_is_left_out_is_listed(api):
    assert api.ask("PUT", "queues/%2F/there", {"durable": True}).status == 201
    definitions = {
        "queues": [queue("/", "there", {"x-max-length": 5})],
        "exchanges": [exchange("/", "e", "x-jms-topic")],
        "bindings": [binding("/", "amq.topic", "nope", "k")],
        "parameters": [
            {"component": "shovel", "vhost": "/", "name": "s", "value": {"src-uri": "amqp://"}}
        ],
        "unknown": [],
    }
    answer = api.ask("POST", "definitions", definitions)
    assert answer.status == 200
    assert {row["what"] for row in json.loads(answer.body)["skipped"]} == {
        "queue 'there' in vhost '/'",
        "exchange 'e' in vhost '/'",
        "binding from 'amq.topic' to 'nope' in vhost '/'",
        "shovel 's' in vhost '/'",
        "'unknown'",
    }
    assert api.json("queues/%2F/there")["arguments"] == {}
    assert api.ask("DELETE", "queues/%2F/there").status == 204


def test_a_vhost_alone(api):
    assert api.ask("PUT", "vhosts/alone", {}).status == 201
    unnamed = queue("", "q", {})
    unnamed.pop("vhost")
    definitions = {
        "queues": [unnamed],
        "policies": [{"vhost": "/", "name": "alone", **PATTERN}],
        "users": [{"name": "x"}],
    }
    answer = api.ask("POST", "definitions/alone", definitions)
    (left_out,) = json.loads(answer.body)["skipped"]
    assert (answer.status, left_out["what"]) == (200, "'users'")
    exported = api.json("definitions/alone")
    assert [row["name"] for row in exported["queues"]] == ["q"]
    assert [row["vhost"] for row in exported["policies"]] == ["alone"]
    assert api.ask("POST", "definitions/alone", exported).status == 204
    assert refused(api, {}, "definitions/nope") == (404, "vhost_not_found")
    assert api.ask("DELETE", "vhosts/alone").status == 204


def test_the_body_of_a_request(api):
    def post(kind: str, body: bytes, **headers: str):
        return api.ask("POST", "definitions", body, headers={"Content-Type": kind, **headers})

    assert post("text/plain", b"{}").status == 415
    assert post("application/json", b"{}").status == 204
    answer = post("application/json", b"{,")
    assert (answer.status, json.loads(answer.body)["reason"]) == (400, "failed_to_parse_json")
    part = 'Content-Disposition: form-data; name="{}"\r\n\r\n{}'
    parts = [part.format("file", "{}"), part.format("redirect", "../#/import-succeeded")]
    form = "".join(f"--x\r\n{text}\r\n" for text in parts) + "--x--\r\n"
    kind = "multipart/form-data; boundary=x"
    answer = post(kind, form.encode())
    assert (answer.status, answer.header("location")) == (303, "../#/import-succeeded")
    foreign = form.replace("../#/import-succeeded", "https://evil/")
    assert post(kind, foreign.encode()).status == 400
    assert post(kind, form.encode(), Origin="http://evil").status == 403
    assert post(kind, form[:-9].encode()).status == 400
    assert api.ask("POST", "definitions", {}, "management").status == 401


def test_the_command_exports_and_imports(node, tmp_path):
    def run(*words: str, given: str = "") -> tuple[int, str, str]:
        command = [binary(), "amqp", "definitions", *words, "--cbdir", str(node.directory)]
        done = subprocess.run(
            command, text=True, capture_output=True, input=given, timeout=60, check=False
        )
        return done.returncode, done.stdout, done.stderr

    queues = [queue("v", "q", {}), queue("v", "r", {})]
    given = json.dumps({"vhosts": [{"name": "v"}], "queues": queues, "unknown": 1})
    code, said, _ = run("import", "-", "--dry-run", given=given)
    assert (code, "'unknown': it is not known" in said) == (0, True)
    assert not [row for row in node.api.json("vhosts") if row["name"] == "v"]
    code, said, _ = run("import", "-", "--json", given=given)
    assert (code, json.loads(said)["outcome"]) == (0, "imported")
    file = tmp_path / "exported.json"
    code, said, _ = run("export", str(file))
    assert (code, said) == (0, f"definitions written to {file}\n")
    assert file.stat().st_mode & 0o77 == 0
    exported = json.loads(file.read_text())
    assert [row["name"] for row in exported["queues"]] == ["q", "r"]
    code, _, complaint = run("export", str(file))
    assert (code, "cannot create" in complaint) == (2, True)
    code, said, _ = run("export", "--vhost", "v")
    assert (code, len(json.loads(said)["queues"])) == (0, 2)
    wrong = json.dumps({"queues": [queue("nope", "q", {})]})
    code, _, complaint = run("import", "-", given=wrong)
    assert (code, "no_such_vhost: nope" in complaint) == (1, True)


def test_bounds_of_a_vhost_hold_for_the_whole_file(node):
    api = node.api
    limits = {"component": "vhost-limits", "vhost": "v", "name": "limits"}
    first = {
        "vhosts": [{"name": "v"}],
        "parameters": [{**limits, "value": {"max-queues": 2}}],
        "queues": [queue("v", "a", {}), queue("v", "b", {})],
    }
    assert api.ask("POST", "definitions", first).status == 204
    # Queues that are there need no room.
    assert api.ask("POST", "definitions", first).status == 204
    more = {
        "queues": [*first["queues"], queue("v", "c", {})],
        "exchanges": [exchange("v", "e", "fanout")],
    }
    text = "cannot declare 1 queues beside 2: queue limit in vhost 'v' (2) is reached"
    assert refused(api, more) == (400, text)
    exported = api.json("definitions/v")
    assert (len(exported["queues"]), exported["exchanges"]) == (2, [])


def test_a_file_that_the_store_cannot_keep_is_not_applied(tmp_path):
    def ignore() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    router = Router(tmp_path, config=configuration(), preexec=ignore)
    api = Api(Http(router.address("management")), router.address("amqp"))
    before = api.json("definitions")
    # Writes fail, as on a full disk.
    full = (0, resource.RLIM_INFINITY)
    resource.prlimit(router.process.pid, resource.RLIMIT_FSIZE, full)
    definitions = {
        "users": [{"name": "al", "password": "al", "tags": ""}],
        "vhosts": [{"name": "v"}, {"name": "w"}],
        "permissions": [{"user": "al", "vhost": "v", **ALL}],
        "queues": [queue("v", "q", {})],
    }
    status, reason = refused(api, definitions)
    assert (status, "the store cannot keep the change" in reason) == (503, True), reason
    assert api.json("definitions") == before
    free = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(router.process.pid, resource.RLIMIT_FSIZE, free)

    def is_kept() -> bool:
        return api.ask("POST", "definitions", definitions).status == 204

    await_true("the store can write", is_kept)
    assert [row["name"] for row in api.json("definitions/v")["queues"]] == ["q"]
    router.stop()


def test_entries_of_a_file_count_from_the_start(tmp_path):
    directory = tmp_path / "node"
    directory.mkdir()
    limits = {"component": "vhost-limits", "vhost": "v", "name": "limits"}
    topic = {"user": "al", "vhost": "v", "exchange": "amq.topic", "write": "^a", "read": ".*"}
    definitions = {
        "users": [{"name": "al", "password_hash": password_hash("al"), "tags": "administrator"}],
        "vhosts": [{"name": "v", "metadata": {"description": "d", "tags": []}}],
        "permissions": [{"user": "al", "vhost": "v", **ALL}],
        "topic_permissions": [topic],
        "parameters": [{**limits, "value": {"max-queues": 1}}],
        "global_parameters": [{"name": "ports", "value": {"1883": "v"}}],
        "queues": [queue("v", "q", {})],
    }
    (directory / "definitions.json").write_text(json.dumps(definitions))
    given = configuration()
    given["workers"][0]["amqp"] = {"definitions": "definitions.json"}
    (directory / "config.json").write_text(json.dumps(given))
    router = Router(directory, "--cbdir", str(directory))
    api = Api(Http(router.address("management")), router.address("amqp"))
    answer = api.ask("PUT", "queues/v/r", {}, "al")
    text = "cannot declare queue 'r': queue limit in vhost 'v' (1) is reached"
    assert (answer.status, json.loads(answer.body)["reason"]) == (400, text)
    message = {"properties": {}, "payload": "x", "payload_encoding": "string"}
    for key, status in (("a", 200), ("b", 400)):
        body = {"routing_key": key, **message}
        assert api.ask("POST", "exchanges/v/amq.topic/publish", body, "al").status == status
    assert api.json("vhosts/v", "al")["description"] == "d"
    assert api.json("global-parameters/ports", "al")["value"] == {"1883": "v"}
    for path in (
        *["vhost-limits/v/max-queues", "topic-permissions/v/al", "global-parameters/ports"],
    ):
        answer = api.ask("DELETE", path, user="al")
        reason = json.loads(answer.body)["reason"]
        assert (answer.status, '"amqp.definitions"' in reason) == (409, True), (path, reason)
    exported = api.json("definitions", "al")
    assert api.ask("POST", "definitions", exported, "al").status == 204
    router.stop()
