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


def write_self_signed(directory: Path, names: list[str], days: int = 30) -> Path:
    """Write what `openssl req -x509 -subj /CN=localhost` makes; return the file of the certificate.

    It is an authority's and a server's at once. With `names` it has those that `-addext
    subjectAltName=…` adds. It expires in `days`, or did so before.
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
        .not_valid_before(now - datetime.timedelta(days=100))
        .not_valid_after(now + datetime.timedelta(days=days))
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


def write_revocations(
    file: Path, authority: trustme.CA, revoked: list[trustme.LeafCert], hours: float = 24
) -> None:
    """Write an authority's list of revoked certificates, whose next update is due in `hours`."""
    issuer = x509.load_pem_x509_certificate(authority.cert_pem.bytes())
    key = serialization.load_pem_private_key(authority.private_key_pem.bytes(), password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(issuer.subject)
        .last_update(now - datetime.timedelta(days=2))
        .next_update(now + datetime.timedelta(hours=hours))
        .add_extension(x509.CRLNumber(1), critical=False)
    )
    for each in revoked:
        serial = x509.load_pem_x509_certificate(each.cert_chain_pems[0].bytes()).serial_number
        entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now)
        made = made.add_revoked_certificate(entry.build())
    signed = made.sign(key, hashes.SHA256())
    file.write_bytes(signed.public_bytes(serialization.Encoding.PEM))


def write_version_1(directory: Path) -> None:
    """Write `server.key` and a `server.pem` of X.509 version 1, which no library makes any more."""
    certificate = x509.load_pem_x509_certificate(write_self_signed(directory, []).read_bytes())
    key_pem = (directory / "server.key").read_bytes()
    key = serialization.load_pem_private_key(key_pem, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    fields = _der_fields(certificate.tbs_certificate_bytes)
    # The version stands first, and the extensions last, each with a tag of its own.
    signed = _der(0x30, b"".join(field for field in fields if field[0] not in (0xA0, 0xA3)))
    signature = key.sign(signed, ec.ECDSA(hashes.SHA256()))
    _, algorithm, _ = _der_fields(certificate.public_bytes(serialization.Encoding.DER))
    whole = _der(0x30, signed + algorithm + _der(0x03, b"\0" + signature))
    made = x509.load_der_x509_certificate(whole)
    assert made.version is x509.Version.v1
    (directory / "server.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))


def _der(tag: int, content: bytes) -> bytes:
    length = len(content)
    if length < 0x80:
        return bytes([tag, length]) + content
    octets = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(octets)]) + octets + content


def _der_fields(sequence: bytes) -> list[bytes]:
    """Return what a sequence holds, each with its tag and length."""

    def end_of_head(at: int) -> tuple[int, int]:
        length, at = sequence[at + 1], at + 2
        if length < 0x80:
            return at, at + length
        more = length & 0x7F
        length = int.from_bytes(sequence[at : at + more], "big")
        return at + more, at + more + length

    at, end = end_of_head(0)
    fields = []
    while at < end:
        _, after = end_of_head(at)
        fields.append(sequence[at:after])
        at = after
    return fields
