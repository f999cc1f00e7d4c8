"""A certificate authority of the tests' own, so that TLS is verified as it is in the field."""

from pathlib import Path

import trustme


def write(directory: Path) -> Path:
    """Write `server.key` and `server.pem` for localhost; return the file of the authority."""
    authority = trustme.CA()
    server = authority.issue_cert("localhost", "127.0.0.1")
    server.private_key_pem.write_to_path(directory / "server.key")
    for index, blob in enumerate(server.cert_chain_pems):
        blob.write_to_path(directory / "server.pem", append=index > 0)
    authority.cert_pem.write_to_path(directory / "ca.pem")
    return directory / "ca.pem"
