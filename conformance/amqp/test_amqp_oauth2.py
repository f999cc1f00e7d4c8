"""OAuth 2 tokens as passwords: beside RabbitMQ's plugin, and what only Crosstie has."""

from __future__ import annotations

import base64
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pika
import pytest
from rig import config
from rig import rabbitmq as judge
from rig.amqp_peer import Peer
from rig.broker import Broker, Crosstie
from rig.http import Http
from rig.issuer import EVERYTHING, Issuer, encoded, publish
from rig.ports import free_ports
from rig.rabbitmq import RabbitMq
from rig.router import binary
from rig.waiting import DEADLINE_S, await_true
from wamp.test_token_keys import KeyServer

INTERNAL = {"type": "internal"}
REFUSED = "NOT_ALLOWED - New secret was refused by one of the backends"


def oauth2(**more: object) -> dict:
    """Return the backend."""
    if "jwks_url" not in more:
        more.setdefault("jwks_file", "keys.json")
    return {"type": "oauth2", "resource_server_id": "rabbitmq", **more}


class Reading(RabbitMq):
    """A RabbitMQ that reads the issuer's tokens."""

    def __init__(self, directory: Path, issuer: Issuer):
        (directory / "key.pem").write_bytes(issuer.pem())
        (self.management,) = free_ports(1)
        super().__init__(directory)

    def configuration(self) -> tuple[list[str], str]:
        """Return its plugins, and lines of its configuration."""
        plugins, lines = super().configuration()
        lines += (
            "auth_backends.1 = rabbit_auth_backend_oauth2\n"
            "auth_backends.2 = internal\n"
            "auth_oauth2.resource_server_id = rabbitmq\n"
            "auth_oauth2.additional_scopes_key = roles\n"
            f"auth_oauth2.signing_keys.first = {self.directory}/key.pem\n"
            f"management.tcp.port = {self.management}\nmanagement.tcp.ip = 127.0.0.1\n"
        )
        return [*plugins, "rabbitmq_auth_backend_oauth2", "rabbitmq_management"], lines


@dataclass
class Place:
    """A broker that reads tokens, and its management API."""

    broker: Broker
    api: Http


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer("first")


@pytest.fixture(scope="module")
def reading_rabbitmq(tmp_path_factory, issuer) -> Iterator[Place]:
    """The judge."""
    if not judge.is_installed():
        pytest.skip("rabbitmq-server is not installed")
    running = Reading(tmp_path_factory.mktemp("rabbitmq"), issuer)
    yield Place(running, Http(("127.0.0.1", running.management)))
    running.stop()


@pytest.fixture(scope="module")
def reading_crosstie(tmp_path_factory, issuer) -> Iterator[Place]:
    """The broker under test."""
    directory = tmp_path_factory.mktemp("crosstie")
    running = started(directory, issuer, oauth2(additional_scopes_key="roles"), INTERNAL)
    yield running
    running.broker.stop()


def started(directory: Path, issuer: Issuer, *backends: dict) -> Place:
    """Start a Crosstie with these backends."""
    publish(directory / "keys.json", issuer)
    amqp = {"auth_backends": list(backends), "limits": {"login_delay_max_ms": 0}}
    api = {"type": "amqp.management", "id": "management", "endpoint": config.tcp()}
    running = Crosstie(directory, amqp, beside=[api])
    return Place(running, Http(running.router.address("management")))


@pytest.fixture(params=["rabbitmq", "crosstie"])
def place(request) -> Place:
    """Each of them in turn."""
    return request.getfixturevalue(f"reading_{request.param}")


def login(broker: Broker, token: str, vhost: str = "/", user: str = "") -> Peer:
    """Log in with a token."""
    return Peer.tcp(broker.address).open(user, token, vhost)


def outcome(broker: Broker, token: str, user: str = "") -> str:
    """Return the name of the user that a token lets in, or how the login ends."""
    with Peer.tcp(broker.address) as peer:
        peer.start(user, token)
        answer = peer.hear(0)
        if answer.name == "connection.close":
            return str(answer["code"])
        peer.call("connection.tune-ok", 0, channel_max=9, frame_max=131072, heartbeat=0)
        peer.call("connection.open", 0, vhost="/")
        if peer.hear(0).name == "connection.close":
            return "vhost"
        peer.channel()
        # The refusal of another `user-id` names the user.
        peer.publish("", "nowhere", b"x", {"user_id": "?"})
        _, text, _, _ = peer.expect_channel_close()
        peer.leave()
        return text.partition("authenticated user was ")[2].strip("'")


