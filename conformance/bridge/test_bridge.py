"""HTTP requests as calls and publications: who sees them, and what attackers make of them."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from rig import config
from rig.http import Http, read
from rig.router import Router
from rig.waiting import await_true

from bridge import cases
from bridge.cases import JSON, SUM, signed

LONG = 1 << 20


@pytest.fixture(scope="module")
def router(tmp_path_factory):
    """The services, some with bounds of their own."""

    def service(kind: str, role: str = "anonymous", **options: object) -> dict:
        return {"type": kind, "realm": "realm1", "role": role, "options": options}

    signing = {"key": cases.KEY, "secret": cases.SECRET, "refuse_replay": True}
    configuration = cases.node()
    worker = configuration["workers"][0]
    worker["transports"][0]["paths"] |= {
        "free": service("caller"),
        "once": service("caller", **signing),
        "few": service("caller", **signing, replays_max=1),
        "judged": service("caller", "judged"),
    }
    judged = {"name": "judged", "authorizer": "com.judge"}
    worker["realms"][0]["roles"].append(judged)
    worker["transports"].append(config.universal("tcp", config.tcp()))
    router = Router(tmp_path_factory.mktemp("bridge"), config=configuration)
    yield router
    router.stop()


@pytest.fixture(scope="module")
def site(router: Router) -> Http:
    return Http(router.address("web"))


@pytest.fixture(scope="module")
def impatient(tmp_path_factory):
    """The same, where a body has to come within a second."""
    configuration = {**cases.node(), "limits": {"message_timeout_ms": 1000}}
    router = Router(tmp_path_factory.mktemp("impatient"), config=configuration)
    yield Http(router.address("web"))
    router.stop()


@pytest.fixture
def session(router: Router, new_session):
    """A session of the realm."""
    return new_session("asyncio").open(cases.place(router.address("web")))


def call(site: Http, procedure: str, *args: object, path: str = "/free", **kwargs: object):
    """Call by HTTP; return what was answered."""
    body = json.dumps({"procedure": procedure, "args": args, "kwargs": kwargs})
    answer = site.post(path, body, JSON)
    assert answer.status == 200
    return json.loads(answer.body)


def test_a_call_by_two_who_never_met(site: Http, session, uri: str):
    session.register(uri, {"do": "echo"})
    said = call(site, uri, 1, "é", [None, {"a": 1.5}], b=2)
    assert said == {"args": [1, "é", [None, {"a": 1.5}]], "kwargs": {"b": 2}}


def test_a_publication_is_seen(site: Http, session, uri: str):
    session.subscribe(uri)
    body = json.dumps({"topic": uri, "args": [1, "é"], "kwargs": {"a": 2}})
    answer = site.post("/pub", body, JSON)
    event = session.next("published")
    assert (event["args"], event["kwargs"]) == ([1, "é"], {"a": 2})
    assert json.loads(answer.body) == {"id": event["publication"]}


def test_a_publication_for_some(site: Http, session, new_session, router: Router, uri: str):
    other = new_session("asyncio").open(cases.place(router.address("web")))
    for each in (session, other):
        each.subscribe(uri)
    for options, args in (({"exclude": [other.id]}, [1]), ({"eligible": other.id}, [2])):
        body = json.dumps({"topic": uri, "args": args, "options": options})
        assert site.post("/pub", body, JSON).status == 200
    assert session.next("published")["args"] == [1]
    assert other.next("published")["args"] == [2]
    session.round_trip()
    assert session.told_nothing()


def test_a_hook_is_an_event(site: Http, session):
    session.subscribe("com.hook")
    headers = {"Content-Type": "text/plain", "X-One": "1", "X-GitHub-Event": "push"}
    answer = site.post("/hook", 'a="b"\né', headers)
    assert (answer.status, answer.body) == (202, b"yes")
    (event,) = session.next("published")["args"]
    assert event["body"] == 'a="b"\né'
    assert event["headers"]["X-One"] == ["1"]
    # As Crossbar.io writes names, which programs look for.
    assert event["headers"]["X-Github-Event"] == ["push"]
    assert event["headers"]["Host"] == ["localhost"]


def test_a_session_is_seen_that_speaks(site: Http, session):
    """As in Crossbar.io, a service is a session of its realm, with its role."""
    call(site, "com.none")
    seen = [
        session.call("wamp.session.get", each) for each in session.call("wamp.session.list").args[0]
    ]
    identities = [(each.args[0]["authid"], each.args[0]["authrole"]) for each in seen]
    assert ("crosstie.caller", "anonymous") in identities


def test_a_long_result(site: Http, session, uri: str):
    session.register(uri, {"do": "echo"})
    said = call(site, uri, "x" * (4 * LONG))
    assert said == {"args": ["x" * (4 * LONG)]}


def test_many_at_once(site: Http, session, uri: str):
    session.register(uri, {"do": "echo"})
    with ThreadPoolExecutor(32) as pool:
        said = list(pool.map(lambda number: call(site, uri, number), range(300)))
    assert said == [{"args": [number]} for number in range(300)]


def test_a_client_that_disconnects_cancels_its_call(site: Http, session, uri: str):
    session.register(uri, {"do": "hold"})
    with site.connect() as connection:
        body = json.dumps({"procedure": uri}).encode()
        head = f"POST /free HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        session.next("invoked")
    session.next("interrupted")


def test_a_role_that_is_judged(site: Http, session):
    session.register("com.judge", {"do": "constant", "value": True})
    session.register("com.of_the_judged", {"do": "echo"})
    assert call(site, "com.of_the_judged", 1, path="/judged") == {"args": [1]}


def test_a_realm_that_comes_again(start_router, new_session, uri: str):
    router = start_router(cases.node())
    site = Http(router.address("web"))
    assert call(site, uri, path="/call")["error"] == "wamp.error.no_such_procedure"
    session = new_session("asyncio").open(cases.place(router.address("web")))
    (caller,) = [
        each
        for each in session.call("wamp.session.list").args[0]
        if session.call("wamp.session.get", each).args[0]["authid"] == "crosstie.caller"
    ]
    session.call("wamp.session.kill", caller)
    # The next request uses another session.
    await_true("an answer", lambda: site.post("/call", SUM, JSON).status == 200)
    session.register("com.add", {"do": "constant", "value": 3})
    assert call(site, "com.add", path="/call") == {"args": [3]}


def test_a_signed_request_is_taken_once(site: Http, session):
    session.register("com.add", {"do": "constant", "value": 3})
    query = signed(SUM)
    answers = [site.post(f"/once{query}", SUM, JSON) for _ in range(3)]
    assert [answer.status for answer in answers] == [200, 400, 400]
    assert json.loads(answers[1].body) == {
        "error": "Request replayed, its signature was taken before.",
        "args": [],
        "kwargs": {},
    }
    # In other words it is the same, and with another nonce it is not.
    again = query.replace("key=myapp", "x=y&key=my%61pp")
    assert site.post(f"/once{again}", SUM, JSON).status == 400
    assert site.post(f"/once{signed(SUM, nonce='2')}", SUM, JSON).status == 200
    # Another service has a memory of its own; what is refused for another reason is not remembered.
    assert site.post(f"/signed{query}", SUM, JSON).status == 200
    late = signed(SUM, nonce="3")
    assert site.post(f"/once{late}", b"{}", JSON).status == 401
    assert site.post(f"/once{late}", SUM, JSON).status == 200


def test_remembered_requests_are_bounded(site: Http, session):
    session.register("com.add", {"do": "constant", "value": 3})
    statuses = [site.post(f"/few{signed(SUM, seq=n)}", SUM, JSON).status for n in "123"]
    assert statuses == [200, 503, 503]


def test_one_of_many_at_once_is_taken(site: Http, session):
    session.register("com.add", {"do": "constant", "value": 3})
    query = signed(SUM, nonce="77")
    with ThreadPoolExecutor(16) as pool:
        answers = pool.map(lambda _: site.post(f"/once{query}", SUM, JSON).status, range(16))
    assert sorted(answers) == [200, *[400] * 15]


@pytest.mark.parametrize("size", [cases.LIMIT, cases.LIMIT + 1])
def test_a_body_without_a_length(site: Http, size: int):
    body = b'{"procedure":"com.none"}'.ljust(size)
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in (body[:7], body[7:])) + b"0\r\n\r\n"
    head = b"POST /call HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = site.raw(head + chunks, "POST")
    assert answer.status == (200 if size == cases.LIMIT else 413)
    assert answer.header("access-control-allow-origin") == "*"


def test_a_body_announced_as_too_long_is_not_read(site: Http):
    """No client has to send it, and none stores it."""
    head = b"POST /call HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n"
    answer = site.raw(head, "POST")
    assert answer.status == 413
    assert b"(1000000000 is longer than accepted 200)" in answer.body


def test_a_slow_body_is_not_waited_for(impatient: Http):
    with impatient.connect() as connection:
        connection.sendall(b"POST /pub HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        assert read(connection, "POST").status == 408


SMUGGLED = {
    "two lengths": ["Content-Length: 2", "Content-Length: 40"],
    "a length and chunks": ["Content-Length: 4", "Transfer-Encoding: chunked"],
    "a length of a sign": ["Content-Length: +4"],
    "two in one": ["Content-Length: 2, 40"],
    "chunks by another name": ["Transfer-Encoding: xchunked"],
    "chunks not last": ["Transfer-Encoding: chunked, identity"],
    "a space before the colon": ["Content-Length : 2"],
    "a folded line": ["Content-Length: 2", " 40"],
}


@pytest.mark.parametrize("lines", SMUGGLED.values(), ids=SMUGGLED.keys())
def test_no_second_request_is_smuggled(site: Http, session, lines: list[str], uri: str):
    """Everything that the two ends of a proxy might take for the end of a body."""
    session.subscribe(uri)
    inner = json.dumps({"topic": uri}).encode()
    smuggled = b"POST /pub HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(inner)
    head = ["POST /call HTTP/1.1", "Host: localhost", *lines]
    request = "\r\n".join(head).encode() + b"\r\n\r\n0\r\n\r\n" + smuggled + inner
    with site.connect() as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        answers = connection.makefile("rb").read()
    assert answers.count(b"HTTP/1.1 ") <= 1, answers
    assert not answers.startswith(b"HTTP/1.1 200"), answers
    session.round_trip()
    assert session.told_nothing()


HOSTILE = {
    "depth": b'{"procedure":"com.none","args":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "many keys": b"{" + b'"a":0,' * 150_000 + b'"procedure":1}',
    "many dicts": b'{"procedure":"com.none","args":[' + b"{}," * 300_000 + b"{}]}",
    "a list of much": b"[" + b"[]," * 300_000 + b"[]]",
    "digits": b'{"procedure":"com.none","args":[' + b"9" * 900_000 + b"]}",
    "long text": b'{"procedure":"' + b"x" * 900_000 + b'"}',
    "half a character": b'{"procedure":"com.none","args":["\\ud83d"]}',
    "a binary name": b'{"procedure":"\\u0000AAAA"}',
    "options": b'{"topic":"com.a","options":{"exclude":[' + b"1," * 400_000 + b"1]}}",
    "options in options": b'{"topic":"com.a","options":' + b'{"a":' * 100 + b"1" + b"}" * 101,
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
def test_bodies_of_attackers(site: Http, router: Router, session, body: bytes):
    path = "/pub" if b'"topic"' in body else "/free"
    answer = site.post(path, body, JSON)
    assert answer.status in (200, 400)
    said = json.loads(answer.body)
    assert "error" in said or "id" in said
    session.round_trip()


def test_a_compressed_body_is_not_opened(site: Http, session):
    """A bomb of 40 MiB stays the bytes that came, which are no JSON."""
    bomb = gzip.compress(b" " * (40 << 20))
    for coding in ("gzip", "deflate", "br"):
        answer = site.post("/free", bomb, {**JSON, "Content-Encoding": coding})
        assert answer.status == 400
        said = "Non-decodable request body, was not UTF-8."
        assert json.loads(answer.body)["error"] == said
    session.round_trip()


def test_cookies_of_a_browser_do_not_matter(site: Http, session, uri: str):
    """A page of any origin may ask, with its user's cookies: nothing here knows or gives any."""
    session.register(uri, {"do": "describe"})
    body = json.dumps({"procedure": uri}).encode()
    plain = site.post("/free", body, JSON)
    assert plain.status == 200
    browser = {"Origin": "https://attacker.example", "Cookie": "cbtid=known", "Authorization": "x"}
    known = site.post("/free", body, {**JSON, **browser})
    assert (known.status, known.body) == (plain.status, plain.body)
    assert known.header("access-control-allow-origin") == browser["Origin"]
    assert known.header("set-cookie") is None


