"""Scenarios on which mosquitto 2.0.11 differs from the specification, and what it does.

A key is a test's name, that and a version, or the name with all parameters. Each of these tests has
to fail on mosquitto: one that passes is to be removed from here.
"""

from __future__ import annotations

from rig.mqtt_wire import V5, V31, V311

_LOWER_QOS = "sends one copy, at the QoS of the more exact filter, if that is the lower one too"
_DROPPED_WILL = "drops the will at any code but 0 and 4"

DIFFERENT: dict[str | tuple[str, int], str] = {
    ("test_a_second_connect_ends_the_connection", V5): "closes without DISCONNECT",
    ("test_filters_that_overlap", V31): _LOWER_QOS,
    ("test_filters_that_overlap", V311): _LOWER_QOS,
    "test_a_subscription_that_is_refused": "accepts it, and delivers nothing: its lists of rules "
    "are for messages alone",
    "test_retained_for_a_shared_subscription": "sends it to each member",
    "test_qos_2_that_is_repeated_at_once": "closes at the third copy",
    "test_alias_0": "says 0x81",
    "test_the_receive_maximum_of_a_client": "sends two messages in the place of one, once one of "
    "QoS 2 has ended",
    "test_an_error_ends_a_message_of_qos_2": "sends nothing more",
    "test_the_receive_maximum_of_the_broker": "neither disconnects nor answers",
    "test_a_shared_subscription_and_members_that_are_away": "deals to them as to the others",
    "test_what_a_shared_member_leaves_behind": "drops it",
    "test_a_session_that_goes_on_elsewhere": "publishes no will if the session goes on",
    "test_a_disconnect_that_leaves_it[mosquitto-128]": _DROPPED_WILL,
    "test_a_disconnect_that_leaves_it[mosquitto-131]": _DROPPED_WILL,
    "test_a_disconnect_that_leaves_it[mosquitto-151]": _DROPPED_WILL,
    "test_a_delay_ends_with_the_session[mosquitto-0]": "waits for the whole delay",
    "test_a_delay_and_a_new_session": "drops the will",
}

# Scenarios that fail on mosquitto now and then, and are left out there.
UNSTEADY: dict[str, str] = {
    "test_qos_2_is_exactly_once": "repeats PUBLISH after PUBREL if two connections are lost",
}

# mosquitto looks for silent clients every few seconds.
SLOW = {"test_a_client_that_is_silent", "test_a_client_that_pings"}
