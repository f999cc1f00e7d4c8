"""Certificates of listeners: replaced on disk, refused, and near their expiry."""

from __future__ import annotations

import re
import socket
import ssl
import time
import urllib.request
from pathlib import Path

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
    near = re.compile("its certificate expires in (19|20) days")
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
    assert "its certificate expired 2 days ago" in page(router, "/health")
