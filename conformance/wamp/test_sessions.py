"""Joining and leaving over every link."""

import pytest
from rig.puppet import WampError
from rig.rawsocket import RawSocket
from rig.session import GOODBYE


def test_welcome_says_who_one_is(session):
    assert 0 < session.id <= 2**53
    assert session.details["realm"] == "realm1"
    assert session.details["authrole"] == "anonymous"
    assert session.details["authmethod"] == "anonymous"
    assert session.details["authid"]


def test_a_realm_that_is_not_there(link, new_session, place_of):
    with pytest.raises(WampError) as raised:
        new_session(link.client).open(place_of(link), realm="com.no.such.realm")
    assert raised.value.uri == "wamp.error.no_such_realm"


def test_goodbye_is_answered(session):
    # Programs written for Crossbar.io tell by it that all went well.
    assert session.leave() == "wamp.close.normal"


def test_goodbye_is_answered_as_the_specification_has_it(router):
    with RawSocket.tcp(router.address("tcp")).shake_hands().join() as peer:
        for said in ("wamp.close.close_realm", "wamp.close.system_shutdown", "com.example.bye"):
            peer.say(GOODBYE, {}, said)
            assert peer.hear(GOODBYE) == [GOODBYE, {}, "wamp.close.goodbye_and_out"]
            peer.join()


def test_sessions_in_turn_on_one_connection(link, session, other, uri):
    first = session.id
    session.subscribe(uri)
    session.leave(keep=True)
    session.join()
    assert session.id != first
    # The first session's state has ended with it.
    other.publish(uri, 1)
    session.subscribe(uri)
    other.publish(uri, 2)
    assert session.next("published")["args"] == [2]
    session.leave(keep=True)
    session.join("realm2")
    assert session.details["realm"] == "realm2"


def test_realms_do_not_hear_each_other(link, session, open_link, uri):
    elsewhere = open_link(link, realm="realm2")
    elsewhere.subscribe(uri)
    session.publish(uri, 1)
    elsewhere.round_trip()
    assert elsewhere.told_nothing()
