"""Requests to the HTTP bridge, for Crossbar.io and Crosstie alike, and the node they go to."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from rig import config
from rig.http import Answer, Http
from rig.puppet import Session

KEY, SECRET, GITHUB = "myapp", "s3cret", "gh"
LIMIT = 200


def paths() -> dict:
    """Return the services, of which each has a check of its own."""

    def service(kind: str, role: str = "anonymous", **options: object) -> dict:
        return {"type": kind, "realm": "realm1", "role": role, "options": options}

    return {
        "/": {"type": "json", "value": {}},
        "ws": {"type": "websocket"},
        "call": service("caller", post_body_limit=LIMIT),
        "pub": service("publisher"),
        "none": service("caller", "nothing"),
        "nonepub": service("publisher", "nothing"),
        "signed": service("caller", key=KEY, secret=SECRET),
        "anytime": service("caller", key=KEY, secret=SECRET, timestamp_delta_limit=0),
        "ip": service("publisher", require_ip=["10.0.0.0/8"]),
        "tls": service("publisher", require_tls=True),
        "hook": service("webhook", topic="com.hook", success_response="yes", error_response="no"),
        "nohook": service("webhook", "nothing", topic="com.hook"),
        "github": service("webhook", topic="com.hook", github_secret=GITHUB),
    }


def node(port: int = 0) -> dict:
    """Return the configuration of the node."""
    nothing = {"name": "nothing", "permissions": []}
    realm = {"name": "realm1", "roles": [config.role("anonymous"), nothing]}
    web = {"type": "web", "id": "web", "endpoint": config.tcp(port=port), "paths": paths()}
    return config.node([realm], [web])


def place(address: tuple[str, int]) -> dict:
    """Return where puppets find the node."""
    host, port = address
    url = f"ws://{host}:{port}/ws"
    return {
        "kind": "ws",
        "over": "tcp",
        "serializer": "json",
        "host": host,
        "port": port,
        "url": url,
    }


def serve(session: Session) -> None:
    """Register what the requests call."""
    session.register("com.add", {"do": "constant", "value": 3})
    session.register("com.nothing", {"do": "constant", "value": None})
    session.register("com.echo", {"do": "echo"})
    error = {"do": "raise", "uri": "com.error", "args": ["a", 1], "kwargs": {"x": "é"}}
    session.register("com.fail", error)
    session.register("com.fail_bare", {"do": "raise", "uri": "com.error", "args": [], "kwargs": {}})


def stamp(delta_s: float = 0) -> str:
    """Return a time as signed requests say it, so far from now."""
    at = datetime.now(UTC) + timedelta(seconds=delta_s)
    return at.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def signed(
    body: bytes, without: str = "", secret: str = SECRET, signature: str = "", **changed: str
) -> str:
    """Return the query that signs a body, by nothing but the documentation."""
    fields = {"key": KEY, "timestamp": stamp(), "seq": "1", "nonce": "12345", **changed}
    text = "".join(fields.values()).encode()
    digest = hmac.new(secret.encode(), text + body, hashlib.sha256).digest()
    fields["signature"] = signature or base64.urlsafe_b64encode(digest).decode()
    fields.pop(without, None)
    return "?" + urlencode(fields)


def by_github(body: bytes, secret: str = GITHUB) -> str:
    """Return what GitHub says of a body that it sends."""
    return "sha1=" + hmac.new(secret.encode(), body, hashlib.sha1).hexdigest()


JSON = {"Content-Type": "application/json"}
SUM = b'{"procedure":"com.add","args":[1,2]}'
EVENT = b'{"topic":"com.a"}'
OLD = "2011-10-14T16:59:51.123Z"
VECTOR = "8eQMPzYFQaBXzah_o3CTLFkCJLu5AtWXTcTXvsr-uwY="


@dataclass
class Case:
    """One request."""

    name: str
    path: str = "/call"
    body: bytes = b""
    method: str = "POST"
    headers: dict = field(default_factory=lambda: JSON)

    def ask(self, site: Http) -> dict:
        """Send it, and return the answer as it is kept."""
        return kept(site.ask(self.method, self.path, self.headers, self.body))


def kept(answer: Answer) -> dict:
    """Return of an answer what does not change with the time and the server."""
    names = ("access-control-", "allow", "cache-control", "content-type")
    headers = {name: value for name, value in answer.headers if name.startswith(names)}
    body = answer.body.decode()
    for pattern, there in ((r'"id":\d+', '"id":"*"'), (r"session_id=\d+", "session_id=*")):
        body = re.sub(pattern, there, body)
    return {"status": answer.status, "headers": headers, "body": body}


def calling(name: str, body: str | bytes) -> Case:
    """Return a case of a body alone."""
    return Case(name, body=body.encode() if isinstance(body, str) else body)


def publishing(name: str, body: str) -> Case:
    """Return the same for a publication."""
    return Case(name, "/pub", body.encode())


def typed(name: str, kind: str) -> Case:
    """Return a case of a content type."""
    return Case(name, body=SUM, headers={"Content-Type": kind})


def signing(name: str, path: str = "/signed", body: bytes = SUM, **changed: str) -> Case:
    """Return a case of a signature of SUM."""
    return Case(name, path + signed(SUM, **changed), body)


def cases() -> list[Case]:
    """Return all requests, signed now."""
    return [*heads(), *bodies(), *results(), *publications(), *signatures(), *hooks()]


def heads() -> list[Case]:
    asking = {
        "Origin": "http://a.example",
        "Access-Control-Request-Headers": "content-type, x-a",
        "Access-Control-Request-Method": "POST",
    }
    return [
        Case("get", method="GET"),
        Case("head", method="HEAD"),
        Case("delete", method="DELETE"),
        Case("patch", "/pub", SUM, "PATCH"),
        Case("put", body=SUM, method="PUT"),
        Case("options", method="OPTIONS", headers=asking),
        Case("options_bare", "/pub", method="OPTIONS", headers={}),
        Case("origin", body=SUM, headers={**JSON, "Origin": "http://a.example"}),
        Case("origin_null", body=SUM, headers={**JSON, "Origin": "null"}),
        Case("below", "/call/more", SUM),
        Case("no_type", body=SUM, headers={}),
        typed("type_empty", ""),
        typed("type_text", "text/plain; charset=utf-8"),
        typed("type_quoted", "it's"),
        typed("type_upper", "Application/JSON; Charset=UTF-8"),
        typed("charset_utf8", "application/json;charset=utf8"),
        typed("charset_utf16", "application/json; charset=utf-16"),
        typed("charset_twice", "application/json; charset=utf-8; charset=utf-8"),
        typed("charset_quoted", 'application/json; charset="utf-8"'),
        typed("other_parameter", "application/json; version=1; charset=utf-8"),
    ]


def bodies() -> list[Case]:
    return [
        calling("too_long", b"x" * (LIMIT + 1)),
        calling("at_the_limit", SUM.ljust(LIMIT)),
        calling("empty", b""),
        calling("not_utf8", b'{"procedure":"\xff"}'),
        calling("not_json", b"{"),
        calling("list", b"[]"),
        calling("text", b'"a"'),
        calling("null", b"null"),
        calling("no_procedure", b"{}"),
        publishing("no_topic", "{}"),
        calling("procedure_number", '{"procedure":1}'),
        calling("procedure_null", '{"procedure":null}'),
        publishing("topic_number", '{"topic":1}'),
        calling("procedure_empty", '{"procedure":""}'),
        calling("procedure_space", '{"procedure":"a b"}'),
        publishing("topic_space", '{"topic":"a b"}'),
        calling("twice", '{"procedure":"com.none","procedure":"com.add"}'),
        calling("not_a_number", '{"procedure":"com.echo","args":[NaN]}'),
        calling("deep", '{"procedure":"com.echo","args":[' + "[" * 60 + "]" * 60 + "]}"),
        calling("args_null", '{"procedure":"com.echo","args":null}'),
        calling("args_zero", '{"procedure":"com.echo","args":0,"kwargs":false}'),
        calling("args_text", '{"procedure":"com.echo","args":"ab"}'),
        calling("args_number", '{"procedure":"com.echo","args":5}'),
        calling("args_dict", '{"procedure":"com.echo","args":{"a":1}}'),
        calling("kwargs_list", '{"procedure":"com.echo","kwargs":[1]}'),
        calling("more_keys", '{"procedure":"com.add","args":[1,2],"x":{"y":2}}'),
    ]


def results() -> list[Case]:
    return [
        calling("one", SUM),
        calling("nothing", '{"procedure":"com.nothing"}'),
        calling("no_result", '{"procedure":"com.echo"}'),
        calling("several", '{"procedure":"com.echo","args":[1,"b",null]}'),
        calling("keywords", '{"procedure":"com.echo","kwargs":{"a":1}}'),
        calling("both", '{"procedure":"com.echo","args":[1],"kwargs":{"a":2}}'),
        calling("not_ascii", '{"procedure":"com.echo","args":["é"]}'),
        calling("error", '{"procedure":"com.fail"}'),
        calling("error_bare", '{"procedure":"com.fail_bare"}'),
        calling("none_such", '{"procedure":"com.none"}'),
        Case("denied", "/none", SUM),
        Case("denied_publication", "/nonepub", EVENT),
    ]


def publications() -> list[Case]:
    return [
        publishing("publication", '{"topic":"com.a","args":[1],"kwargs":{"a":2}}'),
        publishing(
            "options_of_it",
            '{"topic":"com.a","options":{"exclude_me":false,"exclude":[1],"eligible":2,"retain":null}}',
        ),
        publishing("topic_of_the_router", '{"topic":"wamp.a"}'),
        publishing("option_bad", '{"topic":"com.a","options":{"exclude_me":1}}'),
        publishing("option_bad_list", '{"topic":"com.a","options":{"exclude":"x"}}'),
        publishing("option_unheard", '{"topic":"com.a","options":{"unheard":1}}'),
        publishing("option_acknowledge", '{"topic":"com.a","options":{"acknowledge":false}}'),
        publishing("options_list", '{"topic":"com.a","options":[1]}'),
        Case("from_elsewhere", "/ip", EVENT),
        Case("without_tls", "/tls", EVENT),
    ]


def signatures() -> list[Case]:
    fields = ("key", "timestamp", "seq", "nonce", "signature")
    return [
        signing("signed"),
        *[signing(f"signed_without_{name}", without=name) for name in fields],
        Case("unsigned", "/signed", SUM),
        signing("signed_long_ago", timestamp=stamp(-400)),
        signing("signed_tomorrow", timestamp=stamp(400)),
        signing("signed_lately", timestamp=stamp(-200)),
        signing("signed_at_any_time", "/anytime", timestamp=OLD),
        signing("signed_short_time", "/anytime", timestamp="2011-1-4T6:9:1.1Z"),
        signing("signed_bad_day", "/anytime", timestamp="2011-02-30T16:59:51.123Z"),
        signing("signed_no_fraction", "/anytime", timestamp="2011-10-14T16:59:51Z"),
        signing("signed_bad_time", timestamp="2011-10-14"),
        signing("signed_bad_seq", seq="x"),
        signing("signed_bad_nonce", nonce="1.5"),
        signing("signed_negative", seq="-1", nonce="+7"),
        signing("signed_underscore", seq="1_0"),
        signing("signed_by_another_key", key="other"),
        signing("signed_by_another_secret", secret="other"),
        signing("signed_another_body", body=SUM.replace(b"1", b"3")),
        signing("vector", "/anytime", timestamp=OLD, signature=VECTOR),
        signing(
            "signed_not_for_urls",
            "/anytime",
            timestamp=OLD,
            signature=VECTOR.replace("_", "/").replace("-", "+"),
        ),
        Case("signed_key_twice", "/signed" + signed(SUM) + "&key=other", SUM),
        Case("unasked_time", "/call?timestamp=x", SUM),
        Case("unasked_old_time", f"/call?timestamp={OLD}", SUM),
        Case("unasked_seq", "/call?seq=x", SUM),
        Case("unasked_nonce", "/call?nonce=", SUM),
        Case("unasked_signature", "/call?signature=x&key=y", SUM),
    ]


def hooks() -> list[Case]:
    def hook(name: str, path: str = "/hook", body: bytes = b"a=b", **headers: str) -> Case:
        given = {key.replace("_", "-"): value for key, value in headers.items()}
        return Case(name, path, body, headers=given)

    form = "application/x-www-form-urlencoded"
    good = by_github(b"{}")
    return [
        hook("hook", Content_Type=form),
        Case("hook_get", "/hook", method="GET"),
        hook("hook_utf16", Content_Type="text/plain; charset=utf-16"),
        hook("hook_not_utf8", body=b"\xff"),
        hook("hook_denied", "/nohook"),
        hook("github", "/github", b"{}", X_Hub_Signature=good),
        hook("github_upper", "/github", b"{}", X_Hub_Signature=good.upper()),
        hook("github_none", "/github", b"{}"),
        hook("github_wrong", "/github", b"{}", X_Hub_Signature=by_github(b"{}", "x")),
        hook("github_short", "/github", b"{}", X_Hub_Signature="sha1="),
    ]
