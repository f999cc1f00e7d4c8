"""`check`, `convert` and `init`, as a user types them."""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path

import pika
import pika.exceptions
import pytest
from rig import certificates
from rig.node import Node
from rig.router import ROOT, binary

GOOD = {"version": 2, "workers": [{"type": "guest", "executable": "sleep", "arguments": ["1"]}]}
REALM = {"name": "realm1", "roles": [{"name": "anonymous", "permissions": []}]}
ROUTER = {"type": "router", "realms": [REALM]}
CASES = ROOT / "crates/config/tests/cases"
TEMPLATES = ("default", "python", "guest", "amqp")


def crosstie(*arguments: object, cwd: Path):
    """Run a command to its end, in an environment that names no node directory."""
    command = [str(binary()), *map(str, arguments)]
    environment = {"PATH": "/usr/bin:/bin", "PORT": "8080", "AMQP_PASSWORD": "secret"}
    return subprocess.run(
        command, cwd=cwd, env=environment, text=True, capture_output=True, timeout=60
    )


def write(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=4))
    return path


def test_check_finds_the_configuration_where_start_does(tmp_path):
    nothing = crosstie("check", cwd=tmp_path)
    assert nothing.returncode == 2
    assert "no node's configuration in" in nothing.stderr

    write(tmp_path / ".crossbar/config.json", GOOD)
    found = crosstie("check", cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    assert found.stdout == ".crossbar/config.json: a valid node configuration\n"
    found = crosstie("check", "--cbdir", tmp_path / ".crossbar", cwd=Path("/"))
    assert found.returncode == 0, found.stderr

    write(tmp_path / ".crossbar/other.json", {**GOOD, "wokers": []})
    wrong = crosstie("check", "--cbdir", ".crossbar", "--config", "other.json", cwd=tmp_path)
    assert wrong.returncode == 1
    assert wrong.stderr.startswith(
        '.crossbar/other.json:12:5: unknown key "wokers" in a configuration;'
        ' did you mean "workers"?\n'
    )


def test_check_shows_warnings_and_is_content(tmp_path):
    path = write(tmp_path / "node.json", {"workers": GOOD["workers"]})
    checked = crosstie("check", "--config", path.name, cwd=tmp_path)
    assert checked.returncode == 0
    assert checked.stderr.startswith('node.json:1:1: warning: "version" is missing')
    assert checked.stdout == "node.json: a valid node configuration\n"


def test_check_explains_what_stops_a_tree_of_configurations(tmp_path):
    """Count files that load, files that do not, and the files that each reason stops."""
    tcp = {"type": "tcp", "port": 8080, "interface": "localhost"}
    speaks = {**ROUTER, "transports": [{"type": "websocket", "endpoint": tcp}]}
    linked = {**speaks, "realms": [{**REALM, "inventory": {}}]}
    odd = {"type": "hostmonitor", "kind": 1}
    files = {
        "good/.crossbar/config.json": {"version": 2, "workers": [speaks]},
        "old/.crossbar/config-other.json": {"version": 1, "workers": [speaks]},
        "one/.crossbar/config.json": {"version": 2, "workers": [linked]},
        "two/config.json": {"version": 2, "workers": [linked, odd]},
        # Keys that belong to no node.
        "web/config.json": {"server": "localhost"},
        "web/node_modules/a/config.json": {"workers": 7},
        "good/.crossbar/other.json": {"workers": 7},
    }
    for name, value in files.items():
        write(tmp_path / "tree" / name, value)
    (tmp_path / "tree/three/.crossbar").mkdir(parents=True)
    (tmp_path / "tree/three/.crossbar/config.yaml").write_text("version: [")
    (tmp_path / "tree/again").symlink_to("good")

    told = crosstie("check", "--explain", "tree", cwd=tmp_path)
    assert told.returncode == 1
    lines = told.stdout.splitlines()
    assert lines[0] == "5 configurations: 2 load (1 of them with warnings), 3 are refused"
    reasons = lines[3:5]
    assert reasons[0].startswith('    2  "inventory" in a realm is not yet supported')
    assert reasons[1] == "       in tree/one/.crossbar/config.json"
    assert "tree/good/.crossbar/config.json: loads" in lines
    assert "tree/old/.crossbar/config-other.json: loads, with warnings" in lines
    assert "tree/two/config.json: refused" in lines

    told = crosstie("check", "--explain", "tree", "--format", "json", cwd=tmp_path)
    assert told.returncode == 1
    json_told = json.loads(told.stdout)
    assert (json_told["loaded"], json_told["refused"]) == (2, 3)
    assert json_told["reasons"][0]["files"] == 2
    paths = [file["path"] for file in json_told["files"]]
    assert paths == sorted(paths)
    assert len(paths) == 5
    [worst] = [file for file in json_told["files"] if file["path"] == "tree/two/config.json"]
    messages = [problem["message"] for problem in worst["problems"]]
    assert 'unknown key "kind" in a host monitor' in messages
    assert all(problem["line"] for problem in worst["problems"])

    fine = crosstie("check", "--explain", "tree/good", "tree/old", cwd=tmp_path)
    assert fine.returncode == 0, fine.stdout
    none = crosstie("check", "--explain", "tree/web", cwd=tmp_path)
    assert none.returncode == 2
    assert "no node's configuration below tree/web" in none.stderr


def test_check_warns_of_certificates_of_version_1(tmp_path):
    certificates.write_version_1(tmp_path)
    tls = {"key": "server.key", "certificate": "server.pem"}
    endpoint = {"type": "tcp", "port": 8443, "interface": "localhost", "tls": tls}
    worker = {**ROUTER, "transports": [{"type": "websocket", "endpoint": endpoint}]}
    path = write(tmp_path / "node.json", {"version": 2, "workers": [worker]})
    checked = crosstie("check", "--config", path.name, cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr
    assert "warning: " in checked.stderr
    assert "the certificate is of X.509 version 1" in checked.stderr
    # Another's key is refused as with any certificate.
    (tmp_path / "other").mkdir()
    certificates.write_version_1(tmp_path / "other")
    (tmp_path / "other/server.key").rename(tmp_path / "server.key")
    checked = crosstie("check", "--config", path.name, cwd=tmp_path)
    assert checked.returncode == 1
    assert "server.pem: certificate and key" in checked.stderr


def test_check_reads_credentials_for_nats(tmp_path):
    made = crosstie("cluster", "init", "made", "--node", "a", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    key = tmp_path / "made/a/realm1.nk"
    part = json.loads((tmp_path / "made/a/fabric.json").read_text())
    realm = {**REALM, **part["realms"][0]}
    write(key.parent / "config.json", {"version": 2, "workers": [{**ROUTER, "realms": [realm]}]})

    def check() -> tuple[int, str]:
        checked = crosstie("check", "--cbdir", "made/a", cwd=tmp_path)
        return checked.returncode, checked.stderr

    code, said = check()
    assert code == 0
    assert "realm1.nk" not in said
    key.chmod(0o644)
    code, said = check()
    assert code == 0
    assert "realm1.nk has mode 0644: other users can read the key; expected 0600" in said
    key.write_text("SUA")
    code, said = check()
    assert code == 1
    assert "realm1.nk: invalid nkey seed" in said
    key.unlink()
    code, said = check()
    assert code == 0
    assert "there is no file" in said


def test_check_warns_of_cores_that_do_not_exist(tmp_path):
    worker = {**GOOD["workers"][0], "options": {"cpu_affinity": [0, 1000, 1001]}}
    path = write(tmp_path / "node.json", {**GOOD, "workers": [worker]})
    checked = crosstie("check", "--config", path.name, cwd=tmp_path)
    assert checked.returncode == 0
    assert "warning: cores 1000, 1001 do not exist on this machine" in checked.stderr


def test_check_looks_into_web_services(tmp_path):
    path = CASES / "web.json"
    checked = crosstie("check", "--config", path, cwd=tmp_path)
    assert checked.returncode == 1
    assert '"static"' not in checked.stderr.split("\n")[0]
    assert 'unknown key "optoins" in WebSocket at a web path' in checked.stderr


def test_convert_writes_beside_the_file_and_over_nothing(tmp_path):
    path = write(tmp_path / "config.json", GOOD)
    converted = crosstie("convert", path.name, cwd=tmp_path)
    assert converted.returncode == 0, converted.stderr
    text = (tmp_path / "config.yaml").read_text()
    assert text.splitlines() == [
        "version: 2",
        "workers:",
        "  - type: guest",
        "    executable: sleep",
        '    arguments: ["1"]',
    ]

    again = crosstie("convert", path.name, cwd=tmp_path)
    assert again.returncode == 2
    assert "config.yaml is there already; --force overwrites it" in again.stderr
    (tmp_path / "config.yaml").write_text("# mine\n" + text)
    back = crosstie("convert", "config.yaml", "--force", cwd=tmp_path)
    assert back.returncode == 0, back.stderr
    assert back.stderr == "warning: the comments of config.yaml are lost\n"
    assert json.loads(path.read_text()) == GOOD
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["config.json", "config.yaml"]


def test_convert_writes_version_2_of_what_is_of_version_1(tmp_path):
    permission = {"uri": "com.example.*", "call": True}
    role = {"name": "anonymous", "permissions": [permission]}
    endpoint = {"type": "tcp", "port": 8080, "interface": "localhost"}
    worker = {
        "type": "router",
        "realms": [{"name": "realm1", "roles": [role]}],
        "transports": [{"type": "websocket", "endpoint": endpoint}],
    }
    write(tmp_path / "config.json", {"workers": [worker]})
    checked = crosstie("check", "--config", "config.json", cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr
    assert '"version" is missing and taken to be 1' in checked.stderr

    target = ("--output", "config.json", "--force")
    converted = crosstie("convert", "config.json", *target, cwd=tmp_path)
    assert converted.returncode == 0, converted.stderr
    assert "taken to be 1: the permission of it is converted" in converted.stderr
    written = json.loads((tmp_path / "config.json").read_text())
    assert written["version"] == 2
    permission = written["workers"][0]["realms"][0]["roles"][0]["permissions"][0]
    assert permission == {"uri": "com.example.*", "allow": {"call": True}}
    assert crosstie("check", "--config", "config.json", cwd=tmp_path).stderr == ""


@pytest.mark.parametrize("name", ["full.yaml", "node.yaml", "roundtrip.json", "template.json"])
def test_convert_there_and_back_says_the_same(tmp_path, name):
    there = crosstie("convert", CASES / name, "--output", "-", cwd=tmp_path)
    assert there.returncode == 0, there.stderr
    first, second = ("there.json", "back.yaml") if name.endswith("yaml") else ("t.yaml", "b.json")
    (tmp_path / first).write_text(there.stdout)
    back = crosstie("convert", first, "--output", second, cwd=tmp_path)
    assert back.returncode == 0, back.stderr
    again = crosstie("convert", second, "--output", "-", cwd=tmp_path)
    assert again.stdout == there.stdout


def test_convert_names_what_it_cannot_do(tmp_path):
    (tmp_path / "config.json").write_text('{"a": 1, "a": 2}')
    for arguments, code, said in [
        (["config.json"], 1, 'config.json:1:10: the key "a" is given twice'),
        (["node.toml"], 1, "its name must end in .json, .yaml or .yml"),
        (["nowhere.json"], 1, "cannot read nowhere.json"),
        (["config.json", "--output", "node.toml"], 2, "cannot tell what to write into node.toml"),
        ([], 2, "no node's configuration"),
    ]:
        tried = crosstie("convert", *arguments, cwd=tmp_path)
        assert tried.returncode == code, arguments
        assert said in tried.stderr, arguments
    assert [entry.name for entry in tmp_path.iterdir()] == ["config.json"]


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_is_a_node_directory(tmp_path, name):
    made = crosstie("init", "--template", name, "--appdir", "node", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    checked = crosstie("check", cwd=tmp_path / "node")
    assert checked.returncode == 0, checked.stderr
    assert checked.stderr == ""
    for path in (tmp_path / "node").rglob("*.py"):
        compile(path.read_text(), str(path), "exec")

    again = crosstie("init", "--template", name, "--appdir", "node", cwd=tmp_path)
    assert again.returncode == 2
    ending = "yaml" if name == "amqp" else "json"
    said = f"node/.crossbar/config.{ending} is there already; it is not overwritten"
    assert said in again.stderr


def test_init_lists_its_templates(tmp_path):
    listed = crosstie("init", "--list", cwd=tmp_path).stdout
    assert [line.split()[0] for line in listed.splitlines()] == list(TEMPLATES)
    unknown = crosstie("init", "--template", "crossbar", cwd=tmp_path)
    assert unknown.returncode == 2
    said = 'there is no template "crossbar"; there are default, python, guest, amqp'
    assert said in unknown.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("default", "transport 'transport1' started"),
        ("python", "Registered com.example.hello"),
        ("guest", "registered com.example.time"),
    ],
)
def test_the_node_of_a_template_does_what_its_readme_says(tmp_path, name, said):
    made = crosstie("init", "--template", name, "--appdir", tmp_path, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    path = tmp_path / ".crossbar/config.json"
    configuration = json.loads(path.read_text())
    router, *others = configuration["workers"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Its own port may be taken on this machine.
    assert router["transports"][0]["endpoint"]["port"] == 8080
    router["transports"][0]["endpoint"]["port"] = port
    for guest in (other for other in others if other["type"] == "guest"):
        guest["arguments"] += ["--url", f"ws://127.0.0.1:{port}/ws"]
    running = Node(path.parent, configuration)
    try:
        running.says(said)
    finally:
        running.close()


def test_the_amqp_template_is_a_broker(tmp_path, monkeypatch):
    made = crosstie("init", "--template", "amqp", "--appdir", tmp_path, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    path = tmp_path / ".crossbar/config.yaml"
    text = path.read_text()
    # Its own ports may be taken on this machine.
    for port in ("5672}", "9100}", "15672,", "15692,"):
        assert f"port: {port}" in text
        text = text.replace(f"port: {port}", f"port: 0{port[-1]}")
    path.write_text(text)
    converted = crosstie("convert", path, "--output", "-", cwd=tmp_path)
    path.unlink()
    monkeypatch.setenv("AMQP_PASSWORD", "secret")
    running = Node(tmp_path / ".crossbar", json.loads(converted.stdout))
    try:
        line = running.says("transport 'transport1' started at")
        port = int(line.text.rsplit(":", 1)[1])

        def opens(password: str) -> None:
            login = pika.PlainCredentials("openstack", password)
            place = pika.ConnectionParameters("127.0.0.1", port, "/", login)
            pika.BlockingConnection(place).close()

        opens("secret")
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            opens("guess")
    finally:
        running.close()


def test_check_reads_the_files_that_are_named(tmp_path):
    tls = {"key": "no.key", "certificate": "no.crt"}
    far = {"type": "amqp", "endpoint": {"type": "tcp", "port": 5671, "tls": tls}}
    near = {"type": "amqp", "endpoint": {"type": "tcp", "port": 5672}}
    first = {"type": "router", "amqp": {"definitions": "no.json"}, "transports": [far]}
    amqp = {"definitions": "rabbit.json", "store": "second.store"}
    second = {"type": "router", "amqp": amqp, "transports": [near]}
    off = {**first, "options": {"disabled": True}, "amqp": {"store": "third.store"}}
    write(tmp_path / "config.json", {"version": 2, "workers": [first, second, off]})
    queue = {"vhost": "/", "durable": True, "auto_delete": False}
    long = {**queue, "name": "long", "arguments": {"x-message-ttl": "long"}}
    good = {**queue, "name": "good", "arguments": {}}
    permission = {"vhost": "/", "configure": "", "write": "", "read": "", "user": "nobody"}
    definitions = {
        "vhosts": [{"name": "/"}],
        "permissions": [permission],
        "queues": [long, good],
    }
    write(tmp_path / "rabbit.json", definitions)

    checked = crosstie("check", cwd=tmp_path)
    assert checked.returncode == 1
    problems = [line for line in checked.stderr.splitlines() if line.startswith("config.json:")]
    assert [line.split(":")[1] for line in problems] == ["7", "15"]
    for line, said in zip(
        problems,
        [
            "cannot import the definitions of",
            "no.crt: expected certificates in PEM",
        ],
        strict=True,
    ):
        assert said in line
    # Refused definitions are reported in the broker's words.
    assert "1 queues, 0 bindings, 2 not imported" in checked.stdout
    assert "permission of user 'nobody' in vhost '/': not imported: there is no" in checked.stdout
    assert "queue 'long' in vhost '/': not imported: PRECONDITION_FAILED" in checked.stdout
    assert "config.json: a valid node configuration" not in checked.stdout

    definitions["permissions"] = []
    write(tmp_path / "rabbit.json", definitions)
    write(tmp_path / "config.json", {"version": 2, "workers": [second]})
    checked = crosstie("check", cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr
    assert "PRECONDITION_FAILED" in checked.stdout


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("config.json", "A node prefers config.json while it exists."),
        ("config.yml", "A node now uses config.json instead of config.yml."),
        ("other.json", ""),
    ],
)
def test_convert_says_which_file_a_node_takes(tmp_path, name, said):
    (tmp_path / name).write_text('{"version": 2, "workers": []}')
    done = crosstie("convert", name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if "A node" in line] == [said][: bool(said)]
