"""Call cancelling, in every mode that the clients can say."""

from rig.links import only
from rig.puppet import failure, result

HOLD = {"do": "hold"}


def test_kill_interrupts_the_callee_and_waits_for_it(link, session, other, uri):
    session.register(uri, HOLD)
    call = other.start_call(uri)
    invoked = session.next("invoked")
    other.cancel(call, "kill")
    if link.is_javascript:
        # Its callees do not know INTERRUPT and do not announce it: the router may not send
        # it, and answers by itself.
        assert failure(call).uri == "wamp.error.canceled"
        session.release(invoked["invocation"], "too late")
    else:
        assert session.next("interrupted")["invocation"] == invoked["invocation"]
        # autobahn-python makes a runtime_error of its cancelled future; the caller reads what it
        # asked for.
        assert failure(call).uri == "wamp.error.canceled"
    session.round_trip()


# autobahn-js gets an answer in mode kill only: in any other it takes one for a violation. Its
# callees do not know INTERRUPT. `strangers` has its tests.
python = only(lambda link: not link.is_javascript)


@python
def test_killnowait_answers_at_once_and_interrupts(session, other, uri):
    session.register(uri, HOLD)
    call = other.start_call(uri)
    invoked = session.next("invoked")
    other.cancel(call, "killnowait")
    assert failure(call).uri == "wamp.error.canceled"
    assert session.next("interrupted")["invocation"] == invoked["invocation"]
    session.round_trip()


@python
def test_skip_answers_at_once_and_leaves_the_callee_alone(session, other, uri):
    session.register(uri, HOLD)
    call = other.start_call(uri)
    invoked = session.next("invoked")
    other.cancel(call, "skip")
    assert failure(call).uri == "wamp.error.canceled"
    session.round_trip()
    assert session.told_nothing()
    session.release(invoked["invocation"], "too late")
    # The late answer has no effect.
    second = other.start_call(uri)
    session.release(session.next("invoked")["invocation"], "in time")
    assert result(second).args == ["in time"]


@python
def test_a_leaving_caller_interrupts_its_invocation(session, other, uri):
    session.register(uri, HOLD)
    other.start_call(uri)
    invoked = session.next("invoked")
    other.drop()
    assert session.next("interrupted")["invocation"] == invoked["invocation"]
    session.round_trip()
