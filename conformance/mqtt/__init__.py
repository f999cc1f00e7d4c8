"""MQTT: by hand and by other people's clients, judged by mosquitto, and beside WAMP."""
