"""Where the outcomes of RabbitMQ's commands differ, and why."""

from __future__ import annotations

KIND = "vhosts have no default type of queues but classic"
TAGS = "RabbitMQ keeps the words of --tags as a text"
TERM = "RabbitMQ prints a term of Erlang"
HOST = "an address is a text, and in RabbitMQ a list of numbers"
ERLANG = "figures of Erlang's memory and plugins"
ABSENT = "a command that Crosstie does not have"
PORTS = "RabbitMQ has a port for its cluster, and another order"

DIFFERENT = {
    "~ ctl list_users --formatter pretty_table": "RabbitMQ writes several tags as one word",
    "= ctl add_vhost v3 --default-queue-type quorum": KIND,
    "~ ctl list_vhosts": KIND,
    "~ ctl -q list_vhosts name tracing": KIND,
    "= ctl delete_vhost v3": KIND,
    "~ ctl list_vhosts name description tags default_queue_type --formatter json": TAGS,
    "~ ctl -q list_vhosts name description tags": TAGS,
    "~ ctl list_vhosts name tags --formatter json": TAGS,
    "! ctl set_permissions alice ( .* .*": TERM,
    "! ctl set_topic_permissions alice amq.topic ( .*": TERM,
    "! ctl set_policy bad ^q nojson": TERM,
    "! ctl set_parameter a b nojson": TERM,
    "! ctl set_global_parameter a nojson": TERM,
    "! ctl set_vhost_limits nojson": TERM,
    "! ctl set_user_limits alice nojson": TERM,
    "! ctl set_user_limits alice '[]'": TERM,
    "~ ctl list_connections user peer_host --formatter json": HOST,
    ": ctl list_connections --formatter json": HOST,
    ": ctl status --formatter json": ERLANG,
    ": diag status --formatter json": ERLANG,
    "~ ctl -q list_feature_flags name state": "mirrors and maintenance mode do not exist",
    "? ctl environment": ABSENT,
    "? diag memory_breakdown": ABSENT,
    ": diag memory_breakdown --formatter json": ABSENT,
    "= diag check_port_connectivity": PORTS,
    "= diag -q check_port_connectivity": PORTS,
    "! diag check_port_listener 1": PORTS,
    "! diag check_protocol_listener nope": PORTS,
}
