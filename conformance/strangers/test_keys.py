"""Private keys that openssl makes and TLS cannot be spoken with here: the error says which."""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, ed25519, rsa
from rig import certificates, config
from rig.router import binary
from rlinks.linked import node

PEM = serialization.Encoding.PEM
PKCS8 = serialization.PrivateFormat.PKCS8
TRADITIONAL = serialization.PrivateFormat.TraditionalOpenSSL
PLAIN = serialization.NoEncryption()
LOCKED = serialization.BestAvailableEncryption(b"passphrase")


def judge(directory: Path, key: object, form: object, locked: object) -> tuple[int, str]:
    """Check a node whose listener has that key; return the exit code and what was said."""
    certificates.write(directory)
    (directory / "server.key").write_bytes(key.private_bytes(PEM, form, locked))
    listening = config.plain(config.universal("tls", config.tls(directory)))
    (directory / "config.json").write_text(json.dumps(listening))
    command = [binary(), "check", "--cbdir", directory]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    return done.returncode, done.stdout + done.stderr


P256, P521 = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP521R1())


@pytest.mark.parametrize(
    ("key", "form", "locked", "said"),
    [
        (P521, PKCS8, PLAIN, "the private key is for ECDSA on P-521 (secp521r1)"),
        (P521, TRADITIONAL, PLAIN, "the private key is for ECDSA on P-521 (secp521r1)"),
        (ec.generate_private_key(ec.SECP256K1()), PKCS8, PLAIN, "ECDSA on secp256k1"),
        (ec.generate_private_key(ec.BrainpoolP256R1()), PKCS8, PLAIN, "a Brainpool curve"),
        (ed448.Ed448PrivateKey.generate(), PKCS8, PLAIN, "the private key is for Ed448"),
        (dsa.generate_private_key(2048), PKCS8, PLAIN, "the private key is for DSA"),
        (rsa.generate_private_key(65537, 1024), PKCS8, PLAIN, "RSA of fewer than 2048 bits"),
        (P256, PKCS8, LOCKED, "the private key is encrypted"),
        (P256, TRADITIONAL, LOCKED, "the private key is encrypted"),
        (
            ed25519.Ed25519PrivateKey.generate(),
            serialization.PrivateFormat.OpenSSH,
            PLAIN,
            "the private key has OpenSSH's form",
        ),
    ],
    ids=str,
)
def test_a_key_that_cannot_be_used_is_named(tmp_path, key, form, locked, said):
    code, found = judge(tmp_path, key, form, locked)
    assert code == 1, found
    assert f"{tmp_path}/server.key: " in found
    assert said in found


@pytest.mark.parametrize(
    ("key", "locked", "said"), [(P521, PLAIN, "P-521"), (P256, LOCKED, "is encrypted")]
)
def test_a_link_says_what_is_wrong_with_its_key(start_router, tmp_path, key, locked, said):
    authority = certificates.write(tmp_path)
    (tmp_path / "own.key").write_bytes(key.private_bytes(PEM, PKCS8, locked))
    tls = {"hostname": "localhost", "ca_certificates": [str(authority)]}
    own = {"certificate": f"{tmp_path}/server.pem", "key": f"{tmp_path}/own.key"}
    with socket.create_server(("127.0.0.1", 0)) as there:
        host, port = there.getsockname()
        endpoint = {"type": "tcp", "host": host, "port": port, "tls": {**tls, **own}}
        transport = {"type": "rawsocket", "endpoint": endpoint, "serializer": "cbor"}
        router = start_router(node({"id": "rlink1", "realm": "realm1", "transport": transport}))
        router.await_log(lambda line: f"{tmp_path}/own.key: " in line.text and said in line.text)


def test_an_authority_that_nothing_can_be_checked_by_is_warned_of(tmp_path):
    certificates.write(tmp_path)
    made = x509.load_pem_x509_certificate((tmp_path / "ca.pem").read_bytes())
    built = x509.CertificateBuilder(
        made.issuer, made.subject, P521.public_key(), made.serial_number
    )
    built = built.not_valid_before(made.not_valid_before_utc)
    built = built.not_valid_after(made.not_valid_after_utc)
    authority = built.sign(P521, hashes.SHA512()).public_bytes(PEM)
    (tmp_path / "authority.pem").write_bytes(authority)
    endpoint = config.tls(tmp_path)
    endpoint["tls"]["ca_certificates"] = [f"{tmp_path}/authority.pem"]
    listening = config.plain(config.universal("tls", endpoint))
    (tmp_path / "config.json").write_text(json.dumps(listening))
    command = [binary(), "check", "--cbdir", tmp_path]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "the authority's key is for ECDSA on P-521 (secp521r1)" in done.stderr
