"""Another server decides on logins and rights: RabbitMQ's questions, its answers, its faults."""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qsl

import pytest
from rig import config
from rig.amqp_peer import Peer
from rig.backend import Backend, Got
from rig.http import Http
from rig.plain import ClosedError
from rig.router import binary
from rig.waiting import DEADLINE_S, await_true

PASSWORD = "right +~é"
TAGS = "management policymaker"
HANGS = threading.Event()


def response(text: str, status: str = "200 OK") -> bytes:
    """Return an answer."""
    body = text.encode()
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def decide(got: Got) -> bytes | None:
    """Answer a question; names choose the fault."""
    path, values = question(got)
    if values.get("name") == "failing" or values.get("username") == "failing":
        return response("", "500 Internal Server Error")
    if values.get("name") == "odd":
        return response("perhaps")
    if "hanging" in (values.get("name"), values.get("username")):
        HANGS.wait(DEADLINE_S)
    right = {
        "/user": values.get("password") == PASSWORD,
        "/vhost": values.get("vhost") == "/",
        "/resource": values.get("name") != "forbidden",
        "/topic": values.get("routing_key") != "no",
    }[path]
    if not right:
        return response("deny for a reason")
    return response(f"Allow {TAGS}\n" if path == "/user" else "allow")


def question(got: Got) -> tuple[str, dict[str, str]]:
    """Return the path of a request, and its parameters."""
    method, target, _ = got.line.split()
    path, _, query = target.partition("?")
    if method == "POST":
        assert got.header("content-type") == "application/x-www-form-urlencoded"
        query = got.body.decode()
    return path, dict(parse_qsl(query, keep_blank_values=True))


@pytest.fixture
def server() -> Iterator[Backend]:
    """Return a server that decides."""
    HANGS.clear()
    server = Backend(decide)
    yield server
    HANGS.set()
    with contextlib.suppress(OSError):
        server.close()


def http(server: Backend, **more: object) -> dict:
    """Return the backend of that server."""
    paths = {f"{of}_path": f"http://127.0.0.1:{server.port}/{of}" for of in KINDS}
    return {"type": "http", **paths, **more}


KINDS = ("user", "vhost", "resource", "topic")
INTERNAL = {"type": "internal"}


def login(broker, user: str = "joe", password: str = PASSWORD, vhost: str = "/") -> Peer:
    """Log in."""
    return Peer.tcp(broker.address).open(user, password, vhost)


def refused(broker, user: str, password: str) -> tuple[int, str]:
    """Log in, and return the code and text of the refusal."""
    with Peer.tcp(broker.address) as peer:
        peer.start(user, password)
        code, text, _, _ = peer.expect_connection_close()
        return code, text


def taken(server: Backend) -> list[str]:
    """Return the questions since the last call, as RabbitMQ writes them."""
    got, server.got = server.got, []
    return [each.line.split()[1] for each in got]


OF_JOE = "username=joe&vhost=%2F"
WITH_TAGS = "tags=management+policymaker"


def resource(kind: str, name: str, access: str) -> str:
    """Return the question about a name."""
    return f"/resource?{OF_JOE}&resource={kind}&name={name}&permission={access}&{WITH_TAGS}"


def topic(access: str, key: str) -> str:
    """Return the question about a routing key of `amq.topic`."""
    return (
        f"/topic?{OF_JOE}&resource=topic&name=amq.topic&permission={access}&{WITH_TAGS}"
        f"&routing_key={key}&variable_map.username=joe&variable_map.vhost=%2F"
    )


