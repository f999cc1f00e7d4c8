"""Users that may log in from this machine alone, such as `guest`, on each protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pika.exceptions import ProbableAuthenticationError
from rig.http import Http
from rig.pika_client import connect
from rig.router import Router

from fleet.places import Place, configuration, outside

ADDRESS = outside()
TEXT = (
    "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. "
    "For details see the broker logfile."
)


@pytest.fixture(params=["rabbitmq", "crosstie"])
def place(request, tmp_path: Path) -> Iterator[Place]:
    """Each broker, where clients of other machines find it."""
    if ADDRESS is None:
        pytest.skip("this machine has loopback addresses only")
    found = Place()
    if request.param == "rabbitmq":
        judge = request.getfixturevalue("judge")
        for protocol in ("amqp", "http", "mqtt"):
            setattr(found, protocol, (ADDRESS, getattr(judge, protocol)[1]))
        yield found
        return
    node = configuration({}, {"anonymous_user": "guest"})
    for transport in node["workers"][0]["transports"]:
        transport["endpoint"]["interface"] = ADDRESS
    router = Router(tmp_path, config=node)
    found.amqp, found.mqtt = router.address("amqp"), router.address("mqtt")
    found.http = router.address("management")
    yield found
    router.stop()


def test_amqp(place: Place) -> None:
    with pytest.raises(ProbableAuthenticationError) as refused:
        connect(place.amqp, "guest")
    assert TEXT in str(refused.value)
    connect(place.amqp, "test").close()


def test_the_management_api(place: Place) -> None:
    answer = place.api.ask("GET", "whoami", user="guest")
    assert (answer.status, answer.header("www-authenticate")) == (401, None)
    reason = "User can only log in via localhost"
    assert json.loads(answer.body) == {"error": "not_authorised", "reason": reason}
    answer = place.api.ask("GET", "whoami", user="test")
    assert json.loads(answer.body)["reason"] == "Not management user"
    # A wrong password tells nothing.
    answer = Http(place.http).get("/api/whoami", {"Authorization": "Basic Z3Vlc3Q6eA=="})
    assert json.loads(answer.body)["reason"] == "Login failed"


@pytest.mark.parametrize(
    ("user", "password", "expected"),
    [("guest", b"guest", 5), ("guest", b"x", 4), (None, None, 5), ("test", b"test", 0)],
)
def test_mqtt(place: Place, user: str | None, password: bytes | None, expected: int) -> None:
    with place.peer() as peer:
        answer = peer.ask_to_connect("loopback", user=user, password=password)
    assert answer.code == expected
