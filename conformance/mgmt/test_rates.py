"""Counters and rates of the management API, as monitoring tools read them."""

from __future__ import annotations

from rig.waiting import await_true


def test_keda_sees_the_rate_of_publications(api):
    connection = api.connect()
    channel = connection.channel()
    channel.queue_declare("scaled", durable=True)

    def rates() -> dict:
        channel.basic_publish("", "scaled", b"message")
        channel.basic_get("scaled", auto_ack=True)
        return api.json("queues/%2F/scaled").get("message_stats", {})

    def is_seen() -> bool:
        stats = rates()
        names = ("publish_details", "deliver_get_details")
        return all(stats.get(name, {}).get("rate", 0) > 0 for name in names)

    await_true("the rates of the queue are known", is_seen)
    assert rates()["publish"] == rates()["publish"] - 1
    # Pages have them, too, and can be sorted by them.
    query = "page=1&name=scaled&columns=name,message_stats.publish_details.rate"
    (row,) = api.json(f"queues?{query}")["items"]
    assert row["message_stats"]["publish_details"]["rate"] > 0
    by_rate = api.json("queues?sort=message_stats.publish_details.rate&columns=name")
    assert by_rate[-1] == {"name": "scaled"}
    connection.close()


def test_the_overview_sums_what_vhosts_and_connections_count(api):
    before = api.json("overview")
    connection = api.connect(vhost="v2")
    channel = connection.channel()
    channel.queue_declare("summed", exclusive=True)
    channel.basic_publish("", "summed", b"x" * 1000)
    channel.basic_get("summed", auto_ack=True)
    after = api.json("overview")
    churn = {
        name: after["churn_rates"][name] - before["churn_rates"][name]
        for name in ("connection_created", "channel_created", "queue_declared", "queue_created")
    }
    assert churn == dict.fromkeys(churn, 1)
    counted = before["message_stats"].get("publish", 0)
    assert after["message_stats"]["publish"] == counted + 1
    (found,) = [row for row in api.json("connections") if row["vhost"] == "v2"]
    assert found["recv_oct"] > 1000
    assert found["send_oct"] > 1000
    vhost = api.json("vhosts/v2")
    assert vhost["recv_oct"] >= found["recv_oct"]
    assert vhost["message_stats"]["get_no_ack"] == 1
    connection.close()

    def is_closed() -> bool:
        closed = api.json("overview")["churn_rates"]
        return closed["connection_closed"] > before["churn_rates"]["connection_closed"]

    await_true("the end of the connection is counted", is_closed)
    # What a closed connection brought still counts.
    assert api.json("vhosts/v2")["recv_oct"] >= found["recv_oct"]


def test_counters_of_a_deleted_vhost_stay_in_the_overview(api):
    assert api.ask("PUT", "vhosts/passing", {}).status == 201
    connection = api.connect(vhost="passing")
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare("q", exclusive=True)
    channel.basic_publish("", "q", b"x")
    counted = api.json("overview")["message_stats"]["publish"]
    assert api.ask("DELETE", "vhosts/passing").status == 204
    assert api.json("overview")["message_stats"]["publish"] == counted