def test_the_questions_are_those_of_rabbitmq(start_broker, server):
    """Recorded from RabbitMQ 3.10.8, with the same methods."""
    broker = start_broker(amqp={"auth_backends": [INTERNAL, http(server)]})
    peer = login(broker)
    assert taken(server) == [
        "/user?username=joe&password=right+%2B~%C3%A9",
        f"/vhost?{OF_JOE}&ip=127.0.0.1&{WITH_TAGS}",
    ]
    number = peer.channel()

    def ask(method: str, **arguments: object) -> list[str]:
        peer.call(method, number, **arguments)
        peer.hear(number)
        return taken(server)

    def publish(exchange: str, key: str) -> list[str]:
        peer.publish(exchange, key, b"x", channel=number)
        peer.expect("basic.ack", number)
        return taken(server)

    declare = [resource("queue", "q1", "configure")]
    assert ask("queue.declare", queue="q1", durable=False) == declare
    assert ask("queue.declare", queue="q1", durable=False) == []
    assert ask("queue.bind", queue="q1", exchange="amq.topic", routing_key="a.#") == [
        resource("queue", "q1", "write"),
        resource("exchange", "amq.topic", "read"),
        topic("read", "a.%23"),
    ]
    assert ask("confirm.select") == []
    assert publish("", "q1") == [resource("exchange", "amq.default", "write")]
    write = [resource("exchange", "amq.topic", "write"), topic("write", "a.b")]
    assert publish("amq.topic", "a.b") == write
    assert publish("amq.topic", "a.b") == []
    assert ask("basic.get", queue="q1", no_ack=True) == [resource("queue", "q1", "read")]
    # Another connection of the user asks nothing again.
    other = login(broker)
    other.channel()
    other.call("queue.declare", queue="q1", durable=False)
    other.expect("queue.declare-ok")
    assert taken(server) == []
    for each in (peer, other):
        each.leave()


def test_a_refusal_has_rabbitmqs_words_and_is_asked_again(start_broker, server):
    broker = start_broker(amqp={"auth_backends": [INTERNAL, http(server)]})
    peer = login(broker)
    text = "ACCESS_REFUSED - access to queue '{}' in vhost '/' refused for user 'joe'"
    for number, name in enumerate(["forbidden", "forbidden", "failing", "odd"], 1):
        peer.channel(number)
        taken(server)
        peer.call("queue.declare", number, queue=name)
        code, said, _, _ = peer.expect_channel_close(number)
        assert (code, said) == (403, text.format(name))
        assert taken(server) == [resource("queue", name, "configure")]
    peer.channel(9)
    peer.publish("amq.topic", "no", b"x", channel=9)
    code, said, _, _ = peer.expect_channel_close(9)
    topic_text = "access to topic 'no' in exchange 'amq.topic' in vhost '/' refused for user 'joe'"
    assert (code, said) == (403, f"ACCESS_REFUSED - {topic_text}")
    metrics = {of: broker.router.metric(f"amqp_auth_backend_{of}_total") for of in COUNTS}
    # The login and the vhost; then the exchange.
    assert metrics == {"allowed": 3, "denied": 3, "failed": 2}, metrics
    with pytest.raises(AssertionError, match="access to vhost 'second' refused for user 'joe'"):
        login(broker, vhost="second")
    peer.leave()


COUNTS = ("allowed", "denied", "failed")


def test_a_message_in_many_frames_waits_for_its_right(start_broker, server):
    broker = start_broker(
        amqp={"auth_backends": [http(server, cache_ttl_ms=0, http_method="post")]}
    )
    peer = login(broker)
    number = peer.channel()
    peer.call("queue.declare", number, queue="large", durable=False)
    peer.expect("queue.declare-ok", number)
    peer.call("confirm.select", number)
    peer.expect("confirm.select-ok", number)
    for size in (0, 10, 300_000, 1_000_000):
        peer.publish("", "large", b"x" * size, channel=number)
        peer.expect("basic.ack", number)
        peer.call("basic.get", number, queue="large", no_ack=True)
        assert len(peer.expect("basic.get-ok", number).body) == size
    # Each of these methods has asked, as nothing is remembered.
    asked = [question(got) for got in server.got]
    assert len([path for path, _ in asked if path == "/resource"]) == 1 + 4 + 4
    peer.leave()


