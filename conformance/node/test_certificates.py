"""Certificates of listeners: replaced on disk, refused, and near their expiry."""

from __future__ import annotations

import re
import socket
import ssl
import time
import urllib.request
from pathlib import Path

import trustme
from rig import certificates, config
from rig.rawsocket import RawSocket
from rig.router import Router, fresh
from rig.waiting import await_true

DAY_S = 24 * 60 * 60


def context() -> ssl.SSLContext:
    """Return one that accepts any certificate."""
    made = ssl.create_default_context()
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    return made


def presented(router: Router) -> bytes:
    """Return the certificate that a new connection gets."""
    address = router.address("secure")
    with socket.create_connection(address) as plain, context().wrap_socket(plain) as secure:
        found = secure.getpeercert(binary_form=True)
    assert found
    return found


def on_disk(directory: Path) -> bytes:
    """Return the server's own certificate."""
    return ssl.PEM_cert_to_DER_cert((directory / "server.pem").read_text())


def page(router: Router, path: str) -> str:
    """Return a page of the plain listener."""
    host, port = router.address("tcp")
    return fresh(urllib.request.Request(f"http://{host}:{port}{path}"))[1]


def metric(router: Router, name: str) -> float:
    """Return the value for the secure listener."""
    pattern = rf'(?m)^crosstie_{name}\{{worker="worker1",transport="secure"\}} (\S+)$'
    found = re.search(pattern, page(router, "/metrics"))
    assert found, name
    return float(found[1])


def start(start_router, directory: Path) -> Router:
    """Start a node with a listener that has TLS, and one with pages."""
    secure = config.universal("secure", config.tls(directory))
    return start_router(config.plain(config.universal("tcp", config.tcp()), secure))


def test_a_replaced_certificate_is_presented_without_a_reload(start_router, tmp_path):
    certificates.write(tmp_path)
    router = start(start_router, tmp_path)
    assert presented(router) == on_disk(tmp_path)
    with (
        socket.create_connection(router.address("secure")) as plain,
        RawSocket(context().wrap_socket(plain)).shake_hands().join() as peer,
    ):
        for _ in range(3):
            certificates.write(tmp_path)
            await_true("it is presented", lambda: presented(router) == on_disk(tmp_path))
            peer.round_trip()


