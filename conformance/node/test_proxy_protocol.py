"""Listeners behind proxies that send the client's address: every limit and log line has it."""

from __future__ import annotations

import json
import re
import socket
import ssl
import subprocess
from pathlib import Path

import pytest
from rig import certificates, config, haproxy
from rig.amqp_peer import Peer
from rig.haproxy import HAProxy
from rig.http import until_end
from rig.plain import ClosedError, Plain
from rig.rawsocket import RawSocket
from rig.router import Router, binary
from rig.upgrades import Upgrades
from rig.waiting import DEADLINE_S, await_true

PROXY, CLIENT, STRANGER = "127.0.0.1", "127.0.0.5", "127.0.0.9"
FROM = {"proxy_protocol": {"from": [f"{PROXY}/32", "10.0.0.0/8"]}}
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
LOCAL = SIGNATURE + b"\x20\0\0\0"
UNEXPECTED = "PROXY protocol header from an address that is not in"


def line(client: str, port: int = 4711) -> bytes:
    """Return a header of version 1."""
    return f"PROXY TCP4 {client} 198.51.100.1 {port} 443\r\n".encode()


def binary_header(client: str, port: int = 4711, fields: bytes = b"") -> bytes:
    """Return a header of version 2."""
    addresses = socket.inet_aton(client) + socket.inet_aton("198.51.100.1")
    rest = addresses + port.to_bytes(2) + (443).to_bytes(2) + fields
    return SIGNATURE + b"\x21\x11" + len(rest).to_bytes(2) + rest


def node(directory: Path, endpoint: dict | None = None, **more: object) -> dict:
    """Return a node with a listener of every kind behind a proxy."""
    certificates.write(directory)
    given = FROM if endpoint is None else endpoint
    made = config.plain(
        config.universal("tcp", config.tcp(**given)),
        config.universal("tls", {**config.tls(directory), **given}),
        {"type": "amqp", "id": "amqp", "endpoint": config.tcp(**given)},
        {"type": "amqp.management", "id": "management", "endpoint": config.tcp(**given)},
        **more,
    )
    users = [{"name": "guest", "password": "guest", "tags": ["administrator"]}]
    users.append({"name": "test", "password": "test", "tags": ["administrator"]})
    permissions = [{"user": user["name"], **ALL} for user in users]
    made["workers"][0]["amqp"] = {
        "users": users,
        "vhosts": [{"name": "/", "permissions": permissions}],
    }
    return made


ALL = {"configure": ".*", "write": ".*", "read": ".*"}


def opened(address: tuple[str, int], header: bytes = b"", source: str = "") -> socket.socket:
    """Connect, and send a header."""
    source_address = (source, 0) if source else None
    connected = socket.create_connection(address, DEADLINE_S, source_address)
    connected.sendall(header)
    return connected


def join(connected: socket.socket) -> str:
    """Join the realm; return the client's address in WELCOME."""
    peer = RawSocket(connected).shake_hands()
    peer.say(1, "realm1", {"roles": {"caller": {}}})
    return peer.hear(2)[2]["x_cb_peer"]


@pytest.mark.parametrize("header", [line, binary_header], ids=["version 1", "version 2"])
def test_the_client_is_known_by_its_own_address(start_router, tmp_path, header):
    router = start_router(node(tmp_path))
    assert join(opened(router.address("tcp"), header("192.0.2.1"))) == "tcp4:192.0.2.1:4711"
    # Before the handshake of TLS.
    secure = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    plain = opened(router.address("tls"), header("192.0.2.2"))
    wrapped = secure.wrap_socket(plain, server_hostname="localhost")
    assert join(wrapped) == "tcp4:192.0.2.2:4711"
    peer = Peer(opened(router.address("amqp"), header("192.0.2.3"))).open()
    (listed,) = connections(router, header("192.0.2.4"))
    assert (listed["peer_host"], listed["peer_port"]) == ("192.0.2.3", 4711)
    assert listed["name"].startswith("192.0.2.3:4711 -> "), listed
    router.await_log(lambda each: each.fields.get("peer") == "tcp:192.0.2.3:4711")
    # `guest` may come from this machine alone, and the proxy on it does not make a client local.
    before = len(router.log)
    with pytest.raises(AssertionError):
        Peer(opened(router.address("amqp"), header("192.0.2.5"))).open("guest", "guest")
    router.await_fault(before, "user 'guest' can only connect via localhost")
    Peer(opened(router.address("amqp"), header("127.0.0.1"))).open("guest", "guest")
    peer.leave()


