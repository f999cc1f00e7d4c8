"""An issuer of OAuth 2 tokens that RabbitMQ's plugin reads too: its key is RSA."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

RESOURCE_SERVER = "rabbitmq"
# Claims by which a token for everything is made.
EVERYTHING = "rabbitmq.read:*/*/* rabbitmq.write:*/*/* rabbitmq.configure:*/*/*"


def encoded(data: bytes) -> str:
    """Base64 for URLs."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Issuer:
    """An issuer with one key."""

    def __init__(self, name: str):
        self.name = name
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def public(self) -> dict:
        """Return its key as it publishes it."""
        numbers = self.key.public_key().public_numbers()
        n = encoded(numbers.n.to_bytes(256, "big"))
        return {"kty": "RSA", "kid": self.name, "alg": "RS256", "n": n, "e": "AQAB"}

    def pem(self) -> bytes:
        """Return its key as RabbitMQ reads it."""
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        return self.key.public_key().public_bytes(serialization.Encoding.PEM, form)

    def token(self, scope: object = EVERYTHING, head: dict | None = None, **claims: object) -> str:
        """Make a token for joe that holds for some minutes; a claim that is None is left out."""
        usual = {"aud": [RESOURCE_SERVER], "sub": "joe", "exp": int(time.time()) + 600}
        given = {**usual, "scope": scope, **claims}
        given = {name: value for name, value in given.items() if value is not None}
        head = {"alg": "RS256", "typ": "JWT", "kid": self.name} if head is None else head
        signed = ".".join(encoded(json.dumps(part).encode()) for part in (head, given))
        signature = self.key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{encoded(signature)}"


def publish(path: Path, *issuers: Issuer) -> None:
    """Write the keys."""
    path.write_text(json.dumps({"keys": [issuer.public() for issuer in issuers]}))
