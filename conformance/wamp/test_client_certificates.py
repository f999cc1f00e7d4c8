"""Coming in by a TLS client certificate."""

from __future__ import annotations

import hashlib
import socket
import ssl
import threading
from pathlib import Path

import pytest
import trustme
from rig import config
from rig.longpoll import LongPoll
from rig.plain import ClosedError
from rig.puppet import WampError
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.session import ABORT, HELLO, INVOCATION, ROLES, WELCOME, YIELD
from rig.waiting import DEADLINE_S
from wamp.test_authentication import NOT_AUTHORIZED, NOT_VALID

PROCEDURE = "com.example.certificates"


class Papers:
    """Certificates that the authority has signed, in files."""

    def __init__(self, directory):
        self.directory = directory
        self.authority = trustme.CA()
        self.authority.cert_pem.write_to_path(f"{directory}/authority.pem")
        server = self.authority.issue_cert("localhost")
        server.private_key_pem.write_to_path(f"{directory}/server.key")
        server.cert_chain_pems[0].write_to_path(f"{directory}/server.pem")

    def sign(self, name: str, **more: object) -> str:
        """Sign a client's certificate; return the path of it and its key, without their ends."""
        issuer = more.pop("authority", self.authority)
        signed = issuer.issue_cert(name, **more)
        path = f"{self.directory}/{name}"
        signed.private_key_pem.write_to_path(f"{path}.key")
        signed.cert_chain_pems[0].write_to_path(f"{path}.pem")
        return path


def fingerprint(path: str, algorithm: str) -> str:
    """Return a certificate's fingerprint as OpenSSL prints it."""
    der = ssl.PEM_cert_to_DER_cert(Path(f"{path}.pem").read_text())
    return ":".join(f"{byte:02X}" for byte in hashlib.new(algorithm, der).digest())


@pytest.fixture(scope="module")
def papers(tmp_path_factory) -> Papers:
    """Certificates of the clients below, and of a stranger."""
    papers = Papers(tmp_path_factory.mktemp("papers"))
    papers.sign("sha1.example")
    papers.sign("sha256.example")
    papers.sign("subject.example", common_name="joe", organization_name="Acme")
    papers.sign("san.example")
    papers.sign("unknown.example")
    papers.sign("stranger.example", authority=trustme.CA())
    return papers


@pytest.fixture(scope="module")
def node(tmp_path_factory, papers):
    """A router that has to see certificates at one port, and may at two."""
    directory = papers.directory
    principals = {
        "one": {"certificate-sha1": fingerprint(f"{directory}/sha1.example", "sha1")},
        "two": {"certificate-sha256": fingerprint(f"{directory}/sha256.example", "sha256")},
        "joe": {"subject": {"CN": "joe", "O": "Acme"}},
        "san": {"san": "DNS:san.example"},
    }
    static = {"type": "static", "principals": principals, "default-role": "user"}
    dynamic = {"type": "dynamic", "authenticator": PROCEDURE, "authenticator-realm": "auth"}
    files = {
        "key": f"{directory}/server.key",
        "certificate": f"{directory}/server.pem",
        "ca_certificates": [f"{directory}/authority.pem"],
    }
    optional = {**files, "client_certificate": "optional"}

    def guarded(name: str, tls: dict, auth: dict) -> dict:
        auth = {"tls": auth, "anonymous": {"type": "static", "role": "anonymous"}}
        return config.universal(
            name,
            config.tcp(tls=tls),
            rawsocket={"auth": auth},
            websocket={"ws": {"auth": auth}},
            web={"paths": {"lp": {"type": "longpoll", "auth": auth}}},
        )

    transports = [
        guarded("required", files, static),
        guarded("optional", optional, static),
        guarded("dynamic", optional, dynamic),
        config.universal("open", config.tcp()),
    ]
    realms = [
        {"name": "realm1", "roles": [config.role("user"), config.role("anonymous")]},
        {"name": "auth", "roles": [config.role("anonymous")]},
    ]
    running = Router(tmp_path_factory.mktemp("node"), config=config.node(realms, transports))
    yield running
    running.stop()


def shown(papers: Papers, shows: str | None) -> ssl.SSLContext:
    """Return what a client needs that shows a certificate."""
    context = ssl.create_default_context(cafile=f"{papers.directory}/authority.pem")
    if shows:
        path = f"{papers.directory}/{shows}.example"
        context.load_cert_chain(f"{path}.pem", f"{path}.key")
    return context


def connect(node, papers: Papers, transport: str, shows: str | None) -> RawSocket:
    """Connect and show a certificate."""
    context = shown(papers, shows)
    opened = socket.create_connection(node.address(transport), DEADLINE_S)
    return RawSocket(context.wrap_socket(opened, server_hostname="localhost"))


def hello(peer: RawSocket, **details: object) -> RawSocket:
    """Say HELLO."""
    peer.shake_hands()
    peer.say(HELLO, "realm1", {"roles": ROLES, "authmethods": ["tls"], **details})
    return peer


def where(node, papers: Papers, transport: str, kind: str) -> dict:
    """Return where Autobahn is to connect."""
    host, port = node.address(transport)
    return {
        "kind": kind,
        "over": "tls",
        "serializer": "cbor",
        "host": host,
        "port": port,
        "url": f"wss://localhost:{port}/ws",
        "authority": f"{papers.directory}/authority.pem",
    }


