"""Components that make HTTP requests: a router is them itself, and a container has them."""

from __future__ import annotations

import json
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import certificates, config
from rig.http_site import Site
from rig.puppet import WampError
from rig.router import ROOT, Router
from rig.waiting import DEADLINE_S, await_true

from bridge import cases


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.close()


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Path:
    """An authority that the system does not know."""
    return certificates.write(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def secure_site(authority: Path) -> Iterator[Site]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority.parent / "server.pem", authority.parent / "server.key")
    site = Site(tls)
    yield site
    site.close()


@pytest.fixture(scope="module", params=["router", "container"])
def router(request, tmp_path_factory, site: Site, secure_site: Site, authority: Path):
    """A router that forwards events and answers calls, or has a container that does."""
    directory = tmp_path_factory.mktemp("outgoing")
    socket = {"type": "unix", "path": "node.sock"}
    if request.param == "router":
        way = {"role": "anonymous"}
    else:
        way = {"transport": {"type": "rawsocket", "serializer": "json", "endpoint": socket}}

    def component(name: str, **extra: object) -> dict:
        return {
            "type": "class",
            "id": name.lower(),
            "classname": f"crossbar.bridge.rest.{name}",
            "realm": "realm1",
            "extra": extra,
            **way,
        }

    configuration = cases.node()
    worker = configuration["workers"][0]
    worker["transports"].append(config.universal("tcp", config.tcp()))
    if request.param == "container":
        worker["transports"].append({"type": "rawsocket", "endpoint": socket})
        variables = {"PYTHONPATH": str(ROOT / "python")}
        options = {"python": sys.executable, "env": {"vars": variables}}
        worker = {"type": "container", "options": options}
        configuration["workers"].append(worker)
    worker["components"] = [
        component(
            "MessageForwarder",
            subscriptions=[
                {"topic": "com.forward", "url": f"{site.url}/forwarded?a=b"},
                {"topic": "com.all", "url": f"{site.url}/all", "match": "prefix"},
                {"topic": "com.lost", "url": "http://127.0.0.1:1/"},
                {"topic": "com.wrong", "url": f"{site.url}/missing"},
            ],
            method="PUT",
            expectedcode=200,
        ),
        component(
            "RESTCallee",
            baseurl=f"{site.url}/base/",
            procedure="com.rest",
        ),
        {
            **component(
                "RESTCallee",
                baseurl=site.url,
                procedure="com.impatient",
                timeout=1,
                requests_max=2,
                answer_bytes_max=200_000,
            ),
            "id": "impatient",
        },
        {
            **component(
                "RESTCallee",
                baseurl=secure_site.url,
                procedure="com.secure",
                ca_certificates=[str(authority)],
            ),
            "id": "secure",
        },
        {
            **component("RESTCallee", baseurl=secure_site.url, procedure="com.stranger"),
            "id": "stranger",
        },
    ]
    router = Router(directory, config=configuration)
    yield router
    router.stop()


@pytest.fixture
def session(router: Router, new_session):
    return new_session("asyncio").open(cases.place(router.address("web")))


@pytest.fixture(autouse=True)
def _ready(router: Router, session, site: Site):
    """Wait for both components, which join once the router has started."""
    for topic in ("com.forward", "com.all", "com.lost", "com.wrong"):
        match = {"match": "prefix"} if topic == "com.all" else {}
        while session.call("wamp.subscription.lookup", topic, match).args == [None]:
            pass
    for procedure in ("com.rest", "com.impatient", "com.secure", "com.stranger"):
        while session.call("wamp.registration.lookup", procedure).args == [None]:
            pass
    while not site.requests.empty():
        site.requests.get()


def test_an_event_is_a_request(session, site: Site):
    session.publish("com.forward", 1, "é", a={"b": None})
    request = site.next()
    assert (request["method"], request["path"]) == ("PUT", "/forwarded?a=b")
    assert json.loads(request["body"]) == {"args": [1, "é"], "kwargs": {"a": {"b": None}}}
    assert request["headers"]["content-type"] == "application/json"
    session.publish("com.forward")
    assert site.next()["body"] == '{"args":[],"kwargs":{}}'


def test_events_by_pattern_and_many(session, site: Site):
    for number in range(200):
        session.publish(f"com.all.{number}", number)
    bodies = [json.loads(site.next()["body"])["args"] for _ in range(200)]
    assert sorted(bodies) == [[number] for number in range(200)]


def test_refused_events_are_logged_once(session, router: Router, site: Site):
    since = len(router.log)
    for _ in range(5):
        session.publish("com.lost")
        session.publish("com.wrong")
    router.await_log(lambda line: "not taken by http://127.0.0.1:1/" in line.text, since)
    router.await_log(lambda line: "answered 404, where 200 was expected" in line.text, since)
    session.publish("com.forward", 1)
    while site.next()["path"] != "/forwarded?a=b":
        pass
    told = [line for line in router.log[since:] if "was not taken" in line.text]
    assert len(told) == 2