def now_s() -> int:
    """Return the time."""
    return int(time.time())


HEAD = {"alg": "RS256", "typ": "JWT"}
LOGINS: dict[str, tuple[Callable[[Issuer], str], str]] = {
    "right": (lambda of: of.token(), "joe"),
    "client before subject": (lambda of: of.token(client_id="app"), "app"),
    "neither": (lambda of: of.token(sub=None), "sent"),
    "audience in words": (lambda of: of.token(aud="other rabbitmq"), "joe"),
    "other audience": (lambda of: of.token(aud=["other"]), "403"),
    "no audience": (lambda of: of.token(aud=None), "403"),
    "no scope": (lambda of: of.token(None), "403"),
    "scope as a list": (lambda of: of.token(EVERYTHING.split()), "joe"),
    "empty scope": (lambda of: of.token(""), "vhost"),
    "scopes of others": (lambda of: of.token("read:*/* other.read:*/*"), "vhost"),
    "additional scopes": (lambda of: of.token("", roles=EVERYTHING), "joe"),
    "additional scopes alone": (lambda of: of.token(None, roles=EVERYTHING.split()), "joe"),
    "additional scopes by server": (
        lambda of: of.token("", roles={"rabbitmq": ["write:*/*", "read:*/*"]}),
        "joe",
    ),
    "permissions": (
        lambda of: of.token("x", authorization={"permissions": [{"scopes": EVERYTHING.split()}]}),
        "joe",
    ),
    "no end": (lambda of: of.token(exp=None), "joe"),
    "ended": (lambda of: of.token(exp=now_s() - 5), "403"),
    "ends now": (lambda of: of.token(exp=now_s()), "403"),
    "other issuer": (lambda _: Issuer("first").token(), "403"),
    "unknown key": (lambda of: of.token(head={**HEAD, "kid": "second"}), "403"),
    "no key": (lambda of: of.token(head=HEAD), "403"),
    "other algorithm": (lambda of: of.token(head={**HEAD, "kid": "first", "alg": "ES256"}), "403"),
    "no signature": (
        lambda of: unsigned({"alg": "none", "kid": "first"}, of.token()),
        "403",
    ),
    "cut off": (lambda of: of.token()[:-9], "403"),
    "no token": (lambda _: "secret", "403"),
    "empty": (lambda _: "", "403"),
}


def unsigned(head: dict, token: str) -> str:
    """Return the token with another head, and without its signature."""
    return f"{encoded(json.dumps(head).encode())}.{token.split('.')[1]}."


@pytest.mark.parametrize("name", LOGINS)
def test_logins(place, issuer, name):
    make, expected = LOGINS[name]
    assert outcome(place.broker, make(issuer), "sent") == expected


def test_a_symmetric_signature_by_the_public_key_is_refused(place, issuer):
    import hashlib
    import hmac

    token = unsigned({"alg": "HS256", "kid": "first"}, issuer.token())[:-1]
    signature = hmac.digest(issuer.pem(), token.encode(), hashlib.sha256)
    assert outcome(place.broker, f"{token}.{encoded(signature)}") == "403"


def test_other_users_come_by_the_next_backend(place):
    Peer.tcp(place.broker.address).open("test", "test").leave()
    with Peer.tcp(place.broker.address) as peer:
        peer.start("test", "wrong")
        assert peer.expect_connection_close()[0] == 403