@pytest.mark.parametrize("client", ["asyncio", "twisted"])
@pytest.mark.parametrize("kind", ["ws", "rs"])
def test_autobahn_shows_one(node, papers, new_session, client, kind):
    place = where(node, papers, "required", kind)
    for shows, authid in (("sha256", "two"), ("subject", "joe")):
        shown = {**place, "certificate": f"{papers.directory}/{shows}.example"}
        details = new_session(client).open(shown, auth={"method": "tls"}).details
        assert (details["authid"], details["authrole"]) == (authid, "user")
        assert (details["authmethod"], details["authprovider"]) == ("tls", "static")
    unknown = {**place, "certificate": f"{papers.directory}/unknown.example"}
    with pytest.raises(WampError) as raised:
        new_session(client).open(unknown, auth={"method": "tls"})
    assert raised.value.uri == NOT_AUTHORIZED


@pytest.mark.parametrize("client", ["asyncio", "twisted"])
@pytest.mark.parametrize("kind", ["ws", "rs"])
def test_autobahn_shows_one_to_a_procedure(node, papers, new_session, client, kind):
    place = where(node, papers, "dynamic", kind)
    place["certificate"] = f"{papers.directory}/subject.example"
    with RawSocket.tcp(node.address("open")).shake_hands().join("auth") as authenticator:
        authenticator.register(PROCEDURE)

        def serve() -> None:
            invocation = authenticator.hear(INVOCATION)
            authid = invocation[4][2]["transport"]["peer_cert"]["subject"]["cn"]
            authenticator.say(YIELD, invocation[1], {}, [{"role": "user", "authid": authid}])

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        details = new_session(client).open(place, auth={"method": "tls"}).details
        serving.join()
    assert (details["authid"], details["authrole"]) == ("joe", "user")
    assert (details["authmethod"], details["authprovider"]) == ("tls", "dynamic")


@pytest.mark.parametrize("transport", ["required", "optional"])
@pytest.mark.parametrize(
    ("shows", "authid"), [("sha1", "one"), ("sha256", "two"), ("subject", "joe"), ("san", "san")]
)
def test_a_certificate_that_is_known(node, papers, transport, shows, authid):
    with hello(connect(node, papers, transport, shows)) as peer:
        details = peer.hear(WELCOME)[2]
    assert (details["authid"], details["authrole"]) == (authid, "user")
    assert (details["authmethod"], details["authprovider"]) == ("tls", "static")


@pytest.mark.parametrize("transport", ["required", "optional"])
def test_a_certificate_of_no_principal(node, papers, transport):
    with hello(connect(node, papers, transport, "unknown"), authid="one") as peer:
        _, details, reason = peer.hear(ABORT)
    assert (reason, details["message"]) == (NOT_AUTHORIZED, NOT_VALID)


def test_no_certificate_where_none_has_to_be(node, papers):
    with hello(connect(node, papers, "optional", None)) as peer:
        assert peer.hear(ABORT)[1]["message"] == "client did not send a TLS client certificate"
        peer.say(HELLO, "realm1", {"roles": ROLES, "authmethods": ["tls", "anonymous"]})
        # The client's order decides, and there is no falling back.
        peer.hear(ABORT)
        peer.say(HELLO, "realm1", {"roles": ROLES, "authmethods": ["anonymous"]})
        assert peer.hear(WELCOME)[2]["authmethod"] == "anonymous"


@pytest.mark.parametrize(
    ("transport", "shows"),
    [("required", None), ("required", "stranger"), ("optional", "stranger")],
)
def test_a_certificate_without_a_trusted_authority(node, papers, transport, shows):
    # Over TLS 1.3 a client learns it with the first answer.
    with pytest.raises((OSError, ClosedError)):
        hello(connect(node, papers, transport, shows)).hear(WELCOME)


def test_details_for_an_authenticator(node, papers):
    with RawSocket.tcp(node.address("open")).shake_hands().join("auth") as authenticator:
        authenticator.register(PROCEDURE)
        with hello(connect(node, papers, "dynamic", "subject"), authid="x") as peer:
            invocation = authenticator.hear(INVOCATION)
            realm, authid, details = invocation[4]
            assert (realm, authid, details["authmethod"]) == ("realm1", "x", "tls")
            shown = details["transport"]["peer_cert"]
            assert shown == details["transport"]["client_cert"]
            path = f"{papers.directory}/subject.example"
            assert shown["sha1"] == fingerprint(path, "sha1")
            assert shown["sha256"] == fingerprint(path, "sha256")
            assert (shown["subject"]["cn"], shown["subject"]["o"]) == ("joe", "Acme")
            assert (shown["expired"], shown["version"]) == (False, 2)
            names = {e["name"]: e["value"] for e in shown["extensions"]}
            assert names["subjectAltName"] == "DNS:subject.example"
            assert len(shown["not_after"]) == len("20261123000000Z")
            authenticator.say(YIELD, invocation[1], {}, [{"role": "user", "authid": "joe"}])
            details = peer.hear(WELCOME)[2]
    assert (details["authid"], details["authprovider"]) == ("joe", "dynamic")


def test_by_requests(node, papers):
    """Over long-poll the certificate counts that was shown where the transport was opened."""
    heard = []
    for shows in ("subject", None):
        session = LongPoll(node.address("optional"), tls=shown(papers, shows))
        session.say(HELLO, "realm1", {"roles": ROLES, "authmethods": ["tls"]})
        heard.append(session.hear_any())
        session.drop()
    welcome, abort = heard
    assert (welcome[0], welcome[2]["authid"], welcome[2]["authmethod"]) == (WELCOME, "joe", "tls")
    assert (abort[0], abort[2]) == (ABORT, NOT_AUTHORIZED)