def connections(router: Router, header: bytes) -> list[dict]:
    """Return what the management API lists to a client with that header."""
    with opened(router.address("management"), header) as asking:
        login = "Basic dGVzdDp0ZXN0"
        head = f"GET /api/connections HTTP/1.1\r\nHost: localhost\r\nAuthorization: {login}\r\n"
        asking.sendall(f"{head}Connection: close\r\n\r\n".encode())
        answer = b""
        while part := asking.recv(65_536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 200"), answer
    return json.loads(answer.split(b"\r\n\r\n", 1)[1])


def test_limits_by_address_count_clients(start_router, tmp_path):
    limits = {"address_connections_max": 2}
    router = start_router(node(tmp_path, limits=limits))
    address = router.address("tcp")
    present = [opened(address, line("192.0.2.1")) for _ in range(2)]
    for each in present:
        join(each)
    others = [opened(address, line(f"192.0.2.{number}")) for number in range(2, 9)]
    for each in others:
        join(each)
    before = len(router.log)
    with pytest.raises((ClosedError, AssertionError)):
        join(opened(address, line("192.0.2.1")))
    assert router.await_fault(before, "from this address").fields["peer"] == "tcp:192.0.2.1:4711"
    for each in present + others:
        each.close()


def test_a_proxy_that_sends_no_header_is_refused(start_router, tmp_path):
    router = start_router(node(tmp_path, limits={"handshake_timeout_ms": 1_000}))
    for sent, text in [
        (b"AMQP\0\0\x09\x01", "expected a PROXY protocol header, found other bytes"),
        (b"\x7f\xf1\0\0", "expected a PROXY protocol header, found other bytes"),
        (b"PROXY TCP4 me you 1 2\r\n", "invalid PROXY protocol header: an address"),
        (SIGNATURE + b"\x21\x11\xff\xff", "65551 bytes, where 4096 are the maximum"),
        (binary_header("192.0.2.1", fields=b"\3\0\4abcd"), "with a wrong checksum"),
        (b"PROXY TCP4 192.0.2.1 ", "within the time of a handshake"),
        (b"", "within the time of a handshake"),
    ]:
        for transport in ("amqp", "tls"):
            before = len(router.log)
            with opened(router.address(transport), sent) as peer:
                line_of = router.await_fault(before, text)
                assert line_of.fields["reason"] == "proxy_protocol", line_of
                assert line_of.fields["peer"].startswith(f"tcp:{PROXY}:"), line_of
                assert until_end(peer) == b""


def test_a_header_may_come_in_parts(start_router, tmp_path):
    router = start_router(node(tmp_path))
    for header in (line("192.0.2.1"), binary_header("192.0.2.1", fields=b"\4\0\x09" + bytes(9))):
        with opened(router.address("tcp")) as peer:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in header:
                peer.send(bytes([byte]))
            assert join(peer) == "tcp4:192.0.2.1:4711"
    before = len(router.log)
    with opened(router.address("tcp"), line("192.0.2.1")[:20]) as peer:
        peer.shutdown(socket.SHUT_WR)
        router.await_fault(before, "closed inside a PROXY protocol header")


def test_other_addresses_are_direct_and_may_send_no_header(start_router, tmp_path):
    router = start_router(node(tmp_path))
    with opened(router.address("tcp"), source=STRANGER) as peer:
        assert join(peer).startswith(f"tcp4:{STRANGER}:")
    for header in (line("192.0.2.1"), binary_header("192.0.2.1")):
        for transport, words in [
            ("tcp", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            ("tls", b"\x16\3\1"),
            ("amqp", b"AMQP\0\0\x09\x01"),
            ("management", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ]:
            before = len(router.log)
            with opened(router.address(transport), header + words, STRANGER) as peer:
                fault = router.await_fault(before, UNEXPECTED)
                assert fault.fields["peer"].startswith(f"tcp:{STRANGER}:"), fault
                assert b"connection.start" not in Plain(peer).receive_all()


def test_health_checks_are_no_faults(start_router, tmp_path):
    router = start_router(node(tmp_path))
    for sent in (b"", LOCAL, b"PROXY UNKNOWN\r\n"):
        for transport in ("tcp", "amqp", "management"):
            opened(router.address(transport), sent).close()
    # A proxy's own connection has the proxy's address.
    assert join(opened(router.address("tcp"), LOCAL)).startswith(f"tcp4:{PROXY}:")
    closed = "crosstie_connections_closed_total"
    await_true("the checks have ended", lambda: metric(router, closed) >= 6)
    assert router.count_faults() == 0


def metric(router: Router, name: str) -> float:
    """Return a metric from a page that the proxy asks for."""
    with opened(router.address("tcp"), LOCAL) as asking:
        asking.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        text = b""
        while part := asking.recv(65_536):
            text += part
    found = re.search(rf"^{name}(?:{{[^}}]*}})? ([\d.e+]+)$", text.decode(), re.MULTILINE)
    assert found, text[-2000:]
    return float(found[1])


@pytest.mark.skipif(bool(haproxy.obstacle()), reason=haproxy.obstacle())
def test_haproxy_sends_what_is_read(start_router, tmp_path):
    router = start_router(node(tmp_path))
    words = (
        "send-proxy",
        "send-proxy check inter 100ms",
        "send-proxy-v2",
        "send-proxy-v2 check inter 100ms proxy-v2-options ssl,cert-cn,crc32c,unique-id",
    )
    for transport in ("tcp", "amqp"):
        proxy = HAProxy(tmp_path, router.address(transport), *words, mode="tcp")
        try:
            for port in proxy.ports.values():
                peer = opened((PROXY, port), source=CLIENT)
                mine = peer.getsockname()
                if transport == "tcp":
                    assert join(peer) == f"tcp4:{mine[0]}:{mine[1]}"
                    continue
                Peer(peer).open()
                listed = {each["peer_port"]: each for each in connections(router, LOCAL)}
                assert listed[mine[1]]["peer_host"] == CLIENT
        finally:
            proxy.close()
    assert router.count_faults() == 0


def test_a_reload_applies_to_later_connections(start_router, tmp_path):
    configuration = node(tmp_path, {})
    router = start_router(configuration)
    before = opened(router.address("tcp"))
    assert join(before).startswith(f"tcp4:{PROXY}:")
    # One that has sent nothing yet.
    silent = opened(router.address("tcp"))
    behind = node(tmp_path)
    (router.directory / "config.json").write_text(json.dumps(behind))
    command = [str(binary()), "reload", "--cbdir", str(router.directory)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=4 * DEADLINE_S)
    assert done.returncode == 0, done
    assert "proxy_protocol" in done.stdout, done
    assert join(opened(router.address("tcp"), line("192.0.2.1"))) == "tcp4:192.0.2.1:4711"
    assert join(silent).startswith(f"tcp4:{PROXY}:")
    seen = len(router.log)
    with opened(router.address("tcp"), b"\x7f\xf1\0\0"):
        router.await_fault(seen, "expected a PROXY protocol header")
    before.close()


def test_an_upgrade_keeps_the_proxies(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(node(tmp_path)))
    router = Router(tmp_path, "--cbdir", str(tmp_path))
    upgrades = Upgrades(router)
    try:
        # Neither the header nor anything else has come.
        waiting = opened(router.address("tcp"))
        upgrades.upgrade()
        assert waiting.recv(1) == b""
        assert join(opened(router.address("tcp"), line("192.0.2.1"))) == "tcp4:192.0.2.1:4711"
    finally:
        upgrades.close()


def test_a_unix_socket_has_proxies_too(start_router, tmp_path):
    endpoint = {**config.unix(), "proxy_protocol": {"from": ["unix"]}}
    router = start_router(config.plain(config.universal("unix", endpoint)))
    connected = socket.socket(socket.AF_UNIX)
    connected.connect(str(router.directory / "router.sock"))
    connected.sendall(line("192.0.2.1"))
    assert join(connected) == "tcp4:192.0.2.1:4711"


@pytest.mark.parametrize(
    ("endpoint", "text"),
    [
        (config.tcp(proxy_protocol={"from": ["unix"]}), "clients of a Unix socket"),
        ({**config.unix(), "proxy_protocol": {"from": ["10.0.0.1"]}}, "no clients with an IP"),
        (config.tcp(proxy_protocol={"from": ["proxy.example"]}), "must be an IP address"),
        (config.tcp(proxy_protocol={"from": []}), "from"),
        (config.tcp(proxy_protocol={}), "from"),
        (config.tcp(proxy_protocol={"from": ["0.0.0.0/0"]}), "every client may state any address"),
        (config.tcp(proxy_protocol={"from": ["10.0.0.1/8"]}), "10.0.0.1/8 is no network"),
    ],
)
def test_a_configuration_is_checked(tmp_path, endpoint, text):
    made = config.plain(config.universal("tcp", endpoint))
    (tmp_path / "config.json").write_text(json.dumps(made))
    command = [str(binary()), "check", "--cbdir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    assert text in done.stdout + done.stderr, done


def test_a_testee_reads_no_header(tmp_path):
    made = config.plain({"type": "stream.testee", "id": "echo", "endpoint": config.tcp(**FROM)})
    (tmp_path / "config.json").write_text(json.dumps(made))
    command = [str(binary()), "check", "--cbdir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    assert (done.returncode, "a testee reads no PROXY protocol" in done.stderr + done.stdout) == (
        1,
        True,
    ), done
