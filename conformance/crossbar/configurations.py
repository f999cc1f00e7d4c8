"""Configurations as Crossbar.io's examples and users write them, and what becomes of each here.

Each is small and of our own writing, and has what a kind of example has: a service, a method, a
worker, an old way of saying it. `says` are parts of what `crosstie check` says; where nothing is
said, nothing may be.
"""

from __future__ import annotations

from dataclasses import dataclass

ALL = {"call": True, "register": True, "publish": True, "subscribe": True}
NONE_SHOWN = {"caller": False, "publisher": False}
LOCAL = {"type": "tcp", "port": "$PORT", "interface": "127.0.0.1"}
KEY = "545efb0a2192db8d43f118e9bf9aee081466e1ef36c708b96ee6f62dddad9122"


@dataclass
class Case:
    """One configuration: its name, and what `crosstie check` is to say of it."""

    name: str
    configuration: dict
    loads: bool = True
    says: tuple[str, ...] = ()


def role(name: str = "anonymous", **more: object) -> dict:
    """Return a role that may do everything, as the examples have it."""
    permission = {"uri": "", "match": "prefix", "allow": ALL, "disclose": NONE_SHOWN, "cache": True}
    return {"name": name, "permissions": [permission], **more}


def realm(*roles: dict, **more: object) -> dict:
    """Return `realm1` with these roles, or with `anonymous`."""
    return {"name": "realm1", "roles": list(roles) or [role()], **more}


def router(*transports: dict, **more: object) -> dict:
    """Return a router worker."""
    return {"type": "router", "realms": [realm()], "transports": list(transports), **more}


def node(*workers: dict, **more: object) -> dict:
    """Return a configuration of version 2."""
    return {"version": 2, "controller": {}, "workers": list(workers), **more}


def web(paths: dict, **more: object) -> dict:
    """Return a web transport with WebSocket beside these services."""
    paths = {"ws": {"type": "websocket"}, **paths}
    return {"type": "web", "endpoint": LOCAL, "paths": paths, **more}


def served(**paths: dict) -> dict:
    """Return a node that serves these."""
    return node(router(web(paths)))


def websocket(**more: object) -> dict:
    """Return a WebSocket transport."""
    return {"type": "websocket", "endpoint": LOCAL, **more}


def asks(**auth: dict) -> dict:
    """Return a node whose one transport has these methods."""
    paths = {"ws": {"type": "websocket", "auth": auth}}
    realms = [realm(role(), role("backend"))]
    return node(router({"type": "web", "endpoint": LOCAL, "paths": paths}, realms=realms))


def changed(**more: object) -> dict:
    """Return a node with one WebSocket transport that has these keys too."""
    return node(router(websocket(**more)))


def of_realm(**more: object) -> dict:
    """Return a node whose realm has these keys too."""
    return node(router(websocket(), realms=[realm(**more)]))


def component(**more: object) -> dict:
    """Return a component's description."""
    return {"type": "class", "classname": "hello.AppSession", "realm": "realm1", **more}


CONNECTS = {"type": "websocket", "url": "ws://127.0.0.1:8080/ws", "endpoint": {
    "type": "tcp", "host": "127.0.0.1", "port": 8080,
}}  # fmt: skip
BRIDGE = {"realm": "realm1", "role": "anonymous"}
OLD = {"uri": "com.example.*", "call": True, "publish": True}
STATIC = {"type": "static", "directory": ".."}

