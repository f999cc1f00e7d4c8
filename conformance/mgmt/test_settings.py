"""Users, vhosts, permissions, policies, limits and parameters, changed by requests.

The statuses and texts are those of RabbitMQ 3.10.8.
"""

from __future__ import annotations

import json
import resource
import signal

import pytest
from pika.exceptions import AMQPError
from rig.http import Http
from rig.router import Router
from rig.waiting import await_true

from mgmt.cases import ALL, Api
from mgmt.stage import configuration


def refused(api: Api, method: str, path: str, body: object = None, user: str = "guest"):
    """Return status and reason of a refusal."""
    answer = api.ask(method, path, body, user)
    return answer.status, json.loads(answer.body)["reason"]


def test_a_user_comes_logs_in_and_goes(api):
    body = {"password": "new", "tags": "management,monitoring"}
    assert api.ask("PUT", "users/new", body).status == 201
    assert api.ask("PUT", "users/new", body).status == 204
    found = api.json("users/new")
    assert (found["tags"], found["hashing_algorithm"]) == (
        ["management", "monitoring"],
        "rabbit_password_hashing_sha256",
    )
    with pytest.raises(AMQPError):
        api.connect("new")
    assert api.ask("PUT", "permissions/%2F/new", ALL).status == 201
    assert api.ask("PUT", "permissions/%2F/new", ALL).status == 204
    connection = api.connect("new")
    assert api.json("whoami", "new") == {"name": "new", "tags": ["management", "monitoring"]}
    assert api.ask("DELETE", "users/new").status == 204
    with pytest.raises(AMQPError):
        connection.process_data_events(10)
    assert api.ask("DELETE", "users/new").status == 404
    assert api.ask("GET", "whoami", user="new").status == 401


def test_users_of_the_configuration_stay(api):
    status, reason = refused(api, "DELETE", "users/monitoring")
    assert status == 409
    assert "monitoring" in reason
    assert api.ask("GET", "users/monitoring").status == 200


def test_several_users_are_deleted(api):
    for name in ("one", "two"):
        assert api.ask("PUT", f"users/{name}", {"password": name, "tags": ""}).status == 201
    absent = refused(api, "POST", "users/bulk-delete", {"users": ["one", "nope"]})
    assert absent == (400, "no_such_user: nope")
    both = {"users": ["one", "two"]}
    assert api.ask("POST", "users/bulk-delete", both).status == 204
    assert api.ask("GET", "users/one").status == 404


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("users/bad", {"password": "x"}, "tags_not_present"),
        ("permissions/%2F/nope", ALL, "vhost_or_user_not_found"),
        ("policies/%2F/bad", {"definition": {"max-length": 1}}, "[{key_missing,pattern}]"),
        (
            "policies/%2F/bad",
            {"pattern": "x", "definition": {"nope": 1}},
            'Validation failed\n\n[{&lt;&lt;"nope"&gt;&gt;,1}] '
            "are not recognised policy settings\n",
        ),
        (
            "operator-policies/%2F/bad",
            {"pattern": "x", "definition": {"nope": 1}},
            'Validation failed\n\n[{<<"nope">>,1}] are not recognised policy settings\n',
        ),
        (
            "vhost-limits/%2F/nope",
            {"value": 5},
            'Validation failed\n\nUnrecognised terms [{<<"nope">>,5}] in limits\n',
        ),
    ],
)
def test_bad_settings_are_refused(api, path, body, expected):
    assert refused(api, "PUT", path, body) == (400, expected)


def test_a_vhost_is_made_used_and_deleted(api):
    body = {"description": "made here", "tags": "a,b"}
    assert api.ask("PUT", "vhosts/made", body).status == 201
    assert api.ask("PUT", "vhosts/made", body).status == 204
    found = api.json("vhosts/made")
    assert (found["description"], found["tags"]) == ("made here", ["a", "b"])
    # The caller has all permissions in it.
    assert api.ask("PUT", "queues/made/q", {"durable": True}).status == 201
    connection = api.connect(vhost="made")
    assert api.ask("PUT", "vhost-limits/made/max-queues", {"value": 1}).status == 204
    full = refused(api, "PUT", "queues/made/r", {})
    assert full == (
        400,
        "cannot declare queue 'r': queue limit in vhost 'made' (1) is reached",
    )
    assert api.ask("DELETE", "vhost-limits/made/max-queues").status == 204
    assert api.ask("DELETE", "vhost-limits/made/max-queues").status == 204
    assert api.ask("PUT", "queues/made/r", {}).status == 201
    assert api.ask("DELETE", "vhosts/made").status == 204
    with pytest.raises(AMQPError):
        connection.process_data_events(10)
    assert api.ask("GET", "vhosts/made").status == 404
    assert api.ask("DELETE", "vhosts/made").status == 404


