"""WebSocket handshakes and frames that RFC 6455 forbids, and the pages beside them."""

from __future__ import annotations

import struct

import pytest
from rig import config
from rig.plain import Plain
from rig.router import Router
from rig.websocket import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, WebSocket

MESSAGE = b'[16,1,{},"com.x"]'


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        pytest.param("/ws", {"Sec_WebSocket_Protocol": None}, 400, id="no_subprotocol"),
        pytest.param("/ws", {"Sec_WebSocket_Protocol": "mqtt"}, 400, id="wrong_subprotocol"),
        pytest.param("/ws", {"Sec_WebSocket_Protocol": "wamp.2.ubjson"}, 400, id="ubjson"),
        pytest.param("/nowhere", {}, 404, id="wrong_path"),
        pytest.param("/ws/deeper", {}, 404, id="deeper_path"),
        pytest.param("/ws", {"Sec_WebSocket_Key": None}, 400, id="no_key"),
        pytest.param("/ws", {"Sec_WebSocket_Key": "short"}, 400, id="bad_key"),
        pytest.param("/ws", {"Sec_WebSocket_Version": "8"}, 426, id="old_version"),
        pytest.param("/ws", {"Connection": "close"}, 400, id="no_upgrade"),
        pytest.param("/ws", {"Host": None}, 400, id="no_host"),
        pytest.param("/ws", {"X": "x" * 40_000}, 431, id="too_large"),
    ],
)
def test_an_upgrade_is_refused(abused, path, headers, status):
    with WebSocket.tcp(abused.address("tcp")) as peer:
        answer, _, body = peer.upgrade(path=path, **headers)
        assert answer == status
        assert body.strip(), "the client is told what is wrong"
        assert peer.receive_all() == b""
        abused.expect_fault(peer)


def test_a_foreign_origin_is_refused(start_router):
    options = {"options": {"allowed_origins": ["https://shop.example", "*://*.example:80"]}}
    router = start_router(
        config.plain(config.universal("tcp", config.tcp(), websocket={"ws": options}))
    )
    for origin, status in [
        ("https://shop.example", 101),
        ("http://any.example:80", 101),
        ("https://evil.example", 403),
        (None, 101),
    ]:
        with WebSocket.tcp(router.address("tcp")) as peer:
            assert peer.upgrade(Origin=origin)[0] == status, origin


ORIGINS = [
    (None, 101),
    ("http://localhost:3000", 101),
    ("https://127.0.0.1", 101),
    ("http://[::1]:80", 101),
    ("https://evil.example", 403),
    ("http://localhost.evil.example", 403),
    ("null", 403),
]


def test_at_a_loopback_address_only_pages_of_this_machine_connect(start_router):
    router = start_router(config.plain(config.universal("tcp", config.tcp())))
    for origin, status in ORIGINS:
        with WebSocket.tcp(router.address("tcp")) as peer:
            answer, _, body = peer.upgrade(Origin=origin)
            assert answer == status, origin
            assert status == 101 or b"allow" in body, "it says which key lets others in"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "192.0.2.1", "127.0.0.1.a"])