# Scopes without prefix, what is tried, and whether it may be done. Queues are `oa…`.
ACCESSES: dict[str, tuple[list[str], dict[str, bool]]] = {
    "one name": (
        ["configure:%2F/oa.one", "read:%2F/oa.one", "write:%2F/*"],
        {
            "declare oa.one": True,
            "declare oa.onemore": False,
            "get oa.one": True,
            "publish amq.direct": True,
        },
    ),
    "configure is not to read": (
        ["configure:*/*"],
        {"declare oa.two": True, "get oa.two": False, "publish amq.direct": False},
    ),
    "default exchange": (["write:*/amq.default"], {"publish ": True, "publish amq.direct": False}),
    "patterns": (
        ["configure:*/oa*b"],
        {"declare oaxb": True, "declare oab": True, "declare oabb": False, "declare oaxc": False},
    ),
    "stars": (["configure:*/oaq**"], {"declare oaq": False, "declare oaqx": True}),
    "escapes": (
        ["configure:*/oa%20x", "configure:*/oa+y", "configure:*/oa%2Az", "configure:*/oa%zz*"],
        {
            "declare oa x": True,
            "declare oa y": True,
            "declare oa+y": False,
            "declare oa*z": True,
            "declare oaqz": False,
            "declare oa%zz": False,
        },
    ),
    "topics": (
        ["write:*/*", "write:*/amq.topic/a.*"],
        {"publish amq.topic a.b": True, "publish amq.topic b": False, "publish amq.direct b": True},
    ),
    "topics need three parts": (["write:*/*"], {"publish amq.topic a": False}),
    "topics of bindings": (
        ["configure:*/*", "write:*/*", "read:*/*", "read:*/amq.topic/x.*"],
        {"bind oa.three amq.topic x.y": True, "bind oa.three amq.topic y": False},
    ),
    "other vhost": (["configure:second/*", "read:*/oa"], {"declare oa.four": False}),
}


@pytest.mark.parametrize("name", ACCESSES)
def test_scopes(place, issuer, name):
    scopes, tried = ACCESSES[name]
    # A queue to bind or to get from is made by a token for everything.
    owner = login(place.broker, issuer.token())
    owner.channel()
    made = {words.split(" ")[1] for words in tried if words.startswith(("get", "bind"))}
    for queue in made:
        owner.call("queue.declare", queue=queue, durable=False)
        owner.expect("queue.declare-ok")
    peer = login(place.broker, issuer.token([f"rabbitmq.{scope}" for scope in scopes]))
    found = {words: may(peer, words, number) for number, words in enumerate(tried, 1)}
    for queue in made | {words.partition(" ")[2] for words in tried if words.startswith("declare")}:
        owner.call("queue.delete", queue=queue)
        owner.expect("queue.delete-ok")
    assert found == tried
    peer.leave()
    owner.leave()


def may(peer: Peer, words: str, number: int) -> bool:
    """Try something on a channel of its own."""
    peer.channel(number)
    method, _, rest = words.partition(" ")
    exchange, _, key = rest.partition(" ")
    if method == "declare":
        peer.call("queue.declare", number, queue=rest, durable=False)
    elif method == "get":
        peer.call("basic.get", number, queue=rest)
    elif method == "bind":
        queue, exchange, key = rest.split(" ")
        peer.call("queue.bind", number, queue=queue, exchange=exchange, routing_key=key)
    else:
        peer.call("confirm.select", number)
        peer.expect("confirm.select-ok", number)
        peer.publish(exchange, key, b"x", channel=number)
    heard = peer.hear(number)
    if heard.name == "channel.close":
        assert heard["code"] == 403, heard
        peer.call("channel.close-ok", number)
        return False
    return True


def test_vhosts(place, issuer):
    token = issuer.token("rabbitmq.read:sec*/*")
    login(place.broker, token, "second").leave()
    for vhost, text in [
        ("/", "access to vhost '/' refused for user 'joe'"),
        ("absent", "not found"),
    ]:
        with pytest.raises(AssertionError, match=text):
            login(place.broker, token, vhost)


