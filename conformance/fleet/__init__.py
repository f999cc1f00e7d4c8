"""MQTT clients of an AMQP vhost: RabbitMQ's MQTT plugin judges, Crosstie is under test."""