SERVED = [
    Case("a page and WebSocket", served(**{"/": STATIC})),
    Case(
        "files with options",
        served(files={**STATIC, "options": {
            "enable_directory_listing": True,
            "mime_types": {".md": "text/markdown"},
            "cache_timeout": None,
            "default_file": "index.html",
        }}),
    ),
    Case("paths in paths", served(deep={"type": "path", "paths": {"er": STATIC}})),
    Case("a redirection", served(go={"type": "redirect", "url": "https://example.com"})),
    Case("a value", served(info={"type": "json", "value": 1, "options": {"prettify": True}})),
    Case("a page about the node", served(info={"type": "nodeinfo"})),
    Case("long-poll", served(lp={"type": "longpoll", "options": {"session_timeout": 0}})),
    Case(
        "a signed HTTP bridge",
        served(
            call={"type": "caller", **BRIDGE},
            publish={"type": "publisher", **BRIDGE, "options": {
                "key": "app", "secret": "s3cret", "post_body_limit": 8192,
                "timestamp_delta_limit": 10, "require_ip": ["192.168.1.1/255.255.255.0"],
            }},
        ),
        says=("192.168.1.1/255.255.255.0 is no network", "taken to be 192.168.1.0/24"),
    ),
    Case(
        "GitHub's webhook",
        served(github={"type": "webhook", **BRIDGE, "options": {"topic": "com.example.pushed"}}),
    ),
    Case("a reverse proxy", served(app={"type": "reverseproxy", "host": "localhost", "port": 80})),
    Case(
        "a reverse proxy of WebSockets",
        served(proxy={"type": "websocket-reverseproxy", "backend": {
            **CONNECTS, "url": "ws://localhost:8080",
        }}),
    ),
    Case(
        "programs in Python",
        served(
            app={"type": "wsgi", "module": "myapp", "object": "app"},
            res={"type": "resource", "classname": "myapp.Resource", "extra": {"a": 1}},
        ),
    ),
    Case("CGI", served(cgi={"type": "cgi", "directory": "../cgi", "processor": "/bin/sh"}),
         says=("nothing is found below it until there is",)),
    Case("an archive", served(zip={"type": "archive", "archive": "../web.zip", "cache": True}),
         says=("there is no file",)),
    Case(
        "a proxy of another machine's router",
        node(router(websocket()), {
            "type": "proxy",
            "connections": {"there": {"transport": {
                "type": "rawsocket", "serializer": "cbor",
                "endpoint": {"type": "tcp", "host": "core.example", "port": 8442},
            }}},
            "routes": {"realm1": {"anonymous": "there"}},
            "transports": [websocket()],
        }),
        loads=False,
        says=("no router worker of this node listens there",),
    ),
    Case(
        "everything on one port",
        node(router({
            "type": "universal", "endpoint": LOCAL,
            "rawsocket": {"serializers": ["cbor", "msgpack", "ubjson", "json"]},
            "websocket": {"ws": {"type": "websocket", "serializers": ["json", "cbor"]}},
            "web": {"paths": {"/": STATIC}},
        })),
        says=('"ubjson" as an item of "serializers"', "is left out"),
    ),
    Case("a misspelt service", served(a={"type": "statics"}), False, ('did you mean "static"',)),
    Case("WAP", served(a={"type": "wap", "templates": "t"}), False, ("which `wsgi` runs",)),
    Case("an upload", served(a={"type": "upload", **BRIDGE}), False, ("which `wsgi` runs",)),
    Case("a bridge to nowhere", served(a={"type": "caller", "realm": "other", "role": "a"}), False,
         ('this router worker has no realm "other"',)),
]  # fmt: skip

AUTHENTICATION = [
    Case("tickets", asks(ticket={"type": "static", "principals": {
        "joe": {"ticket": "secret", "role": "backend"}}})),
    Case("a ticket of the environment", asks(ticket={"type": "static", "principals": {
        "joe": {"ticket": "${TICKET}", "role": "backend"}}})),
    Case("WAMP-CRA", asks(wampcra={"type": "static", "users": {"joe": {
        "secret": "prq7+YkJ1/KlW1X0YczMHw==", "role": "backend", "salt": "salt123",
        "iterations": 1000, "keylen": 32}}})),
    Case("a procedure is asked", asks(
        wampcra={"type": "dynamic", "authenticator": "com.example.authenticate"},
        anonymous={"type": "static", "role": "backend"},
    )),
    Case("a function is asked", asks(ticket={
        "type": "function", "create": "auth.create", "expose_controller": True}),
        says=('"expose_controller"', "can only be false")),
    Case("cryptosign", asks(cryptosign={"type": "static", "principals": {
        "joe": {"authorized_keys": [KEY], "role": "backend"}}})),
    Case("certificates of Ethereum", asks(cryptosign={"type": "static", "trustroots": {}}), False,
         ('"trustroots"', "need a blockchain")),
    Case("a cookie in a file", changed(
        auth={"cookie": {}, "anonymous": {"type": "static"}},
        cookie={"name": "cbtid", "max_age": 604800, "store": {
            "type": "file", "filename": "cookies.dat"}})),
    Case("a cookie in a database", changed(
        auth={"cookie": {}, "anonymous": {"type": "static"}},
        cookie={"store": {"type": "database", "path": ".cookies"}}),
        says=('taken to be the file ".cookies.cookies"',)),
]  # fmt: skip

WORKERS = [
    Case("a component in a container", node(
        router(websocket()),
        {"type": "container", "options": {"pythonpath": [".."]}, "components": [
            component(transport=CONNECTS)]})),
    Case("a component in the router", node(
        router(websocket(), components=[component(role="anonymous")]))),
    Case("a guest", node(router(websocket()), {
        "type": "guest", "executable": "node", "arguments": ["hello.js"],
        "options": {"workdir": "../node", "watch": {"directories": ["../node"]}}})),
    Case("ids with dashes and capitals", node(
        router(websocket(), realms=[realm(role(id="Role 1"), id="My Realm")]),
        {"type": "guest", "id": "my-guest", "executable": "node"},
        {"type": "container", "id": "WampADCP", "components": [
            component(id="Device-1", transport=CONNECTS)]}),
        says=('"id" in a role has no effect', '"id" in a realm has no effect')),
    Case("a guest beside a ticket of the environment", node(
        asks(ticket={"type": "static", "principals": {
            "joe": {"ticket": "$TICKET", "role": "backend"}}})["workers"][0],
        {"type": "guest", "executable": "node"}),
        says=('"worker2" does not see', '"vars": {"TICKET": "$TICKET"}')),
    Case("shared objects", node(router(websocket()), {
        "type": "container", "options": {"expose_shared": True}, "components": [
            component(transport=CONNECTS)]})),
    Case("a manhole", node(router(websocket(), manhole={"endpoint": LOCAL, "users": []})),
         says=('"manhole" in a router worker is left out',)),
    Case("an uplink", node(router(websocket()), controller={"fabric": {"transport": {}}}),
         says=('"transport" in the controller\'s fabric is left out',)),
    Case("a database connection", node(router(websocket(), connections=[{
        "id": "db1", "type": "postgresql.connection"}])),
        says=('"connections" in a router worker is left out',)),
    Case("a component that uses one", node(router(websocket(), components=[
        component(role="anonymous", references=["connection:db1"])])),
        says=('"connection:db1" in "references" is left out',)),
    Case(
        "a proxy worker",
        node({"type": "proxy"}),
        loads=False,
        says=("a proxy without routes leads nowhere",),
    ),
    Case("a market", node({"type": "xbrmm"}), False, ("a router needs no blockchain",)),
]  # fmt: skip

