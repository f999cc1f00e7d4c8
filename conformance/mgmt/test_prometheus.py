"""Metrics under RabbitMQ's names: `/metrics`, `/metrics/per-object`, `/metrics/detailed`."""

from __future__ import annotations

import pytest

from mgmt import boards, cases
from mgmt.exposition import Samples, parsed

TEXT = "text/plain; version=0.0.4; charset=utf-8"
ODD = 'a "quoted" \\ name'


@pytest.fixture(scope="module", autouse=True)
def connection(api):
    """Pass messages through queues; stay connected."""
    connection = cases.prepare(api)
    channel = connection.channel()
    channel.queue_declare(ODD, exclusive=True)
    channel.basic_publish("", ODD, b"x" * 500)
    yield connection
    connection.close()


def scraped(stage, path: str = "/metrics") -> Samples:
    """Return the samples of an answer."""
    answer = stage.metrics.ask("GET", path)
    assert (answer.status, answer.header("content-type")) == (200, TEXT)
    return parsed(answer.body.decode())


def value(samples: Samples, name: str, **labels: str) -> float:
    """Return the value of the sample with these labels."""
    found = [value for has, value in samples[name] if labels.items() <= has.items()]
    assert len(found) == 1, (name, labels, samples[name])
    return found[0]


def test_every_family_of_the_boards_has_samples(stage):
    samples = scraped(stage)
    differences = {name for pair in boards.DIFFERENCES for name in pair}
    wanted = {*boards.GAUGES, *boards.COUNTERS, *differences}
    assert sorted(wanted - samples.keys()) == []
    sizes = [labels["le"] for labels, _ in samples["rabbitmq_message_size_bytes_bucket"]]
    assert tuple(sizes) == boards.SIZES
    ((identity, _),) = samples["rabbitmq_identity_info"]
    assert set(boards.IDENTITY) <= identity.keys()
    ((build, _),) = samples["rabbitmq_build_info"]
    assert set(boards.BUILD) <= build.keys()


def test_messages_are_counted_once(stage, api):
    samples = scraped(stage)
    channel = {"protocol": "amqp091", "queue_type": "rabbit_classic_queue"}
    before = {name: value(samples, name, **channel) for name in samples if "delivered_get" in name}
    connection = api.connect()
    passing = connection.channel()
    passing.confirm_delivery()
    passing.queue_declare("passing", exclusive=True)
    passing.basic_publish("", "passing", b"x" * 5000)
    passing.basic_get("passing", auto_ack=True)
    after = scraped(stage)
    grown = {name: value(after, name, **channel) - count for name, count in before.items()}
    assert grown == {
        "rabbitmq_global_messages_delivered_get_auto_ack_total": 1,
        "rabbitmq_global_messages_delivered_get_manual_ack_total": 0,
    }
    for name, more in (
        ("rabbitmq_global_messages_received_total", 1),
        ("rabbitmq_global_messages_received_confirm_total", 1),
        ("rabbitmq_global_messages_routed_total", 1),
        ("rabbitmq_global_messages_confirmed_total", 1),
        ("rabbitmq_global_publishers", 1),
        ("rabbitmq_queues_created_total", 1),
        ("rabbitmq_message_size_bytes_sum", 5000),
    ):
        assert value(after, name) - value(samples, name) == more, name
    assert value(after, "rabbitmq_message_size_bytes_bucket", le="1000.0") == value(
        samples, "rabbitmq_message_size_bytes_bucket", le="1000.0"
    )
    connection.close()


def test_objects_have_samples_of_their_own(stage):
    samples = scraped(stage, "/metrics/per-object")
    assert value(samples, "rabbitmq_queue_messages_ready", vhost="v2", queue="m1") == 0
    assert value(samples, "rabbitmq_queue_messages_ready", vhost="/", queue="m1") == 1
    assert value(samples, "rabbitmq_queue_messages_published_total", queue="counted") == 3
    assert value(samples, "rabbitmq_channel_messages_acked_total", queue="counted") == 1
    # A name with what the format escapes.
    assert value(samples, "rabbitmq_queue_messages_ready", queue=ODD) == 1
    (channel,) = {
        labels["channel"]
        for labels, count in samples["rabbitmq_channel_messages_published_total"]
        if count == 7
    }
    assert channel.endswith(" (1)")
    connection = channel.removesuffix(" (1)")
    received = value(samples, "rabbitmq_connection_incoming_bytes_total", channel=connection)
    assert received > 1000
    # Queues without messages so far have no counters.
    counted = {labels["queue"] for labels, _ in samples["rabbitmq_queue_messages_published_total"]}
    assert "x1" not in counted


def test_detailed_metrics_are_those_that_are_named(stage):
    families = "family=queue_coarse_metrics&family=queue_consumer_count"
    samples = scraped(stage, f"/metrics/detailed?{families}")
    prefix = "rabbitmq_detailed_queue"
    assert samples.keys() == {
        "rabbitmq_build_info",
        "rabbitmq_identity_info",
        f"{prefix}_messages_ready",
        f"{prefix}_messages_unacked",
        f"{prefix}_messages",
        f"{prefix}_consumers",
    }
    assert value(samples, f"{prefix}_consumers", queue="consumed") == 1
    only = scraped(stage, "/metrics/detailed?family=queue_coarse_metrics&vhost=v2")
    vhosts = {labels["vhost"] for labels, _ in only[f"{prefix}_messages_ready"]}
    assert vhosts == {"v2"}
    cluster = scraped(stage, "/metrics/detailed?family=vhost_status&family=exchange_bindings")
    assert value(cluster, "rabbitmq_cluster_vhost_status", vhost="v2") == 1
    bindings = value(cluster, "rabbitmq_cluster_exchange_bindings", vhost="/", exchange="e1")
    assert bindings == 2
    assert scraped(stage, "/metrics/detailed?family=nope").keys() == {
        "rabbitmq_build_info",
        "rabbitmq_identity_info",
    }


@pytest.mark.parametrize(
    ("method", "path", "accept", "status"),
    [
        ("GET", "/metrics/nope", None, 404),
        ("GET", "/", None, 404),
        ("GET", "/api/overview", None, 404),
        ("HEAD", "/metrics", None, 204),
        ("POST", "/metrics", None, 405),
        ("DELETE", "/metrics/detailed", None, 405),
        ("GET", "/metrics", "application/openmetrics-text", 406),
        ("GET", "/metrics", "text/plain;version=0.0.4;q=0.3,*/*;q=0.1", 200),
    ],
)
def test_requests_have_rabbitmqs_status(stage, method, path, accept, status):
    headers = {"Accept": accept} if accept else {}
    assert stage.metrics.ask(method, path, headers).status == status