def test_a_token_that_ends_takes_its_rights_along(place, issuer):
    """The connection, its consumers and new channels stay."""
    end_s = now_s() + 3
    peer = login(place.broker, issuer.token(exp=end_s))
    owner = login(place.broker, issuer.token())
    for each in (peer, owner):
        each.channel()
    peer.call("queue.declare", queue="oa.end", durable=False)
    peer.expect("queue.declare-ok")
    peer.call("basic.consume", queue="oa.end", tag="t", no_ack=False)
    peer.expect("basic.consume-ok")
    number, heard = 2, None

    def is_refused() -> bool:
        nonlocal number, heard
        peer.channel(number)
        # Another name each time: RabbitMQ's channels remember what was allowed.
        peer.call("queue.declare", number, queue=f"oa.end.{number}", exclusive=True)
        heard = peer.hear(number)
        number += 1
        return heard.name == "channel.close"

    await_true("the token ends", is_refused)
    assert now_s() >= end_s
    name = f"oa.end.{number - 1}"
    assert heard["code"] == 403
    text = (
        f"ACCESS_REFUSED - access to queue '{name}' in vhost '/' refused for user 'joe', "
        "backend rabbit_auth_backend_oauth2 returned an error: "
        '"Provided JWT token has expired at timestamp '
    )
    assert heard["text"].replace("\n", " ").startswith(text), heard["text"]
    peer.call("channel.close-ok", number - 1)
    # Deliveries go on, and may be acknowledged.
    owner.publish("", "oa.end", b"late")
    delivery = peer.expect("basic.deliver")
    assert delivery.body == b"late"
    peer.call("basic.ack", delivery=delivery["delivery"])
    # A new token gives the rights back.
    peer.call("connection.update-secret", 0, secret=issuer.token().encode(), reason="it ended")
    peer.expect("connection.update-secret-ok")
    peer.channel(number)
    peer.call("queue.delete", number, queue="oa.end")
    peer.expect("queue.delete-ok", number)
    for each in (peer, owner):
        each.leave()


def test_publishing_ends_with_the_token(reading_crosstie, issuer):
    """Also to an exchange whose right was asked for a moment ago."""
    end_s = now_s() + 2
    peer = login(reading_crosstie.broker, issuer.token(exp=end_s))
    peer.channel()
    peer.call("confirm.select")
    peer.expect("confirm.select-ok")
    while True:
        before = now_s()
        peer.publish("amq.topic", "a", b"x")
        heard = peer.hear()
        if heard.name != "basic.ack":
            break
        assert before < end_s
    assert (heard.name, heard["code"]) == ("channel.close", 403)
    text = heard["text"]
    assert text.startswith(
        "ACCESS_REFUSED - access to exchange 'amq.topic' in vhost '/' refused for user 'joe', "
    )
    assert len(text) <= 255


def test_new_secrets(place, issuer):
    def updated(secret: str, user: tuple[str, str] | None = None) -> tuple | str:
        peer = login(place.broker, issuer.token())
        if user is not None:
            peer.leave()
            peer = Peer.tcp(place.broker.address).open(*user)
        peer.call("connection.update-secret", 0, secret=secret.encode(), reason="because")
        heard = peer.hear(0)
        if heard.name == "connection.close":
            peer.call("connection.close-ok", 0)
            return heard["code"], heard["text"]
        peer.leave()
        return heard.name

    ok = "connection.update-secret-ok"
    assert updated(issuer.token()) == ok
    assert updated(issuer.token(exp=now_s() - 100)) == ok
    assert updated(issuer.token("")) == ok
    for wrong in ("", "nonsense", issuer.token(aud=["other"]), Issuer("first").token()):
        assert updated(wrong) == (530, REFUSED)
    # A password does not end.
    assert updated("anything", ("test", "test")) == ok


def test_a_new_secret_is_of_the_same_user(reading_crosstie, issuer):
    def update(peer: Peer, **claims: object) -> None:
        secret = issuer.token(**claims).encode()
        peer.call("connection.update-secret", 0, secret=secret, reason="")

    before = reading_crosstie.broker.router.metric("amqp_auth_backend_denied_total")
    for claims in ({"sub": "eve"}, {"client_id": "app"}, {"sub": "jo"}):
        peer = login(reading_crosstie.broker, issuer.token())
        update(peer, **claims)
        assert peer.expect_connection_close()[:2] == (530, REFUSED), claims
    denied = reading_crosstie.broker.router.metric("amqp_auth_backend_denied_total") - before
    assert denied == 3
    # Without a user a token is of the one that the client named at its login.
    peer = login(reading_crosstie.broker, issuer.token())
    for claims in ({"sub": "eve", "client_id": "joe"}, {"sub": None}):
        update(peer, **claims)
        peer.expect("connection.update-secret-ok")
    peer.leave()


