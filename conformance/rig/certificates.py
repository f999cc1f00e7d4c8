"""A certificate authority of the tests' own, so that TLS is verified as it is in the field."""

import datetime
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def write(directory: Path) -> Path:
    """Write `server.key` and `server.pem` for localhost; return the file of the authority."""
    authority = trustme.CA()
    server = authority.issue_cert("localhost", "127.0.0.1")
    server.private_key_pem.write_to_path(directory / "server.key")
    for index, blob in enumerate(server.cert_chain_pems):
        blob.write_to_path(directory / "server.pem", append=index > 0)
    authority.cert_pem.write_to_path(directory / "ca.pem")
    return directory / "ca.pem"


def write_self_signed(directory: Path, names: list[str]) -> Path:
    """Write what `openssl req -x509 -subj /CN=localhost` makes; return the file of the certificate.

    It is an authority's and a server's at once. With `names` it has those that `-addext
    subjectAltName=…` adds.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    if names:
        alternative = x509.SubjectAlternativeName([x509.DNSName(each) for each in names])
        made = made.add_extension(alternative, critical=False)
    pem = serialization.Encoding.PEM
    certificate = made.sign(key, hashes.SHA256()).public_bytes(pem)
    (directory / "server.pem").write_bytes(certificate)
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (directory / "server.key").write_bytes(key.private_bytes(pem, form, plain))
    return directory / "server.pem"
