"""Registrations over every link: exclusive, shared, by pattern, and the disclosure of callers."""

import pytest
from conftest import DISCLOSED, FORBIDDEN
from rig.puppet import WampError


def constant(value: object) -> dict:
    return {"do": "constant", "value": value}


def test_a_procedure_has_one_callee(session, other, uri):
    session.register(uri, constant(1))
    with pytest.raises(WampError) as raised:
        other.register(uri, constant(2))
    assert raised.value.uri == "wamp.error.procedure_already_exists"


def test_unregistering_frees_the_name(session, other, uri):
    session.unregister(session.register(uri, constant(1)))
    with pytest.raises(WampError) as raised:
        other.call(uri)
    assert raised.value.uri == "wamp.error.no_such_procedure"
    other.register(uri, constant(2))
    assert session.call(uri).args == [2]


def test_forbidden_procedures(session):
    with pytest.raises(WampError) as raised:
        session.register(f"{FORBIDDEN}.procedure", constant(1))
    assert raised.value.uri == "wamp.error.not_authorized"
    with pytest.raises(WampError) as raised:
        session.call(f"{FORBIDDEN}.procedure")
    assert raised.value.uri == "wamp.error.not_authorized"


def test_names_of_the_router_are_refused(link, session):
    with pytest.raises(WampError) as raised:
        session.register("wamp.mine", constant(1))
    assert raised.value.uri in ("wamp.error.invalid_uri", "wamp.error.not_authorized")


def test_a_prefix_registration_is_told_the_procedure(session, other, uri):
    session.register(uri, {"do": "describe"}, match="prefix")
    for procedure in (uri, f"{uri}.a", f"{uri}.a.b"):
        assert other.call(procedure).args[0]["procedure"] == procedure


def test_a_wildcard_registration_is_told_the_procedure(session, other, uri):
    session.register(f"{uri}..end", {"do": "describe"}, match="wildcard")
    assert other.call(f"{uri}.any.end").args[0]["procedure"] == f"{uri}.any.end"
    with pytest.raises(WampError):
        other.call(f"{uri}.any.other")


def test_the_best_match_is_called(session, other, uri):
    session.register(f"{uri}.a.b.c", constant("exact"))
    session.register(f"{uri}.a", constant("prefix"), match="prefix")
    session.register(f"{uri}.a.b", constant("longer prefix"), match="prefix")
    session.register(f"{uri}..b.c.d", constant("wildcard"), match="wildcard")
    session.register(f"{uri}.x...d", constant("far wildcard"), match="wildcard")
    for procedure, expected in [
        (f"{uri}.a.b.c", "exact"),
        (f"{uri}.a.b.c.d", "longer prefix"),
        (f"{uri}.a.x", "prefix"),
        (f"{uri}.z.b.c.d", "wildcard"),
        (f"{uri}.x.q.r.d", "far wildcard"),
    ]:
        assert other.call(procedure).args == [expected], procedure


@pytest.mark.parametrize(
    ("policy", "expected"), [("roundrobin", "ababab"), ("first", "aaaaaa"), ("last", "bbbbbb")]
)
def test_shared_registrations_in_order(session, other, uri, policy, expected):
    session.register(uri, constant("a"), invoke=policy)
    other.register(uri, constant("b"), invoke=policy)
    called = "".join(session.call(uri).args[0] for _ in range(6))
    assert called in (expected, "bababa" if policy == "roundrobin" else expected)


def test_a_random_registration_calls_all_callees(session, other, uri):
    session.register(uri, constant("a"), invoke="random")
    other.register(uri, constant("b"), invoke="random")
    # One of two callees left out of 200 calls: 2^-199.
    assert {session.call(uri).args[0] for _ in range(200)} == {"a", "b"}


def test_policies_do_not_mix(session, other, uri):
    session.register(uri, constant("a"), invoke="roundrobin")
    with pytest.raises(WampError) as raised:
        other.register(uri, constant("b"), invoke="first")
    assert raised.value.uri in (
        "wamp.error.procedure_already_exists",
        "wamp.error.procedure_exists_with_different_invocation_policy",
    )


def test_a_shared_registration_outlives_one_callee(session, other, open_link, link, uri):
    session.register(uri, constant("a"), invoke="roundrobin")
    other.register(uri, constant("b"), invoke="roundrobin")
    other.leave()
    caller = open_link(link)
    assert [caller.call(uri).args[0] for _ in range(4)] == ["a"] * 4


def test_a_caller_is_disclosed_where_the_realm_says_so(session, other, uri):
    procedure = f"{DISCLOSED}.{uri}"
    session.register(procedure, {"do": "describe"})
    described = other.call(procedure).args[0]
    assert described["caller"] == other.id
    assert described["caller_authid"] == other.details["authid"]
    assert described["caller_authrole"] == "anonymous"


def test_a_caller_is_not_disclosed_otherwise(session, other, uri):
    session.register(uri, {"do": "describe"})
    described = other.call(uri).args[0]
    assert described["caller"] is None
    assert described["caller_authid"] is None