def test_methods_in_one_segment_are_handled_once(start_broker, server):
    broker = start_broker(amqp={"auth_backends": [http(server)]})
    peer = login(broker)
    number = peer.channel()
    for method, arguments in [
        ("queue.declare", {"queue": "all", "durable": False}),
        ("queue.bind", {"queue": "all", "exchange": "amq.topic", "routing_key": "#"}),
        ("confirm.select", {}),
    ]:
        peer.call(method, number, **arguments)
        peer.hear(number)
    # Each of these routing keys is asked for; the third message has many frames.
    keys = [f"key.{index % 30}" for index in range(50)]
    with peer.at_once():
        for index, key in enumerate(keys):
            body = b"%d" % index if index != 2 else b"2" * 300_000
            peer.publish("amq.topic", key, body, channel=number)
        peer.call("basic.get", number, queue="all", no_ack=True)
    acked = 0
    while (heard := peer.hear(number)).name == "basic.ack":
        acked = heard["delivery"] if heard["multiple"] else acked + 1
    assert (heard.name, heard.body) == ("basic.get-ok", b"0")
    assert acked == 50
    for index in range(1, 50):
        peer.call("basic.get", number, queue="all", no_ack=True)
        body = peer.expect("basic.get-ok", number).body
        assert body == (b"%d" % index if index != 2 else b"2" * 300_000)
    peer.call("basic.get", number, queue="all", no_ack=True)
    peer.expect("basic.get-empty", number)
    # A channel and a method on it.
    with peer.at_once():
        peer.call("channel.open", 7)
        peer.call("queue.declare", 7, queue="other", durable=False)
    peer.expect("channel.open-ok", 7)
    peer.expect("queue.declare-ok", 7)
    peer.leave()


def test_the_order_of_the_backends_decides(start_broker, server):
    broker = start_broker(amqp={"auth_backends": [INTERNAL, http(server)]})
    login(broker, "test", "test").leave()
    assert taken(server) == []
    code, text = refused(broker, "test", "wrong")
    assert code == 403, text
    assert taken(server) == ["/user?username=test&password=wrong"]
    # The other order asks first.
    broker = start_broker(amqp={"auth_backends": [http(server), INTERNAL]})
    login(broker, "test", "test").leave()
    assert taken(server) == ["/user?username=test&password=test"]
    # Without the broker's own users they are nobody.
    broker = start_broker(amqp={"auth_backends": [http(server)]})
    assert refused(broker, "test", "test")[0] == 403


def test_a_server_that_hangs_holds_up_nobody_else(start_broker, server):
    backends = [INTERNAL, http(server, timeout_ms=1_500, requests_max=2)]
    broker = start_broker(amqp={"auth_backends": backends})
    waiting = [Peer.tcp(broker.address) for _ in range(12)]
    for number, peer in enumerate(waiting):
        peer.start("hanging", f"{number}")
    await_true("the server is asked", lambda: len(server.got) >= 2)
    # All of the broker's own users are served meanwhile.
    with ThreadPoolExecutor(8) as pool:
        for peer in pool.map(lambda _: login(broker, "test", "test"), range(40)):
            peer.leave()
    # Nobody asks twice. How many ask depends on when they came: who waits has no more time.
    assert len(server.got) <= len(waiting)
    # One that leaves gives up its place.
    waiting.pop().close()
    codes = {peer.expect_connection_close()[0] for peer in waiting}
    # A wrong login, or "try again later".
    assert codes <= {403, 320}, codes
    assert broker.router.metric("amqp_auth_backend_failed_total") > 0
    for peer in waiting:
        peer.close()
    # A right that is asked: only its own connection waits.
    peer, other = login(broker), login(broker)
    for each in (peer, other):
        each.channel()
    peer.call("queue.declare", queue="hanging")
    other.call("queue.declare", queue="other", durable=False)
    other.expect("queue.declare-ok")
    code, text, _, _ = peer.expect_channel_close()
    assert code == 403, text
    other.leave()


def test_a_client_that_leaves_while_a_right_is_asked(start_broker, server):
    broker = start_broker(amqp={"auth_backends": [http(server)]})
    peer = login(broker)
    peer.channel()
    peer.call("queue.declare", queue="hanging")
    await_true("the server is asked", lambda: len(server.got) == 3)
    peer.socket.shutdown(1)
    with pytest.raises((ClosedError, AssertionError)):
        peer.receive_method()
    HANGS.set()
    login(broker).leave()