LINK = {
    "id": "rlink1",
    "realm": "realm1",
    "transport": {
        "type": "websocket",
        "endpoint": {"type": "tcp", "host": "127.0.0.1", "port": 8081},
        "url": "ws://localhost:8081/ws",
    },
    "authid": "node1",
    "exclude_authid": ["node2"],
    "forward_local_invocations": True,
    "forward_remote_invocations": False,
    "forward_local_events": True,
    "forward_remote_events": False,
}

REALMS = [
    Case("statistics", of_realm(stats={"rated_message_size": 512}), says=("/metrics",)),
    Case("a trace", of_realm(trace=True), says=('"trace" in a realm is left out',)),
    Case("event history", of_realm(store={"type": "memory"})),
    Case("links", of_realm(rlinks=[LINK])),
    Case("catalogs", of_realm(inventory={}), False, ('"inventory" in a realm is not yet',)),
    Case("everything allowed", node(router(websocket(), realms=[
        realm({"name": "anonymous", "allow-by-default": True})]))),
    Case("an authorizer", node(router(websocket(), realms=[
        realm({"name": "anonymous", "authorizer": "com.example.authorize"})]))),
]  # fmt: skip

WAYS_OF_SAYING = [
    Case("version 1", {"controller": {}, "workers": [router(websocket(), realms=[
        realm({"name": "anonymous", "permissions": [OLD]})])]},
        says=('"version" is missing and taken to be 1: the permission of it is converted',)),
    Case("version 1, said", {"version": 1, "workers": [router(websocket(), realms=[
        realm({"name": "anonymous", "permissions": [OLD]})])]},
        says=('"version" 1 is taken as version 2',)),
    Case("an early publisher", served(push={"type": "pusher", **BRIDGE}),
         says=('"pusher" is taken to be "publisher"',)),
    Case("an endpoint of Twisted's", changed(endpoint={
        "type": "twisted", "server_string": "tcp:0:interface=127.0.0.1"}),
        says=('taken to be the endpoint {"type": "tcp", "port": 0, "interface": "127.0.0.1"}',)),
    Case("another of Twisted's", changed(endpoint={
        "type": "twisted", "server_string": "systemd:domain=INET:index=0"}), False,
        ("not by Twisted's strings",)),
    Case("a range of ports", changed(endpoint={
        "type": "tcp", "portrange": [8080, 8090], "port": 1}), False, ('"portrange"',)),
    Case("Flash", node(router(websocket(), {
        "type": "flashpolicy", "allowed_domain": "*", "endpoint": {"type": "tcp", "port": 843}})),
        says=('"flashpolicy"', "is left out")),
    Case("pings of four bytes", changed(options={
        "auto_ping_interval": 10000, "auto_ping_timeout": 5000, "auto_ping_size": 4}),
        says=("4 bytes do not tell one ping from another",)),
    Case("the usual WebSocket options", changed(options={
        "enable_webstatus": False, "max_frame_size": 1048576, "max_message_size": 1048576,
        "auto_fragment_size": 65536, "fail_by_drop": True, "open_handshake_timeout": 2500,
        "close_handshake_timeout": 1000, "auto_ping_interval": 10000, "auto_ping_timeout": 5000}),
        says=('"auto_fragment_size"',)),
    Case("MQTT", node(router({"type": "mqtt", "endpoint": LOCAL, "options": {
        "realm": "realm1", "role": "anonymous",
        "payload_mapping": {"": {"type": "passthrough"}}}})),
         says=('"role" in options of MQTT',)),
    Case("MQTT without a realm", node(router({"type": "mqtt", "endpoint": LOCAL, "options": {}})),
         False, ('"realm"',)),
    Case("a Unix socket", node(router({
        "type": "rawsocket", "serializers": ["cbor"],
        "endpoint": {"type": "unix", "path": "sock1"}, "options": {"max_message_size": 65536}}))),
]  # fmt: skip

CASES = [*SERVED, *AUTHENTICATION, *WORKERS, *REALMS, *WAYS_OF_SAYING]