def test_a_call_is_a_request(session, site: Site):
    headers = {"X-One": "1", "X-List": ["a", "b"]}
    reply = session.call(
        "com.rest", method="POST", url="x?y=z", body="ü", headers=headers, params={"p": "1&2"}
    )
    request = site.next()
    assert (request["method"], request["path"]) == ("POST", "/base/x?y=z&p=1%262")
    assert (request["body"], request["headers"]["x-one"]) == ("ü", "1")
    (answer,) = reply.args
    assert (answer["code"], answer["content"]) == (200, "é")
    assert answer["headers"]["X-Two"] == ["1", "2"]
    assert answer["headers"]["Content-Length"] == ["2"]


def test_answers_of_any_status_are_results(session):
    assert session.call("com.rest", "GET", "/missing").args[0]["code"] == 404
    assert session.call("com.rest", "GET", "/away").args[0]["headers"]["Location"]


ELSEWHERE = [
    "http://127.0.0.1:1/",
    "//127.0.0.1:1/",
    "https://127.0.0.1/",
    "http://localhost/",
    "http://user@127.0.0.1/",
    "file:///etc/passwd",
    "/a\r\nX: y",
    "\\\\127.0.0.1\\",
]


@pytest.mark.parametrize("url", ELSEWHERE)
def test_a_call_leads_to_no_other_server(session, site: Site, url: str):
    with pytest.raises(WampError) as refused:
        session.call("com.rest", "GET", url)
    assert refused.value.uri == "wamp.error.invalid_argument"
    assert site.requests.empty()


BAD = {
    "no method": {"url": "x"},
    "no name of a method": {"method": "G T", "url": "x"},
    "a header of two lines": {"method": "GET", "headers": {"X": "a\r\nY: b"}},
    "another's host": {"method": "GET", "headers": {"Host": "other"}},
    "a length": {"method": "POST", "headers": {"content-length": "5"}},
    "chunks": {"method": "POST", "headers": {"Transfer-Encoding": "chunked"}},
    "a body that is no text": {"method": "POST", "body": 5},
    "a parameter that is no text": {"method": "GET", "params": {"a": 1}},
    "something unheard of": {"method": "GET", "verify": False},
}


@pytest.mark.parametrize("said", BAD.values(), ids=BAD.keys())
def test_calls_that_are_no_requests(session, site: Site, said: dict):
    with pytest.raises(WampError) as refused:
        session.call("com.rest", **said)
    assert refused.value.uri == "wamp.error.invalid_argument"
    assert site.requests.empty()


def test_an_answer_that_is_too_long_or_too_late(session):
    for url in ("/long", "/held"):
        with pytest.raises(WampError) as failed:
            session.call("com.impatient", "GET", url)
        assert failed.value.uri == "wamp.error.runtime_error"
    # Those that wait in line have their turns.
    calls = [session.start_call("com.impatient", "GET", "/held") for _ in range(5)]
    for call in calls:
        assert call.exception(DEADLINE_S)


def test_a_server_of_https_is_trusted_by_its_authority(session):
    (answer,) = session.call("com.secure", "GET", "/").args
    assert (answer["code"], answer["content"]) == (200, "é")
    with pytest.raises(WampError) as failed:
        session.call("com.stranger", "GET", "/")
    assert failed.value.uri == "wamp.error.runtime_error"
    assert "certificate" in str(failed.value.args)


@pytest.mark.parametrize("router", ["router"], indirect=True)
def test_outcomes_of_requests_are_counted(session, router: Router):
    def counted(kind: str, name: str, outcome: str) -> float:
        return router.metric("http_requests_total", kind=kind, service=name, outcome=outcome)

    def is_open(name: str) -> float:
        return router.metric("http_requests_open", kind="callee", service=name)

    answered = counted("callee", "secure", "answered")
    session.call("com.secure", "GET", "/")
    assert counted("callee", "secure", "answered") == answered + 1
    assert router.metric("http_request_seconds_total", kind="callee", service="secure") > 0
    refused = counted("callee", "secure", "refused")
    unavailable = counted("callee", "stranger", "unavailable")
    late = counted("callee", "impatient", "timed_out")
    for procedure, said in [
        ("com.secure", {"method": "GET", "url": "http://elsewhere/"}),
        ("com.stranger", {"method": "GET"}),
        ("com.impatient", {"method": "GET", "url": "/held"}),
    ]:
        with pytest.raises(WampError):
            session.call(procedure, **said)
    assert counted("callee", "secure", "refused") == refused + 1
    assert counted("callee", "stranger", "unavailable") == unavailable + 1
    assert counted("callee", "impatient", "timed_out") == late + 1
    unexpected = counted("forwarder", "messageforwarder", "unexpected")
    session.publish("com.wrong")
    await_true(
        "an event is counted that was not taken",
        lambda: counted("forwarder", "messageforwarder", "unexpected") > unexpected,
    )
    await_true("nothing is open any more", lambda: is_open("impatient") == 0)
