"""Calls over every link: arguments, results, errors, progress."""

import pytest
from rig.links import only
from rig.puppet import WampError, failure, result

ECHO = {"do": "echo"}

VALUES = [
    None,
    True,
    False,
    0,
    -1,
    42,
    2**31,
    2**53 - 1,
    -(2**53) + 1,
    1.5,
    -0.25,
    "",
    'ü€😀 "quoted" \\ \n\t\u0001',
    [],
    {},
    [1, [2, [3, []]]],
    {"a": {"b": [None, True, {"c": "d"}]}, "": "empty key", "ä": 1},
]


def test_arguments_come_back_as_they_went(session, other, uri):
    session.register(uri, ECHO)
    reply = other.call(uri, *VALUES, text="ü", number=7, nested={"list": [1, 2, 3]}, nothing=None)
    assert reply.args == VALUES
    assert reply.kwargs == {
        "text": "ü",
        "number": 7,
        "nested": {"list": [1, 2, 3]},
        "nothing": None,
    }


def test_a_call_without_arguments(session, other, uri):
    session.register(uri, ECHO)
    reply = other.call(uri)
    assert (reply.args, reply.kwargs) == ([], {})


@only(lambda link: link.holds_binary)
def test_octets_come_back_as_they_went(session, other, uri):
    session.register(uri, ECHO)
    octets = bytes(range(256))
    reply = other.call(uri, octets, b"", data=octets)
    assert reply.args == [octets, b""]
    assert reply.kwargs == {"data": octets}


def test_a_mebibyte(session, other, uri):
    session.register(uri, ECHO)
    text = "0123456789abcdef" * 65536
    assert other.call(uri, text).args == [text]


def test_a_session_calls_itself(session, uri):
    session.register(uri, ECHO)
    assert session.call(uri, 1).args == [1]


def test_an_error_keeps_its_arguments(session, other, uri):
    session.register(
        uri, {"do": "raise", "uri": "com.app.broken", "args": ["why", 7], "kwargs": {"at": [1]}}
    )
    with pytest.raises(WampError) as raised:
        other.call(uri)
    error = raised.value
    assert (error.uri, error.arguments, error.kwargs) == ("com.app.broken", ["why", 7], {"at": [1]})


def test_no_such_procedure(session, uri):
    with pytest.raises(WampError) as raised:
        session.call(uri)
    assert raised.value.uri == "wamp.error.no_such_procedure"


def test_many_calls_at_once_each_get_their_own_result(session, other, uri):
    session.register(uri, ECHO)
    calls = [other.start_call(uri, number) for number in range(200)]
    assert [result(call).args for call in calls] == [[number] for number in range(200)]


def test_answers_may_come_in_another_order(session, other, uri):
    session.register(uri, {"do": "hold"})
    first, second = other.start_call(uri, "a"), other.start_call(uri, "b")
    one, two = session.next("invoked"), session.next("invoked")
    assert (one["args"], two["args"]) == (["a"], ["b"])
    session.release(two["invocation"], "B")
    assert result(second).args == ["B"]
    session.release(one["invocation"], "A")
    assert result(first).args == ["A"]


def test_progress_comes_before_the_result(session, other, uri):
    session.register(uri, {"do": "progress", "count": 5})
    reply = result(other.start_call(uri, options={"receive_progress": True}))
    expected = [{"args": [n], "kwargs": {"number": n}} for n in range(5)]
    assert reply.progress == expected
    assert reply.args == ["done"]


def test_no_progress_unless_asked_for(session, other, uri):
    session.register(uri, {"do": "progress", "count": 5})
    reply = other.call(uri)
    assert (reply.progress, reply.args) == ([], ["done"])


def test_the_call_of_a_callee_that_leaves_fails(session, other, uri):
    session.register(uri, {"do": "hold"})
    call = other.start_call(uri)
    session.next("invoked")
    session.drop()
    assert failure(call).uri == "wamp.error.canceled"
    with pytest.raises(WampError) as raised:
        other.call(uri)
    assert raised.value.uri == "wamp.error.no_such_procedure"


def test_the_call_of_a_callee_that_says_goodbye_fails(session, other, uri):
    session.register(uri, {"do": "hold"})
    call = other.start_call(uri)
    session.next("invoked")
    session.leave()
    assert failure(call).uri == "wamp.error.canceled"


def test_a_call_times_out(session, other, uri):
    session.register(uri, {"do": "hold"})
    # The router counts in milliseconds, whatever the client's own words for it say.
    call = other.start_call(uri, options={"timeout": 50})
    session.next("invoked")
    assert failure(call).uri == "wamp.error.timeout"


def test_a_call_within_its_timeout(session, other, uri):
    session.register(uri, ECHO)
    assert result(other.start_call(uri, 1, options={"timeout": 60_000})).args == [1]