def test_connections_that_hold_bodies_back(impatient: Http):
    """Many who begin a body and do not end it cost others nothing, and are gone in time."""
    held = [impatient.connect() for _ in range(50)]
    head = b"POST /pub HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"
    for connection in held:
        connection.sendall(head + b" " * 50_000)
    assert impatient.post("/pub", cases.EVENT, JSON).status == 200
    statuses = [read(connection, "POST").status for connection in held]
    assert statuses == [408] * 50
    for connection in held:
        connection.close()


def test_keep_alive_and_pipelining(site: Http, session, uri: str):
    session.register(uri, {"do": "echo"})
    with site.connect() as connection:
        requests = b""
        for number in range(20):
            body = json.dumps({"procedure": uri, "args": [number]}).encode()
            head = f"POST /free HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
            requests += head.encode() + body
        threading.Thread(target=connection.sendall, args=(requests,)).start()
        file = connection.makefile("rb")
        for number in range(20):
            assert file.readline() == b"HTTP/1.1 200 OK\r\n"
            length = 0
            while (line := file.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            assert json.loads(file.read(length)) == {"args": [number]}


def test_requests_are_counted_by_what_became_of_them(router: Router, site: Http):
    def counted(kind: str, outcome: str) -> float:
        return router.metric("http_requests_total", kind=kind, service="realm1", outcome=outcome)

    asked = {
        ("publisher", "answered"): ("/pub", b'{"topic": "com.counted"}'),
        ("caller", "error"): ("/free", b'{"procedure": "com.nobody"}'),
        ("caller", "refused"): ("/free", b"no JSON"),
    }
    before = {labels: counted(*labels) for labels in asked}
    for path, body in asked.values():
        site.post(path, body, JSON)
    for labels, count in before.items():
        assert counted(*labels) == count + 1
    assert router.metric("http_requests_open", kind="caller") == 0
    assert router.metric("http_request_seconds_total", kind="caller") > 0
