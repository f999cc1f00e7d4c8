"""Other people's clients of MQTT, each behind the same few methods."""