def test_a_new_secret_counts_for_what_is_behind_it(reading_crosstie, issuer):
    """In one segment, before the answer."""
    broker = reading_crosstie.broker
    peer = login(broker, issuer.token("rabbitmq.read:*/*"))
    peer.channel()
    secret, expired = issuer.token().encode(), issuer.token(exp=1).encode()
    with peer.at_once():
        peer.call("connection.update-secret", 0, secret=secret, reason="")
        peer.call("queue.declare", queue="oa.behind", durable=False, exclusive=True)
        peer.call("connection.update-secret", 0, secret=expired, reason="")
        peer.call("queue.declare", queue="oa.behind2", durable=False, exclusive=True)
    peer.expect("connection.update-secret-ok")
    peer.expect("queue.declare-ok")
    peer.expect("connection.update-secret-ok")
    assert peer.expect_channel_close()[0] == 403
    peer.leave()


def test_pika_updates_its_secret(place, issuer):
    credentials = pika.PlainCredentials("", issuer.token("rabbitmq.read:*/*"))
    parameters = pika.ConnectionParameters(*place.broker.address, "/", credentials)
    with pika.BlockingConnection(parameters) as connection:
        connection.update_secret(issuer.token(), "a longer scope")
        queue = connection.channel().queue_declare("", exclusive=True).method.queue
        channel = connection.channel()
        channel.basic_publish("", queue, b"x")
        await_true("it has arrived", lambda: channel.basic_get(queue, auto_ack=True)[2] == b"x")


# Tags, a path of the API, and the status.
API: dict[str, tuple[str, str, int]] = {
    "no tag": ("", "whoami", 401),
    "management": ("management", "whoami", 200),
    "nodes": ("management", "nodes", 401),
    "monitoring": ("monitoring", "nodes", 200),
    "users": ("monitoring", "users", 401),
    "administrator": ("administrator", "users", 200),
    "policymaker": ("policymaker", "policies/%2F", 200),
    "own vhost": ("management", "queues/second", 200),
    "other vhost": ("management", "queues/empty", 401),
}


@pytest.mark.parametrize("form", ["basic", "bearer"])
@pytest.mark.parametrize("name", API)
def test_the_management_api(place, issuer, name, form):
    tag, path, status = API[name]
    scope = f"rabbitmq.read:%2F/* rabbitmq.read:second/* rabbitmq.tag:{tag}"
    answer = place.api.get(f"/api/{path}", authorization(issuer.token(scope), form))
    assert answer.status == status, answer.body
    if path == "whoami" and status == 200:
        assert json.loads(answer.body) == {"name": "joe", "tags": [tag]}


def authorization(token: str, form: str = "bearer") -> dict[str, str]:
    """Return the header."""
    if form == "bearer":
        return {"Authorization": f"Bearer {token}"}
    secret = base64.b64encode(f"any:{token}".encode()).decode()
    return {"Authorization": f"Basic {secret}"}


def test_the_management_api_refuses_wrong_tokens(place, issuer):
    for token in ("nonsense", issuer.token(exp=now_s() - 5), Issuer("first").token()):
        answer = place.api.get("/api/whoami", authorization(token))
        assert answer.status == 401
        said = json.loads(answer.body)
        assert said == {"error": "not_authorized", "reason": "Login failed"}, said


def test_the_management_api_shows_and_changes_what_the_token_may(place, issuer):
    scopes = "rabbitmq.tag:management rabbitmq.configure:*/oa.api rabbitmq.read:%2F/*"
    header = {**authorization(issuer.token(scopes)), "Content-Type": "application/json"}
    vhosts = json.loads(place.api.get("/api/vhosts", header).body)
    # `configure:*/…` names every vhost.
    assert {each["name"] for each in vhosts} == {"/", "second", "empty"}
    made = {
        name: place.api.ask("PUT", f"/api/queues/%2F/{name}", header, b"{}").status
        for name in ("oa.api", "oa.other")
    }
    assert made == {"oa.api": 201, "oa.other": 401}
    publication = {
        "properties": {},
        "routing_key": "k",
        "payload": "x",
        "payload_encoding": "string",
    }
    path = "/api/exchanges/%2F/amq.default/publish"
    answer = place.api.ask("POST", path, header, json.dumps(publication).encode())
    assert (answer.status, b"refused for user 'joe'" in answer.body) == (400, True), answer.body
    assert place.api.ask("DELETE", "/api/queues/%2F/oa.api", header).status == 204