def test_at_a_loopback_address_other_names_lead_nowhere(start_router, host):
    """The name of a page that led itself here, which a browser takes for the page's own site."""
    router = start_router(config.plain(config.universal("tcp", config.tcp())))
    with WebSocket.tcp(router.address("tcp")) as peer:
        status, _, body = peer.upgrade(Host=host)
        assert (status, b"allowed_hosts" in body) == (403, True)
    for path in ["/health", "/metrics", "/", "/nowhere"]:
        with WebSocket.tcp(router.address("tcp")) as peer:
            peer.send(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            status, _, body = peer.response()
            assert (status, b"allowed_hosts" in body) == (403, True), path


def test_the_embedded_default_elsewhere_than_at_loopback(tmp_path):
    """It is reached by any name, but not by pages from elsewhere; the log says how open it is."""
    router = Router(tmp_path, "--listen", "0.0.0.0:0", "--amqp", "127.0.0.1:0")
    try:
        router.await_log(lambda line: "whoever reaches this machine" in line.text)
        port = next(
            int(url.rsplit(":", 1)[1].split("/")[0])
            for url in router.urls("transport1")
            if url.startswith("ws://")
        )
        for headers, status in [
            ({"Host": "shop.example"}, 101),
            ({"Origin": "http://localhost"}, 101),
            ({"Origin": "https://evil.example"}, 403),
        ]:
            with WebSocket.tcp(("127.0.0.1", port)) as peer:
                assert peer.upgrade(**headers)[0] == status, headers
    finally:
        router.stop()


def test_names_that_are_listed_lead_to_the_listener(start_router):
    router = start_router(
        config.plain(config.universal("tcp", config.tcp(), allowed_hosts=["*.shop.example"]))
    )
    for host, status in [("a.shop.example:80", 101), ("localhost", 403)]:
        with WebSocket.tcp(router.address("tcp")) as peer:
            assert peer.upgrade(Host=host)[0] == status, host


def test_a_listener_with_origins_is_reached_by_any_name(start_router):
    """As a router behind a proxy that leaves `Host` as it came."""
    options = {"options": {"allowed_origins": ["https://shop.example"]}}
    router = start_router(
        config.plain(config.universal("tcp", config.tcp(), websocket={"ws": options}))
    )
    with WebSocket.tcp(router.address("tcp")) as peer:
        assert peer.upgrade(Host="shop.example", Origin="https://shop.example")[0] == 101


def test_the_first_subprotocol_that_is_known_is_taken(abused):
    with WebSocket.tcp(abused.address("tcp")) as peer:
        status, headers, _ = peer.upgrade("mqtt, wamp.2.cbor, wamp.2.json")
        assert (status, headers["sec-websocket-protocol"]) == (101, "wamp.2.cbor")


def test_a_query_is_no_part_of_the_path(abused):
    with WebSocket.tcp(abused.address("tcp")) as peer:
        assert peer.upgrade(path="/ws?token=x")[0] == 101


# Bytes to an open session, and the codes that may answer them.
FRAMES = [
    ("unmasked", lambda p: p.send_frame(TEXT, MESSAGE, masked=False), (1002,)),
    ("reserved bit 1", lambda p: p.send_frame(TEXT, MESSAGE, reserved=4), (1002,)),
    ("reserved bit 3", lambda p: p.send_frame(TEXT, MESSAGE, reserved=1), (1002,)),
    ("opcode 3", lambda p: p.send_frame(3, MESSAGE), (1002,)),
    ("opcode 15", lambda p: p.send_frame(15, b""), (1002,)),
    ("continuation of nothing", lambda p: p.send_frame(CONTINUATION, MESSAGE), (1002,)),
    ("ping in fragments", lambda p: p.send_frame(PING, b"x", fin=False), (1002,)),
    ("ping too long", lambda p: p.send_frame(PING, b"x" * 126), (1002,)),
    ("binary where text is spoken", lambda p: p.send_frame(BINARY, MESSAGE), (1002, 1003)),
    ("length in a longer form", lambda p: p.send_frame(TEXT, b"x", length=b"\x7e\0\1"), (1002,)),
    (
        "length of 2^63",
        lambda p: p.send_frame(TEXT, b"", length=b"\x7f" + struct.pack("!Q", 1 << 63)),
        (1002, 1009),
    ),
    (
        "length of 2^40",
        lambda p: p.send_frame(TEXT, b"", length=b"\x7f" + struct.pack("!Q", 1 << 40)),
        (1009,),
    ),
    ("close of one byte", lambda p: p.send_frame(CLOSE, b"\x03"), (1002,)),
    ("close with a code never sent", lambda p: p.send_frame(CLOSE, b"\x03\xed"), (1002,)),
    ("close with code 999", lambda p: p.send_frame(CLOSE, b"\x03\xe7"), (1002,)),
    ("close with bad UTF-8", lambda p: p.send_frame(CLOSE, b"\x03\xe8\xff"), (1007,)),
]


@pytest.mark.parametrize(
    ("send", "codes"), [pytest.param(*case[1:], id=case[0].replace(" ", "_")) for case in FRAMES]
)
def test_a_bad_frame_is_answered_with_its_code(abused, send, codes):
    with WebSocket.tcp(abused.address("tcp")).open().join() as peer:
        send(peer)
        peer.expect_close(*codes)
        abused.expect_fault(peer)


def test_a_new_message_inside_a_fragmented_one(abused):
    with WebSocket.tcp(abused.address("tcp")).open().join() as peer:
        peer.send_frame(TEXT, b"[16,", fin=False)
        peer.send_frame(TEXT, MESSAGE)
        peer.expect_close(1002)
        abused.expect_fault(peer)


def test_an_oversized_message(start_router):
    options = {"options": {"max_message_size": 1000}}
    router = start_router(
        config.plain(config.universal("tcp", config.tcp(), websocket={"ws": options}))
    )
    with WebSocket.tcp(router.address("tcp")).open().join() as peer:
        peer.send_frame(TEXT, b"", length=b"\x7e" + struct.pack("!H", 1001))
        peer.expect_close(1009)
    with WebSocket.tcp(router.address("tcp")).open().join() as peer:
        peer.send_frame(TEXT, b"x" * 600, fin=False)
        peer.send_frame(CONTINUATION, b"x" * 600)
        peer.expect_close(1009)


def test_fragments_with_pings_between_them(abused):
    with WebSocket.tcp(abused.address("tcp")).open().join() as peer:
        whole = b'[16,1,{"acknowledge":true},"com.x",["\xc3\xbc"]]'
        for at in range(len(whole)):
            peer.send_frame(PING, bytes([at]))
            assert peer.receive_frame() == (PONG, bytes([at]))
            opcode = TEXT if at == 0 else CONTINUATION
            peer.send_frame(opcode, whole[at : at + 1], fin=at == len(whole) - 1)
        peer.hear(17)


def test_close_is_answered_with_close(abused):
    with WebSocket.tcp(abused.address("tcp")).open().join() as peer:
        peer.send_frame(CLOSE, struct.pack("!H", 1000) + b"bye")
        peer.expect_close(1000)


def test_close_without_a_code(abused):
    with WebSocket.tcp(abused.address("tcp")).open().join() as peer:
        peer.send_frame(CLOSE)
        opcode, _ = peer.receive_frame()
        assert opcode == CLOSE
        peer.expect_end()


@pytest.mark.parametrize("batch", [b"", b"\x1e", MESSAGE, MESSAGE + b"\x1e\x1e"])
def test_a_bad_json_batch(abused, batch):
    """Empty, an empty message, no end, an empty message after a good one."""
    with WebSocket.tcp(abused.address("tcp")) as peer:
        assert peer.upgrade("wamp.2.json.batched")[0] == 101
        peer.send_frame(TEXT, batch)
        peer.receive_all()
        abused.expect_fault(peer)


@pytest.mark.parametrize(
    "batch", [b"", b"\0\0\0", b"\0\0\0\0", b"\0\0\0\x09abc", b"\xff\xff\xff\xff"]
)
@pytest.mark.parametrize("serializer", ["msgpack", "cbor"])
def test_a_bad_binary_batch(abused, serializer, batch):
    with WebSocket.tcp(abused.address("tcp")) as peer:
        assert peer.upgrade(f"wamp.2.{serializer}.batched")[0] == 101
        peer.send_frame(BINARY, batch)
        peer.receive_all()
        abused.expect_fault(peer)


def test_several_messages_in_one_batch(abused):
    with WebSocket.tcp(abused.address("tcp")) as peer:
        assert peer.upgrade("wamp.2.json.batched")[0] == 101
        hello = b'[1,"realm1",{"roles":{"publisher":{}}}]\x1e'
        publish = b'[16,%d,{"acknowledge":true},"com.x"]\x1e'
        peer.send_frame(TEXT, hello + publish % 1 + publish % 2)
        said = b"".join(peer.receive_octets() for _ in range(3))
        assert [int(message[1:3].strip(b",")) for message in said.split(b"\x1e")[:-1]] == [
            2,
            17,
            17,
        ]


def test_a_batch_of_many_turns(abused):
    """The rest of a batch precedes later messages; meanwhile others are served."""
    count = 30_000
    hello = b'[1,"realm1",{"roles":{"publisher":{}}}]\x1e'
    publish = b'[16,%d,{"acknowledge":true},"com.x"]\x1e'
    with (
        WebSocket.tcp(abused.address("tcp")) as peer,
        WebSocket.tcp(abused.address("tcp")).open().join() as one,
        WebSocket.tcp(abused.address("tcp")).open().join() as other,
    ):
        assert peer.upgrade("wamp.2.json.batched")[0] == 101
        peer.send_frame(TEXT, hello)
        assert peer.receive_octets().startswith(b"[2,")
        peer.send_frame(TEXT, b"".join(publish % (i + 1) for i in range(count)))
        peer.send_frame(TEXT, publish % (count + 1))
        for _ in range(5):
            one.round_trip()
            other.round_trip()
        for request in range(1, count + 2):
            assert peer.receive_octets().startswith(b"[17,%d," % request)


def test_a_fault_in_a_late_turn_of_a_batch(abused):
    """Later messages are not handled."""
    hello = b'[1,"realm1",{"roles":{"publisher":{}}}]\x1e'
    publish = b'[16,%d,{},"com.x"]\x1e'
    with WebSocket.tcp(abused.address("tcp")) as peer:
        assert peer.upgrade("wamp.2.json.batched")[0] == 101
        many = b"".join(publish % (i + 1) for i in range(30_000))
        answered = b'[16,30001,{"acknowledge":true},"com.x"]\x1e'
        peer.send_frame(TEXT, hello)
        assert peer.receive_octets().startswith(b"[2,")
        peer.send_frame(TEXT, many + b"[]\x1e" + answered)
        assert peer.receive_octets().startswith(b"[3,")
        peer.receive_all()
        abused.expect_fault(peer)


def test_pages(abused):
    assert abused.router.page("/health").strip() == "ok"
    assert "Crosstie" in abused.router.page("/")
    assert abused.router.metric("connections") >= 1


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        ("GET /health", 200),
        ("HEAD /health", 200),
        ("GET /nowhere", 404),
        ("POST /health", 405),
    ],
)
def test_plain_requests(abused, request_line, status):
    with WebSocket.tcp(abused.address("tcp")) as peer:
        peer.send(
            f"{request_line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
        )
        head = peer.receive_all()
        assert head.startswith(f"HTTP/1.1 {status} ".encode()), head


def test_pages_can_be_off(start_router):
    router = start_router(config.plain(config.universal("tcp", config.tcp(), pages=["health"])))
    assert router.page("/health").strip() == "ok"
    with WebSocket.tcp(router.address("tcp")) as peer:
        peer.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert peer.response()[0] == 404


def test_a_request_that_is_none(abused):
    with Plain.tcp(abused.address("tcp")) as peer:
        peer.send(b"HELLO WORLD\r\n\r\n")
        assert peer.receive_all().startswith(b"HTTP/1.1 400 ")
        abused.expect_fault(peer)