def test_a_policy_applies_and_is_withdrawn(api):
    assert api.ask("PUT", "queues/%2F/ruled", {}).status == 201
    body = {"pattern": "^ruled$", "definition": {"max-length": 2}, "apply-to": "queues"}
    assert api.ask("PUT", "policies/%2F/rule", body, "policymaker").status == 401
    assert api.ask("PUT", "policies/%2F/rule", body).status == 201
    assert api.ask("PUT", "policies/%2F/rule", body).status == 204

    def effective() -> tuple:
        found = api.json("queues/%2F/ruled")
        return found["policy"], found["effective_policy_definition"]

    await_true("it applies", lambda: effective() == ("rule", {"max-length": 2}))
    assert api.ask("DELETE", "policies/%2F/rule").status == 204
    await_true("it is withdrawn", lambda: effective() == (None, {}))
    assert api.ask("DELETE", "policies/%2F/rule").status == 404
    assert api.ask("DELETE", "queues/%2F/ruled").status == 204


def test_some_bodies_must_be_json_by_their_type(api):
    body = json.dumps({"value": 5}).encode()
    plain = {"Content-Type": "text/plain"}
    path = "vhost-limits/v2/max-connections"
    assert api.ask("PUT", path, body, headers=plain).status == 415
    assert api.ask("PUT", path, body).status == 415
    assert api.ask("PUT", path, {"value": 5}).status == 204
    assert api.ask("DELETE", path).status == 204


def test_the_cluster_has_another_name(api):
    assert api.ask("PUT", "cluster-name", {"name": "another"}).status == 204
    assert api.json("cluster-name") == {"name": "another"}
    assert {"name": "cluster_name", "value": "another"} in api.json("global-parameters")
    assert refused(api, "PUT", "cluster-name", {}) == (400, "[{key_missing,name}]")


def test_rights_of_settings(api):
    for user in ("management", "monitoring"):
        assert api.ask("GET", "parameters", user=user).status == 401
        assert api.ask("PUT", "users/x", {"tags": ""}, user).status == 401
        assert api.ask("PUT", "vhosts/x", {}, user).status == 401
    assert api.ask("GET", "parameters", user="policymaker").status == 200


def test_a_change_that_the_store_cannot_keep_is_not_made(tmp_path):
    def ignore() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    router = Router(tmp_path, config=configuration(), preexec=ignore)
    api = Api(Http(router.address("management")), router.address("amqp"))

    def bound(file_bytes: int) -> None:
        # Writes beyond it fail, as on a full disk.
        limits = (file_bytes, resource.RLIM_INFINITY)
        resource.prlimit(router.process.pid, resource.RLIMIT_FSIZE, limits)

    bound(0)
    for path, body in (
        ("vhosts/v", {"description": "kept with it"}),
        ("users/al", {"tags": "", "password": "al"}),
    ):
        status, reason = refused(api, "PUT", path, body)
        assert (status, "the store cannot keep the change" in reason) == (503, True), reason
        assert api.ask("GET", path).status == 404
    bound(resource.RLIM_INFINITY)
    body = {"description": "kept with it"}
    await_true("it can write", lambda: api.ask("PUT", "vhosts/v", body).status == 201)
    assert api.ask("PUT", "queues/v/q", {"durable": True}).status == 201
    bound(0)
    status, reason = refused(api, "DELETE", "vhosts/v")
    assert (status, "deleted once the store can write" in reason) == (503, True), reason
    bound(resource.RLIM_INFINITY)
    await_true("it is deleted", lambda: api.ask("PUT", "vhosts/v", {}).status == 201)
    assert api.json("vhosts/v")["description"] == ""
    router.stop()