def test_a_key_that_does_not_fit_leaves_the_former_certificate(start_router, tmp_path):
    certificates.write(tmp_path)
    router = start(start_router, tmp_path)
    former = on_disk(tmp_path)
    key = (tmp_path / "server.key").read_bytes()
    certificates.write(tmp_path)
    fitting = (tmp_path / "server.key").read_bytes()
    (tmp_path / "server.key").write_bytes(key)
    refused = "the changed files of its certificate are not used"
    await_true("it is refused", lambda: refused in page(router, "/health"))
    assert "server.pem: certificate and key" in page(router, "/health")
    assert metric(router, "certificate_files_refused") == 1
    router.await_log(lambda line: "not used" in line.text)
    assert presented(router) == former
    # A file that is missing, half of one, and at last the right one.
    (tmp_path / "server.key").unlink()
    await_true("the reason is another one", lambda: "server.key" in page(router, "/health"))
    (tmp_path / "server.key").write_bytes(fitting[: len(fitting) // 2])
    assert presented(router) == former
    (tmp_path / "server.key").write_bytes(fitting)
    await_true("it is presented", lambda: presented(router) == on_disk(tmp_path))
    assert page(router, "/health") == "ok\n"
    assert metric(router, "certificate_files_refused") == 0


def test_an_expired_certificate_does_not_replace_a_valid_one(start_router, tmp_path):
    certificates.write_self_signed(tmp_path, ["localhost"])
    router = start(start_router, tmp_path)
    former = on_disk(tmp_path)
    certificates.write_self_signed(tmp_path, ["localhost"], days=-1)
    expired = "server.pem: the certificate has expired"
    await_true("it is refused", lambda: expired in page(router, "/health"))
    assert presented(router) == former


def test_the_expiry_is_a_metric_and_near_it_a_warning(start_router, tmp_path):
    certificates.write_self_signed(tmp_path, ["localhost"], days=20)
    router = start(start_router, tmp_path)
    # 20 whole days are left within the second in which it was made.
    near = re.compile(r"its certificate \S+server.pem expires in (19|20) days")
    router.await_log(lambda line: bool(near.search(line.text)))
    health = page(router, "/health")
    assert health.startswith("ok\nTransport 'secure'"), health
    assert near.search(health), health
    left_s = metric(router, "certificate_expiry_timestamp_seconds") - time.time()
    assert 19 * DAY_S < left_s < 20 * DAY_S
    certificates.write_self_signed(tmp_path, ["localhost"])
    await_true("the warning is gone", lambda: page(router, "/health") == "ok\n")
    left_s = metric(router, "certificate_expiry_timestamp_seconds") - time.time()
    assert 29 * DAY_S < left_s < 30 * DAY_S


def test_a_certificate_that_has_expired_before_the_start_is_named(start_router, tmp_path):
    certificates.write_self_signed(tmp_path, ["localhost"], days=-2)
    router = start(start_router, tmp_path)
    assert "server.pem expired 2 days ago" in page(router, "/health")


def issue(directory: Path, name: str, authority: trustme.CA, *hosts: str, **kind) -> None:
    """Write `NAME.key` and `NAME.pem`, a certificate for these hosts."""
    made = authority.issue_cert(*hosts, **kind)
    made.private_key_pem.write_to_path(directory / f"{name}.key")
    made.cert_chain_pems[0].write_to_path(directory / f"{name}.pem")


def asked(router: Router, authority: trustme.CA, host: str | None, ciphers: str = "") -> list[str]:
    """Return the names in the certificate that a client gets which asks for a host."""
    client = ssl.create_default_context()
    client.check_hostname = False
    authority.configure_trust(client)
    if ciphers:
        client.maximum_version = ssl.TLSVersion.TLSv1_2
        client.set_ciphers(ciphers)
    with (
        socket.create_connection(router.address("secure")) as plain,
        client.wrap_socket(plain, server_hostname=host) as secure,
    ):
        found = secure.getpeercert()
    assert found
    return [str(name) for _, name in found["subjectAltName"]]


def test_a_client_gets_the_certificate_of_the_host_that_it_asks_for(start_router, tmp_path):
    authority = trustme.CA()
    rsa = {"key_type": trustme.KeyType.RSA}
    issue(tmp_path, "server", authority, "localhost")
    issue(tmp_path, "chat", authority, "chat.example.org")
    issue(tmp_path, "old", authority, "chat.example.org", "old.example.org", **rsa)
    issue(tmp_path, "any", authority, "*.example.org")
    names = ["chat", "old", "any"]
    named = [{"key": f"{tmp_path}/{n}.key", "certificate": f"{tmp_path}/{n}.pem"} for n in names]
    endpoint = config.tls(tmp_path)
    endpoint["tls"]["certificates"] = named
    secure = config.universal("secure", endpoint)
    router = start_router(config.plain(config.universal("tcp", config.tcp()), secure))
    chat, old = ["chat.example.org"], ["chat.example.org", "old.example.org"]
    for host, ciphers, expected in [
        ("chat.example.org", "", chat),
        ("CHAT.example.org", "", chat),
        ("chat.example.org", "ECDHE+aRSA", old),
        ("old.example.org", "", old),
        ("new.example.org", "", ["*.example.org"]),
        ("example.org", "", ["localhost"]),
        ("a.b.example.org", "", ["localhost"]),
        (None, "", ["localhost"]),
    ]:
        assert asked(router, authority, host, ciphers) == expected, (host, ciphers)
    # Each of the files is followed.
    issue(tmp_path, "chat", authority, "chat.example.org", "talk.example.org")
    more = [*chat, "talk.example.org"]
    await_true("it is read", lambda: asked(router, authority, "talk.example.org") == more)
    issue(tmp_path, "any", authority, "nobody@example.org")
    refused = "any.pem: expected the name of a host (DNS)"
    await_true("it is refused", lambda: refused in page(router, "/health"))
    assert asked(router, authority, "new.example.org") == ["*.example.org"]


def test_revoked_clients_are_refused(start_router, tmp_path):
    authority = trustme.CA()
    issue(tmp_path, "server", authority, "localhost")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    one, other = (authority.issue_cert(f"{name}@example.org") for name in ("one", "other"))
    revocations = tmp_path / "revoked.pem"
    certificates.write_revocations(revocations, authority, [])
    endpoint = config.tls(tmp_path)
    endpoint["tls"] |= {"ca_certificates": [f"{tmp_path}/ca.pem"], "crls": [str(revocations)]}
    secure = config.universal("secure", endpoint)
    router = start_router(config.plain(config.universal("tcp", config.tcp()), secure))

    def connect(client: trustme.LeafCert) -> RawSocket:
        made = context()
        client.configure_cert(made)
        plain = socket.create_connection(router.address("secure"))
        return RawSocket(made.wrap_socket(plain)).shake_hands().join()

    def is_refused(client: trustme.LeafCert) -> bool:
        try:
            connect(client).close()
        except OSError:
            return True
        return False

    early = connect(one)
    assert not is_refused(other)
    certificates.write_revocations(revocations, authority, [one])
    await_true("it is refused", lambda: is_refused(one))
    # Of two lists of one authority it would depend on their order whose certificates are revoked.
    with revocations.open("ab") as file:
        certificates.write_revocations(tmp_path / "more.pem", authority, [other])
        file.write((tmp_path / "more.pem").read_bytes())
    second = "revoked.pem: expected one revocation list of each authority"
    await_true("two lists are refused", lambda: second in page(router, "/health"))
    assert is_refused(one)
    assert not is_refused(other)
    router.await_log(lambda line: "Revoked" in line.text)
    assert not is_refused(other)
    early.round_trip()
    early.close()
    # A list that is past its next update does not replace one that is in force.
    certificates.write_revocations(revocations, authority, [], hours=-1)
    expired = "revoked.pem: the revocation list has expired"
    await_true("the list is refused", lambda: expired in page(router, "/health"))
    assert is_refused(one)
    assert not is_refused(other)
    certificates.write_revocations(revocations, authority, [], hours=5)
    near = re.compile(r"its revocation list \S+revoked.pem expires in [45] hours")
    await_true("a warning", lambda: bool(near.search(page(router, "/health"))))
    await_true("it is back", lambda: not is_refused(one))
    # Nothing is known of this authority's certificates then.
    certificates.write_revocations(revocations, trustme.CA(), [])
    await_true("both are refused", lambda: is_refused(one) and is_refused(other))