@pytest.fixture
def start(tmp_path, issuer) -> Iterator[Callable[..., Place]]:
    """Start a Crosstie of the test's own."""
    running: list[Place] = []

    def begin(*backends: dict) -> Place:
        directory = tmp_path / f"broker{len(running)}"
        directory.mkdir()
        running.append(started(directory, issuer, *backends))
        return running[-1]

    yield begin
    for each in running:
        each.broker.stop()


def test_keys_are_rotated_in_the_file(start, issuer):
    place = start(oauth2())
    second = Issuer("second")
    assert outcome(place.broker, second.token()) == "403"
    keys = place.broker.directory / "keys.json"
    publish(keys, issuer, second)
    await_true("the key is known", lambda: outcome(place.broker, second.token()) == "joe")
    assert outcome(place.broker, issuer.token()) == "joe"
    publish(keys, second)
    await_true("the key is gone", lambda: outcome(place.broker, issuer.token()) == "403")
    before = len(place.broker.router.log)
    keys.write_text("{")
    place.broker.router.await_log(lambda line: "cannot reload keys of tokens" in line.text, before)
    assert outcome(place.broker, second.token()) == "joe"


def test_keys_are_fetched(start, issuer):
    """A login with an unknown key waits for the server, and holds up nobody else."""
    server = KeyServer(issuer)
    url = {"jwks_url": server.url(), "jwks_refresh_s_min": 1, "jwks_refresh_s_max": 600}
    place = start(oauth2(**url), INTERNAL)
    assert outcome(place.broker, issuer.token()) == "joe"
    second = Issuer("second")
    server.publish(issuer, second)
    server.open.clear()
    peer = login(place.broker, issuer.token())
    with ThreadPoolExecutor(2) as pool:
        # The first fetch is a second ago before another one is begun.
        asked = server.asked
        waiting = pool.submit(eventually, place.broker, second)
        await_true("the server is asked", lambda: server.asked > asked)
        for _ in range(20):
            Peer.tcp(place.broker.address).open("test", "test").leave()
        assert not waiting.done()
        server.open.set()
        assert waiting.result() == "joe"
    third = Issuer("third")
    server.publish(third)

    def update() -> bool:
        other = login(place.broker, second.token())
        other.call("connection.update-secret", 0, secret=third.token().encode(), reason="")
        return other.hear(0).name == "connection.update-secret-ok"

    await_true("a new secret has the server asked", update)
    # Whoever is connected stays, though the key is gone.
    peer.channel()
    peer.leave()
    server.shutdown()


def eventually(broker: Broker, issuer: Issuer) -> str:
    """Log in until the key is known."""
    found = []

    def is_known() -> bool:
        found.append(outcome(broker, issuer.token()))
        return found[-1] != "403"

    await_true("the key is known", is_known)
    return found[-1]


def test_a_server_of_keys_that_is_away(start, issuer):
    (port,) = free_ports(1)
    url = {"jwks_url": f"http://127.0.0.1:{port}/", "jwks_refresh_s_min": 600}
    place = start(oauth2(**url, jwks_refresh_s_max=700), INTERNAL)
    place.broker.router.await_log(lambda line: "cannot fetch keys of tokens" in line.text)
    Peer.tcp(place.broker.address).open("test", "test").leave()
    assert outcome(place.broker, issuer.token()) == "403"
    assert place.broker.router.metric("amqp_auth_backend_failed_total") >= 1


def test_a_reload_keeps_fetched_keys(start, issuer):
    """Also while the issuer's server is away."""
    server = KeyServer(issuer)
    url = {"jwks_url": server.url()}
    place = start(oauth2(**url), INTERNAL)
    assert outcome(place.broker, issuer.token()) == "joe"
    peer = login(place.broker, issuer.token())
    server.shutdown()
    server.server_close()
    for more in ({"jwks_timeout_ms": 900}, {"resource_server_id": "other"}):
        change(place.broker, [oauth2(**url, **more), INTERNAL])
        of = more.get("resource_server_id", "rabbitmq")
        token = issuer.token(f"{of}.write:*/*", aud=of)
        assert outcome(place.broker, token) == "joe"
        peer.call("connection.update-secret", 0, secret=token.encode(), reason="")
        peer.expect("connection.update-secret-ok")
    peer.leave()
    # Another server's tokens have other keys.
    (port,) = free_ports(1)
    change(place.broker, [oauth2(jwks_url=f"http://127.0.0.1:{port}/"), INTERNAL])
    assert outcome(place.broker, issuer.token()) == "403"


