"""Clients behind one address (NAT, Kubernetes, a proxy), of which one has a wrong password."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pika
import pytest
from rig import config
from rig.amqp_peer import Peer
from rig.broker import Crosstie
from rig.network import Network, obstacle
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.session import ABORT, HELLO, ROLES, WELCOME

ANYWHERE = {"endpoint": config.tcp(interface="0.0.0.0")}
CHALLENGE, AUTHENTICATE = 4, 5
# Of one address for one user.
PLACES = 8


@pytest.fixture
def address() -> Iterator[str]:
    """Return an address of this machine that is not loopback: attempts from loopback never wait."""
    if why := obstacle():
        pytest.skip(why)
    network = Network(1)
    yield network.here
    network.close()


@pytest.fixture
def broker(start_broker, address) -> Crosstie:
    """Return a broker that is reached by the address."""
    started = start_broker(transport=ANYWHERE)
    started.host = address
    return started


def attempt(broker: Crosstie, user: str, password: str) -> Peer:
    """Begin to log in, and leave the answer to be read."""
    peer = Peer.tcp(broker.address)
    peer.start(user, password)
    return peer


def log_in(broker: Crosstie, user: str) -> None:
    """Log in by pika, as an application does."""
    with contextlib.closing(pika.BlockingConnection(pika.URLParameters(broker.url(user)))) as there:
        there.channel()


def test_a_right_password_is_let_in_while_the_same_users_old_one_is_tried(broker):
    with contextlib.ExitStack() as opened:
        # Fifty pods whose secret is the old one: all of them wait for their answers.
        olds = [opened.enter_context(attempt(broker, "test", "old")) for _ in range(50)]
        log_in(broker, "test")
        log_in(broker, "reader")
        for old in olds:
            assert old.expect_connection_close()[0] == 403
    assert broker.router.metric("amqp_logins_failed_total") == 50


def test_another_user_is_let_in_while_a_password_is_guessed(broker):
    with contextlib.ExitStack() as opened:
        guessers = [
            opened.enter_context(attempt(broker, "test", f"guess{number}")) for number in range(40)
        ]
        log_in(broker, "reader")
        # The broker checks few of them, and does not call an unchecked one wrong.
        codes = {guesser.expect_connection_close()[0] for guesser in guessers}
    assert codes == {403, 320}
    assert broker.router.metric("amqp_logins_failed_total") < 40


def test_a_right_password_among_many_guesses_is_never_told_that_it_is_wrong(broker):
    with contextlib.ExitStack() as opened:
        for number in range(3 + PLACES):
            opened.enter_context(attempt(broker, "test", f"guess{number}"))
        # Their answers come within two seconds, and then it is its turn.
        log_in(broker, "test")


def test_a_user_who_was_let_in_from_there_is_let_in_while_all_others_are_guessed_at(broker):
    log_in(broker, "limited")
    with contextlib.ExitStack() as opened:
        for number in range(40):
            name = f"somebody{number % 4}"
            opened.enter_context(attempt(broker, name, f"guess{number}"))
        log_in(broker, "limited")


def knock(address: tuple[str, int], ticket: str) -> RawSocket:
    """Send a ticket, and leave the answer to be read."""
    peer = RawSocket.tcp(address).shake_hands()
    details = {"roles": ROLES, "authmethods": ["ticket"], "authid": "joe"}
    peer.say(HELLO, "realm1", details)
    peer.hear(CHALLENGE)
    peer.say(AUTHENTICATE, ticket, {})
    return peer


@pytest.fixture
def there(tmp_path, address) -> Iterator[tuple[str, int]]:
    """Return where a node is whose only principal has a ticket."""
    principals = {"joe": {"ticket": "right", "role": "anonymous"}}
    auth = {"ticket": {"type": "static", "principals": principals}}
    endpoint = config.tcp(interface="0.0.0.0")
    transport = config.universal("tcp", endpoint, rawsocket={"auth": auth})
    router = Router(tmp_path, config=config.plain(transport))
    yield address, router.address("tcp")[1]
    router.stop()


def test_a_right_ticket_is_let_in_while_the_same_authids_old_one_is_tried(there):
    with contextlib.ExitStack() as opened:
        olds = [opened.enter_context(knock(there, "old")) for _ in range(30)]
        with knock(there, "right") as right:
            right.hear(WELCOME)
        for old in olds:
            assert old.hear(ABORT)[2] == "wamp.error.not_authorized"


def test_a_right_ticket_has_its_turn_among_many_guesses(there):
    with contextlib.ExitStack() as opened:
        for number in range(3 + PLACES):
            opened.enter_context(knock(there, f"guess{number}"))
        with knock(there, "right") as right:
            right.hear(WELCOME)
