"""WAMP and AMQP in one router, joined."""