def test_wrong_tokens_are_slowed(tmp_path, issuer):
    publish(tmp_path / "keys.json", issuer)
    broker = Crosstie(tmp_path, {"auth_backends": [oauth2()]})
    forger = Issuer("first")
    for number in range(8):
        assert outcome(broker, forger.token(jti=str(number))) == "403"
    assert broker.router.metric("amqp_logins_delayed_total") > 0
    assert outcome(broker, issuer.token()) == "joe"
    broker.stop()


def test_a_token_is_bounded(reading_crosstie, issuer):
    """A login has one frame of 4096 bytes, a new secret one of the negotiated size."""
    broker = reading_crosstie.broker
    scopes = [f"rabbitmq.read:*/q{number}" for number in range(500)]
    peer = login(broker, issuer.token())

    def state() -> float:
        return broker.router.metric("held_bytes", kind="state")

    before = state()
    peer.call("connection.update-secret", 0, secret=issuer.token(scopes[:400]).encode(), reason="")
    peer.expect("connection.update-secret-ok")
    assert state() - before > 400 * len("q100")
    many = issuer.token(scopes * 4)
    assert 16_384 < len(many) < 130_000
    peer.call("connection.update-secret", 0, secret=many.encode(), reason="")
    assert peer.expect_connection_close()[:2] == (530, REFUSED)
    await_true("the scopes left with their client", lambda: state() <= before)
    with Peer.tcp(broker.address) as large:
        large.start("", issuer.token(scopes))
        assert large.expect_connection_close()[0] == 501


def test_a_reload_changes_the_backend(start, issuer):
    place = start(oauth2(), INTERNAL)
    broker = place.broker
    peer = login(broker, issuer.token())
    change(broker, [oauth2(resource_server_id="other"), INTERNAL])
    assert outcome(broker, issuer.token()) == "403"
    assert outcome(broker, issuer.token("other.write:*/*", aud="other")) == "joe"
    # Who is connected keeps the rights of its token; a new one is read by the new rules.
    peer.channel()
    peer.call("queue.declare", queue="oa.reload", durable=False, exclusive=True)
    peer.expect("queue.declare-ok")
    other = issuer.token("other.read:*/*", aud="other")
    peer.call("connection.update-secret", 0, secret=other.encode(), reason="")
    peer.expect("connection.update-secret-ok")
    peer.call("queue.declare", queue="oa.reload2", durable=False, exclusive=True)
    assert peer.expect_channel_close()[0] == 403
    # Without the backend its users may not stay, nor enter.
    late = Peer.tcp(broker.address)
    late.start("", issuer.token("other.write:*/*", aud="other"))
    late.expect("connection.tune", 0)
    change(broker, [INTERNAL])
    late.call("connection.tune-ok", 0, channel_max=9, frame_max=131072, heartbeat=0)
    late.call("connection.open", 0, vhost="/")
    for each in (peer, late):
        code, text, _, _ = each.expect_connection_close()
        assert (code, "the backend of user 'joe' is gone" in text) == (320, True), text
    assert outcome(broker, issuer.token()) == "403"


def test_a_reload_with_a_file_that_cannot_be_read_changes_nothing(start, issuer):
    place = start(INTERNAL)
    done = change(place.broker, [oauth2(jwks_file="nowhere.json")], expected=1)
    assert "nowhere.json" in done.stdout + done.stderr
    Peer.tcp(place.broker.address).open("test", "test").leave()


def change(broker: Crosstie, backends: list[dict], expected: int = 0):
    """Give a running broker other backends."""
    path = broker.directory / "config.json"
    configuration = json.loads(path.read_text())
    configuration["workers"][0]["amqp"]["auth_backends"] = backends
    path.write_text(json.dumps(configuration))
    command = [str(binary()), "reload", "--cbdir", str(broker.directory)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=4 * DEADLINE_S)
    assert done.returncode == expected, done
    return done