def test_a_server_that_is_away_refuses_and_says_so(start_broker, server):
    broker = start_broker(amqp={"auth_backends": [INTERNAL, http(server)]})
    server.close()
    before = len(broker.router.log)
    assert refused(broker, "joe", PASSWORD)[0] == 403
    broker.router.await_log(lambda line: "auth backend http://" in line.text, before)
    login(broker, "test", "test").leave()


def test_guest_comes_from_this_machine_and_wrong_logins_are_slowed(start_broker, server):
    broker = start_broker(amqp={"auth_backends": [http(server)]})
    login(broker, "guest").leave()
    for number in range(8):
        assert refused(broker, "joe", f"wrong{number}")[0] == 403
    assert broker.router.metric("amqp_logins_delayed_total") > 0
    login(broker).leave()


def test_a_reload_asks_another_server(start_broker, server, reload_broker):
    broker = start_broker(amqp={"auth_backends": [http(server)]})
    peer = login(broker)
    other = Backend(lambda _got: response("deny"))
    reload_broker(broker, {"auth_backends": [http(other)]})
    assert refused(broker, "joe", PASSWORD)[0] == 403
    # The present connection asks the new server.
    number = peer.channel()
    peer.call("queue.declare", number, queue="refused", durable=False)
    assert peer.expect_channel_close(number)[0] == 403
    assert [question(got)[0] for got in other.got] == ["/user", "/resource"]
    # Without a server its users may not stay.
    reload_broker(broker, {"auth_backends": [INTERNAL]})
    code, text, _, _ = peer.expect_connection_close()
    assert (code, "the backend of user 'joe' is gone" in text) == (320, True), text
    other.close()


def test_answers_are_on_the_account(start_broker, server):
    broker = start_broker(amqp={"auth_backends": [http(server)]})

    def held(kind: str) -> float:
        return broker.router.metric("held_bytes", kind=kind)

    peer = login(broker)
    number = peer.channel()
    before = {kind: held(kind) for kind in ("kept", "state")}
    # A client has the router remember as much as it can.
    names = [f"{number:03}".ljust(250, "q") for number in range(200)]
    for name in names:
        peer.call("queue.declare", number, queue=name, durable=False, exclusive=True)
        peer.expect("queue.declare-ok", number)
        peer.call("queue.delete", number, queue=name)
        peer.expect("queue.delete-ok", number)
    assert held("kept") - before["kept"] > 200 * 250
    # The connection itself remembers few of them.
    assert 32 * 250 < held("state") - before["state"] < 64 * 500
    peer.leave()
    await_true("the connection's are gone", lambda: held("state") < before["state"] + 32 * 250)


def test_the_management_api_asks_the_server(start_broker, server):
    api = {"type": "amqp.management", "id": "management", "endpoint": config.tcp()}
    broker = start_broker(amqp={"auth_backends": [http(server)]}, beside=[api])
    api = Http(broker.router.address("management"))
    login = base64.b64encode(f"joe:{PASSWORD}".encode()).decode()
    header = {"Authorization": f"Basic {login}", "Content-Type": "application/json"}
    assert [each["name"] for each in json.loads(api.get("/api/vhosts", header).body)] == ["/"]
    assert {got.split("?")[0] for got in taken(server)} == {"/user", "/vhost"}
    assert api.get("/api/queues/second", header).status == 401

    def put(queue: str) -> int:
        return api.ask("PUT", f"/api/queues/%2F/{queue}", header, b"{}").status

    assert [put(queue) for queue in ("made", "forbidden")] == [201, 401]
    assert resource("queue", "made", "configure") in taken(server)
    assert [each["name"] for each in json.loads(api.get("/api/queues", header).body)] == ["made"]
    assert api.ask("DELETE", "/api/queues/%2F/made", header).status == 204


