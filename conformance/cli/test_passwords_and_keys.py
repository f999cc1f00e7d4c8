"""Clients log in by the output of `crosstie passwd` and `crosstie keys`."""

from __future__ import annotations

import base64
import json
import os
import pty
import stat
import subprocess
import termios
from collections.abc import Callable

import pytest
from autobahn.util import parse_keyfile
from cli.test_cli import crosstie
from conftest import where
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from nacl.signing import SigningKey
from rig import certificates, config
from rig.links import only
from rig.puppet import WampError
from rig.router import Router, binary
from rig.session import WELCOME
from rig.waiting import await_true
from wamp.test_scram import argon2id, begin, pbkdf2
from wamp.test_tokens import Issuer, publish

PASSWORD = "pässword with blanks"


def passwd(*arguments: object, password: str = PASSWORD) -> dict:
    """Make an entry, with the password as standard input; returns it as a configuration has it."""
    command = [str(binary()), "passwd", *map(str, arguments)]
    done = subprocess.run(
        command, input=f"{password}\nmore\n", text=True, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return json.loads("{" + done.stdout + "}")


CHEAP = ("--iterations", 2, "--role", "user")
SCRAM = ("scram", "--memory", 64, *CHEAP)


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """A router that knows the people whom the command has made."""
    wampcra = {
        **passwd("wampcra", "derived", *CHEAP),
        **passwd("wampcra", "salted", "--form", "salted", *CHEAP),
        **passwd("wampcra", "plain", "--form", "plain", *CHEAP),
    }
    scram = {
        **passwd(*SCRAM, "joe"),
        **passwd(*SCRAM, "ann", "--clients", "specification"),
        **passwd(*SCRAM, "bob", "--kdf", "pbkdf2"),
    }
    ticket = {
        **passwd("ticket", "joe", "--role", "user"),
        **passwd("ticket", "ann", "--plain", "--role", "user"),
    }
    auth = {
        "ticket": {"type": "static", "principals": ticket},
        "wampcra": {"type": "static", "users": wampcra},
        "scram": {"type": "static", "principals": scram},
    }
    written = json.dumps([ticket["joe"], wampcra["derived"], scram])
    assert "ssword" not in written
    paths = {"ws": {"auth": auth}}
    transport = config.universal("tcp", config.tcp(), rawsocket={"auth": auth}, websocket=paths)
    realms = [{"name": "realm1", "roles": [config.role("user")]}]
    running = Router(tmp_path_factory.mktemp("made"), config=config.node(realms, [transport]))
    yield running
    running.stop()


@pytest.fixture
def log_in(node, new_session, certificate_directory) -> Callable:
    """Log in with Autobahn."""

    def log_in(link, method: str, authid: str, secret: str = PASSWORD):
        place = where(node, link, "/ws", certificate_directory)
        auth = {"method": method, "authid": authid, "secret": secret}
        return new_session(link.client).open(place, auth=auth)

    return log_in


@only(
    lambda link: (
        (link.kind, link.over, link.serializer) == ("ws", "tcp", "json") and not link.is_javascript
    )
)
@pytest.mark.parametrize(
    ("method", "authid"),
    [
        ("ticket", "joe"),
        ("ticket", "ann"),
        ("wampcra", "derived"),
        ("wampcra", "salted"),
        ("wampcra", "plain"),
        ("scram", "joe"),
    ],
)
def test_autobahn_comes_in(link, log_in, method, authid):
    assert log_in(link, method, authid).details["authrole"] == "user"
    with pytest.raises(WampError):
        log_in(link, method, authid, "wrong")


@pytest.mark.parametrize(("authid", "derive"), [("ann", argon2id), ("bob", pbkdf2)])
def test_a_client_of_the_specification_comes_in(node, authid, derive):
    client = begin(node, authid, "wamp-scram")
    client.answer(derive, "biws", PASSWORD)
    assert client.peer.hear(WELCOME)[2]["authid"] == authid


def test_a_password_from_the_environment():
    command = [str(binary()), "passwd", "wampcra", "joe", "--form", "plain", "--password-env", "P"]
    environment = {**os.environ, "P": "secret1"}
    done = subprocess.run(command, text=True, capture_output=True, timeout=60, env=environment)
    assert json.loads("{" + done.stdout + "}") == {"joe": {"secret": "secret1"}}
    done = crosstie(*command[1:])
    assert done.returncode == 2
    assert "--password-env P" in done.stderr


def test_a_password_is_asked_for_and_not_shown():
    child, terminal = pty.fork()
    if child == 0:
        os.execv(str(binary()), ["crosstie", "passwd", "ticket", "joe"])
    shown = b""

    def read_until(text: bytes) -> None:
        nonlocal shown
        while text not in shown:
            shown += os.read(terminal, 1024)

    def is_hidden() -> bool:
        return not termios.tcgetattr(terminal)[3] & termios.ECHO

    for prompt, text in ((b"Password: ", b"hunter2\n"), (b"Again: ", b"hunter3\n")):
        read_until(prompt)
        await_true("the terminal echoes nothing", is_hidden)
        os.write(terminal, text)
    read_until(b"is not the first")
    os.waitpid(child, 0)
    os.close(terminal)
    assert b"hunter" not in shown


@pytest.mark.parametrize(
    ("arguments", "password", "text"),
    [
        (("ticket", "joe"), "", "expected a password"),
        (("wampcra", "joe", "--iterations", 0), "x", "iterations: expected 1 to 1000000"),
        (("scram", "joe", "--iterations", 0), "x", "iterations: expected 1 to 10000000"),
        (("scram", "joe", "--memory", 7), "x", "memory: expected 8 to 4194304 KiB"),
        (("scram", "joe", "--kdf", "pbkdf2"), "\a", "SASLprep forbids"),
    ],
    ids=str,
)
def test_entries_that_cannot_be_made(arguments, password, text):
    command = [str(binary()), "passwd", *map(str, arguments)]
    done = subprocess.run(
        command, input=f"{password}\n", text=True, capture_output=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert text in done.stderr


def test_a_key_pair(tmp_path):
    printed = crosstie("keys", "make").stdout
    pair = dict(line.split(": ") for line in printed.splitlines())
    seed = bytes.fromhex(pair["private-key-ed25519"])
    assert SigningKey(seed).verify_key.encode().hex() == pair["public-key-ed25519"]

    made = crosstie("keys", "make", tmp_path / "joe").stdout
    private, public = tmp_path / "joe/key.priv", tmp_path / "joe/key.pub"
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    tags = parse_keyfile(str(private), private=True)
    key = SigningKey(bytes.fromhex(tags["private-key-ed25519"])).verify_key.encode().hex()
    assert made == f"public-key-ed25519: {key}\n"
    assert parse_keyfile(str(public), private=False)["public-key-ed25519"] == key
    for file in (private, public):
        assert crosstie("keys", "show", file).stdout == made
    again = crosstie("keys", "make", tmp_path / "joe")
    assert again.returncode == 2
    assert "has a key already" in again.stderr

    for form in (seed, seed.hex().encode()):
        file = tmp_path / "form"
        file.write_bytes(form)
        assert crosstie("keys", "show", file, "--private").stdout == printed
    file.write_bytes(base64.b64encode(seed))
    done = crosstie("keys", "show", file)
    assert (done.returncode, done.stdout) == (2, "")
    assert "expected lines" in done.stderr


def check(method: str, authid: str, file, password: str) -> subprocess.CompletedProcess:
    """Check a principal's password."""
    command = [str(binary()), "passwd", "check", method, authid, str(file)]
    return subprocess.run(
        command, input=f"{password}\n", text=True, capture_output=True, timeout=60
    )


@pytest.mark.parametrize(
    ("arguments", "whose"),
    [
        (("ticket", "joe"), ""),
        (("ticket", "joe", "--plain"), ""),
        (("wampcra", "joe", "--iterations", 2), ""),
        (("wampcra", "joe", "--iterations", 2, "--form", "salted"), ""),
        (("wampcra", "joe", "--form", "plain"), ""),
        ((*SCRAM, "joe"), ", for clients such as Autobahn"),
        ((*SCRAM, "joe", "--clients", "specification"), ", for clients of the specification"),
        ((*SCRAM, "joe", "--kdf", "pbkdf2"), ", for clients such as Autobahn"),
    ],
    ids=str,
)
def test_a_password_is_checked(tmp_path, arguments, whose):
    method, file = arguments[0], tmp_path / "principals.json"
    file.write_text(json.dumps(passwd(*arguments)))
    right = check(method, "joe", file, PASSWORD)
    assert (right.returncode, right.stdout) == (0, f"joe: the password is right{whose}\n")
    wrong = check(method, "joe", file, PASSWORD[1:])
    assert (wrong.returncode, wrong.stdout) == (1, "joe: the password is wrong\n")
    nobody = check(method, "ann", file, PASSWORD)
    assert (nobody.returncode, nobody.stdout) == (2, "")
    assert 'there is no "ann"' in nobody.stderr


def test_a_malformed_file_of_principals_is_refused_with_its_place(tmp_path):
    file = tmp_path / "principals.yaml"
    file.write_text("joe: {stored-key: 00}\n")
    done = check("scram", "joe", file, PASSWORD)
    assert done.returncode == 2
    assert "principals.yaml:1:" in done.stderr


def test_a_certificate_as_principals_are_known_by(tmp_path):
    names = ["localhost", "gate.example.com"]
    file = certificates.write_self_signed(tmp_path, names)
    certificate = x509.load_pem_x509_certificate(file.read_bytes())
    file.write_bytes(file.read_bytes() * 2)
    shown = crosstie("keys", "show", file).stdout
    first, second = shown.split("\n\n")
    assert second == first + "\n"
    lines = [line.split(": ", 1) for line in first.splitlines()]
    assert [value for key, value in lines if key == "san"] == [f"DNS:{name}" for name in names]
    said = dict(lines)
    for algorithm in (hashes.SHA1(), hashes.SHA256()):
        digits = certificate.fingerprint(algorithm).hex(":").upper()
        assert said[f"certificate-{algorithm.name}"] == digits
    assert json.loads(said["subject"]) == {"cn": "localhost"}
    assert json.loads(said["issuer"]) == {"cn": "localhost"}
    assert (said["expired"], int(said["serial"], 16)) == ("false", certificate.serial_number)

    file.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    done = crosstie("keys", "show", file)
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot be read" in done.stderr


def test_an_issuers_keys_and_its_token(tmp_path):
    issuer = Issuer("first")
    publish(tmp_path, issuer, Issuer("second"))
    shown = crosstie("keys", "show", tmp_path / "keys.json").stdout
    assert shown == "first: Ed25519\nsecond: Ed25519\n"

    file = tmp_path / "token"
    file.write_text(issuer.token(exp=4_000_000_000) + "\n")
    said = dict(line.split(": ", 1) for line in crosstie("keys", "show", file).stdout.splitlines())
    assert json.loads(said["head"]) == {"alg": "EdDSA", "kid": "first"}
    assert json.loads(said["claims"])["sub"] == "joe"
    assert said["exp"] == "2096-10-02T07:06:40.000Z"
    assert said["verified"].startswith("no")