def test_the_management_api_asks_about_the_vhosts_that_matter(start_broker, server):
    api = {"type": "amqp.management", "id": "management", "endpoint": config.tcp()}
    backend = http(server, cache_refusals=True, cache_ttl_ms=3_600_000)
    broker = start_broker(amqp={"auth_backends": [backend]}, beside=[api])
    api = Http(broker.router.address("management"))
    login = base64.b64encode(f"joe:{PASSWORD}".encode()).decode()
    header = {"Authorization": f"Basic {login}"}

    def vhosts_asked(path: str) -> list[str]:
        assert api.get(f"/api/{path}", header).status in (200, 401)
        asked = [question(got) for got in server.got]
        server.got.clear()
        return [values["vhost"] for path, values in asked if path == "/vhost"]

    assert vhosts_asked("whoami") == []
    assert vhosts_asked("connections") == []
    # No list over all vhosts.
    assert vhosts_asked("consumers/second") == ["second"]
    assert vhosts_asked("queues/%2F") == ["/"]
    # A list asks about the rest, and all answers are remembered.
    assert vhosts_asked("queues") == ["empty"]
    for path in ("queues", "exchanges", "overview", "vhosts", "queues/second"):
        assert vhosts_asked(path) == []
    assert [each["name"] for each in json.loads(api.get("/api/vhosts", header).body)] == ["/"]


def test_refusals_are_remembered_if_that_is_wanted(start_broker, server):
    backend = http(server, cache_refusals=True, cache_ttl_ms=3_600_000)
    broker = start_broker(amqp={"auth_backends": [backend]})
    peer = login(broker)
    taken(server)
    wanted = {"forbidden": 1, "failing": 2, "odd": 2}
    for number, name in enumerate([*wanted, *wanted], 1):
        peer.channel(number)
        peer.call("queue.declare", number, queue=name)
        assert peer.expect_channel_close(number)[0] == 403
    asked = taken(server)
    # A failed answer is no refusal.
    assert {name: asked.count(resource("queue", name, "configure")) for name in wanted} == wanted
    for _ in range(2):
        with pytest.raises(AssertionError, match="access to vhost 'second' refused"):
            login(broker, vhost="second")
        assert refused(broker, "joe", "wrong")[0] == 403
    questions = [each.split("?")[0] for each in taken(server)]
    assert questions == ["/vhost", "/user"]
    # Another password of the same user is another question.
    login(broker).leave()
    peer.leave()


def test_a_new_secret_is_refused(start_broker, server):
    broker = start_broker(amqp={"auth_backends": [INTERNAL, http(server)]})
    peer = login(broker)
    peer.call("connection.update-secret", 0, secret=b"new", reason="because")
    code, text, _, _ = peer.expect_connection_close()
    assert (code, text) == (530, "NOT_ALLOWED - New secret was refused by one of the backends")
    own = login(broker, "test", "test")
    own.call("connection.update-secret", 0, secret=b"new", reason="because")
    own.expect("connection.update-secret-ok")
    own.leave()


def test_a_server_that_fails_is_no_wrong_password(start_broker, server):
    broker = start_broker(amqp={"auth_backends": [http(server), INTERNAL]})
    with ThreadPoolExecutor(4) as pool:
        codes = {
            code for code, _ in pool.map(lambda n: refused(broker, "failing", f"{n}"), range(4))
        }
    assert codes == {403}
    login(broker).leave()
    assert broker.router.metric("amqp_auth_backend_failed_total") == 4


@pytest.mark.parametrize("url", ["http://a/?x=1", "http://a/#x", "http://joe:secret@a/", "a"])
def test_a_url_has_no_other_parts(tmp_path, url: str, server):
    backend = {**http(server), "vhost_path": url}
    made = config.plain({"type": "amqp", "id": "amqp", "endpoint": config.tcp()})
    made["workers"][0]["amqp"] = {"auth_backends": [backend, {"type": "ldap"}]}
    (tmp_path / "config.json").write_text(json.dumps(made))
    command = [str(binary()), "check", "--cbdir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    said = done.stdout + done.stderr
    assert done.returncode == 1
    assert "without credentials, ? and #" in said, said
    assert "let a server ask LDAP" in said, said


@pytest.fixture
def reload_broker() -> Callable[..., None]:
    """Change the AMQP of a running broker."""

    def change(broker, amqp: dict) -> None:
        configuration = json.loads((broker.directory / "config.json").read_text())
        configuration["workers"][0]["amqp"].update(amqp)
        (broker.directory / "config.json").write_text(json.dumps(configuration))
        command = [str(binary()), "reload", "--cbdir", str(broker.directory)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=4 * DEADLINE_S)
        assert done.returncode == 0, done

    return change
